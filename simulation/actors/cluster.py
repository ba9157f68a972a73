"""The nodes, and who leads what: elections, resignations, crashes, and a cluster that learns of them a moment later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final
from uuid import UUID

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Append, Effect, ReadLog, Reply
from rejoin.coordinator.core.inputs import (
    Broker,
    ClusterSeen,
    Context,
    Elapsed,
    Elected,
    Input,
    LogRead,
    Received,
    Resigned,
    Stored,
)
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.snapshots import GroupSnapshot, ShardSnapshot
from rejoin.coordinator.core.topics.topics import Partition
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import Record, offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.disk import Disk
from rejoin.simulation.network import Exchange, Requester
from rejoin.simulation.world import Actor, Lane, Millis, Order, World

if TYPE_CHECKING:
    from rejoin.simulation.actors.leased_cluster import LeaseHolder

FIRST_PORT: Final = 9_000
_PIECE: Final = 500
"""Records that a log is read in at a time."""


class Watcher:
    """Somebody who looks at every step of every node; does nothing by itself."""

    def before(self, node: NodeActor, what: Input) -> None:
        """A node is about to take something in."""

    def after(self, node: NodeActor, what: Input, effects: list[Effect]) -> None:
        """A node has taken something in, and these are the effects, not carried out yet."""


class NodeActor(Actor):
    """A node: its core while it is up, and what it waits for."""

    def __init__(self, world: World, cluster: Cluster, index: int, settings: Settings) -> None:
        super().__init__(world, f"node-{index + 1}")
        self.cluster = cluster
        self.index = index
        self.settings = settings.model_copy(update={"broker_id": index + 1})
        self.broker = Broker(index + 1, self.name, FIRST_PORT + index + 1)
        self.life = 0
        self.core: Node | None = None
        self.watchers: list[Watcher] = []
        self.timer_lane: Lane = self.lane(Order.NODE_TIMER)
        self._queued_at: Millis | None = None
        self.remembers_metadata = False
        """Whether an equal question about topics that have not changed is given the answer from before."""
        self._metadata: dict[tuple[Request, int], Response] = {}
        self._contexts: dict[tuple[str, int], Context] = {}
        self._heard = 0
        self.tenure: LeaseHolder | None = None
        """Its leases, where leadership comes from leases."""
        self.new_id: Callable[[], str] = self._uuid
        """Makes member ids and topic ids for the lives to come."""

    # -- up and down

    @property
    def is_up(self) -> bool:
        return self.core is not None

    def start(self) -> None:
        """Come up with an empty memory."""
        self.life += 1
        self.core = Node(self.settings, self.new_id)
        self._queued_at = None

    def crash(self) -> None:
        """Be gone, with everything that was in memory."""
        self.life += 1
        self.core = None
        self.tenure = None
        self._metadata.clear()
        self.paused_until = 0

    def _uuid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    # -- what happens

    def receive(self, exchange: Exchange) -> None:
        """A request arrived."""
        if self.later(self._receive_late, (self.life, exchange), exchange.connection.request_lane):
            return
        who = (exchange.connection.client.name, exchange.version)
        context = self._contexts.get(who)
        if context is None:
            context = self._contexts[who] = Context(exchange.version, who[0])
        if self.remembers_metadata and isinstance(exchange.request, MetadataRequest):
            self._answer_metadata(exchange, context)
            return
        self.step(Received(exchange, exchange.request, context))

    def _answer_metadata(self, exchange: Exchange, context: Context) -> None:
        """Metadata is a function of the question, the topics and the nodes; the same answer is not made twice."""
        key = (exchange.request, exchange.version)
        known = self._metadata.get(key)
        if known is None:
            self.step(Received(exchange, exchange.request, context))
            response = exchange.response
            if isinstance(response, MetadataResponse) and not any(topic.error_code for topic in response.topics):
                self._metadata[key] = response
        else:
            exchange.hear(known)

    def known_metadata(self, exchange: Exchange) -> Response | None:
        """The answer to an equal question, if there was one."""
        return self._metadata.get((exchange.request, exchange.version))

    def _receive_late(self, what: tuple[int, Exchange]) -> None:
        life, exchange = what
        # What a process had not read yet when it died is gone with it.
        if life == self.life and exchange.serial == exchange.connection.serial:
            self.receive(exchange)

    def hand_in(self, what: Input) -> None:
        """Take something in when the clock of this node goes again."""
        if self.is_up and not self.later(lambda life: self._hand_in_late(life, what), self.life, Order.CONTROL.value):
            self.step(what)

    def _hand_in_late(self, life: int, what: Input) -> None:
        if life == self.life:
            self.hand_in(what)

    def step(self, what: Input) -> None:
        """Hand something in and carry out what the core wants done."""
        if isinstance(what, ClusterSeen) or (isinstance(what, Received) and not isinstance(what.token, Exchange)):
            self._metadata.clear()
        if self.tenure is not None:
            self.tenure.look()
        core = self.core
        assert core is not None, "only a node that is up takes something in"
        for watcher in self.watchers:
            watcher.before(self, what)
        effects = core.step(what, self.world.now)
        for watcher in self.watchers:
            watcher.after(self, what, effects)
        for effect in effects:
            self._apply(effect)
        self._set_timer(core.next_deadline())

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Reply():
                if isinstance(effect.token, Requester):
                    effect.token.hear(effect.response)
            case Append():
                stored = partial(self._stored, self.life)
                self.cluster.at_store(self, partial(self.cluster.disk.append, effect, stored))
            case ReadLog():
                read = partial(self._read, self.life, effect)
                self.cluster.at_store(self, partial(self.cluster.disk.read, effect.partition, read))
            case TopicCreated() | TopicGrown() | TopicDeleted():
                if self.cluster.tells_topics(self):
                    self.emit(effect)
            case Event():
                self.emit(effect)

    def _stored(self, life: int, wanted: Append, error: ErrorCode) -> None:
        if life == self.life:
            self.hand_in(Stored(wanted.partition, wanted.epoch, wanted.append_id, error))

    def _read(self, life: int, wanted: ReadLog, records: tuple[Record, ...]) -> None:
        if life != self.life:
            return
        pieces = [records[start : start + _PIECE] for start in range(0, len(records), _PIECE)] or [()]
        for number, piece in enumerate(pieces, 1):
            self.hand_in(LogRead(wanted.partition, wanted.epoch, piece, number == len(pieces)))

    # -- its timer

    def _set_timer(self, due: Millis | None) -> None:
        if due is not None and (self._queued_at is None or due < self._queued_at):
            self._queued_at = max(due, self.world.now)
            self.world.at(self._queued_at, self.timer_lane, self._ring, (self.life, self._queued_at))

    def _ring(self, what: tuple[int, Millis]) -> None:
        life, at = what
        if life != self.life or at != self._queued_at or self.core is None:
            return
        if self.paused_until > self.world.now:
            self._queued_at = self.paused_until
            self.world.at(self.paused_until, self.timer_lane, self._ring, (life, self.paused_until))
            return
        self._queued_at = None
        due = self.core.next_deadline()
        if due is not None and due <= self.world.now:
            self.step(Elapsed())
        else:
            self._set_timer(due)

    def hear_of(self, what: tuple[int, int, ClusterSeen]) -> None:
        """Hear how the cluster is, unless something newer has been heard: news are numbered, as in Kafka's metadata."""
        life, number, seen = what
        if life == self.life and number > self._heard:
            self._heard = number
            self._hand_in_late(life, seen)

    def go_on(self) -> None:
        """End a pause; what was due meanwhile is due now."""
        self.paused_until = self.world.now
        self._queued_at = None
        if self.core is not None:
            self._set_timer(self.core.next_deadline())

    # -- looking in

    def group(self, group_id: str) -> GroupSnapshot | None:
        """A group of this node as it is in memory."""
        return None if self.core is None else self.core.group(group_id)

    def shard(self, group_id: str) -> ShardSnapshot | None:
        """The offsets partition of a group, if this node leads it as far as it knows."""
        return None if self.core is None else self.core.shard(self.cluster.partition_of(group_id))


class TopicLog:
    """A topic's synthetic logs, the same for everybody: a partition ends where time has brought it."""

    def __init__(self, name: str, partitions: int, records_per_second: float, now: Millis) -> None:
        self.name = name
        self.records_per_second = records_per_second
        self.partitions = [Partition(now) for _ in range(partitions)]

    def end(self, partition: int, now: Millis) -> int:
        if partition >= len(self.partitions):
            return 0
        return self.partitions[partition].end_offset(now, self.records_per_second)

    def written_at(self, partition: int, offset: int) -> Millis:
        """An instant by which the log has not yet got this offset, at most a moment before it gets it."""
        log = self.partitions[partition]
        return log.started_at + int((offset + 1 - log.base_offset) * 1_000 / self.records_per_second) - 1


class Cluster:
    """All nodes, the topics, and who leads which offsets partition."""

    def __init__(
        self, world: World, disk: Disk, nodes: int, settings: Settings, notice_ms: Millis, gossip_ms: Millis
    ) -> None:
        self.world = world
        self.disk = disk
        self.settings = settings
        self.notice_ms = notice_ms
        """How long it takes until the others notice that a node has crashed."""
        self.gossip_ms = gossip_ms
        """How long it takes at the most until a node has heard of a new leader."""
        self.random = Random(world.random.getrandbits(64))
        self.nodes = [NodeActor(world, self, index, settings) for index in range(nodes)]
        self.leaders: dict[TopicPartition, NodeActor] = {}
        self.topics: dict[str, TopicLog] = {}
        self.topics_changed_at: Millis = 0
        """When consumers' metadata last became another."""
        self.partitions: list[TopicPartition] = []
        self._news = 0

    def start(self, group_ids: list[str]) -> None:
        """Bring every node up and have the offsets partitions of these groups led."""
        self.partitions = sorted({self.partition_of(group_id) for group_id in group_ids})
        for node in self.nodes:
            node.start()
        self.begin()

    def begin(self) -> None:
        """Have everything led, by one node after the other."""
        for number, partition in enumerate(self.partitions):
            self.leaders[partition] = self.nodes[number % len(self.nodes)]
        for node in self.nodes:
            node.step(self._seen())
        for partition, node in self.leaders.items():
            node.step(Elected(partition, self.disk.elect(partition)))

    def partition_of(self, group_id: str) -> TopicPartition:
        return offsets_partition(partition_for(group_id, self.settings.offsets_topic_num_partitions))

    def leader_of(self, group_id: str) -> NodeActor | None:
        """The node that leads a group's offsets partition, whatever anybody believes."""
        return self.leaders.get(self.partition_of(group_id))

    def by_address(self, port: int) -> NodeActor:
        return self.nodes[port - FIRST_PORT - 1]

    def any_node(self, way: int, at: Millis) -> NodeActor:
        """Some node for whoever does not care. A function of who asks and when; a node that is down is tried too."""
        return self.nodes[(way + at // 1_000) % len(self.nodes)]

    def tells_topics(self, node: NodeActor) -> bool:
        """Every node hears of topics; one of them says so."""
        return node is next((each for each in self.nodes if each.is_up), None)

    def _seen(self) -> ClusterSeen:
        return ClusterSeen(
            tuple(node.broker for node in self.nodes if node.is_up),
            {partition: node.broker.node_id for partition, node in self.leaders.items()},
        )

    def gossip(self) -> None:
        """Let every node hear of the cluster as it is now, each a little later."""
        seen = self._seen()
        self._news += 1
        for node in self.nodes:
            if node.is_up:
                delay = self.random.randint(1, max(1, self.gossip_ms))
                self.world.control(self.world.now + delay, node.hear_of, (node.life, self._news, seen))

    # -- topics

    def create_topic(self, name: str, partitions: int, records_per_second: float) -> None:
        self.topics[name] = TopicLog(name, partitions, records_per_second, self.world.now)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._tell_topic(node, name, partitions)

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions; does nothing where it has as many."""
        topic = self.topics[name]
        if partitions <= len(topic.partitions):
            return
        topic.partitions += [Partition(self.world.now) for _ in range(partitions - len(topic.partitions))]
        self.topics_changed_at = self.world.now
        grown = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False)
        for node in self.nodes:
            self._ask(node, request, 3)

    def _tell_topic(self, node: NodeActor, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=(), configs=())
        self._ask(node, CreateTopicsRequest(topics=(topic,)), 7)

    def _ask(self, node: NodeActor, request: Request, version: int) -> None:
        if node.is_up:
            node.hand_in(Received(None, request, Context(version, "operator")))

    def at_store(self, node: NodeActor, act: Callable[[], None]) -> None:
        """Let a node use the store, now or as soon as it can reach it."""
        act()

    # -- leading

    def crash(self, node: NodeActor) -> None:
        """A node dies; others take over what it led when that has been noticed."""
        if not node.is_up:
            return
        node.crash()
        self.world.control(self.world.now + self.notice_ms, self._replace, node)

    def _replace(self, node: NodeActor) -> None:
        if node.is_up:
            return
        for partition, leader in list(self.leaders.items()):
            if leader is node:
                self._elect_somebody(partition, node)
        self.gossip()

    def restart(self, node: NodeActor) -> None:
        """A node that was down comes back, with an empty memory."""
        if node.is_up:
            return
        node.start()
        for name, topic in self.topics.items():
            self._tell_topic(node, name, len(topic.partitions))
        self.come_back(node)

    def come_back(self, node: NodeActor) -> None:
        """What nobody leads becomes the node's own."""
        node.step(self._seen())
        for partition in self.partitions:
            leader = self.leaders.get(partition)
            if leader is None or leader is node:
                self.elect(partition, node)
        self.gossip()

    def move(self, partition: TopicPartition, zombie_ms: Millis) -> None:
        """Another node leads from now on; the old one hears of it ``zombie_ms`` later, and is fenced until then."""
        old = self.leaders.get(partition)
        if old is None or not old.is_up:
            return
        self._elect_somebody(partition, old)
        if self.leaders.get(partition) is not old:
            life = old.life
            self.world.control(self.world.now + max(0, zombie_ms), lambda _: self._resign(partition, old, life))
        self.gossip()

    def _resign(self, partition: TopicPartition, node: NodeActor, life: int) -> None:
        """Tell a node that it leads no more, unless it does again."""
        if life == node.life and self.leaders.get(partition) is not node:
            node.hand_in(Resigned(partition))

    def _elect_somebody(self, partition: TopicPartition, besides: NodeActor) -> None:
        others = [node for node in self.nodes if node.is_up and node is not besides]
        if others:
            self.elect(partition, others[self.random.randrange(len(others))])
        elif besides.is_up:
            # There is nobody else: the same node leads again, in another epoch, and reads its log anew.
            self.elect(partition, besides)
        else:
            self.leaders.pop(partition, None)

    def elect(self, partition: TopicPartition, node: NodeActor) -> None:
        """Have a node lead a partition, in a new epoch."""
        self.leaders[partition] = node
        node.hand_in(Elected(partition, self.disk.elect(partition)))
