"""A streams group: its epochs, topology, members, targets and who holds which task. All but its memory is of records.

Kafka: StreamsGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.core.groups.group import Committer, RetentionStart
from rejoin.coordinator.core.groups.modern.group import (
    FIRST_COMMIT_OF_MODERN_MEMBERS,
    FIRST_TXN_COMMIT_WITH_STALE_EPOCH,
    ModernGroup,
    committed_at,
)
from rejoin.coordinator.core.groups.streams.model.holders import TaskHolders
from rejoin.coordinator.core.groups.streams.model.member import (
    NEW_ASSIGNMENT,
    CurrentTasks,
    StreamsMember,
    StreamsMemberMetadata,
)
from rejoin.coordinator.core.groups.streams.model.memory import GroupMemory
from rejoin.coordinator.core.groups.streams.model.state import STREAMS, StreamsGroupState, StreamsMemberState
from rejoin.coordinator.core.groups.streams.model.tasks import NO_TASKS, Tasks
from rejoin.coordinator.core.groups.timers import member_session_timer
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import hash_map_order
from rejoin.protocol.records.groups.streams_groups import StreamsGroupTopologyValue
from rejoin.protocol.streams.topology import Subtopology
from rejoin.protocol.types import TopicPartition

NO_TOPOLOGY_EPOCH: Final = -1


@dataclass(slots=True, kw_only=True)
class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """A group whose members are the stream threads of one application."""

    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    """Epoch of the topology whose topics are all there and right."""
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    """The settings of the assignor that the last epoch was made with."""
    stored_description_epoch: int = NO_TOPOLOGY_EPOCH
    failed_description_epoch: int = NO_TOPOLOGY_EPOCH
    topology: StreamsGroupTopologyValue | None = None
    static_members: dict[str, str] = field(default_factory=dict)
    holders: TaskHolders = field(default_factory=TaskHolders, repr=False, compare=False)
    memory: GroupMemory = field(default_factory=GroupMemory, repr=False, compare=False)
    quiet_until: Millis = field(default=0, compare=False)
    """Until then heartbeats that say nothing new change nothing. Every change of the group ends it."""
    shown_state: StreamsGroupState = StreamsGroupState.EMPTY
    """The state that the last event named."""
    previous_state: StreamsGroupState = StreamsGroupState.EMPTY
    protocol_type: str | None = STREAMS
    _stable_at: dict[int, int] = field(default_factory=dict)
    """How many members are STABLE at each epoch."""
    _read_by: dict[str, str] = field(default_factory=dict)
    """The subtopology that reads each topic."""
    _required: frozenset[str] = frozenset()

    # --- what every group answers

    @property
    def kind(self) -> str:
        return STREAMS

    @property
    def state(self) -> StreamsGroupState:
        """Derived, and costs no look at the members."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        is_stable = self._stable_at.get(self.assignment_epoch, 0) == len(self.members)
        return StreamsGroupState.STABLE if is_stable else StreamsGroupState.RECONCILING

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and topic in self._read_by

    def member_of_instance(self, group_instance_id: str) -> str | None:
        return self.static_members.get(group_instance_id)

    def validate_offset_commit(
        self, committer: Committer, version: int, partitions: Iterable[TopicPartition]
    ) -> ErrorCode:
        """Whether a member may commit. Kafka: StreamsGroup.validateOffsetCommit."""
        if committer.generation < 0 and not self.members:
            return ErrorCode.NONE
        is_anonymous = not committer.member_id and committer.group_instance_id is None
        if committer.is_transactional and committer.generation == -1 and is_anonymous:
            return ErrorCode.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not committer.is_transactional and version < FIRST_COMMIT_OF_MODERN_MEMBERS:
            return ErrorCode.UNSUPPORTED_VERSION
        epoch, current = committer.generation, member.current
        if epoch == current.epoch:
            return ErrorCode.NONE
        # Kafka: KIP-1251. What the member already ran at that epoch it may commit; its next reply is in flight.
        if epoch < current.epoch and all(self._ran_since(current, each, epoch) for each in partitions):
            return ErrorCode.NONE
        is_old_request = committer.is_transactional and version < FIRST_TXN_COMMIT_WITH_STALE_EPOCH
        return ErrorCode.ILLEGAL_GENERATION if is_old_request else ErrorCode.STALE_MEMBER_EPOCH

    def _ran_since(self, current: CurrentTasks, partition: TopicPartition, epoch: int) -> bool:
        """Whether a member got the active task of a partition at this epoch or before, and has it."""
        subtopology = self._read_by.get(partition.topic)
        if subtopology is None:
            return False
        for held in (current.assigned, current.pending):
            since = held.active.get(subtopology, {}).get(partition.partition)
            if since is not None:
                return since <= epoch
        return False

    def validate_offset_fetch(self, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
        """Whether the group's offsets may be read. Kafka: StreamsGroup.validateOffsetFetch."""
        if member_id is None:
            # Kafka: an epoch without a member id ends in a null pointer.
            return ErrorCode.NONE if epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def offsets_retained_from(self) -> RetentionStart:
        """Each from its own commit, whatever the state."""
        return committed_at

    # --- what replay calls

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        ModernGroup.set_epoch(self, epoch, metadata_hash)
        self.quiet_until = 0

    def set_assignment_epoch(self, epoch: int, at: Millis) -> None:
        ModernGroup.set_assignment_epoch(self, epoch, at)
        self.quiet_until = 0

    def set_target(self, member_id: str, target: Tasks | None) -> None:
        ModernGroup.set_target(self, member_id, target)
        self.look_again(member_id)

    def set_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        self.quiet_until = 0
        self.topology = topology
        self._read_by = {} if topology is None else readers(topology.subtopologies)
        self._required = frozenset() if topology is None else required_topics(topology.subtopologies)

    def set_metadata(self, member_id: str, metadata: StreamsMemberMetadata | None) -> None:
        """A member is there or has changed; without metadata it is gone."""
        self.look_again(member_id)
        member = self.members.get(member_id)
        if metadata is None:
            if member is not None:
                self._remove(member)
            return
        self.member_order.grow(len(self.members))
        if member is None:
            member = self._add(member_id)
        before = member.metadata
        if before.process_id != metadata.process_id:
            self.holders.release(before.process_id, member.current)
            self.holders.hold(metadata.process_id, member.current)
        member.metadata = metadata
        if before.instance_id != metadata.instance_id:
            self._forget_instance(before.instance_id, member_id)
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id

    def set_current(self, member_id: str, current: CurrentTasks | None) -> None:
        """Set a member's current assignment; creates the member, as a compacted log may have this record first."""
        self.member_order.grow(len(self.members))
        member = self.members.get(member_id) or self._add(member_id)
        process_id = member.metadata.process_id
        self.look_again(member_id)
        self.holders.release(process_id, member.current)
        self._count_stable(member.current, -1)
        member.current = current or NEW_ASSIGNMENT
        self._count_stable(member.current, 1)
        self.holders.hold(process_id, member.current)

    def _add(self, member_id: str) -> StreamsMember:
        key = member_session_timer(self.partition, self.group_id, member_id)
        member = self.members[member_id] = StreamsMember(member_id, key, self.member_order.next_number())
        self._count_stable(member.current, 1)
        return member

    def _remove(self, member: StreamsMember) -> None:
        del self.members[member.member_id]
        self._forget_instance(member.metadata.instance_id, member.member_id)
        self._count_stable(member.current, -1)
        self.holders.release(member.metadata.process_id, member.current)
        self.memory.forget(member.member_id)
        if not self.members:
            self.memory.shutdown_requested_by = None

    def _forget_instance(self, instance_id: str | None, member_id: str) -> None:
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def _count_stable(self, current: CurrentTasks, by: int) -> None:
        if current.state is not StreamsMemberState.STABLE:
            return
        left = self._stable_at.get(current.epoch, 0) + by
        if left:
            self._stable_at[current.epoch] = left
        else:
            del self._stable_at[current.epoch]

    def repair(self) -> None:
        """A change has failed of which others were made: find anew who holds what, and have all assigned anew."""
        self.needs_epoch = True
        self.quiet_until = 0
        self.memory.refined.epoch = NO_TOPOLOGY_EPOCH
        self.holders = TaskHolders()
        for member in self.members.values():
            self.holders.hold(member.metadata.process_id, member.current)

    def look_again(self, *member_ids: str) -> None:
        """Have the next heartbeat find out anew what there is to do, with new answers for these members."""
        self.quiet_until = 0
        for each in member_ids:
            member = self.members.get(each)
            if member is not None:
                member.unchanged = None

    # --- questions

    def target_of(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_TASKS)

    def required_topics(self) -> frozenset[str]:
        """The topics that the topology needs: sources, repartition sources and changelogs."""
        return self._required


def readers(subtopologies: Iterable[Subtopology]) -> dict[str, str]:
    """The subtopology that reads each topic. Of two, the last in the order of a HashMap."""
    by_id = {each.subtopology_id: each for each in subtopologies}
    return {topic: each for each in hash_map_order([*by_id]) for topic in source_topics(by_id[each])}


def source_topics(subtopology: Subtopology) -> list[str]:
    """The topics that a subtopology reads, each once: those of users, and repartition topics."""
    repartitions = (each.name for each in subtopology.repartition_source_topics)
    return list(dict.fromkeys((*subtopology.source_topics, *repartitions)))


def required_topics(subtopologies: Iterable[Subtopology]) -> frozenset[str]:
    """Topics without which a topology cannot run. A sink that no subtopology reads is none of them."""
    return frozenset(
        topic
        for each in subtopologies
        for topic in (*source_topics(each), *(info.name for info in each.state_changelog_topics))
    )
