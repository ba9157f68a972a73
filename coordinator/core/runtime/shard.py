"""One offsets partition: its groups, its appends under way, its timers, and how it comes from the log and goes.

Kafka: GroupCoordinatorShard and CoordinatorRuntime.CoordinatorContext.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from rejoin.coordinator.core.effects import Append, ReadLog
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.joining import Joining
from rejoin.coordinator.core.groups.classic.member import Member, Parked, Protocols
from rejoin.coordinator.core.groups.classic.membership import Membership
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer, join_refused, sync_refused
from rejoin.coordinator.core.groups.classic.state import DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.offsets.commits import OffsetCommits
from rejoin.coordinator.core.offsets.deletion import OffsetDeletions
from rejoin.coordinator.core.offsets.expiry import expired_partitions
from rejoin.coordinator.core.offsets.store import GroupOffsets, OffsetStore
from rejoin.coordinator.core.offsets.transactions import end_transaction
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_write
from rejoin.coordinator.core.runtime.timers import Key, Kind
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import (
    AppendFailed,
    Cause,
    GroupCreated,
    GroupDeleted,
    GroupLoaded,
    PartitionElected,
    PartitionLoaded,
    PartitionResigned,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.records.consumer_offsets import (
    GroupMetadataValue,
    GroupRecord,
    OffsetRecord,
    Record,
    TransactionMarker,
    group_record,
    offset_record,
)
from rejoin.protocol.types import TopicPartition


class ShardState(StrEnum):
    """Whether the shard serves requests yet."""

    LOADING = "loading"
    ACTIVE = "active"


@dataclass(slots=True)
class InFlight:
    """An append under way."""

    append_id: int
    records: int
    deadline: Millis
    completion: AppendCompletion
    timed_out: bool = False


class Shard:
    """The coordinator of one offsets partition, in one epoch."""

    def __init__(self, ctx: StepContext, partition: TopicPartition, epoch: int) -> None:
        self._ctx = ctx
        self.partition = partition
        self.epoch = epoch
        self.state = ShardState.LOADING
        self.groups: dict[str, ClassicGroup] = {}
        self.in_flight: dict[int, InFlight] = {}
        self._next_append_id = 1
        self._elected_at = ctx.now
        self._records_read = 0
        self.offsets = OffsetStore()
        self.statistics = StatisticsStore()
        self.rebalancer = Rebalancer(ctx, self, self.statistics)
        self.joining = Joining(ctx, self, self.rebalancer)
        self.membership = Membership(ctx, self.rebalancer)
        self.commits = OffsetCommits(ctx, self, self.offsets, self)
        self.deletions = OffsetDeletions(ctx, self, self.offsets)
        self._append_key: Key = (Kind.APPEND, partition, "", "")
        self._expiry_key: Key = (Kind.EXPIRY, partition, "", "")

    # --- groups

    def create_group(self, group_id: str, *, simple: bool) -> ClassicGroup:
        """A new group, Empty and of generation 0."""
        ctx = self._ctx
        group = ClassicGroup(group_id, self.partition, ctx.now, ctx.settings.emulator_member_order)
        self.groups[group_id] = group
        self.statistics.start(group_id)
        ctx.emit(GroupCreated(group_id=group_id, offsets_partition=self.partition.partition, simple=simple))
        return group

    def join(self, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """JoinGroup: creates the group for a member without an id."""
        group = self.groups.get(request.group_id)
        if group is not None:
            self.joining.join(group, token, request, context)
        elif request.member_id:
            from_nobody = Parked(token, context.api_version)
            self._ctx.reply(token, join_refused(from_nobody, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            group = self.create_group(request.group_id, simple=False)
            as_created = group_record(group.group_id, group.metadata({}))
            self.joining.join(group, token, request, context)
            # Kafka: the new coordinator writes the group down at once, so that it is listed before anybody is in it.
            self.append((as_created,), GroupCreationCompletion(self, group))

    def take_back(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Undo the creation of a group, and tell those that wait in it, unless something later is in the log."""
        offsets = self.offsets.get(group.group_id)
        if group.generation or not (group.members or group.pending_join):
            return  # one that nobody has come into is dropped by the next expiry run
        if self.groups.get(group.group_id) is not group or not (offsets is None or offsets.is_empty):
            return
        # Differs: Kafka answers only the JoinGroup that made the group; those that came after it wait on.
        self._close(group, error)
        self._remove(group)
        self._ctx.deadlines.cancel_group(self.partition, group.group_id)

    def _close(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer everybody that waits in a group, and let it be Dead."""
        for member in group.members.values():
            if member.parked_join is not None:
                # Kafka: GroupMetadataManager.onUnloaded gives the id back; a group that could not be stored does not.
                member_id = member.member_id if error is ErrorCode.NOT_COORDINATOR else ""
                self.rebalancer.answer_join(group, member, join_refused(member.parked_join, error, member_id))
            if member.parked_sync is not None:
                self.rebalancer.answer_sync(member, sync_refused(error))
        self.rebalancer.enter(group, DEAD)

    def delete_group(self, group_id: str, waiter: GroupDeletionListener) -> ErrorCode | None:
        """Delete an Empty group; the error at once, or none when the waiter will be told."""
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.validate_delete()
        if group is None or error is not ErrorCode.NONE:
            return error
        self._bury(group, "requested", waiter)
        return None

    def _bury(
        self, group: ClassicGroup, why: Literal["requested", "expired"], waiter: GroupDeletionListener | None
    ) -> None:
        """Take a group out and write tombstones for it and all its offsets; it comes back if that fails."""
        del self.groups[group.group_id]
        offsets = self.offsets.take_out(group.group_id)
        partitions = offsets.partitions()
        records: tuple[Record, ...] = tuple(offset_record(group.group_id, *each, None) for each in partitions)
        records += (group_record(group.group_id, None),)
        self.append(records, GroupDeletionCompletion(self, group, offsets, len(partitions), why, waiter))

    def put_back(self, group: ClassicGroup, offsets: GroupOffsets) -> None:
        """Undo a deletion that could not be written, unless there is a new group of this name."""
        if group.group_id not in self.groups:
            self.groups[group.group_id] = group
            self.offsets.put_back(group.group_id, offsets)

    def forget(self, group_id: str) -> None:
        """A group is gone for good: its statistics go, too, unless there is a new group of this name."""
        if group_id not in self.groups:
            self.statistics.drop(group_id)

    def _remove(self, group: ClassicGroup) -> None:
        """Remove a group that the log does not know."""
        del self.groups[group.group_id]
        self.offsets.take_out(group.group_id)
        self.statistics.drop(group.group_id)

    def restart_after_commit(self, group: Group, member_id: str) -> None:
        """An accepted commit counts as a heartbeat of its member."""
        classic = self.groups[group.group_id]
        if classic.state in (STABLE, PREPARING_REBALANCE):
            self.rebalancer.restart_session(classic.members[member_id])

    # --- appends

    def append(self, records: tuple[Record, ...], waiter: AppendCompletion) -> None:
        """Ask for records to be written. Without records: wait until everything before is."""
        ctx = self._ctx
        deadline = ctx.now + ctx.settings.offsets_commit_timeout_ms
        append_id = self._next_append_id
        self._next_append_id += 1
        if not self.in_flight:
            ctx.deadlines.set(self._append_key, deadline)
        self.in_flight[append_id] = InFlight(append_id, len(records), deadline, waiter)
        ctx.effects.append(Append(append_id, self.partition, self.epoch, records))

    def continue_append_ids(self, before: Shard) -> None:
        """Number appends on from where another shard of this epoch stopped, so that its late ends are not ours."""
        self._next_append_id = before._next_append_id

    def stored(self, append_id: int, error: ErrorCode) -> None:
        """An append has ended."""
        entry = self.in_flight.pop(append_id, None)
        if entry is None:
            return
        self._watch_appends()
        if not entry.timed_out:
            self._end(entry, error)
        if entry.timed_out or error is ErrorCode.REQUEST_TIMED_OUT:
            # A time-out that the log itself reports is the end of the append as well.
            entry.completion.ended_late(error)

    def _end(self, entry: InFlight, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._ctx.emit(
                AppendFailed(
                    topic=self.partition.topic,
                    partition=self.partition.partition,
                    epoch=self.epoch,
                    records=entry.records,
                    error=error.name,
                )
            )
        entry.completion.ended(error)

    def append_timer_fired(self) -> None:
        """Give up waiting for appends that take too long. What they wrote may still become durable."""
        for entry in list(self.in_flight.values()):
            if not entry.timed_out and entry.deadline <= self._ctx.now:
                entry.timed_out = True
                self._end(entry, ErrorCode.REQUEST_TIMED_OUT)
        self._watch_appends()

    def _watch_appends(self) -> None:
        deadlines = self._ctx.deadlines
        first = next((entry.deadline for entry in self.in_flight.values() if not entry.timed_out), None)
        if first is None:
            deadlines.cancel(self._append_key)
        else:
            deadlines.set(self._append_key, first)

    # --- transactions

    def end_transaction(self, marker: TransactionMarker) -> None:
        """A transaction marker is durable."""
        end_transaction(self._ctx, self.offsets, marker)

    # --- expiry

    def expiry_timer_fired(self) -> None:
        """Drop what has outlived its retention, and Empty groups that have nothing left."""
        ctx = self._ctx
        for group in list(self.groups.values()):
            self._expire(group)
        ctx.deadlines.set(self._expiry_key, ctx.now + ctx.settings.offsets_retention_check_interval_ms)

    def _expire(self, group: ClassicGroup) -> None:
        """Kafka: GroupMetadataManager.maybeDeleteGroup, once the offsets are expired."""
        offsets = self.offsets.get(group.group_id) or GroupOffsets()
        expired = expired_partitions(group, offsets, self._ctx.settings, self._ctx.now)
        if expired is None:
            return
        nothing_left = len(expired) == len(offsets.stored) and not offsets.pending and not offsets.in_flight
        if group.state is EMPTY and nothing_left and group.persisted:
            self._bury(group, "expired", None)
        elif group.state is EMPTY and nothing_left and not self.in_flight:
            self._remove(group)  # The record that made this group could not be written.
        elif expired:
            self.deletions.delete_expired(group.group_id, expired)

    # --- coming and going

    def elected(self) -> None:
        """Read the log; until that is done only heartbeats are answered."""
        self._ctx.emit(
            PartitionElected(topic=self.partition.topic, partition=self.partition.partition, epoch=self.epoch)
        )
        self._ctx.effects.append(ReadLog(self.partition, self.epoch))

    def log_read(self, records: tuple[Record, ...], end: bool) -> None:
        """Take in a piece of the log; the last record of a key wins. With the end of it, begin to serve."""
        self._records_read += len(records)
        for record in records:
            match record:
                case OffsetRecord():
                    self._replay_offset(record)
                case GroupRecord():
                    self._replay_group(record.key.data.group, record.value.data if record.value else None)
                case TransactionMarker():
                    for offsets in self.offsets.values():
                        offsets.end_transaction(record.producer_id, record.committed)
        if end:
            self._begin_to_serve()

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        self.groups.pop(group_id, None)
        if value is None:
            self.offsets.take_out(group_id)
            self.statistics.drop(group_id)
            return
        group = ClassicGroup(
            group_id,
            self.partition,
            self._ctx.now if value.current_state_timestamp == -1 else value.current_state_timestamp,
            self._ctx.settings.emulator_member_order,
            persisted=True,
        )
        by_subscription: dict[bytes, Protocols] = {}  # members of a group mostly have the same
        for stored in value.members:
            protocols = by_subscription.get(stored.subscription)
            if protocols is None:
                protocol = JoinGroupRequestProtocol(name=value.protocol or "", metadata=stored.subscription)
                protocols = by_subscription[stored.subscription] = (protocol,)
            # Kafka: records from before rebalance timeouts have -1, and the session timeout serves as one.
            timeout_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
            member = Member(
                group_id=group_id,
                partition=self.partition,
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout,
                rebalance_timeout_ms=timeout_ms,
                protocols=protocols,
                assignment=stored.assignment,
            )
            group.add(member)
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.generation = value.generation
        group.leader = value.leader if value.members else None
        group.state = STABLE if value.members else EMPTY
        group.subscribed_topics = group.compute_subscribed_topics()
        statistics = self.statistics.start(group_id)
        statistics.remember_loaded(group.leader, group.assignments(), readable=group.uses_consumer_protocol)
        self.groups[group_id] = group

    def _replay_offset(self, record: OffsetRecord) -> None:
        key = record.key.data
        partition = TopicPartition(key.topic, key.partition)
        if record.value is None:
            offsets = self.offsets.get(key.group)
            if offsets is not None:
                offsets.remove(partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(
                key.group, self.partition, self._ctx.now, self._ctx.settings.emulator_member_order, persisted=True
            )
        offsets = self.offsets.of(key.group)
        if record.producer_id != -1:
            offsets.hold(record.producer_id, partition, record.value.data)
        else:
            offsets.store(partition, record.value.data)

    def _begin_to_serve(self) -> None:
        ctx = self._ctx
        self.state = ShardState.ACTIVE
        ctx.emit(
            PartitionLoaded(
                topic=self.partition.topic,
                partition=self.partition.partition,
                epoch=self.epoch,
                load_ms=ctx.now - self._elected_at,
                records=self._records_read,
                groups=len(self.groups),
            )
        )
        for group in self.groups.values():
            for member in group.members.values():
                self.rebalancer.restart_session(member)
            offsets = self.offsets.get(group.group_id)
            ctx.emit(
                GroupLoaded(
                    group_id=group.group_id,
                    offsets_partition=self.partition.partition,
                    state=group.state,
                    generation=group.generation,
                    members=list(group.members),
                    offset_count=len(offsets.stored) if offsets else 0,
                )
            )
        for group in self.groups.values():
            if len(group.members) > ctx.settings.group_max_size:
                self.rebalancer.start(group, Cause(cause="over-capacity"))
        ctx.deadlines.set(self._expiry_key, ctx.now + ctx.settings.offsets_retention_check_interval_ms)

    def resigned(self) -> None:
        """Answer everybody that waits, and forget everything: another node has the log now."""
        ctx = self._ctx
        ctx.deadlines.cancel_partition(self.partition)
        groups = list(self.groups.values())
        for group in groups:
            self._close(group, ErrorCode.NOT_COORDINATOR)
        for entry in list(self.in_flight.values()):
            if not entry.timed_out:
                entry.completion.ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.in_flight.clear()
        self.groups.clear()
        self.offsets.clear()
        # Answering may have set timers or asked for appends; nothing of that is ours any more.
        ctx.deadlines.cancel_partition(self.partition)
        ctx.emit(
            PartitionResigned(
                topic=self.partition.topic, partition=self.partition.partition, epoch=self.epoch, groups=len(groups)
            )
        )

    # --- questions

    def emit(self, event: Event) -> None:
        self._ctx.emit(event)

    def listed(self) -> list[ClassicGroup]:
        """The groups that ListGroups shows: those that the log knows."""
        return [group for group in self.groups.values() if group.persisted]

    def active_groups(self) -> int:
        return sum(1 for group in self.groups.values() if not group.is_empty)


class GroupDeletionListener(ABC):
    """Whoever waits for a group to be deleted."""

    @abstractmethod
    def group_deleted(self, group_id: str, error: ErrorCode) -> None:
        """The group is gone, or could not be deleted."""


@dataclass(slots=True)
class GroupCreationCompletion(AppendCompletion):
    """The record of a group that was just created. If it can't be written, there is no group."""

    shard: Shard
    group: ClassicGroup

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.group.persisted = True
        else:
            self.shard.take_back(self.group, response_error_of_write(error))


@dataclass(slots=True)
class GroupDeletionCompletion(AppendCompletion):
    """A group's tombstones on their way into the log."""

    shard: Shard
    group: ClassicGroup
    offsets: GroupOffsets
    tombstones: int
    why: Literal["requested", "expired"]
    waiter: GroupDeletionListener | None

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self.ended_late(error)
        if self.waiter is not None:
            self.waiter.group_deleted(self.group.group_id, response_error_of_write(error))

    def ended_late(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self.shard.put_back(self.group, self.offsets)
        else:
            self.shard.rebalancer.enter(self.group, DEAD)
            self.shard.forget(self.group.group_id)
            self.shard.emit(GroupDeleted(group_id=self.group.group_id, reason=self.why, offset_count=self.tombstones))
