"""The tables of many simulated runs say what the simulator itself counted, run by run and group by group."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from rejoin.pipeline.audits.gaps import UNEXPLAINED_GAPS
from rejoin.pipeline.audits.owners import TWO_OWNERS
from rejoin.pipeline.audits.violations import violations
from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.on_spark import Bronze, parse, read_lines, sort_out
from rejoin.pipeline.tables.group_tables import member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import progress, ranges_by_partition, records
from rejoin.pipeline.vocabulary import AFTER_REMOVAL
from tests.pipeline.simulated import play_many, short_scenario

MANY = int(os.environ.get("REJOIN_TABLE_SEEDS", "0"))
SEEDS = tuple(range(MANY)) or (*range(60), 126, 127, 181)
"""In the last ones a member is removed a second time. ``make table-seeds`` takes many more."""
Counts = dict[tuple[str, str], Any]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("seeds")
    return str(folder), play_many(folder, SEEDS)


@pytest.fixture(scope="module")
def bronze(spark: SparkSession, played: tuple[str, list[dict[str, Any]]]) -> Iterator[Bronze]:
    folder, _ = played
    parsed = parse(read_lines(spark, find([folder]))).persist()
    found = sort_out(parsed)
    found = Bronze(found.events.persist(), found.quarantine)
    yield found
    found.events.unpersist()
    parsed.unpersist()


@pytest.fixture(scope="module")
def rebalanced(bronze: Bronze) -> Iterator[DataFrame]:
    table = rebalances(bronze.events).persist()
    yield table
    table.unpersist()


@pytest.fixture(scope="module")
def owned(bronze: Bronze) -> Iterator[DataFrame]:
    table = ownership(bronze.events).persist()
    yield table
    table.unpersist()


def expected(played: tuple[str, list[dict[str, Any]]], *names: str) -> Counts:
    _, runs = played
    return {
        (run["run_id"], group_id): tuple(group[name] for name in names)
        for run in runs
        for group_id, group in run["groups"].items()
    }


def counted(table: DataFrame, wanted: Counts, *sums: Any) -> Counts:
    """The sums by run and group; a group that the table does not mention has zeros."""
    rows = table.groupBy("run_id", "group_id").agg(*sums).collect()
    found = {(row["run_id"], row["group_id"]): tuple(value or 0 for value in row[2:]) for row in rows}
    return {key: found.get(key, (0,) * len(sums)) for key in wanted}


def test_every_line_is_taken_in(bronze: Bronze, played: tuple[str, list[dict[str, Any]]]) -> None:
    _, runs = played
    assert bronze.quarantine.count() == 0
    assert bronze.events.select("run_id").distinct().count() == len(runs) == len(SEEDS)


def test_rebalances(rebalanced: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "rebalances", "completed", "moved", "longest_rebalance_ms")
    completed = fn.col("outcome") == "completed"
    episodes = rebalanced.groupBy("run_id", "group_id", "source", "node", "episode").agg(
        fn.max(completed).alias("completed"), fn.sum("unavailable_ms").alias("ms")
    )
    longest = counted(episodes.where("completed"), wanted, fn.max("ms"))
    rows = counted(
        rebalanced,
        wanted,
        fn.collect_list("cause"),
        fn.count_if(completed),
        fn.sum(fn.when(completed, fn.col("moved"))),
    )
    found = {key: (dict(Counter(row[0] or [])), *row[1:], *longest[key]) for key, row in rows.items()}
    assert found == wanted
    assert sum(len(row[0]) for row in wanted.values()) > 100


def test_how_long_groups_rebalanced(rebalanced: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "rebalancing_ms")
    episodes = rebalanced.groupBy("run_id", "group_id", "source", "node", "episode").agg(
        fn.max(fn.col("outcome") == "completed").alias("completed"), fn.sum("unavailable_ms").alias("ms")
    )
    assert counted(episodes.where("completed"), wanted, fn.sum("ms")) == wanted


def test_removals(bronze: Bronze, rebalanced: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "removed")
    removals = of_members(bronze.events.where("event = 'member_removed'"))
    assert {key: (dict(Counter(cause for _, cause in removals.get(key, []))),) for key in wanted} == wanted
    # The simulator counts events, the table sessions. A member may be removed a second time after a failover, by a
    # coordinator that did not know of the first. Its session ended with the first.
    firsts = {key: Counter(dict(reversed(removals.get(key, []))).values()) for key in wanted}
    ends = member_sessions(bronze.events, rebalanced).where("end NOT IN ('open', 'replaced')")
    rows = counted(ends, wanted, fn.collect_list("end"))
    assert {key: Counter(row[0] or []) for key, row in rows.items()} == firsts
    again = [key for key in wanted if sum(firsts[key].values()) < len(removals.get(key, []))]
    assert 0 < len(again) < 0.05 * len(wanted)


def of_members(events: DataFrame) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Members with the cause, by run and group, in the order of time."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in events.orderBy("run_id", "at_ms", "node", "seq").collect():
        found.setdefault((row.run_id, row.group_id), []).append((row.member_id, row.cause))
    return found


def test_time_without_an_owner(owned: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "unowned_ms", "worst_unowned_ms")
    place = ["run_id", "group_id", "topic", "partition"]
    owners = owned.where("kind = 'owned'").groupBy(*place).agg(fn.min("from_ms").alias("first_ms"))
    # The one difference: of a topic that a group subscribes to in the middle of a run, the table counts the time until
    # a partition has its first owner, and the simulator begins to look with that owner.
    from_the_start = fn.array_contains(fn.col("topics"), fn.col("topic"))
    before = fn.coalesce(fn.col("from_ms") < fn.col("first_ms"), fn.lit(True))
    gaps = (
        owned.where("kind = 'gap'")
        .join(owners, place, "left")
        .join(fn.broadcast(topics_at_first(owned, played)), ["run_id", "group_id"])
        .withColumn("only_here", ~from_the_start & before)
        .persist()
    )
    rest = gaps.where("NOT only_here")
    assert counted(rest, wanted, fn.sum("length_ms"), fn.max("length_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0
    with_more = {row.run_id for row in gaps.where("only_here").select("run_id").distinct().collect()}
    assert with_more
    assert with_more <= {run["run_id"] for run in played[1] if "subscribe" in run["kinds"]}
    gaps.unpersist()


def topics_at_first(owned: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> DataFrame:
    """What each group is subscribed to when its run begins."""
    rows = []
    for seed, run in zip(SEEDS, played[1], strict=True):
        for group_id, group in short_scenario(seed)["groups"].items():
            topics = group["topics"]
            rows.append((run["run_id"], group_id, [topics] if isinstance(topics, str) else topics))
    return owned.sparkSession.createDataFrame(rows, "run_id string, group_id string, topics array<string>")


def test_time_consumers_stood_still(
    bronze: Bronze, rebalanced: DataFrame, played: tuple[str, list[dict[str, Any]]]
) -> None:
    wanted = expected(played, "stopped_ms")
    assert counted(pauses(bronze.events, rebalanced), wanted, fn.sum("stopped_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0


def test_records(bronze: Bronze, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "processed", "twice", "lost")
    ranges = ranges_by_partition(bronze.events).persist()
    assert counted(progress(ranges), wanted, *[fn.sum(name) for name in ("processed", "twice", "lost")]) == wanted
    found = records(ranges)
    kinds = [fn.sum(fn.when(fn.col("kind") == kind, fn.col("records"))) for kind in ("duplicate", "lost")]
    assert counted(found, wanted, *kinds) == {key: row[1:] for key, row in wanted.items()}
    assert sum(row[1] for row in wanted.values()) > 0
    assert sum(row[2] for row in wanted.values()) > 0


def test_intervals_of_one_owner_never_meet_themselves(owned: DataFrame) -> None:
    assert owned.where("kind = 'owned' AND overlaps_owner = owner").count() == 0
    assert owned.where("length_ms < 0 OR from_ms IS NULL OR to_ms IS NULL").count() == 0


def test_audits_find_no_fault_of_the_coordinator(bronze: Bronze, rebalanced: DataFrame, owned: DataFrame) -> None:
    # Random faults make consumers overlap and leave gaps. What the coordinator answers for never goes wrong.
    sessions = member_sessions(bronze.events, rebalanced)
    found = violations(bronze.events, rebalanced, owned, sessions).persist()
    kinds = {row.kind for row in found.select("kind").distinct().collect()}
    assert kinds <= {TWO_OWNERS, AFTER_REMOVAL, UNEXPLAINED_GAPS}
    overlaps = found.where(fn.col("kind").isin(TWO_OWNERS, AFTER_REMOVAL))
    overlapping = owned.where("overlap_ms > 0").count()
    assert 0 < overlapping <= overlaps.count()
    assert overlaps.where("size(evidence) != 2 OR found <= 0").count() == 0
