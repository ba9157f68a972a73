"""Events of rebalances by hand, for the scenes of which tables are made."""

from __future__ import annotations

from typing import Any

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
