"""A node of the simulated cluster: its core while it is up, its timer, and what the core's effects do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect, ReadLog, Reply, ResolveRegexes, SendRequest
from rejoin.coordinator.core.groups.consumer.regex_resolution import resolve_regexes
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    ConnectionLost,
    Context,
    Elapsed,
    Input,
    LogRead,
    NodeAnswered,
    Received,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.snapshots import ConsumerGroupSnapshot, GroupSnapshot, ShardSnapshot
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.protocol.records.keyed import Record
from rejoin.simulation.actors.node_requests import NodeRequest
from rejoin.simulation.kernel import Actor, Millis, Order, World
from rejoin.simulation.network import Exchange, Requester

if TYPE_CHECKING:
    from rejoin.simulation.actors.cluster import Cluster
    from rejoin.simulation.actors.leased_cluster import NodeLeases

FIRST_PORT: Final = 9_000
_PIECE: Final = 500
"""How many records of a log are read at a time."""


class Watcher:
    """Observes every step of a node; this one does nothing."""

    def before(self, node: NodeActor, what: Input) -> None:
        """A node is about to take an input."""

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        """A node has taken an input; the effects are not applied yet."""


class NodeActor(Actor):
    """A node: its core while it is up, its timer, and its leases if there are any."""

    def __init__(self, world: World, cluster: Cluster, index: int, settings: Settings) -> None:
        super().__init__(world, f"node-{index + 1}")
        self.cluster = cluster
        self.index = index
        self.settings = settings.model_copy(update={"broker_id": index + 1})
        self.broker = Broker(index + 1, self.name, FIRST_PORT + index + 1)
        self.incarnation = 0
        self.core: Node | None = None
        self.watchers: list[Watcher] = []
        self.timer = world.new_timer(
            self, self.lane(Order.NODE_TIMER), self._next_deadline, lambda: self.step(Elapsed())
        )
        self.remembers_metadata = False
        """Whether equal metadata requests get the same response while the topics have not changed."""
        self._metadata: dict[tuple[Request, int], Response] = {}
        self._contexts: dict[tuple[str, int], Context] = {}
        self._newest_gossip = 0
        self._next_id: str | None = None
        """The id that the topic gets which is created in this step."""
        self.lease_holder: NodeLeases | None = None
        """Its leases, in a cluster that has them."""
        self.peer_requests: dict[NodeRequest, None] = {}
        """Requests of other nodes that wait for an answer."""
        self.new_id: Callable[[], str] = self._uuid
        """Makes member ids and topic ids for the next incarnation."""

    # -- up and down

    @property
    def is_up(self) -> bool:
        return self.core is not None

    def start(self) -> None:
        """Start with an empty memory."""
        self.incarnation += 1
        self.core = Node(self.settings, self.new_id)
        self.timer.reset()

    def configure(self, settings: Mapping[str, object]) -> None:
        """Start with other settings the next time."""
        given = Settings.model_validate(settings)
        self.settings = self.settings.model_copy(update={each: getattr(given, each) for each in given.model_fields_set})

    def crash(self) -> None:
        """Crash: everything in memory is gone."""
        self.incarnation += 1
        for request in list(self.peer_requests):
            request.on_response(None)
        self.core = None
        self.lease_holder = None
        self._metadata.clear()
        self.paused_until = 0

    def _uuid(self) -> str:
        if self._next_id is not None:
            return self._next_id
        return str(UUID(int=self.random.getrandbits(128), version=4))

    # -- inputs

    def receive(self, exchange: Exchange) -> None:
        """A request arrived."""
        if self.later(self._receive_late, (self.incarnation, exchange), exchange.connection.request_lane):
            return
        context = self._context(exchange)
        if isinstance(exchange.request, InitProducerIdRequest) and exchange.request.transactional_id is None:
            exchange.on_response(self.cluster.new_producer_id())
            return
        if self.remembers_metadata and isinstance(exchange.request, MetadataRequest):
            self._answer_metadata(exchange, context)
            return
        self.step(Received(exchange, exchange.request, context))

    def _context(self, exchange: Exchange) -> Context:
        connection = exchange.connection
        if connection.name:
            return Context(exchange.version, connection.client.client_id, connection=connection.name)
        who = (connection.client.client_id, exchange.version)
        context = self._contexts.get(who)
        if context is None:
            context = self._contexts[who] = Context(exchange.version, who[0])
        return context

    def connection_lost(self, what: tuple[int, str]) -> None:
        """A client's connection is gone."""
        incarnation, name = what
        if incarnation == self.incarnation:
            self.hand_in(ConnectionLost(name))

    def _answer_metadata(self, exchange: Exchange, context: Context) -> None:
        """Metadata is a function of the request, the topics and the nodes; equal responses are made once."""
        key = (exchange.request, exchange.version)
        known = self._metadata.get(key)
        if known is None:
            self.step(Received(exchange, exchange.request, context))
            response = exchange.response
            if isinstance(response, MetadataResponse) and not any(topic.error_code for topic in response.topics):
                self._metadata[key] = response
        else:
            exchange.on_response(known)

    def forget_metadata(self) -> None:
        """Answer requests for metadata anew: a topic has been made."""
        self._metadata.clear()

    def known_metadata(self, exchange: Exchange) -> Response | None:  # to an equal request
        return self._metadata.get((exchange.request, exchange.version))

    def _receive_late(self, what: tuple[int, Exchange]) -> None:
        incarnation, exchange = what
        # What a process had not read yet when it died is gone with it.
        if incarnation == self.incarnation and exchange.serial == exchange.connection.serial:
            self.receive(exchange)

    def hand_in(self, what: Input) -> None:
        """Take an input, at the end of the pause if the node is paused."""
        if self.is_up and not self.later(
            lambda incarnation: self._hand_in_late(incarnation, what), self.incarnation, Order.CONTROL.value
        ):
            self.step(what)

    def _hand_in_late(self, incarnation: int, what: Input) -> None:
        if incarnation == self.incarnation:
            self.hand_in(what)

    def step(self, what: Input) -> None:
        """Hand an input to the core and apply the effects."""
        if isinstance(what, ClusterSeen) or (isinstance(what, Received) and not isinstance(what.token, Exchange)):
            self._metadata.clear()
        if self.lease_holder is not None:
            self.lease_holder.check_expiry()
        core = self.core
        assert core is not None, "only a node that is up takes an input"
        for watcher in self.watchers:
            watcher.before(self, what)
        self._next_id = self.cluster.id_of_topic(what)
        effects = core.step(what, self.world.now)
        self._next_id = None
        for watcher in self.watchers:
            watcher.after(self, what, effects)
        for effect in effects:
            self._apply(effect)
        self.timer.update()

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Reply(token=Requester() as requester):
                requester.on_response(effect.response)
            case Append():
                self.cluster.at_store(self, partial(self.cluster.disk.append, effect, self.on_stored()))
            case ReadLog():
                read = partial(self._read, self.incarnation, effect)
                self.cluster.at_store(self, partial(self.cluster.disk.read, effect.partition, read))
            case SendRequest():
                NodeRequest(self, effect).send()
            case ResolveRegexes():
                # Aside, as on another thread.
                self.world.at(self.world.now + 1, Order.DISK, self._resolve, (self.incarnation, effect))
            case TopicCreated() | TopicGrown() | TopicDeleted():
                if isinstance(effect, TopicCreated):
                    self.cluster.created_by_group(self, effect)
                if self.cluster.emits_topics(self):
                    self.emit(effect)
            case Event():
                self.emit(effect)

    def _resolve(self, what: tuple[int, ResolveRegexes]) -> None:
        incarnation, wanted = what
        if incarnation == self.incarnation:
            self.hand_in(resolve_regexes(wanted))

    def answered(self, incarnation: int, send_id: int, response: Response | None) -> None:
        """A request to another node has ended."""
        if incarnation == self.incarnation:
            self.hand_in(NodeAnswered(send_id, response))

    def on_stored(self) -> Callable[[Append, ErrorCode], None]:
        """Callback for the end of an append of this incarnation."""
        return partial(self._stored, self.incarnation)

    def _stored(self, incarnation: int, wanted: Append, error: ErrorCode) -> None:
        if incarnation == self.incarnation:
            self.hand_in(Stored(wanted.partition, wanted.epoch, wanted.append_id, error))

    def _read(self, incarnation: int, wanted: ReadLog, records: tuple[Record, ...]) -> None:
        if incarnation != self.incarnation:
            return
        pieces = [records[start : start + _PIECE] for start in range(0, len(records), _PIECE)] or [()]
        for number, piece in enumerate(pieces, 1):
            self.hand_in(LogRead(wanted.partition, wanted.epoch, piece, number == len(pieces)))

    def _next_deadline(self) -> Millis | None:
        return None if self.core is None else self.core.next_deadline()

    def on_gossip(self, what: tuple[int, int, ClusterSeen]) -> None:
        """The state of the cluster arrives. Older states are dropped: they are numbered, as Kafka numbers metadata."""
        incarnation, number, seen = what
        if incarnation == self.incarnation and number > self._newest_gossip:
            self._newest_gossip = number
            self._hand_in_late(incarnation, seen)

    # -- snapshots

    def group(self, group_id: str) -> GroupSnapshot | None:
        """A classic group of this node as it is in memory."""
        return None if self.core is None else self.core.group(group_id)

    def consumer_group(self, group_id: str) -> ConsumerGroupSnapshot | None:
        """A consumer group of this node as it is in memory."""
        return None if self.core is None else self.core.consumer_group(group_id)

    def state_of(self, group_id: str) -> str | None:
        """The state of a group of this node, of either kind."""
        return getattr(self.group(group_id) or self.consumer_group(group_id), "state", None)

    def shard(self, group_id: str) -> ShardSnapshot | None:
        """The offsets partition of a group, if this node leads it as far as it knows."""
        return None if self.core is None else self.core.shard(self.cluster.partition_of(group_id))
