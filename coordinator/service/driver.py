"""Drives a node: hands it inputs one at a time and applies its effects in order.

One writer: everything runs on the event loop, and a step begins only when the effects of the last one are applied. An
append that completes at once waits behind them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, Protocol

import structlog

from rejoin.coordinator.core.effects import (
    AlterPartition,
    Append,
    AppendTopics,
    DeferredEvents,
    DeleteLog,
    Effect,
    FollowLog,
    HighWatermarkMoved,
    ReadLog,
    Reply,
    ResolveRegexes,
    SendRequest,
)
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    Elected,
    Input,
    LogDamaged,
    LogRead,
    Millis,
    NodeAnswered,
    Received,
    Resigned,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.leadership.base import FOREVER, Leadership, steady_ms
from rejoin.coordinator.leadership.sole_leader import SoleLeader
from rejoin.coordinator.pending_reply import PendingReply
from rejoin.coordinator.service.arrivals import Arrivals
from rejoin.coordinator.service.clock import Alarm, Clock, SystemClock
from rejoin.coordinator.service.publisher import Publisher
from rejoin.coordinator.storage.base import DataLogs, OffsetsLog, StoreProblem
from rejoin.coordinator.storage.topics_log.base import TopicsClient, TopicsLog, TopicsNotStored
from rejoin.coordinator.storage.topics_log.sync import TopicsSync
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import PartitionLoaded
from rejoin.protocol.brokers.listener_address import ListenerAddress
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.records.batches import DataEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition

DRAIN_SECONDS: Final = 5.0
"""How long a stopping node may take to hand over its partitions."""
MOST_MATCHES_AT_ONCE: Final = 2_000
"""Names of topics, times regular expressions, that are matched without another thread."""

STALLED_MS: Final = 1_000
"""An alarm that rings so late is worth a line in the log: a request took long, or the process was stopped."""


class Peers(Protocol):
    """The other nodes of a cluster."""

    def send(
        self, node_id: int, request: Request, api_version: int, on_answer: Callable[[Response | None], None]
    ) -> None:
        """Send a request to a node. ``on_answer`` is called once, with none where the node could not be reached."""


class Submit(Protocol):
    """Hands a request in: a runtime's, or that of the fault injector around it."""

    def __call__(self, request: Request, context: Context) -> PendingReply:
        """The reply, which may be there at once."""


class Runtime:
    """A running node. ``start`` makes it lead what its leadership decides: everything, unless there are other nodes.

    With a topics log, changes of topics are stored there; the node must have been made for one.
    """

    def __init__(
        self,
        node: Node,
        clock: Clock,
        log: OffsetsLog,
        publisher: Publisher,
        leadership: Leadership,
        topics_log: TopicsLog | None = None,
        arrivals: Arrivals | None = None,
        *,
        data_logs: DataLogs,
    ) -> None:
        """With ``arrivals``, an input is handled before the timers that fell due while the loop was late."""
        self.node = node
        self.clock = clock
        self.broker = Broker(node.settings.broker_id, "127.0.0.1", 0)
        self.core_failures = 0
        self.load_ms: dict[TopicPartition, int] = {}
        """How long each partition that is led took to load."""
        self.leadership = leadership
        self.topics: TopicsClient | None = None
        if topics_log is not None:
            self.topics = TopicsSync(topics_log, lambda: self.node, self.hand_in)
        self.alter_partition: Callable[[AlterPartition], None] | None = None
        """Asks the controller, where there is one, for other replicas in sync."""
        self.follow: Callable[[TopicIdPartition], None] | None = None
        """Hands in the copy of a log that another node leads, where there are copies."""
        self.on_high_watermark: Callable[[HighWatermarkMoved], None] | None = None
        self._log = log
        self._data_logs = data_logs
        self.brokers: dict[int, Broker] = {}
        """The live nodes of the cluster, by their ids."""
        self._peers: Peers | None = None
        self._publisher = publisher
        self._leading: dict[TopicPartition, int] = {}
        self._inbox: deque[Input] = deque()
        self._driving = False
        self._awaiting_topics: list[asyncio.Future[None]] = []
        self._alarm: Alarm | None = None
        self._has_other_addresses = False
        self._alarm_at: Millis = 0
        self._arrivals = arrivals
        self._is_taking_arrivals = False
        self._is_stopped = False
        self._logger: Any = structlog.get_logger("coordinator").bind()
        self._carry_out: dict[type[Effect], Callable[[Any], None]] = {
            Append: self._append,
            ReadLog: self._read,
            DeleteLog: self._delete,
            AlterPartition: self._alter,
            FollowLog: self._follow,
            HighWatermarkMoved: self._high_watermark_moved,
            AppendTopics: self._append_topics,
            SendRequest: self._send,
            ResolveRegexes: self._resolve,
        }
        """Function for each effect that is neither a reply nor an event."""

    def reach(self, peers: Peers) -> None:
        """Send requests to other nodes by these."""
        self._peers = peers

    async def start(
        self,
        host: str,
        port: int,
        endpoints: tuple[ListenerAddress, ...] = (),
        without_host: frozenset[str] = frozenset(),
    ) -> None:
        """Join the cluster under this address, and those of other listeners. Raises :class:`StoreProblem`."""
        settings = self.node.settings
        rack = settings.broker_rack or None
        self.broker = Broker(settings.broker_id, host, port, rack, endpoints, without_host)
        if isinstance(self.clock, SystemClock):
            self.clock.follow(self.clock_stepped)
        await self._log.start(self._take_in_together)
        if self.topics is not None:
            try:
                with self.at_debug_level():
                    await self.topics.catch_up()
            except TopicsNotStored as problem:
                raise StoreProblem(f"the topics cannot be read from the store: {problem}") from problem
        self._data_logs.keep_only(self.node.topic_ids())
        await self.leadership.start(self, self.broker)

    def advertise(self, address: ListenerAddress) -> bool:
        """Send clients of a listener to another address; false where this node is not the only one."""
        if not isinstance(self.leadership, SoleLeader):
            return False
        broker, name = self.broker, address.listener
        endpoints = tuple(address if each.listener == name else each for each in broker.endpoints)
        self.broker = replace(broker, endpoints=endpoints, without_host=broker.without_host - {name})
        self._has_other_addresses = True
        self.leadership.advertise(self.broker)
        return True

    async def drain(self, patience_s: float = DRAIN_SECONDS) -> None:
        """Resign everywhere; parked requests are answered, and other nodes can take over at once."""
        await self.leadership.stop(patience_s)

    async def stop(self) -> None:
        """Resign, and close the log."""
        await self.drain()
        self._is_stopped = True
        if isinstance(self.clock, SystemClock):
            self.clock.stop()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.topics is not None:
            await self.topics.stop()
        await self._log.close()

    # --- leading

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The partitions led, each with its epoch."""
        return dict(self._leading)

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition; false where leases decide that."""
        return self.leadership.elect(partition)

    def resign(self, partition: TopicPartition) -> bool:
        """Stop leading a partition; requests parked there are answered."""
        return self.leadership.resign(partition)

    def lead_everything(self) -> None:
        """Lead every partition, with one log line for all of them."""
        assert isinstance(self.leadership, SoleLeader), "only a single node leads everything"
        self.leadership.lead_everything()

    def start_leading(self, partition: TopicPartition, epoch: int) -> None:
        """See :class:`rejoin.coordinator.leadership.base.PartitionHost`, here and below."""
        self._leading[partition] = epoch
        self._take_in(Elected(partition, epoch))

    def stop_leading(self, partition: TopicPartition) -> None:
        self._leading.pop(partition, None)
        self.load_ms.pop(partition, None)
        self._take_in(Resigned(partition))

    def on_cluster(self, brokers: tuple[Broker, ...], leaders: dict[TopicPartition, int]) -> None:
        self.brokers = {broker.node_id: broker for broker in brokers}
        self._take_in(ClusterSeen(brokers, leaders))

    def at_debug_level(self) -> AbstractContextManager[None]:
        return self._publisher.at_debug_level()

    # --- inputs and effects

    def submit(self, request: Request, context: Context) -> PendingReply:
        """Hand in a request. The reply may already be set when this returns."""
        pending = PendingReply()
        self._take_in(Received(pending, request, context))
        return pending

    def hand_in(self, what: Input) -> None:
        """Hand in any other input."""
        self._take_in(what)

    def target_of(self, request: Request, version: int) -> Runtime:
        """The node that serves a request: this one."""
        return self

    def broker_named(self, node_id: int) -> Runtime:
        """This node, if that is its id."""
        if node_id != self.broker.node_id:
            raise ValueError(f"broker: there is no broker {node_id}; there is only {self.broker.node_id}")
        return self

    async def topics_stored(self) -> None:
        """Return when every requested change of topics is stored or refused."""
        if not self.node.topics_stored:
            stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaiting_topics.append(stored)
            await stored

    def go_on_with(self, node: Node, leading: dict[TopicPartition, int]) -> None:
        """Replace the node by another, which led these partitions when it was last driven."""
        assert not self._driving, "a node is not replaced while it is driven"
        self.node = node
        self._leading = dict(leading)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._set_alarm()
        if self._has_other_addresses and isinstance(self.leadership, SoleLeader):
            # The other node may be of before.
            self.leadership.advertise(self.broker)

    def clock_stepped(self, by_ms: Millis) -> None:
        """The clock has stepped forward. No step is under way: the clock looks from the event loop."""
        assert not self._driving, "the clock steps between two inputs"
        self.node.postpone_timers(by_ms)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._set_alarm()

    def _take_in(self, what: Input) -> None:
        if self._driving:
            self._inbox.append(what)
            return
        if self.leadership.valid_until != FOREVER:
            self._expire_leases()
        self._drive(what)

    def _take_in_together(self, report: Callable[[], None]) -> None:
        """Call what hands in many inputs, and handle all of them at one instant."""
        if self._driving:
            report()
            return
        if self.leadership.valid_until != FOREVER:
            self._expire_leases()
        self._driving = True
        try:
            report()
        finally:
            self._drive()

    def _expire_leases(self) -> None:
        """A node that slept past the end of its leases must stop leading before it answers anything."""
        if steady_ms() >= self.leadership.valid_until:
            self.leadership.expire()

    def _drive(self, what: Input | None = None) -> None:
        """Handle an input after those in the inbox and their consequences."""
        inbox = self._inbox
        if what is None or inbox:
            if what is not None:
                inbox.append(what)
            what = inbox.popleft() if inbox else None
        self._driving = True
        # Inputs that a step causes at once share its instant, as on a virtual clock: the events then do not depend on
        # when a millisecond ends.
        now = self.clock.now()
        is_late = self._arrivals is not None
        try:
            while what is not None:
                try:
                    effects = self.node.step(what, now, is_late=is_late)
                except Exception as problem:
                    self._give_up(what, problem)
                    effects = []
                for effect in effects:
                    if type(effect) is Reply:
                        self._reply(effect)
                        continue
                    carry_out = self._carry_out.get(type(effect))
                    if carry_out is not None:
                        carry_out(effect)
                    else:
                        self._publish(effect, now)
                what = inbox.popleft() if inbox else None
        finally:
            self._driving = False
        self._set_alarm()
        if self._awaiting_topics and self.node.topics_stored:
            waiting, self._awaiting_topics = self._awaiting_topics, []
            for stored in waiting:
                if not stored.done():
                    stored.set_result(None)

    def _publish(self, effect: Effect, now: Millis) -> None:
        if type(effect) is DeferredEvents:
            self._publisher.publish_deferred(effect, now)
            return
        assert isinstance(effect, Event), "what is nothing to carry out is an event"
        if type(effect) is PartitionLoaded:
            self.load_ms[TopicPartition(effect.topic, effect.partition)] = effect.load_ms
        self._publisher.publish(effect, now)

    def _reply(self, effect: Reply) -> None:
        pending: Any = effect.token
        assert pending.response is None, "a request is answered once"
        pending.response = effect.response
        if pending.is_awaited:
            pending.settle()

    def _give_up(self, what: Input, problem: Exception) -> None:
        # The core handles failures of its shards; this one happened outside all of them.
        self.core_failures += 1
        self._logger.error("core_raised", input=type(what).__name__, problem=repr(problem), exc_info=problem)
        if isinstance(what, Received) and isinstance(what.token, PendingReply):
            what.token.failed = True
            what.token.settle()

    def _send(self, effect: SendRequest) -> None:
        def answered(response: Response | None) -> None:
            self._take_in(NodeAnswered(effect.send_id, response))

        if self._peers is None:
            answered(None)
        else:
            self._peers.send(effect.node_id, effect.request, effect.api_version, answered)

    def _resolve(self, effect: ResolveRegexes) -> None:
        """Match the names of topics: many of them on another thread, few at once."""
        from rejoin.coordinator.core.groups.consumer.regex_resolution import resolve_regexes  # noqa: PLC0415

        if len(effect.topics) * len(effect.regexes) <= MOST_MATCHES_AT_ONCE:
            self._take_in(resolve_regexes(effect))
            return
        resolution = asyncio.get_running_loop().run_in_executor(None, resolve_regexes, effect)
        resolution.add_done_callback(lambda done: self._take_in(done.result()))

    def _append(self, effect: Append) -> None:
        partition, epoch, append_id = effect.partition, effect.epoch, effect.append_id

        def stored(error: ErrorCode) -> None:
            self._take_in(Stored(partition, epoch, append_id, error))

        if isinstance(partition, TopicIdPartition):
            assert effect.leased_by is not None, "a data partition is leased by an offsets partition"
            self._data_logs.append_data(partition, epoch, effect.leased_by, effect.records, stored)
        else:
            self._log.append(partition, epoch, effect.records, stored)

    def _read(self, effect: ReadLog) -> None:
        partition, epoch = effect.partition, effect.epoch

        def piece(records: tuple[Record, ...] | tuple[DataEntry, ...], end: bool) -> None:
            self._take_in(LogRead(partition, epoch, records, end))

        if isinstance(partition, TopicIdPartition):
            self._data_logs.read_data(partition, epoch, piece, lambda: self._take_in(LogDamaged(partition, epoch)))
        else:
            self._log.read(partition, epoch, piece)

    def _follow(self, effect: FollowLog) -> None:
        assert self.follow is not None, "only a node with a controller follows others"
        self.follow(effect.partition)

    def _high_watermark_moved(self, effect: HighWatermarkMoved) -> None:
        if self.on_high_watermark is not None:
            self.on_high_watermark(effect)

    def _delete(self, effect: DeleteLog) -> None:
        self._data_logs.delete_data(effect.partition, effect.epoch, effect.leased_by)

    def _alter(self, effect: AlterPartition) -> None:
        assert self.alter_partition is not None, "only a controller registers partitions"
        self.alter_partition(effect)

    def _append_topics(self, effect: AppendTopics) -> None:
        assert self.topics is not None, "a node with a topics log has one"
        self.topics.append(effect)

    def _set_alarm(self) -> None:
        """Keep one alarm, which rings by the next deadline. One that rings earlier is set again."""
        deadline = self.node.earliest_deadline()
        if deadline is None or (self._alarm_at <= deadline and self._alarm is not None) or self._is_taking_arrivals:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = self.clock.call_at(deadline, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        deadline, now = self.node.next_deadline(), self.clock.now()
        if deadline is None or deadline > now:
            self._set_alarm()
        elif self._arrivals is None:
            self._take_in(Elapsed())
        else:
            if now - self._alarm_at >= STALLED_MS:
                self._logger.warning("event_loop_stalled", late_ms=now - self._alarm_at)
            self._is_taking_arrivals = True
            self._arrivals.then(self._fire)

    def _fire(self) -> None:
        self._is_taking_arrivals = False
        if not self._is_stopped:
            self._take_in(Elapsed())
