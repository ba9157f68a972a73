"""One Spark for all tests of a process; starting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.spark.session import session
from tests.pipeline.gallery import made_once, report_on_gallery
from tests.pipeline.quick import INTERPRETED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share slow results of Spark run in one process of a parallel run."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("xdist_group") is None:
            shared = "gallery_report" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark-gallery" if shared else item.path.stem))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two threads of this machine, with settings for small data: to compile a plan takes longer than to run it."""
    with session("local[2]", fast=True, settings=INTERPRETED) as started:
        yield started


@pytest.fixture(scope="session")
def gallery_report(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder with the gallery's ``journals``, the report on them in ``out`` and its ``findings.json``.

    One process of a test run makes it; one that does not needs no Spark for it.
    """

    def make(folder: Path) -> None:
        request.getfixturevalue("spark")
        report_on_gallery(folder)

    base = tmp_path_factory.getbasetemp()
    # Under xdist each process has a folder of its own in that of the run.
    return made_once(base.parent if base.name.startswith("popen-") else base, make)
