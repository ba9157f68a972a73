"""One Spark for all tests of a process; starting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.spark.session import session
from tests.pipeline.gallery import report_on_gallery
from tests.pipeline.quick import INTERPRETED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that need Spark are run by one process of a parallel run, in the one JVM that gets warm."""
    here = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    on_spark = {item.path for item in here if "spark" in getattr(item, "fixturenames", ())}
    for item in here:
        item.add_marker(pytest.mark.xdist_group("spark" if item.path in on_spark else item.path.stem))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two threads of this machine, with settings for small data: to compile a plan takes longer than to run it.

    One JVM runs the plans of all these tests, and a gigabyte is not enough for what it keeps of them.
    """
    with session("local[2]", fast=True, settings=INTERPRETED | {"spark.driver.memory": "3g"}) as started:
        yield started


@pytest.fixture(scope="session")
def gallery_report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the gallery's ``journals``, the report on them in ``out`` and its ``findings.json``."""
    folder = tmp_path_factory.mktemp("gallery")
    report_on_gallery(spark, folder)
    return folder
