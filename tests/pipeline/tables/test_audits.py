"""Each audit on events with one thing wrong and on events with nothing wrong."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from rejoin.pipeline.audits.violations import violations
from rejoin.pipeline.schemas import VIOLATIONS
from rejoin.pipeline.tables.group_tables import member_sessions, ownership, rebalances
from tests.pipeline.events import consumer, coordinator, events_table


def started(at_ms: int, **fields: Any) -> dict[str, Any]:
    about = {"generation": 1, "previous_state": "Stable", "members": ["m"], "cause": "leave", "initial": False}
    return coordinator(at_ms, "rebalance_started", **{**about, **fields})


def completed(at_ms: int, generation: int, **fields: Any) -> dict[str, Any]:
    about = {"leader": "m", "members": ["m"], "members_before": ["m"]}
    return coordinator(at_ms, "rebalance_completed", generation=generation, **about, **fields)


def at(offset: int) -> list[dict[str, Any]]:
    return [{"topic": "t", "partition": 0, "offset": offset}]


def joined(at_ms: int, member_id: str, **fields: Any) -> dict[str, Any]:
    about = {"group_instance_id": "s", "client_id": "s", "session_timeout_ms": 9_000, "state": "Stable"}
    return coordinator(at_ms, "member_joined", member_id=member_id, **about, **fields)


def removed(at_ms: int, member_id: str, cause: str, **fields: Any) -> dict[str, Any]:
    return coordinator(
        at_ms, "member_removed", member_id=member_id, group_instance_id="s", cause=cause, state="Stable", **fields
    )


FAULTS: dict[str, list[dict[str, Any]]] = {
    "two owners": [
        consumer("a", 100, "partitions_assigned", 0),
        consumer("b", 400, "partitions_assigned", 0),
        consumer("a", 450, "partitions_lost", 0),
    ],
    "unexplained gap": [
        consumer("a", 0, "partitions_assigned", 0),
        consumer("a", 10_000, "partitions_revoked", 0),
        started(10_000),
        completed(11_000, 2),
        consumer("b", 30_000, "partitions_assigned", 0),
    ],
    "stable twice": [completed(10, 4), started(20, generation=4), completed(30, 4)],
    "joined lower": [
        coordinator(10, "join_phase_ended", generation=7, members=["m"], leader="m"),
        coordinator(20, "join_phase_ended", generation=6, members=["m"], leader="m"),
    ],
    "member epoch fell": [
        coordinator(10, "member_reconciled", member_id="m", member_epoch=5),
        coordinator(20, "member_reconciled", member_id="m", member_epoch=4),
    ],
    "group epoch twice": [
        coordinator(10, "group_epoch_bumped", generation=5, node="n1"),
        coordinator(20, "group_epoch_bumped", generation=5, node="n2"),
    ],
    "commit forgotten": [
        coordinator(1_000, "offsets_committed", offsets=at(50), member_id="m"),
        consumer("a", 200_000, "positions_found", offsets=at(20), origin="committed"),
    ],
    "commit ignored": [
        coordinator(1_000, "offsets_committed", offsets=at(50), member_id="m"),
        consumer("a", 200_000, "positions_found", offsets=at(90), origin="latest"),
    ],
    "paused beyond its session": [
        joined(0, "a-id"),
        consumer("a", 100, "partitions_assigned", 0),
        removed(9_000, "a-id", "session-expiry"),
        consumer("b", 9_400, "partitions_assigned", 0),
        consumer("a", 9_450, "partitions_lost", 0),
    ],
    "stuck beyond its poll": [
        joined(0, "a-id"),
        consumer("a", 100, "partitions_assigned", 0),
        consumer("a", 9_000, "poll_timeout_exceeded"),
        removed(9_001, "a-id", "left"),
        consumer("b", 9_400, "partitions_assigned", 0),
        consumer("a", 9_450, "partitions_lost", 0),
    ],
    # The second had the partition before the first was removed.
    "removed too late": [
        joined(0, "a-id"),
        consumer("a", 100, "partitions_assigned", 0),
        consumer("b", 4_000, "partitions_assigned", 0),
        removed(9_000, "a-id", "session-expiry"),
        consumer("a", 9_450, "partitions_lost", 0),
    ],
    "static that came back": [
        joined(0, "s-1"),
        removed(20_000, "s-1", "left", client_reason="member was removed by an admin"),
        joined(22_000, "s-2"),
        started(22_000, cause="join-new", cause_member_id="s-2", cause_group_instance_id="s"),
    ],
    "static that left": [
        joined(0, "s-1"),
        removed(20_000, "s-1", "left"),
        started(
            20_000, cause_member_id="s-1", cause_group_instance_id="s", client_reason="the consumer is being closed"
        ),
    ],
}

KINDS = {
    "two owners": ("two-owners", 0, 50),
    "paused beyond its session": ("owner-after-removal", 0, 50),
    "stuck beyond its poll": ("owner-after-removal", 0, 50),
    "removed too late": ("two-owners", 0, 5_450),
    "unexplained gap": ("unexplained-gap", 1_000, 20_000),
    "stable twice": ("generation-went-back", 5, 4),
    "joined lower": ("generation-went-back", 8, 6),
    "member epoch fell": ("generation-went-back", 5, 4),
    "group epoch twice": ("generation-went-back", 6, 5),
    "commit forgotten": ("commit-not-seen", 50, 20),
    "commit ignored": ("commit-not-seen", 50, -1),
    "static that came back": ("static-member-rebalanced", 9_000, 2_000),
    "static that left": ("static-member-rebalanced", 9_000, -1),
}

NO_FAULTS: dict[str, list[dict[str, Any]]] = {
    "handed over": [
        consumer("a", 100, "partitions_assigned", 0),
        consumer("a", 450, "partitions_revoked", 0),
        started(450),
        completed(8_000, 2),
        consumer("b", 8_000, "partitions_assigned", 0),
    ],
    # A new coordinator knows the last generation that was stored, and hands out the next one again.
    "failover in mid rebalance": [
        completed(10, 4),
        coordinator(20, "join_phase_ended", generation=5, members=["m"], leader="m"),
        coordinator(500, "group_loaded", node="n2", generation=4, state="Stable", members=["m"]),
        coordinator(600, "join_phase_ended", node="n2", generation=5, members=["m"], leader="m"),
        completed(610, 5, node="n2"),
    ],
    "made anew": [
        completed(10, 4),
        coordinator(20, "group_deleted", reason="requested"),
        coordinator(30, "group_created"),
        completed(40, 1),
    ],
    "members one by one": [
        coordinator(10, "group_epoch_bumped", generation=5),
        coordinator(20, "member_reconciled", member_id="m", member_epoch=5),
        coordinator(30, "group_epoch_bumped", generation=6),
        coordinator(40, "partitions_awaited", member_id="n", member_epoch=6),
        coordinator(50, "member_reconciled", member_id="m", member_epoch=5),
        coordinator(60, "member_reconciled", member_id="n", member_epoch=6),
    ],
    # The read may have been served before the second commit, and expired offsets are not missed.
    "read meanwhile": [
        coordinator(1_000, "offsets_committed", offsets=at(20), member_id="m"),
        coordinator(199_000, "offsets_committed", offsets=at(50), member_id="m"),
        consumer("a", 200_000, "positions_found", offsets=at(20), origin="committed"),
    ],
    "wound back": [
        coordinator(1_000, "offsets_committed", offsets=at(50), member_id="m"),
        coordinator(2_000, "offsets_committed", offsets=at(5), member_id=""),
        consumer("a", 200_000, "positions_found", offsets=at(5), origin="committed"),
    ],
    "expired": [
        coordinator(1_000, "offsets_committed", offsets=at(50), member_id="m"),
        coordinator(100_000, "offsets_deleted", offsets=at(50), reason="expired"),
        consumer("a", 200_000, "positions_found", offsets=at(0), origin="earliest"),
    ],
    "static, too late": [
        joined(0, "s-1"),
        removed(20_000, "s-1", "session-expiry"),
        joined(32_000, "s-2"),
        started(32_000, cause="join-new", cause_member_id="s-2", cause_group_instance_id="s"),
    ],
}


def test_every_fault_is_found_with_its_proof_and_nothing_else(spark: SparkSession) -> None:
    of_scenes = [{"run_id": scene, **event} for scene, events in {**FAULTS, **NO_FAULTS}.items() for event in events]
    bronze = events_table(spark, of_scenes).persist()
    rebalanced = rebalances(bronze).persist()
    sessions = member_sessions(bronze, rebalanced)
    owned = ownership(bronze).persist()
    found = violations(bronze, rebalanced, owned, sessions)
    assert found.columns == VIOLATIONS.names
    rows = found.toArrow().to_pylist()
    in_process: Any = violations(*(table.toArrow() for table in (bronze, rebalanced, owned, sessions)))
    assert sorted(map(str, in_process.to_pylist())) == sorted(map(str, rows))
    assert {row["run_id"]: (row["kind"], row["expected"], row["found"]) for row in rows} == KINDS
    assert len(rows) == len(KINDS)
    written = {(event["run_id"], row.seq) for event, row in zip(of_scenes, bronze.collect(), strict=True)}
    for row in rows:
        assert row["text"]
        assert row["evidence"]
        assert all((row["run_id"], each["seq"]) in written and each["file"] == "events" for each in row["evidence"])
