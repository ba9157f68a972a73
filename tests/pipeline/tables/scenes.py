"""Events of rebalances by hand, for the scenes of which tables are made."""

from __future__ import annotations

from typing import Any, Final

from tests.pipeline.events import coordinator

A, B, C = "a-id", "b-id", "c-id"


def own(member_id: str, *partitions: int) -> list[dict[str, Any]]:
    return [{"member_id": member_id, "topic": "t", "partition": index} for index in partitions]


def started(
    at_ms: int, generation: int, cause: str, member_id: str, members: list[str], **fields: Any
) -> dict[str, Any]:
    about = {
        "generation": generation,
        "cause": cause,
        "cause_member_id": member_id,
        "members": members,
        "initial": False,
    }
    return coordinator(at_ms, "rebalance_started", **{"previous_state": "Stable", **about, **fields})


def ended(at_ms: int, generation: int, members: list[str], **fields: Any) -> dict[str, Any]:
    about = {"generation": generation, "leader": members[0], "protocol": "range", "members": members}
    return coordinator(at_ms, "join_phase_ended", **about, **fields)


def completed(at_ms: int, generation: int, before: list[str], after: list[str], **fields: Any) -> dict[str, Any]:
    about = {
        "generation": generation,
        "leader": after[0],
        "protocol": "range",
        "members": after,
        "members_before": before,
    }
    return coordinator(at_ms, "rebalance_completed", **{"confidence": "exact", **about, **fields})


def measured(at_ms: int, **fields: Any) -> dict[str, Any]:
    return coordinator(at_ms, "client_metrics_reported", **{"client_instance_id": "ia", **fields})


CLIENT_METRICS: Final = [
    coordinator(0, "member_joined", member_id=A, client_id="a", rebalance_timeout_ms=14_000),
    coordinator(0, "member_joined", member_id=B, client_id="b", rebalance_timeout_ms=14_000),
    started(0, 0, "join-new", A, [A, B], previous_state="Empty", initial=True),
    ended(3_000, 1, [A, B], join_ms=3_000),
    completed(3_020, 1, [], [A, B], owned_before=[], owned_after=[*own(A, 0, 1), *own(B, 2)], moved=0, regained=3),
    measured(5_000, member_id=A, client_id="a", rebalance_latency_max_ms=3_005, assigned_partitions=2),
    # One names no group: its client.id is that of b. No member has the other client.id.
    measured(
        6_000, group_id=None, client_id="b", client_instance_id="ib", poll_interval_max_ms=340_000, fetch_rate=1.5
    ),
    measured(6_500, group_id=None, client_id="producer", client_instance_id="ip"),
    coordinator(9_000, "member_removed", member_id=A, client_id="a", cause="left", state="Stable"),
    started(9_000, 1, "leave", A, [B]),
    ended(9_010, 2, [B], join_ms=10),
    completed(9_020, 2, [A, B], [B], owned_before=own(B, 2), owned_after=own(B, 0, 1, 2), moved=0, regained=2),
    measured(10_000, group_id=None, client_id="b", client_instance_id="ib", assigned_partitions=1),
    measured(10_500, member_id=A, client_id="a", assigned_partitions=0),
]
"""Two members that push their metrics, and a producer."""
