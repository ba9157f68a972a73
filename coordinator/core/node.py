"""The one door: a node of the cluster, which leads some partitions and routes each request to its shard.

A recorded list of inputs with their times replays a node exactly. There is no other way in and no other way out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.apis import HandlersByRequest
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.fetch.purgatory import FetchTimer
from rejoin.coordinator.core.inputs import (
    ClusterSeen,
    CompactionWanted,
    ConnectionLost,
    ControlInput,
    Elapsed,
    Elected,
    FetchWaited,
    FollowersFetched,
    Input,
    LockExpired,
    LogDamaged,
    LogRead,
    Millis,
    NodeAnswered,
    PersisterFault,
    Received,
    RecordReleased,
    RecordsWritten,
    RegexesResolved,
    Replicated,
    Resigned,
    SessionLost,
    Stored,
    Token,
    TopicsChanged,
    TopicsStored,
)
from rejoin.coordinator.core.partitions.partition import PartitionTimer
from rejoin.coordinator.core.quotas.muted import MuteTimer
from rejoin.coordinator.core.quotas.request_times import TimedHandlers
from rejoin.coordinator.core.runtime.delayed import DelayedTimer
from rejoin.coordinator.core.runtime.shard import Shard, ShardState
from rejoin.coordinator.core.security.client_quotas import REQUEST_PERCENTAGE
from rejoin.coordinator.core.security.delegation_tokens import SweepTimer
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.coordinator.core.share.timers import ShareStateTimer, ShareTimer
from rejoin.coordinator.core.step_context import NEXT_PART, DiskSpace, PartTimer
from rejoin.coordinator.core.transactions.timers import TransactionTimer
from rejoin.journal.events.coordinator import CoreFailed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC_ID
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.registry import BY_REQUEST, PRODUCE
from rejoin.protocol.request_contents.traits import traits_of
from rejoin.protocol.types import LogPartition, TopicIdPartition, TopicPartition

if TYPE_CHECKING:
    from rejoin.protocol.messages.records.produce import ProduceRequest
from rejoin.coordinator.core.node_quiescence import NodeQuiescence
from rejoin.coordinator.core.node_views import NodeViews


class Node(NodeViews, NodeQuiescence):
    """A coordinator node. ``new_id`` gives a fresh UUID as text each time it is called.

    With ``topics_logged`` changes of topics are asked for with ``AppendTopics``; otherwise they are true at once.
    With ``defers_events`` events that come in large numbers are effects of the class ``DeferredEvents``.
    ``file_users`` are users of SCRAM that no record made.

    Raises ``ValueError`` when a denial in the settings cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        new_id: Callable[[], str],
        *,
        topics_logged: bool = False,
        defers_events: bool = False,
        file_users: FileUsers = NO_USERS,
    ) -> None:
        super().__init__(
            settings, new_id, topics_logged=topics_logged, defers_events=defers_events, file_users=file_users
        )
        self._partitions.observe(self)
        self._untimed = HandlersByRequest(self._requests)
        self._handlers: HandlersByRequest | TimedHandlers = self._untimed
        self._muted.handle = self._serve

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
            if self._times.unanswered:
                self._times.settle()
            return effects
        if not is_late:
            due = ctx.deadlines.next()
            if due is not None and due < now:
                self._fire_until(now - 1)
        if type(what) is Received:
            if self._muted.until and self._muted.keeps(what):
                return effects
            request = what.request
            try:  # as in ``_serve``: a call would cost a heartbeat 3 %
                self._handlers[type(request)](what.token, request, what.context)
            except Exception as problem:
                self._recover(what, problem)
        else:
            self._handle(what)
            if self._times.unanswered:
                self._times.settle()
        return effects

    def _serve(self, what: Received) -> None:
        """Handle a request that was kept while its connection was muted."""
        request = what.request
        try:
            self._handlers[type(request)](what.token, request, what.context)
        except Exception as problem:
            self._recover(what, problem)

    def measure_work(self, stopwatch: Callable[[], float]) -> None:
        """Take the time of requests, for ``request_percentage``, from a steady clock of seconds."""
        self._times.stopwatch = stopwatch

    def measure_disk(self, space: Callable[[], DiskSpace]) -> None:
        """Let DescribeLogDirs give the sizes of the disk that the logs are on."""
        self._ctx.disk_space = space

    def postpone_timers(self, by_ms: Millis) -> None:
        """The driver's clock has stepped forward by so much: timers keep the time that they had left.

        Call it between two steps. Kafka: SystemTimer runs on a clock that stands still while the machine sleeps.
        """
        self._ctx.deadlines.postpone(by_ms)
        self._muted.postpone(by_ms)
        if (share := self._requests.share_if_used) is not None:
            share.led.postpone_locks(by_ms)

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
                elif key.kind is MuteTimer.UNMUTE:
                    self._muted.fire()
                elif isinstance(key.kind, TransactionTimer):
                    self._requests.transactions.fire(key)
                elif isinstance(key.kind, ShareTimer | ShareStateTimer):
                    self._requests.share.fire(key)
                elif key.kind is SweepTimer.EXPIRED_TOKENS:
                    self._requests.tokens.remove_expired()
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
        self._times.resume(part.of.token)
        try:
            part.handle()
        except Exception as problem:
            self._times.forget(part.of.token)
            self._recover(part.of, problem)
        self._times.pause()

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
            case Replicated():
                self._partitions.replicated(what)
                self._fetches.followed(what.partition)
            case NodeAnswered():
                self._requests.peers.answered(what)
            case RegexesResolved():
                shard = self._shard(what.partition)
                if shard is not None and shard.epoch == what.epoch and shard.state is ShardState.ACTIVE:
                    shard.machine.kinds.consumer.regexes_resolved(what)
            case ConnectionLost():
                self._requests.disconnected(what.connection)
            case ControlInput():
                self._control(what)
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
        elif partition.topic_id == SHARE_GROUP_STATE_TOPIC_ID:
            self._requests.share.on_progress(partition)
        elif (share := self._requests.share_if_used) is not None:
            share.on_progress(partition)

    def _on_topics_changed(self) -> None:
        super()._on_topics_changed()
        if not self._ctx.security.client_quotas.has(REQUEST_PERCENTAGE):
            self._handlers = self._untimed
            self._times.stop()
        elif self._handlers is self._untimed:
            self._handlers = TimedHandlers(self._untimed, self._times)

    def _control(self, what: ControlInput) -> None:
        match what:
            case SessionLost():
                self._groups.lose_session(what.group_id, what.member_id)
            case LockExpired():
                self._requests.share.led.expire_lock(what)
            case RecordReleased():
                self._requests.share.led.release_record(what)
            case PersisterFault():
                self._requests.share.persister.fail(what)
            case FetchWaited():
                self._fetches.end_wait(what.token)
            case CompactionWanted():
                self._partitions.compact(what.topic)
            case RecordsWritten():
                self._requests.topics.write(what)
            case _:
                raise TypeError(f"{what!r} is nothing that a test can ask for")

    def _shard(self, partition: TopicPartition) -> Shard[Any] | None:
        """The shard of a partition, if this node leads it."""
        return self._shards[partition.topic].by_partition.get(partition)

    def saw(self, instant: Millis) -> None:
        """This instant is on record: no end of a topic's log is before it."""
        self._topics.saw(instant)

    # --- another node in the same state

    def waiting(self) -> list[Token]:
        """The token of every parked JoinGroup, SyncGroup, Fetch and ShareFetch, and of what muted clients have sent."""
        share = self._requests.share_if_used
        fetches = self._fetches.parked_tokens() + ([] if share is None else share.requests.parked_tokens())
        return self._groups.parked_tokens() + fetches + self._muted.kept_tokens()

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
        """Parts that a copy shares with its original."""
        return (self.settings, self._ctx.new_id)
