"""Whether a group has room for the member of a request. Kafka: GroupMetadataManager.throwIfConsumerGroupIsFull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rejoin.protocol.errors import ErrorCode


class StaticMembership(Protocol):
    """A group that may have static members."""

    @property
    def members(self) -> Mapping[str, Any]:
        """By member id."""

    @property
    def static_members(self) -> Mapping[str, str]:
        """Member ids by instance id."""


def check_room(group: StaticMembership, member_id: str, instance_id: str | None, max_size: int) -> ErrorCode:
    """Whether a member fits in. A static member that is known always does, and so does one that is there."""
    if instance_id is not None and instance_id in group.static_members:
        return ErrorCode.NONE
    if len(group.members) >= max_size and (not member_id or member_id not in group.members):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE
