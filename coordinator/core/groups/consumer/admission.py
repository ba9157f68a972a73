"""Validation of a ConsumerGroupHeartbeat by itself, before its group is looked up.

Kafka: GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER, STATIC_LEAVE_EPOCH
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH, LEAVE_EPOCH
from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_WITH_ID_OF_THE_CLIENT: Final = 1

Fault: TypeAlias = Callable[[ConsumerGroupHeartbeatRequest, int], bool]


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _lacks_member_id(request: ConsumerGroupHeartbeatRequest, version: int) -> bool:
    is_needed = (
        version >= FIRST_WITH_ID_OF_THE_CLIENT or request.member_epoch > 0 or request.member_epoch == LEAVE_EPOCH
    )
    return is_needed and _is_blank(request.member_id)


def _joins_badly(request: ConsumerGroupHeartbeatRequest, _: int) -> bool:
    """Whether a joining member lacks its rebalance timeout or its subscription, or claims partitions."""
    return request.member_epoch == JOIN_EPOCH and (
        request.rebalance_timeout_ms == -1
        or request.topic_partitions is None
        or len(request.topic_partitions) > 0
        or (request.subscribed_topic_names is None and request.subscribed_topic_regex is None)
    )


FAULTS: Final[tuple[Fault, ...]] = (
    _lacks_member_id,
    lambda request, _: _is_blank(request.group_id),
    lambda request, _: _is_blank(request.instance_id),
    lambda request, _: _is_blank(request.rack_id),
    _joins_badly,
    lambda request, _: request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None,
    lambda request, _: request.member_epoch < STATIC_LEAVE_EPOCH,
)
"""Why a heartbeat is an invalid request; none if it is valid."""


def check_consumer_heartbeat(request: ConsumerGroupHeartbeatRequest, context: Context, settings: Settings) -> ErrorCode:
    """Whether a heartbeat is valid in itself."""
    version = context.api_version
    if request.member_epoch > 0 and request.member_id and request.instance_id is None and request.rack_id is None:
        is_wrong = not request.member_id.strip() or not request.group_id.strip()
    else:
        is_wrong = any(fault(request, version) for fault in FAULTS)
    if is_wrong:
        return ErrorCode.INVALID_REQUEST
    if request.server_assignor is not None and request.server_assignor not in assignor_names(
        settings.group_consumer_assignors
    ):
        return ErrorCode.UNSUPPORTED_ASSIGNOR
    return ErrorCode.NONE


@lru_cache(maxsize=8)
def assignor_names(configured: str) -> frozenset[str]:
    """The names of the server-side assignors of this node; those that are configured by their path have one, too."""
    from rejoin.coordinator.core.groups.consumer.assignors import assignors_of  # noqa: PLC0415 - loaded with the groups

    return frozenset(assignors_of(configured))


def consumer_protocol_is_off(_: Request, __: Context, settings: Settings) -> ErrorCode:
    """Whether members of consumer groups are served at all."""
    is_on = CONSUMER in settings.group_coordinator_rebalance_protocols
    return ErrorCode.NONE if is_on else ErrorCode.UNSUPPORTED_VERSION
