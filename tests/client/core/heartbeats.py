"""Heartbeats of a consumer group's member: as lines for tests, and what a coordinator answers."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    AssignedTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
)

MEMBER_ID = "member-id-of-the-bench"
INTERVAL_MS = 5_000


def topic_id(name: str) -> str:
    """An id for a topic."""
    return name[-21:].rjust(21, "0") + "A"


def shown_heartbeat(request: ConsumerGroupHeartbeatRequest) -> str:
    """A heartbeat of a consumer group's member: its epoch, and the fields that it has."""
    assert request.member_id == MEMBER_ID
    fields = [
        f"names={','.join(request.subscribed_topic_names)}" if request.subscribed_topic_names is not None else "",
        f"regex={request.subscribed_topic_regex}" if request.subscribed_topic_regex is not None else "",
        f"assignor={request.server_assignor}" if request.server_assignor else "",
        f"rack={request.rack_id}" if request.rack_id else "",
        f"timeout={request.rebalance_timeout_ms}" if request.rebalance_timeout_ms != -1 else "",
        f"instance={request.instance_id}" if request.instance_id else "",
    ]
    if request.topic_partitions is not None:
        owned = (f"{each.topic_id[:-1].lstrip('0')}-{p}" for each in request.topic_partitions for p in each.partitions)
        fields.append(f"owns=[{' '.join(owned)}]")
    return " ".join([f"heartbeat {request.member_epoch}", *filter(None, fields)])


def heartbeat_response(
    error: ErrorCode, *, epoch: int = 0, assigned: Sequence[str] | None = None, interval_ms: int = INTERVAL_MS
) -> ConsumerGroupHeartbeatResponse:
    """What a coordinator answers a heartbeat of a consumer group's member; without ``assigned``: as before."""
    if error is not ErrorCode.NONE:
        return ConsumerGroupHeartbeatResponse(error_code=error, error_message="said the bench")
    assignment = None
    if assigned is not None:
        topics: dict[str, list[int]] = {}
        for name in assigned:
            topic, _, partition = name.rpartition("-")
            topics.setdefault(topic, []).append(int(partition))
        parts = (AssignedTopicPartitions(topic_id=topic_id(t), partitions=tuple(p)) for t, p in topics.items())
        assignment = HeartbeatAssignment(topic_partitions=tuple(parts))
    return ConsumerGroupHeartbeatResponse(
        member_id=MEMBER_ID, member_epoch=epoch, heartbeat_interval_ms=interval_ms, assignment=assignment
    )
