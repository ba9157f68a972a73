"""One offsets partition: its groups, its appends under way, its timers, and how it comes from the log and goes.

Kafka: GroupCoordinatorShard and CoordinatorRuntime.CoordinatorContext.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from rejoin.coordinator.core.effects import Append, ReadLog
from rejoin.coordinator.core.groups.classic.group import ClassicGroup, is_active
from rejoin.coordinator.core.groups.classic.joining import Joining
from rejoin.coordinator.core.groups.classic.member import Member, Parked, Protocols
from rejoin.coordinator.core.groups.classic.membership import Membership
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer, join_refused, sync_refused
from rejoin.coordinator.core.groups.classic.state import DEAD, EMPTY, ON_DELETE_GROUP, STABLE, answer_to_write_error
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.offsets.commits import Committing, DeletingOffsets
from rejoin.coordinator.core.offsets.store import Offsets, shown
from rejoin.coordinator.core.runtime.appends import Waiter
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
    TransactionEnded,
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

MILLIS_PER_MINUTE: Final = 60_000


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
    waiter: Waiter
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
        self.rebalancer = Rebalancer(ctx, self)
        self.joining = Joining(ctx, self, self.rebalancer)
        self.membership = Membership(ctx, self.rebalancer)
        self.committing = Committing(ctx, self, self.rebalancer)
        self._append_key: Key = (Kind.APPEND, partition, "", "")
        self._expiry_key: Key = (Kind.EXPIRY, partition, "", "")

    # --- groups

    def create_group(self, group_id: str, *, simple: bool) -> ClassicGroup:
        """A new group, Empty and of generation 0."""
        ctx = self._ctx
        group = ClassicGroup(group_id, self.partition, ctx.now, ctx.settings.emulator_member_order)
        self.groups[group_id] = group
        ctx.emit(GroupCreated(group_id=group_id, partition=self.partition.partition, simple=simple))
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
            self.append((as_created,), StoringNewGroup(self, group))

    def take_back(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Undo the creation of a group, and tell those that wait in it, unless something later is in the log."""
        if group.generation or group.offsets or group.offsets.on_the_way or not (group.members or group.pending_join):
            return  # one that nobody has come into is dropped by the next expiry run
        if self.groups.get(group.group_id) is not group:
            return
        # Differs: Kafka answers only the JoinGroup that made the group; those that came after it wait on.
        self._close(group, error)
        del self.groups[group.group_id]
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

    def delete_group(self, group_id: str, waiter: GroupWaiter) -> ErrorCode | None:
        """Delete an Empty group; the error at once, or none when the waiter will be told."""
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ON_DELETE_GROUP[group.state]
        if group is None or error is not ErrorCode.NONE:
            return error
        self._bury(group, "requested", waiter)
        return None

    def _bury(self, group: ClassicGroup, why: Literal["requested", "expired"], waiter: GroupWaiter | None) -> None:
        """Take a group out and write tombstones for it and all its offsets; it comes back if that fails."""
        places = group.offsets.places()
        records: tuple[Record, ...] = tuple(offset_record(group.group_id, *place, None) for place in places)
        del self.groups[group.group_id]
        records += (group_record(group.group_id, None),)
        self.append(records, BuryingGroup(self, group, len(places), why, waiter))

    # --- appends

    def append(self, records: tuple[Record, ...], waiter: Waiter) -> None:
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
            entry.waiter.late(error)

    def _end(self, entry: InFlight, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._ctx.emit(
                AppendFailed(
                    partition=self.partition.partition, epoch=self.epoch, records=entry.records, error=error.name
                )
            )
        entry.waiter.ended(error)

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
        """Let a producer's offsets count, or drop them, in every group of this shard."""
        for group in self.groups.values():
            offsets = group.offsets.end_transaction(marker.producer_id, marker.committed)
            if offsets:
                self._ctx.emit(
                    TransactionEnded(
                        group_id=group.group_id,
                        producer_id=marker.producer_id,
                        committed=marker.committed,
                        offsets=[shown(place, value) for place, value in offsets.items()],
                    )
                )

    # --- expiry

    def expiry_timer_fired(self) -> None:
        """Drop what has outlived its retention, and Empty groups that have nothing left."""
        ctx = self._ctx
        for group in list(self.groups.values()):
            self._expire(group)
        ctx.deadlines.set(self._expiry_key, ctx.now + ctx.settings.offsets_retention_check_interval_ms)

    def _expire(self, group: ClassicGroup) -> None:
        """Kafka: OffsetMetadataManager.cleanupExpiredOffsets and GroupMetadataManager.maybeDeleteGroup."""
        offsets = group.offsets
        since_empty = group.protocol_type is not None and group.state is EMPTY
        by_commit = group.protocol_type is None or (
            group.uses_consumer_protocol and group.subscribed_topics is not None and group.state is STABLE
        )
        if not since_empty and not by_commit:
            return
        settings = self._ctx.settings
        expired = offsets.expired(
            self._ctx.now,
            settings.offsets_retention_minutes * MILLIS_PER_MINUTE,
            (lambda value: group.state_since) if since_empty else (lambda value: value.commit_timestamp),
            group.is_subscribed_to,
        )
        nothing_left = len(expired) == len(offsets.stored) and not offsets.pending and not offsets.on_the_way
        if group.state is EMPTY and nothing_left and group.persisted:
            self._bury(group, "expired", None)
        elif group.state is EMPTY and nothing_left and not self.in_flight:
            # What made this group could not be written: the log does not know it.
            del self.groups[group.group_id]
        elif expired:
            records = tuple(offset_record(group.group_id, *place, None) for place in expired)
            self.append(records, DeletingOffsets(self._ctx, group, expired, "expired"))

    def topic_deleted(self, topic: str) -> None:
        """Forget the offsets of a topic in every group; no retention applies."""
        for group in self.groups.values():
            places = [place for place in group.offsets.places() if place[0] == topic]
            if places:
                records = tuple(offset_record(group.group_id, *place, None) for place in places)
                self.append(records, DeletingOffsets(self._ctx, group, places, "topic-deleted"))

    # --- coming and going

    def elected(self) -> None:
        """Read the log; until that is done only heartbeats are answered."""
        self._ctx.emit(PartitionElected(partition=self.partition.partition, epoch=self.epoch))
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
                    for group in self.groups.values():
                        group.offsets.end_transaction(record.producer_id, record.committed)
        if end:
            self._begin_to_serve()

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        before = self.groups.pop(group_id, None)
        if value is None:
            return
        group = ClassicGroup(
            group_id,
            self.partition,
            self._ctx.now if value.current_state_timestamp == -1 else value.current_state_timestamp,
            self._ctx.settings.emulator_member_order,
            offsets=before.offsets if before is not None else Offsets(),
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
        group.settle_unread()
        self.groups[group_id] = group

    def _replay_offset(self, record: OffsetRecord) -> None:
        key = record.key.data
        place = (key.topic, key.partition)
        group = self.groups.get(key.group)
        if record.value is None:
            if group is not None:
                group.offsets.forget(place)
            return
        if group is None:
            group = ClassicGroup(
                key.group, self.partition, self._ctx.now, self._ctx.settings.emulator_member_order, persisted=True
            )
            self.groups[key.group] = group
        if record.producer_id != -1:
            group.offsets.hold(record.producer_id, place, record.value.data)
        else:
            group.offsets.store(place, record.value.data)

    def _begin_to_serve(self) -> None:
        ctx = self._ctx
        self.state = ShardState.ACTIVE
        ctx.emit(
            PartitionLoaded(
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
            ctx.emit(
                GroupLoaded(
                    group_id=group.group_id,
                    partition=self.partition.partition,
                    state=group.state,
                    generation=group.generation,
                    members=list(group.members),
                    offsets=len(group.offsets.stored),
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
                entry.waiter.ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.in_flight.clear()
        self.groups.clear()
        # Answering may have set timers or asked for appends; nothing of that is ours any more.
        ctx.deadlines.cancel_partition(self.partition)
        ctx.emit(PartitionResigned(partition=self.partition.partition, epoch=self.epoch, groups=len(groups)))

    # --- questions

    def emit(self, event: Event) -> None:
        self._ctx.emit(event)

    def listed(self) -> list[ClassicGroup]:
        """The groups that ListGroups shows: those that the log knows."""
        return [group for group in self.groups.values() if group.persisted]

    def active_groups(self) -> int:
        return sum(1 for group in self.groups.values() if is_active(group))


class GroupWaiter(ABC):
    """Whoever waits for a group to be deleted."""

    @abstractmethod
    def group_deleted(self, group_id: str, error: ErrorCode) -> None:
        """The group is gone, or could not be deleted."""


@dataclass(slots=True)
class StoringNewGroup(Waiter):
    """The record of a group that was just created. If it can't be written, there is no group."""

    shard: Shard
    group: ClassicGroup

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.group.persisted = True
        else:
            self.shard.take_back(self.group, answer_to_write_error(error))


@dataclass(slots=True)
class BuryingGroup(Waiter):
    """A group's tombstones on their way into the log."""

    shard: Shard
    group: ClassicGroup
    offsets: int
    why: Literal["requested", "expired"]
    waiter: GroupWaiter | None

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self.late(error)
        if self.waiter is not None:
            self.waiter.group_deleted(self.group.group_id, answer_to_write_error(error))

    def late(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            # Somebody may have made a new group of this name meanwhile; then the old one stays gone.
            self.shard.groups.setdefault(self.group.group_id, self.group)
        else:
            self.shard.rebalancer.enter(self.group, DEAD)
            self.shard.emit(GroupDeleted(group_id=self.group.group_id, why=self.why, offsets=self.offsets))
