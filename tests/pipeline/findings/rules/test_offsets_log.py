"""What is found of the partition of the offsets topic that holds a group, and what comes close and is nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules.brokers import one_for_each_event
from rejoin.pipeline.findings.rules.offsets_log import partition_of
from rejoin.protocol.partitioner import partition_for
from tests.pipeline.findings.rules.test_consumer_groups import event
from tests.pipeline.findings.test_findings_rules import MARCH_3, MINUTE, found, rebalance

Row = dict[str, Any]
ORDERS: Final = partition_for("orders", 50)


def not_stored(instants: Iterable[int]) -> list[Row]:
    return [rebalance(nth, MARCH_3 + at, "store-failure", "m1") for nth, at in enumerate(instants, 1)]


def test_assignments_that_cannot_be_stored_name_the_partition_and_the_error() -> None:
    error = event(MINUTE, "assignment_store_failed", error="NOT_ENOUGH_REPLICAS")
    row = found(rebalance=not_stored((MINUTE, 70_000, 80_000)), event=[error])["offsets-partition-cannot-be-written"]
    assert (row["numbers"]["failed"], row["setting"]) == (3, "min.insync.replicas")
    assert f"__consumer_offsets-{ORDERS} (if that topic has 50 partitions)" in row["text"]
    assert "with NOT_ENOUGH_REPLICAS" in row["text"]


def test_one_that_could_not_be_stored_or_those_around_a_failover_are_none() -> None:
    assert "offsets-partition-cannot-be-written" not in found(rebalance=not_stored((MINUTE,)))
    loaded = event(80_000, "group_loaded")
    rows = found(rebalance=not_stored((MINUTE, 70_000, 75_000)), event=[loaded])
    assert "offsets-partition-cannot-be-written" not in rows


def loaded(ms: int, partition: int = ORDERS, name: str = "partition_loaded") -> Row:
    return event(5 * MINUTE, name, partition=partition, load_ms=ms, reason="java.io.IOException")


def test_a_slow_load_of_its_partition_concerns_a_group() -> None:
    row = found(event=[loaded(42_000)])["slow-load"]
    assert (row["numbers"], row["severity"]) == ({"load_ms": 42_000}, "medium")
    assert row["to_ms"] - row["from_ms"] == 42_000


@pytest.mark.parametrize("row", [loaded(9_000), loaded(42_000, ORDERS + 1)], ids=["quick", "another partition"])
def test_a_quick_load_and_one_of_another_partition_do_not(row: Row) -> None:
    assert "slow-load" not in found(event=[row])


def test_a_partition_that_the_source_names_is_taken_before_the_hash() -> None:
    history = GroupHistory.of(
        RunContext("run", MARCH_3), "orders", {"event": [event(0, "group_loaded", offsets_partition=7)]}
    )
    assert partition_of(history) == (7, True)


def test_a_coordinator_that_failed_to_load_concerns_the_groups_of_that_partition_alone() -> None:
    failed = loaded(0, name="partition_load_failed")
    mine = next(name for name in (f"other-{nth}" for nth in range(1_000)) if partition_for(name, 50) == ORDERS)
    rows: list[Row] = []
    for group in ("orders", mine, "of-another-partition"):
        rows += rows_of(GroupHistory.of(RunContext("run", MARCH_3 + 10 * MINUTE), group, {"event": [failed]}))
    (row,) = one_for_each_event(rows)
    assert (row["finding"], row["group_id"], row["groups"]) == ("load-failed", None, ["orders", mine])
    assert "2 groups had no coordinator to the end of the source" in row["text"]
    assert "java.io.IOException" in row["text"]


def test_it_lasts_until_the_group_is_loaded_somewhere() -> None:
    rows = found(event=[loaded(0, name="partition_load_failed"), event(7 * MINUTE, "group_loaded")])
    assert rows["load-failed"]["numbers"]["without_coordinator_ms"] == 2 * MINUTE
