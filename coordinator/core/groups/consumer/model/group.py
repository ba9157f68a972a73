"""A consumer group: its epochs, members, targets and who holds which partition. All of it comes from records.

The setters are what replay calls; each keeps the indexes in step, so that neither the state of the group nor the owner
of a partition costs a look at all members. Kafka: ConsumerGroup, ModernGroup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.consumer.model.member import (
    NEW_ASSIGNMENT,
    ConsumerMember,
    ConsumerMemberMetadata,
    CurrentAssignment,
    PartitionEpochs,
)
from rejoin.coordinator.core.groups.consumer.model.rules import NEWEST_RULES, ConsumerGroupRules
from rejoin.coordinator.core.groups.consumer.model.state import (
    CONSUMER,
    ConsumerGroupState,
    ConsumerMemberState,
    derived_state,
)
from rejoin.coordinator.core.groups.consumer.model.subscriptions import ResolvedRegex, Subscriptions
from rejoin.coordinator.core.groups.consumer.model.target_index import TargetIndex
from rejoin.coordinator.core.groups.group import Committer, RetentionStart
from rejoin.coordinator.core.groups.modern.epochs import (
    PartitionsByTopicId,
    SubscriptionKind,
)
from rejoin.coordinator.core.groups.modern.group import (
    FIRST_COMMIT_OF_MODERN_MEMBERS,
    FIRST_TXN_COMMIT_WITH_STALE_EPOCH,
    ModernGroup,
    committed_at,
)
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.timers import member_session_timer
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition


@dataclass(slots=True, kw_only=True)
class ConsumerGroup(ModernGroup[ConsumerMember, PartitionsByTopicId]):
    """A group whose members speak the consumer protocol, or some of them still the classic one."""

    topics: TopicsMetadata = field(repr=False, compare=False)
    static_members: dict[str, str] = field(default_factory=dict)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    partition_epochs: dict[str, dict[int, int]] = field(default_factory=dict)
    """By topic id, by partition: the epoch of the member that holds it."""
    rules: ConsumerGroupRules = NEWEST_RULES

    subscription_type: SubscriptionKind = SubscriptionKind.HOMOGENEOUS
    """As of the last change of a member. Kafka: resolved expressions do not change it by themselves."""
    quiet_until: Millis = 0
    """Until then heartbeats that say nothing new change nothing. Every change of the group ends it."""
    shown_state: ConsumerGroupState = ConsumerGroupState.EMPTY
    """The state that the last event named."""
    previous_state: ConsumerGroupState = ConsumerGroupState.EMPTY
    protocol_type: str | None = CONSUMER
    has_partition_metadata: bool = False
    """Whether a record of Kafka 4.0 is in the log that wants a tombstone."""
    target_index: TargetIndex | None = field(default=None, repr=False, compare=False)
    """Made for the uniform assignor where the group is large; all that changes targets or members notes it there."""
    _stable_at: dict[int, int] = field(default_factory=dict)
    """How many members are STABLE at each epoch."""

    # --- what every group answers

    @property
    def kind(self) -> str:
        return CONSUMER

    @property
    def state(self) -> ConsumerGroupState:
        """Derived from epochs and members, and costs no look at them."""
        reconciled = self._stable_at.get(self.assignment_epoch, 0)
        return derived_state(len(self.members), self.epoch, self.assignment_epoch, reconciled)

    def show_state(self, state: ConsumerGroupState, now: Millis) -> None:
        """Remember the state that the next event names."""
        self.shown_state, self.previous_state, self.state_since = state, self.shown_state, now

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions.topics

    def member_of_instance(self, group_instance_id: str) -> str | None:
        return self.static_members.get(group_instance_id)

    def validate_offset_commit(
        self, committer: Committer, version: int, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Whether a member may commit. Kafka: ConsumerGroup.validateOffsetCommit."""
        if committer.generation < 0 and not self.members:
            return ErrorCode.NONE
        is_anonymous = not committer.member_id and committer.group_instance_id is None
        if committer.is_transactional and committer.generation == -1 and is_anonymous:
            return ErrorCode.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not committer.is_transactional and not member.is_classic and version < FIRST_COMMIT_OF_MODERN_MEMBERS:
            return ErrorCode.UNSUPPORTED_VERSION
        current = member.current
        if committer.generation == current.epoch:
            return ErrorCode.NONE
        # Kafka: KIP-1251. What the member already owned at that epoch it may commit; its next reply is in flight.
        is_early = (
            self.rules.commits_by_partition
            and committer.generation < current.epoch
            and all(self._owned_since(current, each) <= committer.generation for each in partitions)
        )
        if is_early:
            return ErrorCode.NONE
        is_old_request = committer.is_transactional and version < FIRST_TXN_COMMIT_WITH_STALE_EPOCH
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic or is_old_request else ErrorCode.STALE_MEMBER_EPOCH

    def _owned_since(self, current: CurrentAssignment, partition: TopicPartition) -> float:
        """The epoch at which a member got a partition that it has; beyond all epochs where it has not."""
        if partition.topic not in self.topics:
            return math.inf
        topic_id = self.topics.id_of(partition.topic)
        for owned in (current.assigned, current.pending):
            epoch = owned.get(topic_id, {}).get(partition.partition)
            if epoch is not None:
                return epoch
        return math.inf

    def validate_offset_fetch(self, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
        """Whether the group's offsets may be read. Kafka: ConsumerGroup.validateOffsetFetch."""
        if member_id is None:
            # Kafka: an epoch without a member id ends in a null pointer.
            return ErrorCode.NONE if epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.current.epoch:
            return ErrorCode.NONE
        return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def offsets_retained_from(self) -> RetentionStart:
        """Each from its own commit, whatever the state."""
        return committed_at

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    # --- what replay calls

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        ModernGroup.set_epoch(self, epoch, metadata_hash)
        self.quiet_until = 0

    def set_assignment_epoch(self, epoch: int, at: Millis) -> None:
        ModernGroup.set_assignment_epoch(self, epoch, at)
        self.quiet_until = 0

    def set_target(self, member_id: str, target: PartitionsByTopicId | None) -> None:
        ModernGroup.set_target(self, member_id, target)
        if self.target_index is not None:
            self.target_index.touch(member_id)

    def set_metadata(self, member_id: str, metadata: ConsumerMemberMetadata | None) -> None:
        """A member is there or has changed; without metadata it is gone."""
        self.quiet_until = 0
        member = self.members.get(member_id)
        if metadata is None:
            if member is not None:
                self._remove(member)
            return
        self.member_order.grow(len(self.members))
        if member is None:
            member = self._add(member_id)
        before, member.metadata = member.metadata, metadata
        self.subscriptions.replace(before, metadata)
        if before.instance_id != metadata.instance_id:
            self._forget_instance(before.instance_id, member_id)
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id
        self._update_subscription_type()

    def set_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        """Set a member's current assignment; creates the member, as a compacted log may have this record first."""
        member = self.members.get(member_id)
        self.member_order.grow(len(self.members))
        if member is None:
            member = self._add(member_id)
        current = current or NEW_ASSIGNMENT
        before, member.current, member.unchanged = member.current, current, None
        self.quiet_until = 0
        self._count_stable(before, -1)
        self._count_stable(current, 1)
        self._release(before, before.assigned, before.pending)
        self._hold(current, current.assigned, current.pending)
        self._update_subscription_type()

    def _update_subscription_type(self) -> None:
        if self.subscriptions.has_changed:
            self.subscriptions.has_changed = False
            self.subscription_type = self.subscriptions.type_for(len(self.members))

    def _add(self, member_id: str) -> ConsumerMember:
        key = member_session_timer(self.partition, self.group_id, member_id)
        member = self.members[member_id] = ConsumerMember(member_id, key, self.member_order.next_number())
        if self.target_index is not None:
            self.target_index.touch(member_id)
        self._count_stable(member.current, 1)
        self.subscriptions.has_changed = True
        return member

    def _remove(self, member: ConsumerMember) -> None:
        del self.members[member.member_id]
        if self.target_index is not None:
            self.target_index.touch(member.member_id)
        self.subscriptions.has_changed = True
        self.subscriptions.count(member.metadata, -1)
        self._update_subscription_type()
        self._forget_instance(member.metadata.instance_id, member.member_id)
        self._count_stable(member.current, -1)
        self._release(member.current, member.current.assigned, member.current.pending)

    def _forget_instance(self, instance_id: str | None, member_id: str) -> None:
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def _count_stable(self, current: CurrentAssignment, by: int) -> None:
        if current.state is not ConsumerMemberState.STABLE:
            return
        left = self._stable_at.get(current.epoch, 0) + by
        if left:
            self._stable_at[current.epoch] = left
        else:
            del self._stable_at[current.epoch]

    # --- who holds which partition

    def _release(self, current: CurrentAssignment, *owned: PartitionEpochs) -> None:
        for topics in owned:
            for topic_id, partitions in topics.items():
                epochs = self.partition_epochs.get(topic_id)
                if epochs is None:
                    continue
                for partition in partitions:
                    # Kafka: since 4.3 another member may hold it by now; what it has stays.
                    if epochs.get(partition) == current.epoch:
                        del epochs[partition]
                if not epochs:
                    del self.partition_epochs[topic_id]

    def _hold(self, current: CurrentAssignment, *owned: PartitionEpochs) -> None:
        for topics in owned:
            for topic_id, partitions in topics.items():
                epochs = self.partition_epochs.setdefault(topic_id, {})
                for partition in partitions:
                    if epochs.get(partition, current.epoch) <= current.epoch:
                        epochs[partition] = current.epoch

    def repair(self) -> None:
        """A change has failed of which others were made: find anew who holds what, and have all assigned anew."""
        self.needs_epoch = True
        self.quiet_until = 0
        self.target_index = None
        self.partition_epochs.clear()
        for member in self.members.values():
            self._hold(member.current, member.current.assigned, member.current.pending)

    def look_at_topics(self) -> None:
        """Have the next heartbeat look at the subscribed topics."""
        self.refresh.at = self.quiet_until = 0

    def has_owner(self, topic_id: str, partition: int) -> bool:
        """Whether any member has this partition, or has not given it up yet."""
        epochs = self.partition_epochs.get(topic_id)
        return epochs is not None and partition in epochs

    # --- questions

    @property
    def modern_members(self) -> int:
        """How many members speak the consumer protocol."""
        return len(self.members) - self.subscriptions.classic_members

    def are_all_classic_without(self, gone: Iterable[str]) -> bool:
        """Whether only members of the classic protocol are left without these, of which one at least is modern."""
        leaving = [self.members[member_id] for member_id in gone]
        modern = sum(1 for member in leaving if not member.is_classic)
        return 0 < modern == self.modern_members

    def target_of(self, member_id: str) -> PartitionsByTopicId:
        return self.targets.get(member_id, {})

    def resolved(self) -> Mapping[str, ResolvedRegex]:
        """The expressions that are resolved."""
        return self.subscriptions.resolved
