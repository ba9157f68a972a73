"""On real executors: a standalone master and two workers on this machine, other processes with no code of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import read_scenario
from tests import paths
from tests.pipeline.quick import environment
from tests.pipeline.spark.executors import write_tables
from tests.pipeline.spark.standalone import Cluster, standalone
from tests.pipeline.sweep.sweeps import GRID, files, grid, swept

ROOT = paths.ROOT
PATIENCE_S = 240.0
TABLES = os.environ.get("REJOIN_EXECUTOR_TABLES", "rebalances,member_sessions")
"""Which tables executors make; ``make executors`` makes all."""
SWEEP = GRID.replace("seeds: 4", "seeds: 25")
BOTH_FROM_THE_START = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


def test_an_executor_that_is_killed_changes_nothing_in_a_sweep(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(SWEEP)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rejoin", "sweep", "grid.yaml", "--out", "out", "--master", cluster.url]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path, **BOTH_FROM_THE_START),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as sweep:
        victim = one_of_two_that_have_played(cluster, out, sweep)
        victim.kill()
        printed, problems = sweep.communicate(timeout=PATIENCE_S)
    assert sweep.returncode == 0
    estimate, *progress = problems.splitlines()
    assert re.fullmatch(r"100 runs to play, \d+ at a time; one took [\d.]+ s, so about [\d.]+ \w+", estimate)
    assert [line for line in progress if not re.fullmatch(r"\d+ of 100 runs(, about [\d.]+ \w+ left)?", line)] == []
    assert " runs finished before" not in printed
    assert "1* static membership + down for 5s: 0 rebalances, 0 consumer-seconds stopped" in printed

    rows = pq.read_table(out / "runs.parquet").to_pylist()
    assert len(rows) == 100
    assert {row["status"] for row in rows} == {"ok"}
    executors = {row["executor"] for row in rows}
    assert {"0", "1"} <= executors
    # One is played where the command runs, to say how long all will take.
    assert Counter(row["executor"] for row in rows)["local"] == 1
    assert len({row["pid"] for row in rows}) >= 2
    swept(grid(SWEEP), tmp_path / "here", version=rows[0]["code_version"])
    assert files(out) == files(tmp_path / "here")


def rows_of(tables: Path) -> dict[str, list[str]]:
    """The rows of each table. How many files there are in one is up to the executors."""
    return {
        folder.name: sorted(str(row) for row in pq.read_table(folder).to_pylist())
        for folder in sorted(tables.iterdir())
    }


def test_executors_make_the_tables_that_this_process_makes(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """From a journal and from a broker's log, which Python on the executors reads."""
    journal = tmp_path / "run.jsonl"
    play(read_scenario(paths.GALLERY / "gc_pause_longer_than_the_session.yaml"), journal=journal)
    inputs = [str(journal), str(paths.RECORDED / "small" / "group-coordinator.log")]
    command = [sys.executable, "-m", "tests.pipeline.spark.executors", cluster.url, str(tmp_path / "there"), TABLES]
    done = subprocess.run(
        [*command, *inputs],
        env=environment(tmp_path, **BOTH_FROM_THE_START),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    write_tables(spark, TABLES.split(","), inputs, tmp_path / "here")
    there = rows_of(tmp_path / "there")
    assert {"events", "rebalances"} <= set(there)
    assert len(there["rebalances"]) > 2
    assert there == rows_of(tmp_path / "here")


def one_of_two_that_have_played(cluster: Cluster, out: Path, sweep: subprocess.Popen[str]) -> psutil.Process:
    """An executor, as soon as rows of two are on disk."""
    deadline = time.monotonic() + PATIENCE_S
    seen: set[str] = set()
    read: set[Path] = set()
    while time.monotonic() < deadline and sweep.poll() is None:
        for path in sorted((out / "finished").glob("*.parquet")):
            if path not in read:
                read.add(path)
                seen |= set(pq.read_table(path, columns=["executor"]).column(0).to_pylist())
        if len(seen - {"local"}) >= 2:
            return cluster.executors()[0]
        time.sleep(0.02)
    raise AssertionError(f"two executors never played: {seen}, {sweep.communicate()[1] if sweep.poll() else ''}")
