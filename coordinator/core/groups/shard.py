"""The groups of one partition of ``__consumer_offsets``, and their offsets. Kafka: GroupCoordinatorShard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.classic.member import ParkedJoin
from rejoin.coordinator.core.groups.classic.responses import join_refused
from rejoin.coordinator.core.groups.consumer.model.state import CONSUMER
from rejoin.coordinator.core.groups.group import Group, TimedRecord
from rejoin.coordinator.core.groups.kinds import Kinds, ShardParts
from rejoin.coordinator.core.groups.loading import Replay
from rejoin.coordinator.core.groups.statistics import StatisticsStore
from rejoin.coordinator.core.groups.timers import GroupTimer
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.offsets.commits import OffsetCommits
from rejoin.coordinator.core.offsets.deletion import OffsetDeletions
from rejoin.coordinator.core.offsets.expiry import expired_partitions
from rejoin.coordinator.core.offsets.producers import OffsetProducers
from rejoin.coordinator.core.offsets.store import GroupOffsets, OffsetStore
from rejoin.coordinator.core.offsets.transactions import end_transaction
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.coordinator.core.runtime.state_machine import StateMachine
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import GroupCreated, GroupDeleted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.records.consumer_offsets import group_record, offset_record
from rejoin.protocol.records.keyed import Record, TransactionMarker

if TYPE_CHECKING:
    from rejoin.coordinator.core.groups.consumer.model.group import ConsumerGroup
    from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
    from rejoin.coordinator.core.groups.share.persister import SharePersister

OnDeleted: TypeAlias = Callable[[str, ErrorCode], None]
"""Called with a group id when the group is gone, or could not be deleted."""


class GroupsShard(StateMachine):
    """The coordinator of some groups: makes them, hands requests to them, expires and deletes them."""

    def __init__(
        self,
        ctx: StepContext,
        log: ShardLog,
        topics: TopicsMetadata,
        has_followers: Callable[[], bool],
        persister: SharePersister,
    ) -> None:
        """``has_followers``: whether a record may be in the log before it is committed, as in Kafka with replicas."""
        self._ctx = ctx
        self._has_followers = has_followers
        self.log = log
        self.partition = log.partition
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.producers = OffsetProducers()
        self.statistics = StatisticsStore()
        self._in_creation: dict[str, list[Reply]] = {}
        """The groups whose first record is being written, with the replies that wait for it."""
        self.kinds = Kinds(ShardParts(ctx, log, self.groups, self.statistics, topics, persister))
        self.kind_of = self.kinds.of
        """The operations on a group, which depend on its kind."""
        self.commits = OffsetCommits(ctx, log, self.offsets, self.producers, self, topics)
        self.deletions = OffsetDeletions(ctx, log, self.offsets)
        self._replay = Replay(ctx, self.groups, self.offsets, self.kinds)
        self._loaded_at = ctx.now
        self._expiry_key = TimerKey(GroupTimer.EXPIRY, log.partition)

    def group_records(self) -> list[TimedRecord]:
        """The records that stand for the groups in a compacted log, without what is in flight."""
        records: list[TimedRecord] = []

        def read(group_id: str) -> None:
            group = self.groups.get(group_id)
            if group is not None:
                records.extend(self.kind_of(group).records(group))

        in_flight = {group_id: kind for kind in self.kinds.made() for group_id in kind.groups_in_flight}
        for group_id in dict.fromkeys((*self.groups, *in_flight)):
            if group_id in in_flight:
                in_flight[group_id].read_committed(group_id, partial(read, group_id))
            else:
                read(group_id)
        return records

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """A group, if it is there and of this kind."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """A group, if it is there and of this kind."""
        group = self.groups.get(group_id)
        return None if group is None or group.kind != CONSUMER else self.kinds.consumer.group(group_id)

    # --- what the runtime calls

    def replay(self, record: Record) -> None:
        self._replay.replay(record)
        if isinstance(record, TransactionMarker):
            self.producers.replay(record)

    @property
    def newest_at(self) -> Millis:
        """The newest instant in the log, as it was read."""
        return self._replay.newest_at

    def on_loaded(self) -> None:
        """Every member's session starts now."""
        for group in self.groups.values():
            offsets = self.offsets.get(group.group_id)
            self.kind_of(group).loaded(group, len(offsets.stored) if offsets else 0)
        for group in self.groups.values():
            self.kind_of(group).enforce_max_size(group)
        self._loaded_at = self._ctx.now
        self._schedule_expiry()

    def on_resigned(self) -> None:
        for group in self.groups.values():
            self.kind_of(group).close(group, ErrorCode.NOT_COORDINATOR)

    def timer_fired(self, key: TimerKey) -> None:
        if key.kind is GroupTimer.EXPIRY:
            self._expire_all()
            return
        group = self.groups.get(key.scope)
        if group is not None:
            self.kind_of(group).timer_fired(group, key)

    def size(self) -> int:
        return len(self.groups)

    def topics_changed(self, topics: Collection[str], *, has_new: bool) -> None:
        """Topics were created, grown or deleted."""
        for kind in self.kinds.made():
            kind.topics_changed(topics, has_new=has_new)

    def topics_deleted(self, topics: Mapping[str, str]) -> None:
        """Topics are gone: their names by their ids."""
        self.deletions.delete_topics(frozenset(topics.values()))
        for kind in self.kinds.made():
            kind.topics_deleted(topics)

    def configured(self, group_id: str) -> None:
        """The settings that a group has of its own have changed."""
        for kind in self.kinds.made():
            kind.configured(group_id)

    # --- creating groups

    def create_group(self, group_id: str, *, simple: bool) -> ClassicGroup:
        """A new classic group; a simple one has offsets and no members."""
        group = self.kinds.classic.new_group(group_id)
        self.groups[group_id] = group
        self.statistics.start(group_id)
        self._schedule_expiry()
        self._ctx.emit(GroupCreated(group_id=group_id, offsets_partition=self.partition.partition, simple=simple))
        return group

    def join(self, token: Token, request: JoinGroupRequest, context: Context) -> None:
        """JoinGroup: creates the group for a member without an id."""
        group = self.groups.get(request.group_id)
        tombstones: list[Record] = []
        if group is not None and self.kind_of(group).yields_to_classic(group):
            kind = self.kind_of(group)
            if request.group_id in kind.groups_in_flight:
                self.log.append((), JoinAgainCompletion(self, token, request, context))
                return
            # Kafka: also where the member is refused. The log then still has the group, which is not in memory.
            tombstones += kind.tombstones(group)
            kind.yielded(group)
            del self.groups[request.group_id]
            group = None
        if group is not None:
            since = len(self._ctx.effects)
            self.kind_of(group).join(group, token, request, context)
            if request.group_id in self._in_creation and not self._has_followers():
                # Kafka: a broker without followers has a group in its log before it answers its first JoinGroup.
                self._in_creation[request.group_id] += self._ctx.take_replies(since)
        elif request.member_id:
            self.refuse_join(token, context, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        else:
            created = self.create_group(request.group_id, simple=False)
            as_created = group_record(created.group_id, created.metadata({}))
            self._in_creation.setdefault(created.group_id, [])
            self.join(token, request, context)
            # Kafka: the new coordinator writes the group down at once, so that it is listed while it has no member.
            self.log.append((*tombstones, as_created), GroupCreationCompletion(self, created))

    def refuse_join(self, token: Token, context: Context, error: ErrorCode, member_id: str = "") -> None:
        """Answer a JoinGroup that no group takes."""
        self._ctx.reply(token, join_refused(ParkedJoin(token, context.api_version), error, member_id))

    def end_creation(self, group: ClassicGroup, error: ErrorCode) -> None:
        """The first record of a group is in the log, or could not be written."""
        self._ctx.effects += self._in_creation.pop(group.group_id, ())
        if error is ErrorCode.NONE:
            group.persisted = True
        else:
            self._undo_creation(group, response_error_of_write(error))

    def _undo_creation(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Remove a group whose first record could not be written, unless something later is in the log."""
        offsets = self.offsets.get(group.group_id)
        if group.generation or not group.members:
            # Kafka: an id that was handed out may still be used. A group without members ends with the next expiry run.
            return
        if self.groups.get(group.group_id) is not group or not (offsets is None or offsets.is_empty):
            return
        # Differs: Kafka answers only the JoinGroup that made the group; those that came after it wait on.
        self.kinds.classic.close(group, error)
        self._remove(group)
        self._ctx.deadlines.cancel_scope(self.partition, group.group_id)

    def _remove(self, group: Group) -> None:
        """Remove a group that the log does not know."""
        del self.groups[group.group_id]
        self.offsets.take_out(group.group_id)
        self.statistics.drop(group.group_id)

    # --- deleting groups

    def delete_group(self, group_id: str, on_deleted: OnDeleted) -> ErrorCode | None:
        """Delete an Empty group; the error at once, or none when ``on_deleted`` will be called."""
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.validate_delete()
        if group is None or error is not ErrorCode.NONE:
            return error
        self.kind_of(group).prepare_deletion(group, partial(self._delete_prepared, group, on_deleted))
        return None

    def _delete_prepared(self, group: Group, on_deleted: OnDeleted, error: ErrorCode) -> None:
        """Go on when the group's state elsewhere is deleted, or could not be. Meanwhile the group may have changed."""
        group_id = group.group_id
        if error is ErrorCode.NONE:
            is_there = self.groups.get(group_id) is group
            error = group.validate_delete() if is_there else ErrorCode.GROUP_ID_NOT_FOUND
        if error is ErrorCode.NONE:
            self._delete(group, "requested", on_deleted)
        else:
            on_deleted(group_id, error)

    def _delete(self, group: Group, why: Literal["requested", "expired"], on_deleted: OnDeleted | None) -> None:
        """Take a group out and write tombstones for it and all its offsets; it comes back if that fails."""
        offsets = self.offsets.take_out(group.group_id)
        partitions = offsets.partitions()
        records: tuple[Record, ...] = tuple(offset_record(group.group_id, *each, None) for each in partitions)
        completion = GroupDeletionCompletion(self, group, offsets, len(partitions), why, on_deleted)
        self.kind_of(group).delete(group, records, completion)

    def undo_deletion(self, group: Group, offsets: GroupOffsets) -> None:
        """Put back a group whose tombstones could not be written, unless there is a new group of this name."""
        if self.groups.get(group.group_id, group) is group:
            self.groups[group.group_id] = group
            self.offsets.put_back(group.group_id, offsets)
            self._schedule_expiry()

    def finish_deletion(self, group: Group, why: Literal["requested", "expired"], offsets: int) -> None:
        """A group's tombstones are durable."""
        self.kind_of(group).deleted(group)
        if group.group_id not in self.groups:
            self.statistics.drop(group.group_id)
        self._ctx.emit(GroupDeleted(group_id=group.group_id, reason=why, offset_count=offsets))

    # --- offsets

    def restart_after_commit(self, group: Group, member_id: str) -> None:
        """An accepted commit counts as a heartbeat of its member."""
        self.kind_of(group).committed(group, member_id)

    def end_transaction(self, marker: TransactionMarker) -> None:
        """A transaction marker is durable."""
        end_transaction(self._ctx, self.offsets, marker)

    def _expire_all(self) -> None:
        for group in list(self.groups.values()):
            self._expire(group)
        self._schedule_expiry()

    def _schedule_expiry(self) -> None:
        """Look for expired offsets at the next multiple of the interval, if there is a group to look at."""
        if not self.groups or self._ctx.deadlines.at(self._expiry_key) is not None:
            return
        interval_ms = self._ctx.settings.offsets_retention_check_interval_ms
        since_look_ms = (self._ctx.now - self._loaded_at) % interval_ms
        self._ctx.deadlines.set(self._expiry_key, self._ctx.now + interval_ms - since_look_ms)

    def _expire(self, group: Group) -> None:
        """Drop offsets that have outlived their retention, and an Empty group that has nothing left.

        Kafka: OffsetMetadataManager.cleanupExpiredOffsets, GroupMetadataManager.maybeDeleteGroup.
        """
        offsets = self.offsets.get(group.group_id) or GroupOffsets()
        expired = expired_partitions(group, offsets, self._ctx.settings, self._ctx.now)
        if expired is None:
            return
        nothing_left = len(expired) == len(offsets.stored) and not offsets.pending and not offsets.in_flight
        if group.is_empty and nothing_left and group.persisted:
            self._delete(group, "expired", None)
        elif group.is_empty and nothing_left and not self.log.is_writing:
            self._remove(group)  # The record that made this group could not be written.
        elif expired:
            self.deletions.delete_expired(group.group_id, expired)


@dataclass(slots=True)
class GroupCreationCompletion(AppendCompletion):
    """The record of a group that was just created. If it can't be written, there is no group."""

    shard: GroupsShard
    group: ClassicGroup

    def ended(self, error: ErrorCode) -> None:
        self.shard.end_creation(self.group, error)


@dataclass(slots=True)
class JoinAgainCompletion(AppendCompletion):
    """A JoinGroup that waits for what is being written of its group."""

    shard: GroupsShard
    token: Token
    request: JoinGroupRequest
    context: Context

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.shard.join(self.token, self.request, self.context)
        else:
            self.shard.refuse_join(self.token, self.context, response_error_of_write(error))


@dataclass(slots=True)
class GroupDeletionCompletion(AppendCompletion):
    """A group's tombstones being written."""

    shard: GroupsShard
    group: Group
    offsets: GroupOffsets
    tombstones: int
    why: Literal["requested", "expired"]
    on_deleted: OnDeleted | None

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self.ended_late(error)
        if self.on_deleted is not None:
            self.on_deleted(self.group.group_id, response_error_of_write(error))

    def ended_late(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.shard.finish_deletion(self.group, self.why, self.tombstones)
        else:
            self.shard.undo_deletion(self.group, self.offsets)
