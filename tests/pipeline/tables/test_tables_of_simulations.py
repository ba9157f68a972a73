"""The tables of many simulated runs say what the simulator itself counted, run by run and group by group."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rejoin.pipeline.audits.gaps import UNEXPLAINED_GAPS
from rejoin.pipeline.audits.owners import TWO_OWNERS
from rejoin.pipeline.audits.violations import violations
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.journals import EventRows
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.tables.group_tables import member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import progress, ranges_by_partition, records
from rejoin.pipeline.vocabulary import AFTER_REMOVAL
from tests.pipeline.simulated import play_many, short_scenario

MANY = int(os.environ.get("REJOIN_TABLE_SEEDS", "0"))
SEEDS = tuple(range(MANY)) or (*range(60), 126, 127, 181)
"""In the last ones a member is removed a second time. ``make table-seeds`` takes many more."""
Key = tuple[str, str]
Row = dict[str, Any]
Counts = dict[Key, Any]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("seeds")
    return str(folder), play_many(folder, SEEDS)


@pytest.fixture(scope="module")
def bronze(played: tuple[str, list[dict[str, Any]]]) -> EventRows:
    folder, _ = played
    return read_events(find([folder]), "UTC")


@pytest.fixture(scope="module")
def rebalanced(bronze: EventRows) -> pa.Table:
    table: pa.Table = rebalances(bronze.events)
    return table


@pytest.fixture(scope="module")
def owned(bronze: EventRows) -> pa.Table:
    table: pa.Table = ownership(bronze.events)
    return table


def expected(played: tuple[str, list[dict[str, Any]]], *names: str) -> Counts:
    _, runs = played
    return {
        (run["run_id"], group_id): tuple(group[name] for name in names)
        for run in runs
        for group_id, group in run["groups"].items()
    }


def counted(rows: Iterable[Row], wanted: Counts, *sums: Callable[[list[Row]], Any]) -> Counts:
    """The sums by run and group; a group that has no row has zeros."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["run_id"], row["group_id"]].append(row)
    return {key: tuple(each(found[key]) if key in found else 0 for each in sums) for key in wanted}


def rows_of(table: Any) -> list[Row]:
    found: list[Row] = table.to_pylist()
    return found


def total(name: str, **only: str) -> Callable[[list[Row]], int]:
    """The sum of a column, of rows that have these values."""
    return lambda rows: sum(
        row[name] or 0 for row in rows if all(row[column] == value for column, value in only.items())
    )


def most(name: str) -> Callable[[list[Row]], int]:
    return lambda rows: max(row[name] or 0 for row in rows)


def completed_episodes(rebalanced: pa.Table) -> list[Row]:
    """Rebalances of one episode that completed, with their unavailable time."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rebalanced.to_pylist():
        found[tuple(row[name] for name in ("run_id", "group_id", "source", "node", "episode"))].append(row)
    return [
        {"run_id": key[0], "group_id": key[1], "ms": total("unavailable_ms")(rows)}
        for key, rows in found.items()
        if any(row["outcome"] == "completed" for row in rows)
    ]


def test_every_line_is_taken_in(bronze: EventRows, played: tuple[str, list[dict[str, Any]]]) -> None:
    _, runs = played
    assert bronze.quarantine.num_rows == 0
    assert len(bronze.events["run_id"].unique()) == len(runs) == len(SEEDS)


def test_rebalances(rebalanced: pa.Table, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "rebalances", "completed", "moved", "longest_rebalance_ms")
    longest = counted(completed_episodes(rebalanced), wanted, most("ms"))
    rows = counted(
        rebalanced.to_pylist(),
        wanted,
        lambda rows: Counter(row["cause"] for row in rows),
        lambda rows: sum(row["outcome"] == "completed" for row in rows),
        total("moved", outcome="completed"),
    )
    found = {key: (dict(row[0] or {}), *row[1:], *longest[key]) for key, row in rows.items()}
    assert found == wanted
    assert sum(len(row[0]) for row in wanted.values()) > 100


def test_how_long_groups_rebalanced(rebalanced: pa.Table, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "rebalancing_ms")
    assert counted(completed_episodes(rebalanced), wanted, total("ms")) == wanted


def test_removals(bronze: EventRows, rebalanced: pa.Table, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "removed")
    removals = of_members(bronze.events.filter(pc.equal(bronze.events["event"], "member_removed")))
    assert {key: (dict(Counter(cause for _, cause in removals.get(key, []))),) for key in wanted} == wanted
    # The simulator counts events, the table sessions. A member may be removed a second time after a failover, by a
    # coordinator that did not know of the first. Its session ended with the first.
    firsts = {key: Counter(dict(reversed(removals.get(key, []))).values()) for key in wanted}
    sessions = rows_of(member_sessions(bronze.events, rebalanced))
    ends = [row for row in sessions if row["end"] not in ("open", "replaced")]
    rows = counted(ends, wanted, lambda rows: Counter(row["end"] for row in rows))
    assert {key: row[0] or Counter() for key, row in rows.items()} == firsts
    again = [key for key in wanted if sum(firsts[key].values()) < len(removals.get(key, []))]
    assert 0 < len(again) < 0.05 * len(wanted)


def of_members(events: pa.Table) -> dict[Key, list[tuple[str, str]]]:
    """Members with the cause, by run and group, in the order of time."""
    found: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    for row in events.sort_by([(name, "ascending") for name in ("run_id", "at_ms", "node", "seq")]).to_pylist():
        found[row["run_id"], row["group_id"]].append((row["member_id"], row["cause"]))
    return found


def test_time_without_an_owner(owned: pa.Table, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "unowned_ms", "worst_unowned_ms")
    rows = owned.to_pylist()
    first_ms: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["kind"] == "owned":
            first_ms[partition_of(row)] = min(row["from_ms"], first_ms.get(partition_of(row), row["from_ms"]))
    topics = topics_at_first(played)
    gaps = [row for row in rows if row["kind"] == "gap"]
    # The one difference: of a topic that a group subscribes to in the middle of a run, the table counts the time until
    # a partition has its first owner, and the simulator begins to look with that owner.
    only_here = [
        row
        for row in gaps
        if row["topic"] not in topics[row["run_id"], row["group_id"]]
        and (partition_of(row) not in first_ms or row["from_ms"] < first_ms[partition_of(row)])
    ]
    rest = [row for row in gaps if row not in only_here]
    assert counted(rest, wanted, total("length_ms"), most("length_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0
    with_more = {row["run_id"] for row in only_here}
    assert with_more
    assert with_more <= {run["run_id"] for run in played[1] if "subscribe" in run["kinds"]}


def partition_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("run_id", "group_id", "topic", "partition"))


def topics_at_first(played: tuple[str, list[dict[str, Any]]]) -> dict[Key, list[str]]:
    """Topics to which each group is subscribed when its run begins."""
    found = {}
    for seed, run in zip(SEEDS, played[1], strict=True):
        for group_id, group in short_scenario(seed)["groups"].items():
            topics = group["topics"]
            found[run["run_id"], group_id] = [topics] if isinstance(topics, str) else topics
    return found


def test_time_consumers_stood_still(
    bronze: EventRows, rebalanced: pa.Table, played: tuple[str, list[dict[str, Any]]]
) -> None:
    wanted = expected(played, "stopped_ms")
    assert counted(rows_of(pauses(bronze.events, rebalanced)), wanted, total("stopped_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0


def test_records(bronze: EventRows, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "processed", "twice", "lost")
    ranges = ranges_by_partition(bronze.events)
    sums = [total(name) for name in ("processed", "twice", "lost")]
    assert counted(rows_of(progress(ranges)), wanted, *sums) == wanted
    kinds = [total("records", kind=kind) for kind in ("duplicate", "lost")]
    found = counted(rows_of(records(ranges)), wanted, *kinds)
    assert found == {key: row[1:] for key, row in wanted.items()}
    assert sum(row[1] for row in wanted.values()) > 0
    assert sum(row[2] for row in wanted.values()) > 0


def test_intervals_of_one_owner_never_meet_themselves(owned: pa.Table) -> None:
    for row in owned.to_pylist():
        assert row["kind"] != "owned" or row["overlaps_owner"] is None or row["overlaps_owner"] != row["owner"]
        assert row["from_ms"] is not None
        assert row["to_ms"] is not None
        assert row["length_ms"] >= 0


def test_audits_find_no_fault_of_the_coordinator(bronze: EventRows, rebalanced: pa.Table, owned: pa.Table) -> None:
    # Random faults make consumers overlap and leave gaps. What the coordinator answers for never goes wrong.
    sessions = member_sessions(bronze.events, rebalanced)
    found = rows_of(violations(bronze.events, rebalanced, owned, sessions))
    assert {row["kind"] for row in found} <= {TWO_OWNERS, AFTER_REMOVAL, UNEXPLAINED_GAPS}
    overlaps = [row for row in found if row["kind"] in (TWO_OWNERS, AFTER_REMOVAL)]
    overlapping = sum((row["overlap_ms"] or 0) > 0 for row in owned.to_pylist())
    assert 0 < overlapping <= len(overlaps)
    assert all(len(row["evidence"]) == 2 and row["found"] > 0 for row in overlaps)
