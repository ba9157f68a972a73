"""The nodes, and which of them leads what: elections, resignations, crashes, and the time until others know."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect, ReadLog, Reply, ResolveRegexes, SendRequest
from rejoin.coordinator.core.groups.consumer.regex_resolution import resolve_regexes
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    Elected,
    Input,
    LogRead,
    NodeAnswered,
    Received,
    Resigned,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.snapshots import ConsumerGroupSnapshot, GroupSnapshot, ShardSnapshot
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.simulation.actors.core_timer import CoreTimer
from rejoin.simulation.actors.node_requests import NodeRequest, group_configuration, topic_creation, topic_growth
from rejoin.simulation.actors.transaction_log import transaction_log, transaction_topic
from rejoin.simulation.disk import Disk
from rejoin.simulation.kernel import Actor, Millis, Order, World
from rejoin.simulation.network import Exchange, Requester
from rejoin.simulation.topic_log import TopicLog

if TYPE_CHECKING:
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
        self.timer = CoreTimer(self, self.lane(Order.NODE_TIMER), self._next_deadline, lambda: self.step(Elapsed()))
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
        who = (exchange.connection.client.name, exchange.version)
        context = self._contexts.get(who)
        if context is None:
            context = self._contexts[who] = Context(exchange.version, who[0])
        if isinstance(exchange.request, InitProducerIdRequest) and exchange.request.transactional_id is None:
            exchange.on_response(self.cluster.new_producer_id())
            return
        if self.remembers_metadata and isinstance(exchange.request, MetadataRequest):
            self._answer_metadata(exchange, context)
            return
        self.step(Received(exchange, exchange.request, context))

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
        """What is called when an append of this incarnation ends."""
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


def topic_uuid(name: str) -> UUID:
    """The id of a topic with real logs."""
    return uuid5(NAMESPACE_OID, name)


class Cluster:
    """All nodes, the topics, and who leads which offsets partition."""

    def __init__(
        self, world: World, disk: Disk, nodes: int, settings: Settings, notice_ms: Millis, gossip_ms: Millis
    ) -> None:
        self.world = world
        self.disk = disk
        self.settings = settings
        self.notice_ms = notice_ms
        """How long it takes the others to notice a crash."""
        self.gossip_ms = gossip_ms
        """The longest time until a node knows a new leader."""
        self.random = Random(world.random.getrandbits(64))
        self.nodes = [NodeActor(world, self, index, settings) for index in range(nodes)]
        self.leaders: dict[TopicPartition, NodeActor] = {}
        self.topics: dict[str, TopicLog] = {}
        self.group_settings: dict[str, dict[str, int]] = {}
        """What groups have of their own."""
        self.topics_changed_at: Millis = 0
        """When metadata last changed."""
        self.partitions: list[TopicPartition] = []
        self._gossip_number = 0
        self._producer_ids = 0
        self._written_topics: frozenset[str] = frozenset()
        self.same_topic_ids = False
        """Whether topics without real logs have the same ids on every node, too."""
        self.transaction_logs: list[TopicIdPartition] = []
        """The partitions of the transaction log that are in use."""

    def start(
        self,
        group_ids: list[str],
        written: Mapping[str, int] = MappingProxyType({}),
        transactional_ids: Iterable[str] = (),
    ) -> None:
        """Start every node, and elect leaders for these groups and transactional ids, and for topics with real logs."""
        self._written_topics = frozenset(written)
        count = self.settings.transaction_state_log_num_partitions
        self.transaction_logs = sorted({transaction_log(each, count) for each in transactional_ids})
        logs = [TopicPartition(topic, index) for topic, count in written.items() for index in range(count)]
        leading = {self.partition_of(group_id) for group_id in group_ids}
        leading.update(self.leads(self.log_of(partition)) for partition in logs)
        leading.update(self.leads(log) for log in self.transaction_logs)
        self.partitions = sorted(leading)
        for node in self.nodes:
            self._start(node)
        self.begin()

    def _start(self, node: NodeActor) -> None:
        node.start()
        if self.transaction_logs:
            count = self.settings.transaction_state_log_num_partitions
            node.step(transaction_topic(count, node.broker.node_id, node.incarnation))

    def begin(self) -> None:
        """Elect leaders, one node after the other."""
        for number, partition in enumerate(self.partitions):
            self.leaders[partition] = self.nodes[number % len(self.nodes)]
        for node in self.nodes:
            node.step(self._seen())
        for partition, node in self.leaders.items():
            node.step(Elected(partition, self.disk.elect(partition)))

    def partition_of(self, group_id: str) -> TopicPartition:
        return offsets_partition(partition_for(group_id, self.settings.offsets_topic_num_partitions))

    def log_of(self, partition: TopicPartition) -> TopicIdPartition:
        """The real log of a partition."""
        topic_id = base64.urlsafe_b64encode(topic_uuid(partition.topic).bytes).decode()[:22]
        return TopicIdPartition(topic_id, partition.partition, partition.topic)

    def leads(self, log: TopicIdPartition) -> TopicPartition:
        """The offsets partition whose leader leads a partition with a real log."""
        count = self.settings.offsets_topic_num_partitions
        return offsets_partition(partition_for(f"{log.topic_id}-{log.partition}", count))

    def id_of_topic(self, what: Input) -> str | None:
        """The id of a topic that an input creates, where it matters: the same on every node, and after a restart."""
        if isinstance(what, Received) and isinstance(what.request, CreateTopicsRequest):
            name = what.request.topics[0].name
            return str(topic_uuid(name)) if self.same_topic_ids or name in self._written_topics else None
        return None

    def new_producer_id(self) -> InitProducerIdResponse:
        """A producer id, unique in the cluster. In Kafka the controller gives them out in blocks."""
        self._producer_ids += 1
        return InitProducerIdResponse(producer_id=self._producer_ids, producer_epoch=0)

    def leader_of(self, group_id: str) -> NodeActor | None:
        """The node that leads a group's offsets partition, whatever other nodes believe."""
        return self.leaders.get(self.partition_of(group_id))

    def by_address(self, port: int) -> NodeActor:
        return self.nodes[port - FIRST_PORT - 1]

    def any_node(self, way: int, at: Millis) -> NodeActor:
        """A node for requests that any can answer: a function of client and instant. It may be down."""
        return self.nodes[(way + at // 1_000) % len(self.nodes)]

    def emits_topics(self, node: NodeActor) -> bool:
        """Every node gets the changes of topics; the first that is up emits the events."""
        return node is next((each for each in self.nodes if each.is_up), None)

    def _seen(self) -> ClusterSeen:
        return ClusterSeen(
            tuple(node.broker for node in self.nodes if node.is_up),
            {partition: node.broker.node_id for partition, node in self.leaders.items()},
        )

    def gossip(self) -> None:
        """Send every node the state of the cluster as it is now, each with its own delay."""
        seen = self._seen()
        self._gossip_number += 1
        for node in self.nodes:
            if node.is_up:
                delay = self.random.randint(1, max(1, self.gossip_ms))
                self.world.control(
                    self.world.now + delay, node.on_gossip, (node.incarnation, self._gossip_number, seen)
                )

    # -- topics

    def create_topic(self, name: str, partitions: int, records_per_second: float, until: Millis | None = None) -> None:
        self.topics[name] = TopicLog(name, partitions, records_per_second, self.world.now, until)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._ask(node, topic_creation(name, partitions, name in self._written_topics), 7)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions; does nothing where it has as many."""
        topic = self.topics[name]
        if partitions <= len(topic.partitions):
            return
        topic.grow(partitions, self.world.now)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._ask(node, topic_growth(name, partitions), 3)

    def configure_group(self, group_id: str, settings: Mapping[str, int]) -> None:
        """Give a group settings of its own, beside those that it has."""
        self.group_settings.setdefault(group_id, {}).update(settings)
        for node in self.nodes:
            self._ask(node, group_configuration(group_id, settings), 1)

    def _ask(self, node: NodeActor, request: Request, version: int) -> None:
        if node.is_up:
            node.hand_in(Received(None, request, Context(version, "operator", by_operator=True)))

    def reaches_store(self, node: NodeActor) -> bool:
        """Whether nothing stands between a node and the logs."""
        return True

    def at_store(self, node: NodeActor, act: Callable[[], None]) -> None:
        """Use the store on behalf of a node, now or as soon as it can reach it."""
        act()

    # -- leading

    def crash(self, node: NodeActor) -> None:
        """A node crashes; others take over what it led when they have noticed."""
        if node.is_up:
            node.crash()
            self.world.control(self.world.now + self.notice_ms, self._replace, node)

    def _replace(self, node: NodeActor) -> None:
        if node.is_up:
            return
        for partition, leader in list(self.leaders.items()):
            if leader is node:
                self._elect_another(partition, node)
        self.gossip()

    def restart(self, node: NodeActor) -> None:
        """A node that was down starts again, with an empty memory."""
        if node.is_up:
            return
        self._start(node)
        for name, topic in self.topics.items():
            self._ask(node, topic_creation(name, len(topic.partitions), name in self._written_topics), 7)
        for group_id, settings in self.group_settings.items():
            self._ask(node, group_configuration(group_id, settings), 1)
        self.rejoin(node)

    def rejoin(self, node: NodeActor) -> None:
        """A node that was restarted leads the partitions that have no leader."""
        node.step(self._seen())
        for partition in self.partitions:
            leader = self.leaders.get(partition)
            if leader is None or leader is node:
                self.elect(partition, node)
        self.gossip()

    def move(self, partition: TopicPartition, zombie_ms: Millis) -> None:
        """Another node leads from now on; the old one learns of it ``zombie_ms`` later, and is fenced until then."""
        old = self.leaders.get(partition)
        if old is None or not old.is_up:
            return
        self._elect_another(partition, old)
        if self.leaders.get(partition) is not old:
            incarnation = old.incarnation
            self.world.control(self.world.now + max(0, zombie_ms), lambda _: self._resign(partition, old, incarnation))
        self.gossip()

    def _resign(self, partition: TopicPartition, node: NodeActor, incarnation: int) -> None:
        """The old leader resigns, unless it has been elected again."""
        if incarnation == node.incarnation and self.leaders.get(partition) is not node:
            node.hand_in(Resigned(partition))

    def _elect_another(self, partition: TopicPartition, besides: NodeActor) -> None:
        others = [node for node in self.nodes if node.is_up and node is not besides]
        if others:
            self.elect(partition, others[self.random.randrange(len(others))])
        elif besides.is_up:
            # There is no other: the same node leads again, in another epoch, and reads its log anew.
            self.elect(partition, besides)
        else:
            self.leaders.pop(partition, None)

    def elect(self, partition: TopicPartition, node: NodeActor) -> None:
        """Elect a node leader of a partition, in a new epoch."""
        self.leaders[partition] = node
        node.hand_in(Elected(partition, self.disk.elect(partition)))
