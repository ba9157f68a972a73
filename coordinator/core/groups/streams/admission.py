"""Validation of a StreamsGroupHeartbeat by itself, before its group is looked up.

Kafka: KafkaApis.handleStreamsGroupHeartbeat, GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.streams.model.state import STATIC_LEAVE_EPOCH, STREAMS
from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request

if TYPE_CHECKING:
    from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_INVALID: Final = ErrorCode.INVALID_REQUEST


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def check_streams_heartbeat(request: StreamsGroupHeartbeatRequest, _: Context, __: Settings) -> ErrorCode:
    """Whether a heartbeat is valid in itself."""
    topology, epoch = request.topology, request.member_epoch
    # Kafka: 4.4 supports no regular expressions here.
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        return _INVALID
    if any(map(_is_blank, (request.member_id, request.group_id, request.instance_id, request.rack_id))):
        return _INVALID
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1 or topology is None or any(each is None or each for each in tasks):
            return _INVALID
        if any(topic.partitions for each in topology.subtopologies for topic in each.state_changelog_topics):
            return ErrorCode.STREAMS_INVALID_TOPOLOGY
    is_wrong = (
        epoch < STATIC_LEAVE_EPOCH
        or (epoch == STATIC_LEAVE_EPOCH and request.instance_id is None)
        or (None in tasks and any(each is not None for each in tasks))
        or (topology is not None and epoch != JOIN_EPOCH)
    )
    return _INVALID if is_wrong else ErrorCode.NONE


def streams_protocol_is_off(_: Request, __: Context, settings: Settings) -> ErrorCode:
    """Whether members of streams groups are served at all."""
    is_on = STREAMS in settings.group_coordinator_rebalance_protocols
    return ErrorCode.NONE if is_on else ErrorCode.UNSUPPORTED_VERSION
