"""Leaves out what changes nothing: a member with nothing to do beats, polls and looks at the topics, over and over.

A consumer *dozes* when all that it would do until something happens is known: its poll returns nothing, its heartbeats
are answered NONE, its metadata is what it was. None of that is an event, and what it leaves behind are four numbers:
when the next heartbeat and the next refresh are due, when the session ends on either side, and when the poll returns.
All of them are functions of the instant, because

- a heartbeat of a known member in the current generation of a Stable group does one thing: it restarts the session
  (``rejoin.coordinator.core.groups.classic.membership.Membership.heartbeat``);
- metadata is a function of the topics, and these have not changed since the consumer last looked;
- the delay of a message is a function of its connection and the instant (:class:`simulation.network.Latency`), so a
  message that is not played takes no chance away from another;
- what happens at one instant is ordered by whom it befalls (:class:`simulation.world.Order`), not by who came first.

So before anything touches a dozing consumer, or its group leaves Stable, the numbers are set as they would be, and
what would be on its way just then is put on its way. From there on everything is played. Nobody dozes while messages
get lost, somebody is cut off, a node is down or stands still. A consumer that commits by itself every five seconds does
not doze: each of these commits is an event, and events are not left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import Send
from rejoin.client.core.inputs import Elapsed
from rejoin.client.core.quiescence import Quiescence
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Context, Input, Received
from rejoin.coordinator.core.quiescence import ENDS_QUIET, QuietSession
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.simulation.actors.cluster import NodeActor, Watcher
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.network import ClientConnection, Exchange
from rejoin.simulation.world import Lane, Millis

if TYPE_CHECKING:
    from rejoin.simulation.lab import Lab

NEVER: Final[Millis] = 1 << 60
_FINE: Final = HeartbeatResponse()


@dataclass(slots=True, eq=False)
class Doze:
    """A consumer that dozes: the numbers as they were when it began, and the node that thinks it beats."""

    consumer: ConsumerActor
    member_id: str
    node: NodeActor
    session: QuietSession
    quiet: Quiescence
    until: Millis


class IdleSkipper(Watcher):
    """Lets consumers doze, and wakes them in time."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.world = lab.world
        self.cluster = lab.cluster
        self.network = lab.network
        self.dozing: dict[str, dict[ConsumerActor, Doze]] = {}
        """By group id."""
        self._by_member: dict[tuple[str, str], Doze] = {}
        self.naps = 0
        self._not_before: dict[ConsumerActor, Millis] = {}
        for node in self.cluster.nodes:
            node.watchers.append(self)
            node.remembers_metadata = True

    # -- falling asleep

    def consider(self, consumer: ConsumerActor) -> None:
        """Let a consumer doze if nothing but beats, empty polls and equal metadata is to come for a while."""
        core = consumer.core
        if core is None or consumer.dozing or not core.polling or core.requests_in_flight:
            return
        if self.world.now < self._not_before.get(consumer, 0):
            return
        if core.config.enable_auto_commit or not self._calm(consumer):
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
        until = self._until(consumer, core, quiet)
        if until <= quiet.heartbeat_at + core.config.heartbeat_interval_ms:
            self._not_before[consumer] = min(until, self.world.now + core.config.heartbeat_interval_ms)
            return
        doze = Doze(
            consumer=consumer,
            member_id=member_id,
            node=node,
            session=session,
            quiet=quiet,
            until=until,
        )
        self.naps += 1
        node.core.suspend_session(session)
        consumer.dozing = True
        self.dozing.setdefault(group_id, {})[consumer] = doze
        self._by_member[group_id, member_id] = doze
        if until < NEVER:
            self.world.control(until, self._alarm, doze)

    def _calm(self, consumer: ConsumerActor) -> bool:
        """Whether everybody is there and every message arrives, soon enough that beats do not meet one another."""
        network = self.network
        config = consumer.config
        return (
            not network.lossy
            and not network.blocked
            and 2 * network.latency.longest_ms < min(config.heartbeat_interval_ms, config.session_timeout_ms)
            and consumer.paused_until <= self.world.now
            and consumer.stuck_until <= self.world.now
            and not consumer.stopping
            and all(node.is_up and node.paused_until <= self.world.now for node in self.cluster.nodes)
        )

    def _until(self, consumer: ConsumerActor, core: ConsumerCore, quiet: Quiescence) -> Millis:
        """Before this nothing can come up by itself: neither a record nor topics that the consumer has not seen."""
        until = NEVER
        refreshed_at = quiet.metadata_refreshed_at
        if refreshed_at - 2 * self.network.latency.longest_ms <= self.cluster.topics_changed_at:
            until = refreshed_at + core.config.metadata_max_age_ms
        for partition, position in core.positions().items():
            topic = self.cluster.topics.get(partition.topic)
            if topic is not None and topic.records_per_second:
                if consumer.work.poll_ms > core.config.fetch_max_wait_ms:
                    return 0
                until = min(until, topic.written_at(partition.partition, position) - 1)
        return until

    # -- waking up

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        """Wake those whose beats would be answered otherwise from now on."""
        if not self.dozing:
            return
        for effect in effects:
            disturbed = ENDS_QUIET.get(type(effect))
            if disturbed is None:
                continue
            group_id, member_id = disturbed(effect)
            if group_id is None:
                self.wake_all()
            elif member_id is None:
                self.wake_group(group_id)
            else:
                self._wake_member(group_id, member_id)

    def wake_all(self) -> None:
        for group_id in list(self.dozing):
            self.wake_group(group_id)

    def wake_group(self, group_id: str) -> None:
        for consumer in list(self.dozing.get(group_id, ())):
            self.wake(consumer)

    def _wake_member(self, group_id: str, member_id: str) -> None:
        doze = self._by_member.get((group_id, member_id))
        if doze is not None:
            self.wake(doze.consumer)

    def _alarm(self, doze: Doze) -> None:
        if self.dozing.get(doze.consumer.config.group_id or "", {}).get(doze.consumer) is doze:
            self.wake(doze.consumer)

    def wake(self, consumer: ConsumerActor) -> None:
        """Set the numbers as they would be, and put on its way what would be on its way."""
        group_id = consumer.config.group_id or ""
        doze = self.dozing[group_id].pop(consumer)
        if not self.dozing[group_id]:
            del self.dozing[group_id]
        del self._by_member[group_id, doze.member_id]
        consumer.dozing = False
        core = consumer.core
        assert core is not None, "only a consumer that is up dozes"
        Waking(self, doze, core).up()

    # -- for those who wake

    def past(self, when: Millis, lane: Lane) -> bool:
        """Whether what is due then and in this lane has happened already."""
        return (when, lane) < self.world.current


@dataclass(slots=True)
class Beats:
    """A consumer's heartbeat clocks as beats that were left out would have set them.

    ``unanswered`` is when the beat was sent that has no answer yet, if any.
    """

    due_at: Millis
    session_expires_at: Millis | None = None
    unanswered: Millis | None = None


@dataclass(slots=True)
class Refreshes:
    """When the topics were looked at last, and when the question was sent that has no answer yet, if any."""

    refreshed_at: Millis
    unanswered: Millis | None = None


class Waking:
    """One consumer's way back."""

    def __init__(self, idler: IdleSkipper, doze: Doze, core: ConsumerCore) -> None:
        self.idler = idler
        self.doze = doze
        self.core = core
        self.consumer = doze.consumer
        self.config = core.config
        self.beats_on = self.consumer.connection_to(doze.node.index, 0)

    def up(self) -> None:
        """Catch up, and let the clock of this consumer tick again."""
        core, world = self.core, self.idler.world
        beats, refreshes = self._beats(), self._refreshes()
        core.resume_after_idle(
            world.now,
            poll_returns_at=self._poll_until(None),
            heartbeat_at=beats.due_at,
            session_expires_at=beats.session_expires_at,
            metadata_refreshed_at=refreshes.refreshed_at,
        )
        for at in sorted({at for at in (beats.unanswered, refreshes.unanswered) if at is not None}):
            core.resume_after_idle(at, poll_returns_at=self._poll_until(at))
            for effect in core.step(Elapsed(), at):
                assert isinstance(effect, Send), f"a dozing consumer only sends, it does not say {effect!r}"
                self._on_its_way(effect, at)
        core.resume_after_idle(world.now, poll_returns_at=self._poll_until(None))
        self.consumer._queued_at = None
        self.consumer._set_timer(core.next_deadline())
        self.doze.node._set_timer(self.doze.node.core.next_deadline() if self.doze.node.core is not None else None)

    def _beats(self) -> Beats:
        """What heartbeats have left behind; the coordinator's end of the session is set at once."""
        idler, doze, config = self.idler, self.doze, self.config
        interval = config.heartbeat_interval_ms
        connection = self.beats_on
        first = doze.quiet.heartbeat_at
        session_ends_at = doze.session.expires_at
        last = self._last_before_now(first, interval)
        beats = Beats(first)
        if last is not None:
            beats.due_at = last + interval
            answered = last
            arrives = connection.arrival(last)
            if not idler.past(connection.answer_arrival(arrives), connection.answer_lane):
                beats.unanswered = beats.due_at = last
                answered = last - interval
            if answered >= first:
                back = connection.answer_arrival(connection.arrival(answered))
                beats.session_expires_at = back + config.session_timeout_ms
            heard = last if idler.past(arrives, connection.request_lane) else last - interval
            if heard >= first:
                session_ends_at = connection.arrival(heard) + config.session_timeout_ms
        assert doze.node.core is not None, "nobody dozes while a node is down"
        doze.node.core.resume_session(doze.session, session_ends_at)
        return beats

    def _refreshes(self) -> Refreshes:
        """When the topics were looked at last."""
        refreshed_at = self.doze.quiet.metadata_refreshed_at
        while True:
            sent_at = refreshed_at + self.config.metadata_max_age_ms
            if not self.idler.past(sent_at, self.consumer.timer_lane):
                return Refreshes(refreshed_at)
            connection = self.consumer.connection_to(
                self.idler.cluster.any_node(self.consumer.number, sent_at).index, 1
            )
            back = connection.answer_arrival(connection.arrival(sent_at))
            if not self.idler.past(back, connection.answer_lane):
                return Refreshes(refreshed_at, sent_at)
            refreshed_at = back

    def _last_before_now(self, first: Millis, interval: Millis) -> Millis | None:
        """The last of what the consumer does at ``first`` and every ``interval`` that has happened, if any."""
        now, lane = self.idler.world.now, self.consumer.timer_lane
        if not self.idler.past(first, lane):
            return None
        last = first + (now - first) // interval * interval
        return last if self.idler.past(last, lane) else last - interval

    def _poll_until(self, at: Millis | None) -> Millis:
        """When the poll ends that runs at an instant, or now."""
        first, every = self.doze.quiet.poll_returns_at, self.consumer.work.poll_ms
        if at is not None:
            return first if at < first else first + ((at - first) // every + 1) * every
        last = self._last_before_now(first, every)
        return first if last is None else last + every

    def _on_its_way(self, send: Send, at: Millis) -> None:
        """Put a request, or its answer, to where it would be now."""
        idler = self.idler
        if isinstance(send.request, HeartbeatRequest):
            connection = self.beats_on
        else:
            assert isinstance(send.request, MetadataRequest), "a dozing consumer beats and looks at the topics"
            connection = self.consumer.connection_to(idler.cluster.any_node(self.consumer.number, at).index, 1)
        exchange = Exchange(
            connection, connection.serial, send.request_id, send.request, send.version, at, at + send.timeout_ms
        )
        connection.waiting[send.request_id] = exchange
        self.consumer._where[send.request_id] = connection
        connection.watch(exchange.expires_at)
        arrives = connection.arrival(at)
        if not idler.past(arrives, connection.request_lane):
            connection.send_at(arrives, exchange)
            return
        if isinstance(send.request, HeartbeatRequest):
            exchange.response = _FINE
        else:
            exchange.response = answer_now(connection, exchange)
        exchange.answers += 1
        connection.answer_at(connection.answer_arrival(arrives), exchange)


def answer_now(connection: ClientConnection, exchange: Exchange) -> Response:
    """What the node says about the topics; it said the same when the question arrived."""
    known = connection.node.known_metadata(exchange)
    if known is not None:
        return known
    core = connection.node.core
    assert core is not None, "nobody dozes while a node is down"
    context = Context(exchange.version, connection.client.name)
    effects = core.step(Received(exchange, exchange.request, context), connection.network.world.now)
    reply = effects[-1]
    assert isinstance(reply, Reply), "metadata is answered at once"
    return reply.response
