"""The tables of two hundred simulated runs say what the simulator itself counted, run by run and group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from pipeline import audits
from pipeline.inputs import find
from pipeline.journals import Bronze, parse, sort_out
from pipeline.lines import read_lines
from pipeline.tables.member_sessions import member_sessions
from pipeline.tables.ownership import ownership
from pipeline.tables.pauses import pauses
from pipeline.tables.rebalances import rebalances
from pipeline.tables.records import progress, records
from tests.pipeline.simulated import play_many

pytestmark = pytest.mark.xdist_group("spark-simulations")

SEEDS = range(200)
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


def expected(played: tuple[str, list[dict[str, Any]]], *names: str, without: tuple[str, ...] = ()) -> Counts:
    _, runs = played
    return {
        (run["run_id"], group_id): tuple(group[name] for name in names)
        for run in runs
        if not set(without) & set(run["kinds"])
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
    ends = member_sessions(bronze.events, rebalanced).where("end NOT IN ('open', 'replaced')")
    rows = counted(ends, wanted, fn.collect_list("end"))
    # A coordinator that lost its term removes members that its successor still has, and so a member may go twice.
    one_node = [key for key, row in wanted.items() if sum(row[0].values()) == len(rows[key][0] or [])]
    assert {key: dict(Counter(rows[key][0] or [])) for key in one_node} == {key: wanted[key][0] for key in one_node}
    assert len(one_node) > 0.9 * len(wanted)


def test_time_without_an_owner(owned: DataFrame, played: tuple[str, list[dict[str, Any]]]) -> None:
    # Who subscribes to something else in between is expected to own what it subscribed to; the simulator thinks not.
    wanted = expected(played, "unowned_ms", "worst_unowned_ms", without=("subscribe",))
    gaps = owned.where("kind = 'gap'")
    assert counted(gaps, wanted, fn.sum("length_ms"), fn.max("length_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0


def test_time_consumers_stood_still(
    bronze: Bronze, rebalanced: DataFrame, played: tuple[str, list[dict[str, Any]]]
) -> None:
    wanted = expected(played, "stopped_ms")
    assert counted(pauses(bronze.events, rebalanced), wanted, fn.sum("stopped_ms")) == wanted
    assert sum(row[0] for row in wanted.values()) > 0


def test_records(bronze: Bronze, played: tuple[str, list[dict[str, Any]]]) -> None:
    wanted = expected(played, "processed", "twice", "lost")
    assert (
        counted(progress(bronze.events), wanted, *[fn.sum(name) for name in ("processed", "twice", "lost")]) == wanted
    )
    found = records(bronze.events)
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
    assert audits.generations_that_went_back(bronze.events).collect() == []
    assert audits.commits_not_seen(bronze.events).collect() == []
    assert audits.static_members_that_rebalanced(rebalanced, sessions).collect() == []
    overlapping = owned.where("overlap_ms > 0").count()
    found = audits.two_owners(owned)
    assert 0 < overlapping <= found.count()
    assert found.where("size(evidence) != 2 OR found <= 0").count() == 0
