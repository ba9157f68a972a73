"""Validation of a ShareGroupHeartbeat by itself, before its group is looked up.

Kafka: KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH, LEAVE_EPOCH
from rejoin.coordinator.core.inputs import Context
from rejoin.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatRequest

LONGEST_MEMBER_ID: Final = 36
"""Characters, as many as a UUID has with its dashes."""


def is_member_id(member_id: str | None) -> bool:
    """Whether a text can be the id of a member of a share group. Kafka: also in ShareFetch and ShareAcknowledge."""
    return member_id is not None and 0 < len(member_id.encode("utf-16-le", "surrogatepass")) <= 2 * LONGEST_MEMBER_ID


def check_share_heartbeat(request: ShareGroupHeartbeatRequest, _: Context, __: Settings) -> ErrorCode:
    """Whether a heartbeat is valid in itself."""
    is_wrong = (
        not request.member_id.strip()
        or not request.group_id.strip()
        or (request.rack_id is not None and not request.rack_id.strip())
        or (request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names)
        or request.member_epoch < LEAVE_EPOCH
    )
    return ErrorCode.INVALID_REQUEST if is_wrong else ErrorCode.NONE
