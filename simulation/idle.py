"""Skips the intervals in which a consumer only repeats itself: heartbeats, empty polls, metadata that has not changed.

Both cores publish when that is so and which instants go on moving: the consumer as
:class:`rejoin.client.core.quiescence.Quiescence`, the coordinator as
:class:`rejoin.coordinator.core.quiescence.QuietSession`. What is left for here is arithmetic on four instants: when the
next heartbeat and the next refresh are due, when the session ends on either side, and when the poll returns. Each is a
function of time, because

- a heartbeat of a quiet member does one thing: it restarts the session;
- metadata is a function of the topics, and these have not changed since the consumer last asked;
- the delay of a message is a function of its connection and the instant (:class:`rejoin.simulation.network.Latency`),
  so a message that is skipped leaves the random numbers of all others alone;
- what happens at one instant is ordered by the actor it concerns (:class:`rejoin.simulation.kernel.Order`), and not by
  which of them came first.

Before anything else reaches a skipped consumer, and before its group leaves Stable, its interval ends: both cores
resume with the instants as they would be, and the requests that would be in flight just then are put in flight. From
there on every message is played. No interval is skipped while messages get lost, connections are cut, or a node is down
or paused.

A consumer that gets records, or commits automatically, is left out as well, but what it does is computed at each
instant (:mod:`rejoin.simulation.record_loop`), because events are never skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import Send
from rejoin.client.core.inputs import Elapsed as ConsumerElapsed
from rejoin.client.core.quiescence import NEVER, Quiescence
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.groups.quiet_session import QuietSession
from rejoin.coordinator.core.inputs import Context, Elapsed, Input, Received, Resigned
from rejoin.coordinator.core.quiescence import ENDS_QUIET
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.node import NodeActor, Watcher
from rejoin.simulation.kernel import Millis
from rejoin.simulation.network import ClientConnection, Exchange
from rejoin.simulation.record_loop import RecordLoop
from rejoin.simulation.repetition import Heartbeats, last_before_now

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation

_NEVER_WAITS_FOR_APPENDS: Final = (HeartbeatRequest, MetadataRequest, OffsetCommitRequest)
_SHORTEST_LOOP_MS: Final[Millis] = 2_000
"""A loop that would be played in short for less than this is not worth the change."""


@dataclass(slots=True, eq=False)
class SkippedInterval:
    """An interval that one consumer skips: what both cores published at its start, and when it ends at the latest."""

    consumer: ConsumerActor
    member_id: str
    node: NodeActor
    session: QuietSession
    quiet: Quiescence
    until: Millis
    idler: IdleSkipper

    def resume(self) -> None:
        """Bring both cores to the present."""
        core = self.consumer.core
        assert core is not None, "only a consumer that is up is skipped"
        Resumption(self.idler, self, core).run()


class IdleSkipper(Watcher):
    """Decides when an interval is skipped, and ends it in time."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.cluster = simulation.cluster
        self.network = simulation.network
        self.accounting = simulation.accounting
        self.intervals: dict[str, dict[ConsumerActor, SkippedInterval | RecordLoop]] = {}
        """By group id, those that are being skipped."""
        self._by_member: dict[tuple[str, str], SkippedInterval | RecordLoop] = {}
        self.skipped_intervals = 0
        self.record_loops = 0
        self.appending: dict[RecordLoop, None] = {}
        """The loops of which a commit is being written."""
        for node in self.cluster.nodes:
            node.watchers.append(self)
            node.remembers_metadata = True

    # -- beginning an interval

    def consider(self, consumer: ConsumerActor) -> None:
        """Skip the time until something new can happen to a consumer, if there is any."""
        core = consumer.core
        if core is None or consumer.is_skipped or not core.polling or core.requests_in_flight:
            return
        if not self._is_calm(consumer):
            return
        quiet = core.quiescence()
        if quiet is None:
            return
        node = self.cluster.by_address(quiet.coordinator.port)
        member_id = core.generation.member_id
        group_id = core.config.group_id or ""
        if node.core is None:
            return
        session = node.core.quiet_session(
            group_id, member_id, core.config.group_instance_id, core.generation.generation_id
        )
        if session is None:
            return
        if not self._beats_in_time(session, quiet):
            return
        if self._can_loop(consumer, core, node, quiet):
            self.record_loops += 1
            loop = RecordLoop(self, consumer, node, session, quiet)
            until = min(session.until, quiet.metadata_refreshed_at + core.config.metadata_max_age_ms)
            self._leave_out(loop, session, until)
            loop.begin()
            return
        if core.config.enable_auto_commit:
            return
        until = min(session.until, self._until(consumer, core, quiet))
        if until <= quiet.heartbeat_at + quiet.heartbeat_interval_ms:
            return
        self.skipped_intervals += 1
        self._leave_out(SkippedInterval(consumer, member_id, node, session, quiet, until, self), session, until)

    def _leave_out(self, interval: SkippedInterval | RecordLoop, session: QuietSession, until: Millis) -> None:
        """Leave both cores out until an instant."""
        consumer = interval.consumer
        group_id = consumer.config.group_id or ""
        assert interval.node.core is not None, "no interval is skipped while a node is down"
        interval.node.core.suspend_session(session)
        consumer.is_skipped = True
        self.intervals.setdefault(group_id, {})[consumer] = interval
        self._by_member[group_id, interval.member_id] = interval
        if until < NEVER:
            self.world.control(until, self._reached_end, interval)

    def _can_loop(self, consumer: ConsumerActor, core: ConsumerCore, node: NodeActor, quiet: Quiescence) -> bool:
        """Whether records come, and polling, processing and committing them can be played in short."""
        config, cluster = core.config, self.cluster
        topics = [cluster.topics.get(partition.topic) for partition in core.assignment()]
        if not topics or any(topic is None or topic.until is not None for topic in topics):
            return False
        if config.enable_auto_commit:
            if core.next_auto_commit_at is None:
                return False
        elif not any(topic is not None and topic.records_per_second for topic in topics):
            return False
        group_id = config.group_id or ""
        partition = cluster.partition_of(group_id)
        shard = node.shard(group_id)
        slowest = 2 * self.network.latency.longest_ms
        return (
            cluster.reaches_store(node)
            and cluster.disk.is_plain
            and shard is not None
            and shard.epoch == cluster.disk.log(partition).epoch
            and slowest + node.settings.offsets_commit_timeout_ms
            < min(config.request_timeout_ms, config.default_api_timeout_ms)
            and quiet.metadata_refreshed_at + config.metadata_max_age_ms > self.world.now + _SHORTEST_LOOP_MS
            and (
                consumer.user_code.commit == "none"
                or (node.core is not None and node.core.has_offsets(group_id, core.assignment()))
            )
        )

    def _beats_in_time(self, session: QuietSession, quiet: Quiescence) -> bool:
        """Whether heartbeats do not overlap, and come before the session ends."""
        slowest = 2 * self.network.latency.longest_ms
        every = quiet.heartbeat_interval_ms
        return slowest < every and slowest + every < session.timeout_ms

    def _is_calm(self, consumer: ConsumerActor) -> bool:
        """Whether every actor is there and every message arrives."""
        network = self.network
        return (
            not network.lossy
            and not network.blocked
            and consumer.paused_until <= self.world.now
            and consumer.stuck_until <= self.world.now
            and not consumer.stopping
            and all(node.is_up and node.paused_until <= self.world.now for node in self.cluster.nodes)
        )

    def _until(self, consumer: ConsumerActor, core: ConsumerCore, quiet: Quiescence) -> Millis:
        """The first instant at which a record or a change of the topics can reach the consumer."""
        until = NEVER
        refreshed_at = quiet.metadata_refreshed_at
        if refreshed_at - 2 * self.network.latency.longest_ms <= self.cluster.topics_changed_at:
            until = refreshed_at + core.config.metadata_max_age_ms
        for partition, position in core.positions().items():
            topic = self.cluster.topics.get(partition.topic)
            if topic is not None and topic.records_per_second:
                if consumer.user_code.poll_ms > core.config.fetch_max_wait_ms:
                    return 0
                until = min(until, topic.written_at(partition.partition, position) - 1)
        return until

    # -- ending an interval

    def before(self, node: NodeActor, what: Input) -> None:
        """Let the node know every append in flight before an input that may ask for them."""
        looks = isinstance(what, Elapsed | Resigned) or (
            isinstance(what, Received) and not isinstance(what.request, _NEVER_WAITS_FOR_APPENDS)
        )
        if looks and self.appending:
            for loop in sorted((each for each in self.appending if each.node is node), key=lambda each: each.number):
                self.resume(loop.consumer)

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        """End the intervals of members whose heartbeats may be answered otherwise from now on."""
        if not self.intervals:
            return
        for effect in effects:
            find = ENDS_QUIET.get(type(effect))
            disturbed = None if find is None else find(effect)
            if disturbed is None:
                continue
            group_id, member_id = disturbed
            if group_id is None:
                self.resume_all()
            elif member_id is None:
                self.resume_group(group_id)
            else:
                self._resume_member(group_id, member_id)

    def resume_all(self) -> None:
        for group_id in list(self.intervals):
            self.resume_group(group_id)

    def resume_group(self, group_id: str) -> None:
        for consumer in list(self.intervals.get(group_id, ())):
            self.resume(consumer)

    def _resume_member(self, group_id: str, member_id: str) -> None:
        interval = self._by_member.get((group_id, member_id))
        if interval is not None:
            self.resume(interval.consumer)

    def _reached_end(self, interval: SkippedInterval | RecordLoop) -> None:
        if self.intervals.get(interval.consumer.config.group_id or "", {}).get(interval.consumer) is interval:
            self.resume(interval.consumer)

    def resume(self, consumer: ConsumerActor) -> None:
        """Bring both cores to the present, and put in flight what would be in flight."""
        group_id = consumer.config.group_id or ""
        interval = self.intervals[group_id].pop(consumer)
        if not self.intervals[group_id]:
            del self.intervals[group_id]
        del self._by_member[group_id, interval.member_id]
        if isinstance(interval, RecordLoop):
            self.appending.pop(interval, None)
        consumer.is_skipped = False
        interval.resume()


@dataclass(slots=True)
class Refreshes:
    """When metadata last came, and when the request was sent that has no answer yet, if any."""

    refreshed_at: Millis
    unanswered: Millis | None = None


class Resumption:
    """The end of one skipped interval."""

    def __init__(self, idler: IdleSkipper, interval: SkippedInterval, core: ConsumerCore) -> None:
        self.idler = idler
        self.interval = interval
        self.core = core
        self.consumer = interval.consumer
        self.config = core.config
        self.connection = self.consumer.connection_to(interval.node.index, 0)
        """The one that heartbeats take."""

    def run(self) -> None:
        """Resume both cores, and let the timers of both actors run again."""
        core, now, quiet = self.core, self.idler.world.now, self.interval.quiet
        heartbeats = Heartbeats.by_now(
            self.idler.world,
            self.connection,
            self.consumer.timer.lane,
            quiet.heartbeat_at,
            quiet.heartbeat_interval_ms,
        )
        self._resume_session(heartbeats)
        answered, unanswered = heartbeats.answered, heartbeats.unanswered
        refreshes = self._refreshes()
        core.resume_after_idle(
            now,
            poll_returns_at=self._poll_returns_at(None),
            heartbeat_at=heartbeats.due_at,
            session_expires_at=None if answered is None else answered.answered_at + self.config.session_timeout_ms,
            metadata_refreshed_at=refreshes.refreshed_at,
        )
        sent_at = None if unanswered is None else unanswered.sent_at
        for at in sorted({at for at in (sent_at, refreshes.unanswered) if at is not None}):
            core.resume_after_idle(at, poll_returns_at=self._poll_returns_at(at))
            for effect in core.step(ConsumerElapsed(), at):
                assert isinstance(effect, Send), f"a quiet consumer only sends; it did {effect!r}"
                self._put_in_flight(effect, at)
        core.resume_after_idle(now, poll_returns_at=self._poll_returns_at(None))
        self.consumer.restart_timer()
        self.interval.node.timer.update()

    def _resume_session(self, heartbeats: Heartbeats) -> None:
        """Resume the coordinator's end of the session."""
        session, received = self.interval.session, heartbeats.received
        expires_at = session.expires_at if received is None else received.arrives_at + session.timeout_ms
        assert self.interval.node.core is not None, "no interval is skipped while a node is down"
        self.interval.node.core.resume_session(session, expires_at)

    def _refreshes(self) -> Refreshes:
        """When metadata last came."""
        refreshed_at = self.interval.quiet.metadata_refreshed_at
        while True:
            sent_at = refreshed_at + self.config.metadata_max_age_ms
            if not self.idler.world.is_past(sent_at, self.consumer.timer.lane):
                return Refreshes(refreshed_at)
            connection = self._any_connection(sent_at)
            back = connection.answer_arrival(connection.arrival(sent_at))
            if not self.idler.world.is_past(back, connection.answer_lane):
                return Refreshes(refreshed_at, sent_at)
            refreshed_at = back

    def _any_connection(self, at: Millis) -> ClientConnection:
        """The connection that a metadata request takes which is sent at an instant."""
        return self.consumer.connection_to(self.idler.cluster.any_node(self.consumer.number, at).index, 1)

    def _poll_returns_at(self, at: Millis | None) -> Millis:
        """When the poll ends that runs at an instant, or now."""
        first, every = self.interval.quiet.poll_returns_at, self.consumer.user_code.poll_ms
        if at is not None:
            return first if at < first else first + ((at - first) // every + 1) * every
        last = last_before_now(self.idler.world, self.consumer.timer.lane, first, every)
        return first if last is None else last + every

    def _put_in_flight(self, send: Send, at: Millis) -> None:
        """Put a request that was sent at an instant, or its answer, to where it is now."""
        is_heartbeat = isinstance(send.request, (HeartbeatRequest, ConsumerGroupHeartbeatRequest))
        assert is_heartbeat or isinstance(send.request, MetadataRequest), "a quiet consumer sends nothing else"
        connection = self.connection if is_heartbeat else self._any_connection(at)
        exchange = connection.resume(send.request_id, send.request, send.version, at, send.timeout_ms)
        self.consumer.expect_answer(send.request_id, connection)
        arrives = connection.arrival(at)
        if not self.idler.world.is_past(arrives, connection.request_lane):
            connection.send_at(arrives, exchange)
            return
        exchange.response = self.interval.session.answer if is_heartbeat else metadata_answer(connection, exchange)
        exchange.answers += 1
        connection.answer_at(connection.answer_arrival(arrives), exchange)


def metadata_answer(connection: ClientConnection, exchange: Exchange) -> Response:
    """The node's Metadata response of now, which equals that of the request's arrival."""
    known = connection.node.known_metadata(exchange)
    if known is not None:
        return known
    core = connection.node.core
    assert core is not None, "no interval is skipped while a node is down"
    context = Context(exchange.version, connection.client.name)
    effects = core.step(Received(exchange, exchange.request, context), connection.network.world.now)
    reply = effects[-1]
    assert isinstance(reply, Reply), "metadata is answered at once"
    return reply.response
