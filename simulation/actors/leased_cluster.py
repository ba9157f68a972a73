"""Leadership by leases: the very machine that shares the offsets partitions among the service's nodes.

Each process of a node has one, and all have a store of leases between them, which they reach over a network of their
own and which is also where the offsets log is kept. So a node that stands still, or cannot reach the store, loses what
it leads as it does in the service: it gives up by its own clock, another takes over when the lease has run out, and
what was under way from before is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import ClusterSeen, Elected, Resigned
from rejoin.coordinator.leadership.leases import (
    Beat,
    GiveBack,
    Happening,
    Lead,
    Leases,
    Nudge,
    Request,
    Resign,
    StopLeading,
    Take,
    Taken,
    Tick,
    Unreachable,
)
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster, NodeActor
from rejoin.simulation.actors.lease_store import MemoryLeaseStore
from rejoin.simulation.disk import Disk
from rejoin.simulation.world import Millis, Order, World

_SLOWEST_MS: Final = 5
"""How long a request to the store, or its answer, is on its way at most."""
_PATIENCE_PARTS: Final = 3
"""A node waits for the store's answer for this part of a lease."""


@dataclass(slots=True)
class _StorePath:
    """A node's way to the store, and what waits for it to be open, in order."""

    cuts: int = 0
    waiting: deque[Callable[[], None]] = field(default_factory=deque)


class LeaseHolder:
    """The leases of one life of a node."""

    def __init__(self, cluster: LeasedCluster, node: NodeActor) -> None:
        self.cluster = cluster
        self.node = node
        self.life = node.life
        self.incarnation = f"{node.name}/{node.life}"
        self.leases = Leases(node.broker.node_id, self.incarnation, cluster.store.partitions, cluster.lease_ms)
        self._request = 0
        self._told: ClusterSeen | None = None
        self._rings_at: Millis | None = None

    @property
    def is_over(self) -> bool:
        """Whether the process it belonged to is gone."""
        return self.life != self.node.life

    def hand_in(self, what: Happening, request: int | None = None) -> None:
        """Take something in when the clock of the node goes; the end of a request only if nothing has ended it."""
        if self.is_over or self.node.later(self._late, (what, request), Order.CONTROL.value):
            return
        if request is not None:
            if request != self._request:
                return
            self._request += 1
        leases = self.leases
        for effect in leases.step(what, self.cluster.world.now):
            match effect:
                case Beat() | Take() | GiveBack():
                    self._ask(effect)
                case Lead():
                    self.node.hand_in(Elected(effect.partition, effect.epoch))
                case StopLeading():
                    self.node.hand_in(Resigned(effect.partition))
                case _:
                    pass
        told = leases.known(self.node.broker, leases.view)
        if leases.view.nodes and told != self._told:
            self._told = told
            self.node.hand_in(told)
        self._set_alarm()

    def look(self) -> None:
        """Give up what is not led by right any more. A node looks before everything that it takes in."""
        valid_until = self.leases.valid_until()
        if valid_until is not None and self.cluster.world.now >= valid_until:
            self.hand_in(Tick())

    def _late(self, what: tuple[Happening, int | None]) -> None:
        self.hand_in(*what)

    def _set_alarm(self) -> None:
        due = self.leases.next_deadline()
        if due is not None:
            world = self.cluster.world
            at = max(due, world.now + 1)
            if self._rings_at is None or self._rings_at <= world.now or at < self._rings_at:
                self._rings_at = at
                world.control(at, self._ring, at)

    def _ring(self, at: Millis) -> None:
        if at == self._rings_at:
            self._rings_at = None
            self.hand_in(Tick())

    def _ask(self, request: Request) -> None:
        cluster, world, number = self.cluster, self.cluster.world, self._request
        patience = max(1, cluster.lease_ms // _PATIENCE_PARTS)
        world.control(world.now + patience, self._late, (Unreachable(), number))
        if cluster.reaches_store(self.node):
            # What a process has sent before it died is carried out all the same.
            world.control(world.now + cluster.draw_delay(), self._arrive, (request, number))

    def _arrive(self, what: tuple[Request, int]) -> None:
        request, number = what
        cluster = self.cluster
        if not cluster.reaches_store(self.node):
            return
        answer = cluster.carry_out(request, self)
        cluster.world.control(cluster.world.now + cluster.draw_delay(), self._answered, (answer, number))

    def _answered(self, what: tuple[Happening, int]) -> None:
        if self.cluster.reaches_store(self.node):
            self._late(what)


class LeasedCluster(Cluster):
    """Nodes that lead what they have a lease for. ``lease_ms`` is how long one lasts."""

    def __init__(
        self, world: World, disk: Disk, nodes: int, settings: Settings, gossip_ms: Millis, lease_ms: Millis
    ) -> None:
        super().__init__(world, disk, nodes, settings, notice_ms=0, gossip_ms=gossip_ms)
        self.lease_ms = lease_ms
        self.store = MemoryLeaseStore(
            [offsets_partition(index) for index in range(settings.offsets_topic_num_partitions)],
            lease_ms,
            lambda node_id: self.nodes[node_id - 1].broker,
        )
        self._paths_to_store = {node: _StorePath() for node in self.nodes}

    # -- who leads

    def leader_of(self, group_id: str) -> NodeActor | None:
        node_id = self.store.leader(self.partition_of(group_id), self.world.now)
        return None if node_id is None else self.nodes[node_id - 1]

    def begin(self) -> None:
        for node in self.nodes:
            self._take_part(node)

    def crash(self, node: NodeActor) -> None:
        node.crash()
        self._paths_to_store[node].waiting.clear()

    def come_back(self, node: NodeActor) -> None:
        self._take_part(node)

    def move(self, partition: TopicPartition, zombie_ms: Millis) -> None:
        """Whoever leads gives it up, and another takes it."""
        node_id = self.store.leader(partition, self.world.now)
        if node_id is not None and (tenure := self.nodes[node_id - 1].tenure) is not None:
            tenure.hand_in(Resign(partition))

    def _take_part(self, node: NodeActor) -> None:
        node.step(ClusterSeen((node.broker,), {}))
        node.tenure = LeaseHolder(self, node)
        node.tenure.hand_in(Tick())

    # -- the store

    def draw_delay(self) -> Millis:
        return self.random.randint(1, _SLOWEST_MS)

    def reaches_store(self, node: NodeActor) -> bool:
        return not self._paths_to_store[node].cuts

    def carry_out(self, request: Request, by: LeaseHolder) -> Happening:
        """Do in the store what a node wants done there, and let the others know that something has changed."""
        answer = self.store.carry_out(request, by.node.broker.node_id, by.incarnation, self.world.now)
        if isinstance(answer, Taken):
            for partition, epoch in answer.epochs.items():
                self.disk.log(partition).epoch = epoch
        if not isinstance(request, Beat):
            for node in self.nodes:
                if node.tenure is not None and self.reaches_store(node):
                    delay = self.random.randint(1, max(1, self.gossip_ms))
                    self.world.control(self.world.now + delay, node.tenure.hand_in, Nudge())
        return answer

    def cut_off(self, nodes: list[NodeActor]) -> None:
        """Nodes cannot reach the store. Who is cut off twice must be healed twice."""
        for node in nodes:
            self._paths_to_store[node].cuts += 1

    def heal(self, nodes: list[NodeActor]) -> None:
        """Nodes reach the store again: what waited there goes on its way, in order."""
        for node in nodes:
            line = self._paths_to_store[node]
            line.cuts -= 1
            while not line.cuts and line.waiting:
                line.waiting.popleft()()

    def at_store(self, node: NodeActor, act: Callable[[], None]) -> None:
        line = self._paths_to_store[node]
        if line.cuts:
            line.waiting.append(act)
        else:
            act()
