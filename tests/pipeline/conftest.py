"""One Spark for all tests of a process; starting it takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.spark.session import spark_session
from tests.pipeline.gallery import report_on_gallery
from tests.pipeline.quick import INTERPRETED, JVM

READ_RECORDINGS: Final = frozenset(
    ("test_recovered", "test_recorded_clients", "test_drawn_client_logs", "test_one_member", "test_pauses")
)
"""Files with tests of what the recorded logs of all clients say."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that need Spark are run by one process of a parallel run, whose JVM gets warm.

    Those that look at the report on the gallery are run by another, which makes it once, and those that read the
    recorded logs of clients by a third, which reads each log once.
    """
    folder = Path(__file__).parent
    beginning = f"{folder}{os.sep}"
    here = [item for item in items if str(item.path).startswith(beginning)]
    groups = {
        item.path: fixture
        for fixture in ("gallery_report", "spark")
        for item in here
        if fixture in getattr(item, "fixturenames", ())
    }
    for item in here:
        together = "recorded-clients" if item.path.stem in READ_RECORDINGS else item.path.stem
        item.add_marker(pytest.mark.xdist_group(groups.get(item.path, together)))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two threads of this machine, with settings for small data: to compile a plan takes longer than to run it."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in JVM.items():
            environment.setenv(name, value)
        started = spark_session("local[2]", fast=True, settings=INTERPRETED)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def gallery_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the gallery's ``journals``, the report on them in ``out`` and its ``findings.json``."""
    folder = tmp_path_factory.mktemp("gallery")
    report_on_gallery(folder)
    return folder
