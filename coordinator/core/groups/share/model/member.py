"""A member of a share group: metadata (key 10) and current assignment (key 14). Both are replaced, never changed.

Kafka: ShareGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import NO_EPOCH, PartitionsByTopicId
from rejoin.coordinator.core.runtime.timers import TimerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberMetadata:
    """A member's identity and subscription."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentShare:
    """A member's current assignment."""

    epoch: int = 0
    previous_epoch: int = NO_EPOCH
    assigned: PartitionsByTopicId = field(default_factory=dict)


NEW_METADATA: Final = ShareMemberMetadata()
NEW_ASSIGNMENT: Final = CurrentShare()
RELEASED: Final = CurrentShare(epoch=NO_EPOCH)
"""The current assignment of a member after its tombstone."""


@dataclass(slots=True)
class ShareMember:
    """A member of a group."""

    member_id: str
    session_key: TimerKey
    number: int = field(default=0, compare=False)
    """Members of a group are numbered as they come."""
    metadata: ShareMemberMetadata = NEW_METADATA
    current: CurrentShare = NEW_ASSIGNMENT
