"""Sweeps: the same rows from wherever they are played, rows that survive a kill, runs that fail."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rejoin.pipeline.sweep import runner
from rejoin.pipeline.sweep.code import code_version
from rejoin.pipeline.sweep.grid import Grid, grid_from
from rejoin.pipeline.sweep.runner import Row, spark_player
from rejoin.pipeline.sweep.store import SweepInUse, SweepStore
from rejoin.pipeline.sweep.tables import RUNS
from rejoin.pipeline.sweep.tasks import Task, play_task
from rejoin.simulation.output.summary import GroupSummary
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from tests import paths
from tests.pipeline import quick
from tests.pipeline.sweep.sweeps import GRID, SCENARIO, files, grid, here, swept

ROOT = paths.ROOT
PATIENCE_S = 300


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The grid, played in this process."""
    folder = tmp_path_factory.mktemp("reference")
    swept(grid(), folder)
    return files(folder)


def rows_of(folder: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(folder / "runs.parquet").to_pylist()
    return rows


def test_a_process_pool_gives_the_same_files(reference: dict[str, bytes], tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        swept(grid(), tmp_path, lambda tasks: pool.map(play_task, tasks))
    assert files(tmp_path) == reference
    assert len({row["pid"] for row in rows_of(tmp_path)} | {os.getpid()}) > 1


def test_a_grid_compares_both_protocols(tmp_path: Path) -> None:
    """A deploy stops all dynamic members of range, and of the consumer protocol only those that give something up."""
    swept(grid_from(f"{SCENARIO}\nparameters:\n  protocol: [classic, consumer]\n"), tmp_path)
    classic, consumer = rows_of(tmp_path)
    assert [row["status"] for row in (classic, consumer)] == ["ok", "ok"]
    assert classic["rebalances"] == consumer["rebalances"] == 6, "each of three leaves and joins"
    assert consumer["stopped_ms"] < classic["stopped_ms"]
    assert consumer["unowned_ms"] > classic["unowned_ms"], "until the new owner's next heartbeat"


@pytest.mark.parametrize("slots", [1, 4])
def test_spark_gives_the_same_files_however_runs_are_portioned(
    reference: dict[str, bytes], spark: SparkSession, tmp_path: Path, slots: int
) -> None:
    swept(grid(), tmp_path, spark_player(spark), slots)
    assert files(tmp_path) == reference


def test_a_row_has_what_the_simulation_counted(tmp_path: Path) -> None:
    swept(grid_from(SCENARIO.replace("count_from: 1m", "seeds: [3]")), tmp_path)
    row = rows_of(tmp_path)[0]
    _, summary = play(grid_from(SCENARIO).points[0].scenario, 3)
    group = summary.groups["app"]
    assert (row["status"], row["error"], row["seed"], row["horizon_ms"]) == ("ok", None, 3, 240_000)
    assert (row["rebalances"], dict(row["rebalances_by_cause"])) == (group.started, group.rebalances)
    for name in ("completed", "longest_rebalance_ms", "moved", "stopped_ms", "unowned_ms", "worst_unowned_ms"):
        assert row[name] == getattr(group, name)
    for name in ("first_owned_ms", "processed", "late", "twice", "lost", "behind"):
        assert row[name] == getattr(group, name)
    assert row["groups"][0]["group_id"] == "app"


TRANSFORM = """
scenario:
  horizon: 1m
  topics:
    orders: {partitions: 2, records_per_second: 5, until: 40s}
    payments: {partitions: 1}
  groups:
    pay:
      topics: orders
      consumers: 2
      processing: 150ms
      session_timeout: 6s
      transform: {to: payments}
  readers:
    ledger: {topics: payments}
  events:
    - {at: 20300ms, crash: {who: pay-1, down: 1s}}
parameters:
  commit: [before, after]
"""


def test_a_row_has_what_a_reader_of_transformed_records_missed_and_got_twice(tmp_path: Path) -> None:
    of_transforms = grid_from(TRANSFORM)
    swept(of_transforms, tmp_path)
    read = [play(point.scenario, 1)[1].readers["ledger"] for point in of_transforms.points]
    assert [(row["out_twice"], row["out_lost"]) for row in rows_of(tmp_path)] == [
        (found.twice, found.lost) for found in read
    ]
    before, after = read
    assert before.twice == after.lost == 0
    assert before.lost > 0
    assert after.twice > 0


COUNTED = ("started", "completed", "rebalancing_ms", "moved", "stopped_ms", "unowned_ms", "processed", "twice", "lost")


@pytest.mark.parametrize("at", ["70s", "121s", "125s", "3m"])
def test_what_happens_before_count_from_is_left_out(at: str, tmp_path: Path) -> None:
    """Parts that are counted apart come to the whole: a run that ends then, and one that is counted from then on."""
    whole = grid_from(SCENARIO.replace("count_from: 1m", ""))
    data = whole.points[0].scenario.model_dump(mode="json", by_alias=True)
    data["events"] = [{name: what for name, what in event.items() if what is not None} for event in data["events"]]
    for seed in range(1, 4):
        total = play(whole.points[0].scenario, seed)[1].groups["app"]
        before = play(Scenario.model_validate({**data, "horizon": at}), seed)[1].groups["app"]
        grid_ = grid_from(SCENARIO.replace("count_from: 1m", f"count_from: {at}\nseeds: [{seed}]"))
        swept(grid_, tmp_path / f"{seed}")
        row = rows_of(tmp_path / f"{seed}")[0]
        for name in COUNTED:
            column = "rebalances" if name == "started" else name
            assert getattr(before, name) + row[column] == getattr(total, name), (seed, name)


def test_journals_are_kept_if_asked_for(tmp_path: Path, spark: SparkSession) -> None:
    asked = grid_from(f"{SCENARIO}\nevents: true\nseeds: 2")
    swept(asked, tmp_path, spark_player(spark))
    for row in rows_of(tmp_path):
        text = (tmp_path / "journals" / f"{row['run_key']}.jsonl").read_text()
        events = [json.loads(line) for line in text.splitlines()]
        assert {event["run_id"] for event in events} == {row["run_key"]}
        begun = [event for event in events if event["event"] == "rebalance_started" and event["at_ms"] >= 60_000]
        assert len(begun) == row["rebalances"]
    assert sorted(path.name for path in tmp_path.rglob("*.unfinished")) == []


def test_a_run_without_its_journal_is_played_again(tmp_path: Path) -> None:
    asked = grid_from(f"{SCENARIO}\nevents: true\nseeds: 3")
    swept(asked, tmp_path)
    next(iter((tmp_path / "journals").iterdir())).unlink()
    assert (swept(asked, tmp_path).played, len(list((tmp_path / "journals").iterdir()))) == (1, 3)


class TestRunsThatFail:
    @pytest.fixture
    def failing(self) -> Grid:
        """A grid with one point that no laboratory can play."""
        good = grid()
        points = tuple(replace(point, text='{"horizon":"1m"}') if point.number == 2 else point for point in good.points)
        return replace(good, points=points)

    def test_they_are_rows_with_error_and_seed(self, failing: Grid, spark: SparkSession, tmp_path: Path) -> None:
        progress = swept(failing, tmp_path, spark_player(spark))
        assert (progress.played, progress.failed) == (16, 4)
        bad = [row for row in rows_of(tmp_path) if row["status"] == "failed"]
        assert [(row["point"], row["seed"]) for row in bad] == [(2, 1), (2, 2), (2, 3), (2, 4)]
        assert all("ValidationError" in row["error"] and "Field required" in row["error"] for row in bad)
        assert all(row["rebalances"] is None for row in bad)
        assert "Runs that failed" in (tmp_path / "index.html").read_text()

    def test_they_are_played_again_only_when_asked(self, failing: Grid, tmp_path: Path) -> None:
        swept(failing, tmp_path)
        assert swept(failing, tmp_path).played == 0
        store = SweepStore(tmp_path, "v", journals=False, again=True)
        assert (len(store.rows), store.of_other_code) == (12, 0)
        store.close()

    def test_one_that_takes_its_process_with_it_takes_no_other_run(
        self, reference: dict[str, bytes], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "_Portion", DeadlyPortion)
        swept(grid(), tmp_path, spark_player(spark))
        rows = rows_of(tmp_path)
        dead = [row for row in rows if row["status"] == "failed"]
        assert [row["run_key"] for row in dead] == [DEADLY]
        assert dead[0]["error"].startswith("the process that played it died")
        lines = (tmp_path / "runs.csv").read_bytes().splitlines()
        expected = reference["runs.csv"].splitlines()
        assert [line for line in lines if DEADLY.encode() not in line] == [
            line for line in expected if DEADLY.encode() not in line
        ]


DEADLY = list(grid().runs())[5].key


class DeadlyPortion(runner._Portion):
    """As a run would that makes its process run out of memory."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if any(task.key == DEADLY for task in self._tasks):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batches)


class TestWhatIsFinished:
    def test_is_not_played_again(self, tmp_path: Path) -> None:
        swept(grid(), tmp_path)
        before = files(tmp_path)
        again = swept(grid(), tmp_path)
        assert (again.known, again.played) == (16, 0)
        assert files(tmp_path) == before

    def test_serves_a_grid_that_has_grown(self, tmp_path: Path) -> None:
        swept(grid(), tmp_path)
        more = grid(GRID.replace("[5s, 12s]", "[5s, 12s, 20s]").replace("seeds: 4", "seeds: 5"))
        progress = swept(more, tmp_path)
        assert (progress.wanted, progress.known) == (30, 16)
        assert len(rows_of(tmp_path)) == 30

    def test_counts_only_for_the_code_that_played_it(self, tmp_path: Path) -> None:
        swept(grid(), tmp_path, version="old")
        assert swept(grid(), tmp_path, version="new").known == 0
        assert {row["code_version"] for row in rows_of(tmp_path)} == {"new"}

    def test_is_one_row_even_if_it_came_twice(self, tmp_path: Path) -> None:
        swept(grid(), tmp_path)
        twice = pq.read_table(next((tmp_path / "finished").iterdir()))
        pq.write_table(twice, tmp_path / "finished" / "again.parquet")
        (tmp_path / "finished" / "half.parquet.unfinished").write_bytes(b"PAR1")
        assert swept(grid(), tmp_path).known == 16
        assert len(rows_of(tmp_path)) == 16
        assert [path.suffix for path in (tmp_path / "finished").iterdir()] == [".parquet"]

    def test_belongs_to_one_sweep_at_a_time(self, tmp_path: Path) -> None:
        store = SweepStore(tmp_path, "v", journals=False)
        with pytest.raises(SweepInUse, match="another sweep writes into this folder; give --out another one"):
            SweepStore(tmp_path, "v", journals=False)
        store.close()
        SweepStore(tmp_path, "v", journals=False).close()

    def test_two_settings_that_come_to_the_same_are_played_once(self, tmp_path: Path) -> None:
        same = grid_from(f"{SCENARIO}\nparameters:\n  deploy.down: [60s, 1m]\nseeds: 3")
        assert swept(same, tmp_path).played == 3
        assert [row["point"] for row in rows_of(tmp_path)] == [0, 0, 0, 1, 1, 1]


KILLED = """
import os, signal, sys
from pathlib import Path
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.commands.parser import sweep

add = SweepStore.add

def add_and_die(store, rows):
    add(store, rows)
    if len(store.rows) >= 5:
        os.kill(os.getpid(), signal.SIGKILL)

SweepStore.add = add_and_die
sweep(Path("grid.yaml"), out=Path("out"), master="local[2]")
"""


def test_a_sweep_that_was_killed_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    text = GRID.replace("seeds: 4", "seeds: 6")
    (tmp_path / "grid.yaml").write_text(text)
    out = tmp_path / "out"
    environment = quick.environment(tmp_path) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED]
    killed = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (out / "runs.parquet").exists()
    version = code_version()
    store = SweepStore(out, version, journals=False)
    before = {key: row["pid"] for key, row in store.rows.items()}
    store.close()
    assert 5 <= len(before) < 24

    progress = swept(grid(text), out, spark_player(spark), version=version)
    assert (progress.known, progress.played) == (len(before), 24 - len(before))
    rows = rows_of(out)
    assert Counter(row["run_key"] for row in rows) == Counter(run.key for run in grid(text).runs())
    assert {row["run_key"]: row["pid"] for row in rows if row["run_key"] in before} == before
    swept(grid(text), tmp_path / "whole", here, version=version)
    assert files(out) == files(tmp_path / "whole")


def test_files_have_a_column_for_every_parameter(tmp_path: Path) -> None:
    swept(grid(f"{SCENARIO}\nparameters:\n  static: [true, false]\n  late: [1s]\n  consumers: [2, 3]\n"), tmp_path)
    rows = rows_of(tmp_path)
    assert [(row["static"], row["set_late"], row["consumers"]) for row in rows] == [
        (True, "1s", 2),
        (True, "1s", 3),
        (False, "1s", 2),
        (False, "1s", 3),
    ]
    with (tmp_path / "runs.csv").open() as lines:
        written = list(csv.DictReader(lines))
    assert [int(row["rebalances"]) for row in written] == [row["rebalances"] for row in rows]
    assert "wall_ms" not in written[0]
    assert [entry["rebalances"] for entry in json.loads((tmp_path / "runs.json").read_text())] == [
        row["rebalances"] for row in rows
    ]


def test_every_number_of_a_summary_is_a_column() -> None:
    names = {name.replace("_by_cause", "") for name in RUNS.fieldNames()}
    assert {name for name in GroupSummary.__dataclass_fields__ if name != "group_id"} <= names


def test_a_task_says_who_played_it() -> None:
    row = play_task(Task("key", 1, grid().points[0].text, 0, False, "v"))
    assert (row["executor"], row["pid"]) == ("local", os.getpid())
