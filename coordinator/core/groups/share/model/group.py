"""A share group: its epochs, members, targets and share-partitions. All of it comes from records.

Kafka: ShareGroup, ModernGroup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.group import Committer, RetentionStart
from rejoin.coordinator.core.groups.modern.epochs import (
    FIRST_EPOCH,
    PartitionsByTopicId,
    SubscriptionKind,
)
from rejoin.coordinator.core.groups.modern.group import ModernGroup
from rejoin.coordinator.core.groups.share.model.member import (
    NEW_ASSIGNMENT,
    CurrentShare,
    ShareMember,
    ShareMemberMetadata,
)
from rejoin.coordinator.core.groups.share.model.state import SHARE, ShareGroupState
from rejoin.coordinator.core.groups.share.model.state_partitions import StatePartitions
from rejoin.coordinator.core.groups.timers import member_session_timer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


@dataclass(slots=True, kw_only=True)
class ShareGroup(ModernGroup[ShareMember, PartitionsByTopicId]):
    """A group whose members share partitions."""

    first_epoch: int = FIRST_EPOCH
    """Epoch of the group while nothing of it is written."""
    topics: dict[str, int] = field(default_factory=dict)
    """How many members name each topic."""
    state_partitions: StatePartitions | None = None
    """None before the first record of them."""
    shown_state: ShareGroupState = ShareGroupState.EMPTY
    """The state that the last event named."""
    previous_state: ShareGroupState = ShareGroupState.EMPTY
    protocol_type: str | None = SHARE
    _in_targets: dict[str, frozenset[int]] | None = field(default=None, repr=False, compare=False)

    # --- what every group answers

    @property
    def kind(self) -> str:
        return SHARE

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def member_of_instance(self, group_instance_id: str) -> str | None:
        """Kafka: share groups have no static members."""
        return None

    def validate_offset_commit(
        self, committer: Committer, version: int, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Kafka: a share group commits no offsets, so there is no group to commit them to."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_fetch(self, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
        """Kafka: no offsets are found, which is no error."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offsets_retained_from(self) -> RetentionStart | None:
        """Kafka: an Empty share group never expires."""
        return None

    # --- what replay calls

    def set_target(self, member_id: str, target: PartitionsByTopicId | None) -> None:
        ModernGroup.set_target(self, member_id, target)
        self._in_targets = None

    def set_metadata(self, member_id: str, metadata: ShareMemberMetadata | None) -> None:
        """A member is there or has changed; without metadata it is gone."""
        member = self.members.get(member_id)
        if metadata is None:
            if member is not None:
                del self.members[member_id]
                self._count(member.metadata, -1)
            return
        self.member_order.grow(len(self.members))
        if member is None:
            member = self._add(member_id)
        self._count(member.metadata, -1)
        self._count(metadata, 1)
        member.metadata = metadata

    def set_current(self, member_id: str, current: CurrentShare | None) -> None:
        """Set a member's current assignment; creates the member, as a compacted log may have this record first."""
        self.member_order.grow(len(self.members))
        member = self.members.get(member_id) or self._add(member_id)
        member.current = current or NEW_ASSIGNMENT

    def set_state_partitions(self, state_partitions: StatePartitions | None) -> None:
        self.state_partitions = state_partitions

    def _add(self, member_id: str) -> ShareMember:
        key = member_session_timer(self.partition, self.group_id, member_id)
        member = self.members[member_id] = ShareMember(member_id, key, self.member_order.next_number())
        return member

    def _count(self, metadata: ShareMemberMetadata, by: int) -> None:
        for name in metadata.topic_names:
            left = self.topics.get(name, 0) + by
            if left:
                self.topics[name] = left
            else:
                del self.topics[name]

    # --- questions

    @property
    def subscription_type(self) -> SubscriptionKind:
        """Whether all members name the same topics, whether these exist or not."""
        alike = all(count == len(self.members) for count in self.topics.values())
        return SubscriptionKind.HOMOGENEOUS if alike else SubscriptionKind.HETEROGENEOUS

    def in_targets(self) -> dict[str, frozenset[int]]:
        """The partitions that are in any member's target, by topic id."""
        if self._in_targets is None:
            together: dict[str, frozenset[int]] = {}
            for target in self.targets.values():
                for topic_id, partitions in target.items():
                    together[topic_id] = together.get(topic_id, frozenset()) | partitions
            self._in_targets = together
        return self._in_targets
