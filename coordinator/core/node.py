"""The one door: a node of the cluster, which leads some partitions and routes each request to its shard.

A recorded list of inputs with their times replays a node exactly. There is no other way in and no other way out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, cast

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core import describe, quiescence, snapshots
from rejoin.coordinator.core.apis import HandlersByRequest, RulesByRequest
from rejoin.coordinator.core.cluster.leaders import Leaders
from rejoin.coordinator.core.effects import Append, Effect, Reply
from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.fetch.offsets_topic import OffsetsTopic
from rejoin.coordinator.core.fetch.purgatory import FetchTimer
from rejoin.coordinator.core.fetch.requests import FetchRequests
from rejoin.coordinator.core.groups.classic.group import ClassicGroup
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.groups.requests import GroupRequests
from rejoin.coordinator.core.inputs import (
    ClusterSeen,
    CompactionWanted,
    Elapsed,
    Elected,
    FetchWaited,
    FollowersFetched,
    Input,
    LogDamaged,
    LogRead,
    Millis,
    NodeAnswered,
    Received,
    RecordsWritten,
    RegexesResolved,
    Resigned,
    SessionLost,
    Stored,
    Token,
    TopicsChanged,
    TopicsRecords,
    TopicsStored,
)
from rejoin.coordinator.core.partitions.partition import PartitionTimer
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.request_handlers import RequestHandlers
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Authorizer
from rejoin.coordinator.core.runtime.delayed import DelayedTimer
from rejoin.coordinator.core.runtime.shard import Shard, ShardState
from rejoin.coordinator.core.runtime.shards import ClusterMetadata, Shards
from rejoin.coordinator.core.step_context import NEXT_PART, PartTimer, StepContext
from rejoin.coordinator.core.topics.changes import TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.coordinator.core.views import GroupView, LogSlice, NodeView, OffsetView, TimerView, TopicView
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OffsetRecord
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.registry import BY_REQUEST, PRODUCE
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition

if TYPE_CHECKING:
    from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
    from rejoin.protocol.messages.records.produce import ProduceRequest


class Node:
    """A coordinator node. ``new_id`` gives a fresh UUID as text each time it is called.

    With ``topics_logged`` changes of topics are asked for with ``AppendTopics``; otherwise they are true at once.

    Raises ``ValueError`` when a denial in the settings cannot be read.
    """

    def __init__(self, settings: Settings, new_id: Callable[[], str], *, topics_logged: bool = False) -> None:
        self.settings = settings
        self._ctx = StepContext(settings, new_id)
        self.earliest_deadline: Callable[[], Millis | None] = self._ctx.deadlines.earliest
        """An instant before which nothing is due, or none; ``next_deadline`` may be later. Costs nothing."""
        self._cluster = ClusterMetadata()
        self._partitions = Partitions(self._ctx, self._cluster)
        self._topics = Topics(settings, new_id, self._ctx.emit, self._partitions)
        # A store of which nothing is said, as in transcripts and simulations, is like a log with followers.
        self._groups = GroupShards(self._ctx, self._topics, lambda: not (topics_logged and self._cluster.is_one_broker))
        self._shards: dict[str, Shards[Any]] = {OFFSETS_TOPIC: self._groups}
        admission = Admission(RulesByRequest(), self._ctx, self._cluster, Authorizer(settings.emulator_deny))
        self._changes = TopicChanges(self._ctx, self._topics, self._groups, self._partitions, logged=topics_logged)
        offsets_topic = self._groups.observer = OffsetsTopic(self._ctx, self._groups)
        logs = self._logs = ReadableLogs(self._ctx, self._cluster, self._topics, self._partitions, offsets_topic)
        self._fetches = FetchRequests(self._ctx, logs, admission)
        self._partitions.observe(self._fetches)
        offsets_topic.on_progress = self._fetches.on_progress
        self._changes.on_applied = self._fetches.on_topics_changed
        self._requests = RequestHandlers(
            self._ctx,
            admission,
            self._cluster,
            self._groups,
            self._topics,
            self._partitions,
            self._changes,
            Leaders(self._cluster, self._groups, self._topics, self._partitions),
            logs,
            GroupRequests(self._ctx, self._groups, admission),
            self._fetches,
            PeerRequests(self._ctx),
        )
        self._partitions.observe(self)
        self._handlers = HandlersByRequest(self._requests)

    # --- the door

    def step(self, what: Input, now: Millis, *, is_late: bool = False) -> list[Effect]:
        """Handle one input; with ``Elapsed``, fire what is due. Returns the effects, in order.

        An input that arrives by a deadline wins over it; what was due before ``now`` fires first. An input that
        ``is_late`` arrived at some time before ``now``: nothing fires before it. A timer that is set to fire at once
        does so with the next ``Elapsed``, so a driver looks at ``next_deadline`` after each step.
        """
        ctx = self._ctx
        ctx.now = now
        effects: list[Effect] = []
        ctx.effects = effects
        if type(what) is Elapsed:
            self._fire_until(now)
            return effects
        if not is_late:
            due = ctx.deadlines.next()
            if due is not None and due < now:
                self._fire_until(now - 1)
        if type(what) is Received:
            request = what.request
            try:
                self._handlers[type(request)](what.token, request, what.context)
            except Exception as problem:
                self._recover(what, problem)
        else:
            self._handle(what)
        return effects

    def postpone_timers(self, by_ms: Millis) -> None:
        """The driver's clock has stepped forward by so much: timers keep the time that they had left.

        Call it between two steps. Kafka: SystemTimer runs on a clock that stands still while the machine sleeps.
        """
        self._ctx.deadlines.postpone(by_ms)

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Elapsed`` at the latest, or none."""
        return self._ctx.deadlines.next()

    def _fire_until(self, last: Millis) -> None:
        has_part = False
        while (key := self._ctx.deadlines.pop_due(last)) is not None:
            owner = key.owner
            if key.kind is PartTimer.NEXT_PART:
                has_part = True
                continue
            try:
                if isinstance(key.kind, FetchTimer):
                    self._fetches.fire(key)
                elif isinstance(key.kind, DelayedTimer):
                    self._requests.purgatory(key.kind).fire()
                elif isinstance(key.kind, PartitionTimer):
                    self._partitions.fire(key)
                elif isinstance(key.kind, TransactionTimer):
                    self._requests.transactions.fire(key)
                else:
                    self._shards[owner.topic].fire(key)
            except Exception as problem:
                is_of_shard = owner.topic in self._shards
                self._reload(owner if is_of_shard else None, f"timer {key.kind.name.lower()}", problem)

        if has_part:
            self._handle_part()

    def _handle_part(self) -> None:
        """Go on with one request that is handled in parts."""
        part = self._ctx.parts.popleft()
        if self._ctx.parts:
            self._ctx.deadlines.set(NEXT_PART, self._ctx.now)
        try:
            part.handle()
        except Exception as problem:
            self._recover(part.of, problem)

    def _recover(self, what: Received, problem: Exception) -> None:
        """A request whose handler failed is answered all the same."""
        ctx = self._ctx
        named = sorted(traits_of(what.request, what.context.api_version).groups)
        concerned: dict[LogPartition, None] = {
            shard.partition: None for shard in map(self._groups.shard_of, named) if shard is not None
        }
        if BY_REQUEST[type(what.request)] is PRODUCE:
            concerned.update(dict.fromkeys(self._requests.produces.partitions_of(cast("ProduceRequest", what.request))))
        for partition in concerned or (None,):
            self._reload(partition, BY_REQUEST[type(what.request)].name, problem)
        answered = any(isinstance(effect, Reply) and effect.token is what.token for effect in ctx.effects)
        if not answered:
            response = what.request.error_response(what.context.api_version, ErrorCode.UNKNOWN_SERVER_ERROR)
            ctx.reply(what.token, response)

    def _reload(self, partition: LogPartition | None, doing: str, problem: Exception) -> None:
        """A bug, and no error of the protocol: report it, and read what the partition keeps from its log again."""
        self._ctx.emit(
            CoreFailed(
                topic=None if partition is None else partition.topic,
                partition=None if partition is None else partition.partition,
                doing=doing,
                problem=f"{type(problem).__name__}: {problem}",
            )
        )
        if isinstance(partition, TopicIdPartition):
            self._partitions.reload(partition)
        elif partition is not None:
            self._shards[partition.topic].reload(partition)

    def _handle(self, what: Input) -> None:
        """Handle everything but requests. A failure here, too, is a bug of one shard, and costs only that shard."""
        try:
            if type(what) is Stored:
                self._stored(what)
            else:
                self._dispatch(what)
        except (TypeError, AttributeError, AssertionError, LookupError, ValueError) as problem:
            if not isinstance(what, (Stored, LogRead)):
                raise
            self._reload(what.partition, type(what).__name__, problem)

    def _stored(self, what: Stored) -> None:
        partition = what.partition
        if isinstance(partition, TopicIdPartition):
            self._partitions.stored(partition, what.epoch, what.append_id, what.error)
            return
        shard = self._shard(partition)
        if shard is not None and shard.epoch == what.epoch:
            shard.stored(what.append_id, what.error)

    def _dispatch(self, what: Input) -> None:
        match what:
            case LogRead(partition=TopicIdPartition() as data_partition):
                self._partitions.log_read(data_partition, what.epoch, what.records, what.end)
            case LogRead(partition=TopicPartition() as partition):
                shard = self._shard(partition)
                if shard is not None and shard.epoch == what.epoch:
                    shard.log_read(what.records, what.end)
                    if what.end:
                        self._topics.saw(shard.machine.newest_at)
                        self._changes.delete_orphaned_offsets(partition)
            case LogDamaged():
                self._partitions.log_damaged(what.partition, what.epoch)
            case Elected(partition=TopicIdPartition() as data_partition):
                self._partitions.elect(data_partition, what.epoch)
            case Elected(partition=TopicPartition() as partition):
                self._shards[partition.topic].elect(partition, what.epoch)
                self._partitions.elect_by_lease(partition, what.epoch)
            case Resigned(partition=TopicIdPartition() as data_partition):
                self._partitions.resign(data_partition)
            case Resigned(partition=TopicPartition() as partition):
                self._shards[partition.topic].resign(partition)
                self._partitions.resign_by_lease(partition)
            case ClusterSeen():
                self._cluster.brokers = what.brokers
                self._cluster.leaders = what.leaders
                self._cluster.registrations = what.registrations
                self._partitions.registered()
            case FollowersFetched():
                self._partitions.followers_fetched(what)
            case SessionLost():
                self._groups.lose_session(what.group_id, what.member_id)
            case NodeAnswered():
                self._requests.peers.answered(what)
            case RegexesResolved():
                shard = self._shard(what.partition)
                if shard is not None and shard.epoch == what.epoch and shard.state is ShardState.ACTIVE:
                    shard.machine.consumer.regexes_resolved(what)
            case FetchWaited():
                self._fetches.end_wait(what.token)
            case CompactionWanted():
                self._partitions.compact(what.topic)
            case RecordsWritten():
                self._requests.topics.write(what)
            case TopicsStored():
                self._changes.stored(what)
            case TopicsChanged():
                self._changes.changed(what)
            case _:
                raise TypeError(f"{what!r} is not something that can happen to a node")

    def on_progress(self, partition: TopicIdPartition) -> None:
        """A data partition has changed. What the transaction coordinator keeps is in some of them."""
        if partition.topic_id == TRANSACTION_STATE_TOPIC_ID:
            self._requests.transactions.coordinator.on_progress(partition)

    def _shard(self, partition: TopicPartition) -> Shard[Any] | None:
        """The shard of a partition, if this node leads it."""
        return self._shards[partition.topic].by_partition.get(partition)

    # --- questions

    def describe(self) -> NodeView:
        """The node in short."""
        return describe.of_node(self.settings.broker_id, self._cluster, self._groups)

    def group_ids(self) -> list[str]:
        """Every group of this node, sorted."""
        return sorted(group.group_id for group in self._groups.groups())

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        """The node that leads each partition, as far as this one knows."""
        return self._cluster.leaders

    def describe_group(self, group_id: str) -> GroupView | None:
        """One group, or none where this node has no such group."""
        shard = self._groups.machine_of(group_id)
        group = None if shard is None else shard.groups.get(group_id)
        if shard is None or group is None:
            return None
        if isinstance(group, ClassicGroup):
            return describe.of_group(group, shard.statistics.of(group_id), self._ctx.deadlines)
        return describe.of_consumer_group(shard.consumer, group_id, self._ctx.deadlines)

    def describe_offsets(self, group_id: str, now: Millis) -> list[OffsetView]:
        """The committed offsets of a group, by topic and partition."""
        offsets = self._groups.offsets(group_id)
        return [] if offsets is None else describe.of_offsets(offsets, self._topics, self._partitions, now)

    def describe_topics(self, now: Millis) -> list[TopicView]:
        """Every topic, by name."""
        return self._topics.describe(now)

    def compacted_topics(self) -> list[str]:
        """The names of the topics whose logs are compacted."""
        return self._partitions.compacted_topics()

    def read_log(self, topic: str, partition: int, offset: int, max_bytes: int, now: Millis) -> LogSlice | ErrorCode:
        """The batches of a partition from an offset on, or why they cannot be read here."""
        self._ctx.now = now
        found = self._logs.find(topic, partition)
        if isinstance(found, ErrorCode):
            return found
        log, end = found.log, found.log.high_watermark
        offset = max(offset, log.log_start_offset)
        records = log.read(offset, max_bytes, end, at_least_one=True) if offset < end else b""
        return LogSlice(bytes(records), log.log_start_offset, end)

    def timers(self) -> list[TimerView]:
        """Every timer, in the order in which they fire."""
        return [describe.of_timer(key, at) for at, key in self._ctx.deadlines.due()]

    def due(self, now: Millis) -> list[TimerView]:
        """The timers that fire at ``now`` or before, in the order in which they do."""
        return [describe.of_timer(key, at) for at, key in self._ctx.deadlines.due(now)]

    def topic_ids(self) -> list[str]:
        """The id of every topic, by name."""
        return [topic.topic_id for _, topic in sorted(self._topics.by_name.items())]

    def damaged_partitions(self) -> list[TopicPartition]:
        """The data partitions of this node whose logs cannot be read, in order."""
        return self._partitions.damaged()

    def topic_named(self, topic_id: str) -> str | None:
        """The name of the topic with this id, or none where there is no such topic."""
        return self._topics.named(topic_id)

    @property
    def topics_version(self) -> int:
        """How far the topics log is known; 0 where there is none."""
        return self._changes.version

    @property
    def topics_settled(self) -> bool:
        """Whether every change of the topics that was wanted here is stored, or refused."""
        return self._changes.settled

    def topics_records(self) -> TopicsRecords:
        """All topics as they are, as the topics log could keep them."""
        return (*self._ctx.features.records(), *self._topics.records())

    # --- for simulations

    def shard(self, partition: TopicPartition) -> snapshots.ShardSnapshot | None:
        """An offsets partition, or none where another node leads it."""
        shard = self._groups.by_partition.get(partition)
        return None if shard is None else snapshots.of_shard(shard)

    def group(self, group_id: str) -> snapshots.GroupSnapshot | None:
        """A classic group as it is in memory, loaded or not."""
        group = self._groups.classic_group(group_id)
        return None if group is None else snapshots.of_group(group, self._groups.offsets(group_id))

    def consumer_group(self, group_id: str) -> snapshots.ConsumerGroupSnapshot | None:
        """A consumer group as it is in memory, loaded or not."""
        group = self._groups.consumer_group(group_id)
        return None if group is None else snapshots.of_consumer_group(group, self._groups.offsets(group_id))

    def quiet_session(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> QuietSession | None:
        """The session of a member whose heartbeats only restart it, or none."""
        machine = self._groups.machine_of(group_id)
        if machine is not None and self._groups.consumer_group(group_id) is not None:
            return machine.consumer.quiet_session(group_id, member_id, group_instance_id, generation_id)
        group = self._groups.classic_group(group_id)
        return quiescence.quiet_session(group, self._ctx.deadlines, member_id, group_instance_id, generation_id)

    def suspend_session(self, session: QuietSession) -> None:
        """The heartbeats of a quiet member are left out from now on."""
        quiescence.suspend(session, self._ctx.deadlines)

    def resume_session(self, session: QuietSession, expires_at: Millis) -> None:
        """Let a suspended session run on, as the heartbeats that were left out would have set it."""
        quiescence.resume(session, self._ctx.deadlines, expires_at)

    def has_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
        """Whether an offset is stored for each of a group's partitions."""
        offsets = self._groups.offsets(group_id)
        return offsets is not None and all(partition in offsets.stored for partition in partitions)

    def resume_offsets(self, records: Iterable[OffsetRecord]) -> None:
        """Store the offsets that a quiet member has committed while its commits were left out."""
        for record in records:
            key = record.key.data
            offsets = self._groups.offsets(key.group)
            if offsets is not None and record.value is not None:
                offsets.store(TopicPartition(key.topic, key.partition), record.value.data)

    def resume_commit(
        self, group_id: str, token: Token, request: OffsetCommitRequest, version: int, at: Millis
    ) -> Append:
        """Put a commit in flight that arrived at an instant and was accepted; returns its append."""
        machine = self._groups.machine_of(group_id)
        assert machine is not None, "commits are left out only where their group is led"
        ctx = self._ctx
        ctx.now, ctx.effects = at, []
        machine.commits.resume(machine.groups[group_id], token, request, version)
        (append,) = ctx.effects
        assert isinstance(append, Append), "an accepted commit is written"
        machine.log.order_appends()
        return append

    def saw(self, instant: Millis) -> None:
        """This instant is on record: no end of a topic's log is before it."""
        self._topics.saw(instant)

    # --- another node in the same state

    def waiting(self) -> list[Token]:
        """The token of every parked JoinGroup, SyncGroup and Fetch."""
        return self._groups.parked_tokens() + self._fetches.parked_tokens()

    def copy(self, instead: Callable[[Token], Token]) -> Self:
        """A node of its own in the very state of this one, with another token for each that waits.

        No append may be in flight: its end could not reach both.
        """
        writing = [self._partitions.is_writing, *(shards.is_writing for shards in self._shards.values())]
        assert not any(writing), "a node is copied between appends"
        self._ctx.effects = []  # the last step's, long carried out
        known: dict[int, Any] = {id(token): instead(token) for token in self.waiting()}
        known |= {id(shared): shared for shared in self.shared()}
        return copy.deepcopy(self, known)

    def shared(self) -> tuple[object, ...]:
        """What a copy has in common with its original."""
        return (self.settings, self._ctx.new_id)
