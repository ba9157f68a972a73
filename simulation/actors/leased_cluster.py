"""Leadership by leases: the state machine that shares the offsets partitions among the service's nodes.

Each process of a node has one. They share a store of leases, which also keeps the offsets log and which they reach over
a network of their own. A node that is paused, or cannot reach the store, loses what it leads as in the service: it
resigns by its own clock, another takes over when the lease has expired, and appends of the old epoch are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import ClusterSeen, Elected, Resigned
from rejoin.coordinator.leadership.leases import (
    Acquire,
    AcquireResult,
    Lead,
    LeaseInput,
    Leases,
    Release,
    Renew,
    Request,
    Resign,
    StopLeading,
    StoreChanged,
    Tick,
    Unreachable,
)
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.lease_store import MemoryLeaseStore
from rejoin.simulation.actors.node import NodeActor
from rejoin.simulation.disk import Disk
from rejoin.simulation.kernel import Millis, Order, World

_SLOWEST_MS: Final = 5
"""The longest time that a request to the store, or its response, is in flight."""
_PATIENCE_PARTS: Final = 3
"""A node waits for the store's response for this part of a lease."""


@dataclass(slots=True)
class _StorePath:
    """A node's connection to the store, and what waits for it, in order. It is open when there are no cuts."""

    cuts: int = 0
    queued: deque[Callable[[], None]] = field(default_factory=deque)


class NodeLeases:
    """The leases of one incarnation of a node."""

    def __init__(self, cluster: LeasedCluster, node: NodeActor) -> None:
        self.cluster = cluster
        self.node = node
        self.process = node.incarnation
        self.incarnation = f"{node.name}/{node.incarnation}"
        self.leases = Leases(node.broker.node_id, self.incarnation, cluster.store.partitions, cluster.lease_ms)
        self._request = 0
        self._last_seen: ClusterSeen | None = None
        self._timer_at: Millis | None = None

    @property
    def is_over(self) -> bool:
        """Whether the process that it belonged to has ended."""
        return self.process != self.node.incarnation

    def hand_in(self, what: LeaseInput, request: int | None = None) -> None:
        """Take an input, after the pause if the node is paused; the end of a request only once."""
        if self.is_over or self.node.later(self._late, (what, request), Order.CONTROL.value):
            return
        if request is not None:
            if request != self._request:
                return
            self._request += 1
        leases = self.leases
        for effect in leases.step(what, self.cluster.world.now):
            match effect:
                case Renew() | Acquire() | Release():
                    self._ask(effect)
                case Lead():
                    self.node.hand_in(Elected(effect.partition, effect.epoch))
                case StopLeading():
                    self.node.hand_in(Resigned(effect.partition))
                case _:
                    pass
        # What a node knows of the others ages while it cannot ask: their leases expire in its view as well.
        seen = leases.cluster(self.node.broker, leases.view, leases.view_age_ms(self.cluster.world.now))
        if leases.view.nodes and seen != self._last_seen:
            self._last_seen = seen
            self.node.hand_in(seen)
        self._set_timer()

    def check_expiry(self) -> None:
        """Resign from everything if the leases have expired. A node checks before each input."""
        valid_until = self.leases.valid_until()
        if valid_until is not None and self.cluster.world.now >= valid_until:
            self.hand_in(Tick())

    def _late(self, what: tuple[LeaseInput, int | None]) -> None:
        self.hand_in(*what)

    def _set_timer(self) -> None:
        world, leases = self.cluster.world, self.leases
        dues = [leases.next_deadline(), None if leases.left else leases.next_expiry(world.now)]
        due = min((each for each in dues if each is not None), default=None)
        if due is not None:
            at = max(due, world.now + 1)
            if self._timer_at is None or self._timer_at <= world.now or at < self._timer_at:
                self._timer_at = at
                world.control(at, self._on_timer, at)

    def _on_timer(self, at: Millis) -> None:
        if at == self._timer_at:
            self._timer_at = None
            self.hand_in(Tick())

    def _ask(self, request: Request) -> None:
        cluster, world, number = self.cluster, self.cluster.world, self._request
        patience = max(1, cluster.lease_ms // _PATIENCE_PARTS)
        world.control(world.now + patience, self._late, (Unreachable(), number))
        if cluster.reaches_store(self.node):
            # Requests that a process sent before it crashed are carried out all the same.
            world.control(world.now + cluster.draw_delay(), self._arrive, (request, number))

    def _arrive(self, what: tuple[Request, int]) -> None:
        request, number = what
        cluster = self.cluster
        if not cluster.reaches_store(self.node):
            return
        answer = cluster.carry_out(request, self)
        cluster.world.control(cluster.world.now + cluster.draw_delay(), self._answered, (answer, number))

    def _answered(self, what: tuple[LeaseInput, int]) -> None:
        if self.cluster.reaches_store(self.node):
            self._late(what)


class LeasedCluster(Cluster):
    """Nodes that lead the partitions they hold leases of. A lease lasts ``lease_ms``."""

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

    # -- leadership

    def leader_of(self, group_id: str) -> NodeActor | None:
        node_id = self.store.leader(self.partition_of(group_id), self.world.now)
        return None if node_id is None else self.nodes[node_id - 1]

    def begin(self) -> None:
        for node in self.nodes:
            self._join(node)

    def crash(self, node: NodeActor) -> None:
        node.crash()
        self._paths_to_store[node].queued.clear()

    def rejoin(self, node: NodeActor) -> None:
        self._join(node)

    def move(self, partition: TopicPartition, zombie_ms: Millis) -> None:
        """The leader resigns, and another node takes over."""
        node_id = self.store.leader(partition, self.world.now)
        if node_id is not None and (lease_holder := self.nodes[node_id - 1].lease_holder) is not None:
            lease_holder.hand_in(Resign(partition))

    def _join(self, node: NodeActor) -> None:
        node.step(ClusterSeen((node.broker,), {}))
        node.lease_holder = NodeLeases(self, node)
        node.lease_holder.hand_in(Tick())

    # -- the store

    def draw_delay(self) -> Millis:
        return self.random.randint(1, _SLOWEST_MS)

    def reaches_store(self, node: NodeActor) -> bool:
        return not self._paths_to_store[node].cuts

    def carry_out(self, request: Request, by: NodeLeases) -> LeaseInput:
        """Carry out a node's request in the store, and notify the other nodes if it changed something."""
        answer = self.store.carry_out(request, by.node.broker.node_id, by.incarnation, self.world.now)
        if isinstance(answer, AcquireResult):
            for partition, epoch in answer.epochs.items():
                self.disk.log(partition).epoch = epoch
        if not isinstance(request, Renew):
            for node in self.nodes:
                if node.lease_holder is not None and self.reaches_store(node):
                    delay = self.random.randint(1, max(1, self.gossip_ms))
                    self.world.control(self.world.now + delay, node.lease_holder.hand_in, StoreChanged())
        return answer

    def cut_off(self, nodes: list[NodeActor]) -> None:
        """Nodes cannot reach the store. A node that is cut off twice must be healed twice."""
        for node in nodes:
            self._paths_to_store[node].cuts += 1

    def heal(self, nodes: list[NodeActor]) -> None:
        """Nodes reach the store again; what was queued goes out, in order."""
        for node in nodes:
            path = self._paths_to_store[node]
            path.cuts -= 1
            while not path.cuts and path.queued:
                path.queued.popleft()()

    def at_store(self, node: NodeActor, act: Callable[[], None]) -> None:
        path = self._paths_to_store[node]
        if path.cuts:
            path.queued.append(act)
        else:
            act()
