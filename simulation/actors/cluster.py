"""Who leads what: elections, resignations and crashes of nodes, the time until others know, and the topics."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from uuid import NAMESPACE_OID, UUID, uuid5

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import (
    ClusterSeen,
    Context,
    Elected,
    Input,
    Received,
    Resigned,
)
from rejoin.journal.events.coordinator import TopicCreated
from rejoin.protocol.message import Request
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdResponse
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.simulation.actors.node import FIRST_PORT, NodeActor
from rejoin.simulation.actors.node_requests import group_configuration, topic_creation, topic_deletion, topic_growth
from rejoin.simulation.actors.share.topics import (
    FIRST_TOPICS_VERSION,
    SharedTopics,
    state_log,
    state_topic,
    synthetic_topic,
)
from rejoin.simulation.actors.transaction_log import first_producer_id, transaction_log, transaction_topic
from rejoin.simulation.disk import Disk
from rejoin.simulation.kernel import Millis, World
from rejoin.simulation.topic_log import CountedLog, TopicLog


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
        self.random = world.new_random()
        self.nodes = [NodeActor(world, self, index, settings) for index in range(nodes)]
        self.leaders: dict[TopicPartition, NodeActor] = {}
        self.topics: dict[str, TopicLog] = {}
        self.group_settings: dict[str, dict[str, str]] = {}
        self.access_changes: list[tuple[Request, int]] = []
        """Settings of single groups."""
        self.topics_changed_at: Millis = 0
        """When metadata last changed."""
        self.partitions: list[TopicPartition] = []
        self._gossip_number = 0
        self._producer_ids = world.first_producer_id
        self._written_topics: frozenset[str] = frozenset()
        self.changes_nodes = True
        """Whether clients turn to another node each second with requests that any can answer."""
        self.same_topic_ids = False
        """Whether topics without real logs have the same ids on every node, too."""
        self.transaction_logs: list[TopicIdPartition] = []
        """The partitions of the transaction log that are in use."""
        self.shares = SharedTopics()
        self._ids: dict[str, str] = {}
        """Ids of topics that nodes made for groups."""
        self._topics_version = FIRST_TOPICS_VERSION

    def start(
        self,
        group_ids: list[str],
        written: Mapping[str, int] = MappingProxyType({}),
        transactional_ids: Iterable[str] = (),
        shares: SharedTopics | None = None,
    ) -> None:
        """Start every node, and elect leaders for these groups and transactional ids, and for topics with real logs."""
        self.shares = shares or self.shares
        self._written_topics = frozenset(written)
        count = self.settings.transaction_state_log_num_partitions
        self.transaction_logs = sorted({transaction_log(each, count) for each in transactional_ids})
        logs = [TopicPartition(topic, index) for topic, count in written.items() for index in range(count)]
        leading = {self.partition_of(group_id) for group_id in group_ids}
        leading.update(self.leads(self.log_of(partition)) for partition in logs)
        leading.update(self.leads(log) for log in self.transaction_logs)
        leading.update(self.leads(log) for log in self.share_state_logs())
        self.partitions = sorted(leading)
        for node in self.nodes:
            self._start(node)
        self.begin()

    def _start(self, node: NodeActor) -> None:
        node.start()
        if self.transaction_logs:
            count = self.settings.transaction_state_log_num_partitions
            first_id = self.world.first_producer_id + first_producer_id(node.broker.node_id, node.incarnation)
            node.step(transaction_topic(count, node.broker.node_id, first_id))
        if self.shares:
            partitions = self.settings.share_coordinator_state_topic_num_partitions
            node.step(state_topic(partitions, self._next_topics_version()))

    def _next_topics_version(self) -> int:
        self._topics_version += 1
        return self._topics_version

    def share_state_logs(self) -> list[TopicIdPartition]:
        """The partitions of ``__share_group_state`` that are in use."""
        count = self.settings.share_coordinator_state_topic_num_partitions
        keys = [
            SharePartitionKey(group_id, self.log_of(TopicPartition(topic, index)).topic_id, index)
            for group_id, topics in self.shares.partitions.items()
            for topic, partitions in topics.items()
            for index in range(partitions)
        ]
        return sorted({state_log(key, count) for key in keys})

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
        if not self.changes_nodes:
            in_turn = (self.nodes[(way + number) % len(self.nodes)] for number in range(len(self.nodes)))
            return next((node for node in in_turn if node.is_up), self.nodes[0])
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
            self._make_topic(node, self.topics[name])

    def _make_topic(self, node: NodeActor, topic: TopicLog) -> None:
        """Let a node know a topic, as it is now."""
        name = topic.name
        if name in self.shares.synthetic or name in self._ids:
            topic_id = self._ids.get(name) or self.log_of(TopicPartition(name, 0)).topic_id
            node.hand_in(synthetic_topic(topic, topic_id, self._next_topics_version()))
            return
        has_letters = name in self.shares.dead_letters
        made = topic_creation(name, len(topic.partitions), name in self._written_topics, has_dead_letters=has_letters)
        self._ask(node, made, 7)

    def created_by_group(self, node: NodeActor, event: TopicCreated) -> None:
        """A node has made a topic that a group needs: its records are counted, and the other nodes know it."""
        name = event.topic
        if name in self.topics or name.startswith("__"):
            return
        self.topics[name] = log = CountedLog(name, event.partition_count, self.world.now)
        self._ids[name] = event.topic_id
        self.topics_changed_at = self.world.now
        for other in self.nodes:
            other.forget_metadata()
            if other is not node:
                self._make_topic(other, log)

    def create_counted_topic(self, name: str, partitions: int) -> None:
        """Make a topic whose records are counted, as an application's leader does."""
        self.topics[name] = CountedLog(name, partitions, self.world.now)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._make_topic(node, self.topics[name])

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions; does nothing where it has as many."""
        topic = self.topics[name]
        if topic.is_gone or partitions <= len(topic.partitions):
            return
        topic.grow(partitions, self.world.now)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._ask(node, topic_growth(name, partitions), 3)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; does nothing where it is gone."""
        topic = self.topics[name]
        if topic.is_gone:
            return
        topic.delete(self.world.now)
        self.topics_changed_at = self.world.now
        for node in self.nodes:
            self._ask(node, topic_deletion(name), 6)

    def configure_group(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Give a group settings of its own, beside those that it has."""
        self.group_settings.setdefault(group_id, {}).update(settings)
        for node in self.nodes:
            self._ask(node, group_configuration(group_id, settings), 1)

    def change_access(self, request: Request, version: int) -> None:
        """Change ACLs or quotas on all nodes; a node that starts later gets the changes in their order."""
        self.access_changes.append((request, version))
        for node in self.nodes:
            self._ask(node, request, version)

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
        for topic in self.topics.values():
            if not topic.is_gone:
                self._make_topic(node, topic)
        for group_id, settings in self.group_settings.items():
            self._ask(node, group_configuration(group_id, settings), 1)
        for request, version in self.access_changes:
            self._ask(node, request, version)
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
