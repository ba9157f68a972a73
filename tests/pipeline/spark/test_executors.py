"""On real executors: a standalone master and a worker on this machine, other processes with no code of ours.

``make executors`` runs these: a minute of CPU goes by before the first task. test_shipped_code.py has what tasks do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rejoin.simulation.run import play
from tests import paths
from tests.journal.few_records import of_the_gallery
from tests.pipeline.quick import environment
from tests.pipeline.spark.executors import write_tables
from tests.pipeline.spark.standalone import standalone
from tests.pipeline.sweep.sweeps import GRID, files, grid, swept

PATIENCE_S = 500.0
TABLES = os.environ.get("REJOIN_EXECUTOR_TABLES", "")
"""Which tables executors make, or ``all``; without it, nothing is started."""
SEEDS = 15
SWEEP = GRID.replace("seeds: 4", f"seeds: {SEEDS}")
RUNS = 4 * SEEDS
BOTH_FROM_THE_START = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
    "spark.sql.shuffle.partitions": "2",
}


class Work(NamedTuple):
    """What executors were given, what they made of it, and what was printed meanwhile."""

    inputs: list[str]
    out: Path
    printed: str
    problems: str


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Tables and a sweep by two executors, one of which is killed in the middle of the sweep."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "grid.yaml").write_text(SWEEP)
    journal = folder / "run.jsonl"
    play(of_the_gallery("gc_pause_longer_than_the_session"), journal=journal)
    # Python on the executors reads the lines of a broker's log.
    inputs = [str(journal), str(paths.RECORDED / "small" / "group-coordinator.log")]
    with standalone(folder, cores=2) as master:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.spark.executors", master, "out", TABLES, "grid.yaml", *inputs],
            cwd=folder,
            env=environment(folder, **BOTH_FROM_THE_START) | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return Work(inputs, folder / "out", done.stdout, done.stderr)


def test_an_executor_that_is_killed_changes_nothing_in_a_sweep(work: Work, tmp_path: Path) -> None:
    estimate, *progress = work.problems.splitlines()
    assert re.fullmatch(rf"{RUNS} runs to play, \d+ at a time; one took [\d.]+ s, so about [\d.]+ \w+", estimate)
    assert [line for line in progress if not re.fullmatch(rf"\d+ of {RUNS} runs(, about [\d.]+ \w+ left)?", line)] == []
    assert " runs finished before" not in work.printed
    assert "1* static membership + down for 5s: 0 rebalances, 0 consumer-seconds stopped" in work.printed

    rows = pq.read_table(work.out / "sweep" / "runs.parquet").to_pylist()
    assert len(rows) == RUNS
    assert {row["status"] for row in rows} == {"ok"}
    executors = {row["executor"] for row in rows}
    assert {"0", "1"} <= executors
    # One is played where the command runs, to say how long all will take.
    assert Counter(row["executor"] for row in rows)["local"] == 1
    assert len({row["pid"] for row in rows}) >= 2
    swept(grid(SWEEP), tmp_path / "here", version=rows[0]["code_version"])
    assert files(work.out / "sweep") == files(tmp_path / "here")


def rows_of(tables: Path) -> dict[str, list[str]]:
    """The rows of each table. How many files there are in one is up to the executors."""
    return {
        folder.name: sorted(str(row) for row in pq.read_table(folder).to_pylist())
        for folder in sorted(tables.iterdir())
    }


def test_executors_make_the_tables_that_this_process_makes(work: Work, spark: SparkSession, tmp_path: Path) -> None:
    write_tables(spark, TABLES.split(","), work.inputs, tmp_path / "here")
    there = rows_of(work.out / "tables")
    assert {"events", "rebalances"} <= set(there)
    assert len(there["rebalances"]) > 2
    assert there == rows_of(tmp_path / "here")
