"""Tables that grow with a stream have the rows of a report on all of its events, and cost what a step brings."""

from __future__ import annotations

import os
import random
import re
import shutil
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.report.watch import endless
from rejoin.pipeline.incremental import tables as incremental_tables
from rejoin.pipeline.incremental.runs import Waits
from rejoin.pipeline.incremental.tables import IncrementalTables
from tests.pipeline.gallery import GALLERY, MOVING
from tests.pipeline.incremental.streams import (
    WAITS,
    Row,
    cut,
    differing,
    events_of,
    of_coordinators,
    read,
    taken_in,
    whole,
    written,
)
from tests.suite.long_runs import in_long_runs

SCENARIOS = (
    "auto_commit_and_crashes",
    "consume_transform_produce",
    "coordinator_failover_in_mid_reconciliation",
    "dynamic_rolling_deploy",
    "gc_pause_longer_than_the_session",
    "hanging_transaction",
    "member_that_never_acknowledges_a_revocation",
    "static_leader_restarts_after_topic_growth",
    "stuck_handler",
)
"""Members of all kinds that come, go, hang and come back, partitions without owners, records lost and repeated."""


SMALL: Final = sorted(
    path.stem
    for path in GALLERY.glob("*.yaml")
    if path.stem not in ("migration_with_a_downgrade_in_the_middle", "rolling_deploy_of_either_protocol")
)
"""Those of which a run has less than ten thousand events."""


def scenario(name: str) -> str:
    text = (GALLERY / f"{name}.yaml").read_text(encoding="utf-8")
    return re.sub(r"records_per_second: [0-9.]+", "records_per_second: 0.2", text)


@cache
def whole_of(name: str) -> dict[str, list[Row]]:
    """The rows of a scenario's events, made at one time; several tests compare theirs with them."""
    return whole(events_of(scenario(name)))


def side_by_side(*runs: pa.Table) -> pa.Table:
    """Runs at the same time, in one stream."""
    events = pa.concat_tables(runs)
    order = [(name, "ascending") for name in ("at_ms", "run_id", "source", "node", "seq")]
    return events.take(pc.sort_indices(events, order)).combine_chunks()


@pytest.mark.parametrize("names", in_long_runs(*((name,) for name in SCENARIOS), always=[SCENARIOS]), ids="+".join)
def test_a_journal_that_comes_in_steps_makes_the_tables_of_a_whole_one(names: tuple[str, ...], tmp_path: Path) -> None:
    """Each scenario is a run of its own. A step costs about as much with one run as with nine."""
    events = side_by_side(*(events_of(scenario(name), run_id=name) for name in names))
    tables = taken_in(tmp_path, cut(events, 10))
    rows = written(tmp_path)
    assert {row["run_id"] for row in rows["rebalances"]} == set(names)
    assert differing(whole(events), rows) == {}
    assert tables.count("rebalances") == len(rows["rebalances"])
    assert tables.quarantined == 0


def test_so_does_what_coordinators_alone_say(tmp_path: Path) -> None:
    texts = {"deploy": scenario("dynamic_rolling_deploy"), "moving": MOVING}
    events = of_coordinators(side_by_side(*(events_of(text, run_id=name) for name, text in texts.items())))
    taken_in(tmp_path, cut(events, 8))
    assert differing(whole(events), written(tmp_path)) == {}


@pytest.mark.parametrize("seed", range(int(os.environ.get("REJOIN_STEP_SEEDS", "3"))))
def test_so_does_any_scenario_in_any_steps(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    events = events_of(scenario(draw.choice(SMALL)), draw.randrange(1_000))
    events = of_coordinators(events) if draw.random() < 0.4 else events
    waits = Waits(draw.choice([61_000, 90_000]), draw.choice([5_000, 30_000]), draw.choice([30_000, 3_600_000]))
    steps = cut(events, draw.choice([2, 5, 12, 40]), seed)
    taken_in(tmp_path, steps, restart_every=draw.choice([0, 0, 3]), waits=waits)
    assert differing(whole(events), written(tmp_path)) == {}


def test_two_runs_of_the_same_groups_stay_apart_and_a_program_may_end_between_any_two_steps(tmp_path: Path) -> None:
    parts = [events_of(scenario("stuck_handler"), seed, f"run-{seed}") for seed in (1, 2)]
    events = pa.concat_tables(parts).combine_chunks()
    taken_in(tmp_path, cut(events, 7), restart_every=2)
    assert differing(whole(events), written(tmp_path)) == {}


def test_what_a_killed_program_had_not_kept_is_done_once_more(tmp_path: Path) -> None:
    events = events_of(scenario("dynamic_rolling_deploy"))
    steps = cut(events, 12)
    tables = taken_in(tmp_path, steps[:5])
    tables.save(now=True)
    for number, each in enumerate(steps[5:9], 5):
        tables.take(each, number)
    # It is gone without another word; other steps of other lengths come instead of its last ones.
    again = IncrementalTables(tmp_path, WAITS)
    assert again.step == 4
    rest = cut(pa.concat_tables(steps[5:]).combine_chunks(), 3)
    for number, each in enumerate(rest, 5):
        again.take(each, number, everything=each is rest[-1])
    assert differing(whole_of("dynamic_rolling_deploy"), written(tmp_path)) == {}


def test_a_state_that_cannot_be_read_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = cut(events_of(scenario("hanging_transaction")), 3)
    good = tmp_path / "good"
    taken_in(good, steps).save(now=True)
    copies = count()

    def a_copy() -> Path:
        return shutil.copytree(good, tmp_path / f"copy-{next(copies)}")

    def is_new(folder: Path) -> bool:
        return IncrementalTables(folder).step == -1 and not list((folder / "tables").rglob("*.parquet"))

    for name, content in (
        ("state.json", b"{"),
        ("state.json", b"[]"),
        ("state.json", b'{"version": 1}'),
        ("runs.parquet", b"nothing"),
    ):
        damaged = a_copy()
        (damaged / "state" / name).write_bytes(content)
        assert is_new(damaged)
    folder = a_copy()
    assert not is_new(folder)
    monkeypatch.setattr(incremental_tables, "_VERSION", 0)
    assert is_new(folder)
    taken_in(folder, steps)
    assert differing(whole_of("hanging_transaction"), written(folder)) == {}


def test_rows_that_come_twice_count_once(tmp_path: Path) -> None:
    events = events_of(scenario("stuck_handler"))
    steps = cut(events, 6)
    tables = taken_in(tmp_path, [steps[0], pa.concat_tables([steps[1], steps[0]]), *steps[2:], steps[3]])
    assert tables.quarantined == steps[0].num_rows + steps[3].num_rows
    assert differing(whole_of("stuck_handler"), written(tmp_path)) == {}


def test_a_stream_that_is_late_is_not_lost(tmp_path: Path) -> None:
    """Most rows of the consumers come when the coordinators' are all there, and nothing is settled until then."""
    events = events_of(scenario("dynamic_rolling_deploy"))
    begin, rest = events.slice(0, 500), events.slice(500)
    coordinators = of_coordinators(rest)
    consumers = rest.filter(pa.array([not node.startswith("node") for node in rest["node"].to_pylist()]))
    patient = WAITS._replace(stale_ms=3_600_000)
    taken_in(tmp_path, [begin, *cut(coordinators, 5), *cut(consumers, 5)], waits=patient)
    assert differing(whole_of("dynamic_rolling_deploy"), written(tmp_path)) == {}


def test_a_step_does_not_cost_what_was_before(tmp_path: Path) -> None:
    """A group that deploys every quarter of an hour: after two hours as much is kept of it as after one."""
    lines = (line.decode().rstrip() for line in endless(tmp_path))
    tables = IncrementalTables(tmp_path / "out")
    kept = []
    for number in range(8):
        tables.take(read(list(islice(lines, 5_041))), number)
        kept.append(sum(table.num_rows for table in tables.kept.values()))
    assert max(kept[4:]) <= max(kept[:4])
    assert tables.count("rebalances") == 8 * 13
    settled = pq.read_table(tmp_path / "out" / "tables" / "rebalances")
    assert sorted(settled["number"].to_pylist()) == list(range(1, 8 * 13 + 1))


def test_many_parts_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.pipeline.incremental.table_files._MOST_PARTS", 2)
    events = events_of(scenario("auto_commit_and_crashes"))
    steps = cut(events, 8)
    removed: list[tuple[Path, bytes]] = []
    unlink = Path.unlink

    def remember(path: Path) -> None:
        removed.append((path, path.read_bytes()))
        unlink(path)

    monkeypatch.setattr(Path, "unlink", remember)
    tables = taken_in(tmp_path, steps, restart_every=4)
    assert len(list((tmp_path / "tables" / "rebalances").glob("part-*"))) <= 2 + 4
    assert differing(whole_of("auto_commit_and_crashes"), written(tmp_path)) == {}
    # A program that is killed before it has removed the parts does that when it starts.
    tables.save(now=True)
    for path, content in removed:
        path.write_bytes(content)
    again = IncrementalTables(tmp_path, WAITS)
    assert again.count("rebalances") == tables.count("rebalances")
    assert differing(whole_of("auto_commit_and_crashes"), written(tmp_path)) == {}


def test_findings_of_long_ago_stay_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_tables, "LOOK_BACK_MS", 200_000)
    events = events_of(scenario("stuck_handler"))
    taken_in(tmp_path, cut(events, 10), restart_every=3)
    expected = {row["finding"] for row in whole_of("stuck_handler")["findings"]}
    assert {row["finding"] for row in written(tmp_path)["findings"]} == expected
