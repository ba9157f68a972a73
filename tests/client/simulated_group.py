"""A group on the product's simulator, driven step by step: one node, an instant log, 1 ms each way.

    group = SimulatedGroup(topics={"t": 6})
    group.consumer("a")
    group.run(5_000)
    group.assignments()      # {"a": [0, 1, 2, 3, 4, 5]}

A consumer polls again as soon as its poll returns and its records are processed. Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.inputs import Input
from rejoin.client.workload.processing_time import parse_processing_time
from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.views import GroupView
from rejoin.journal.events.base import Event
from rejoin.journal.events.client import (
    ConsumerEvent,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Range,
    RecordsProcessed,
)
from rejoin.journal.events.simulation import ConsumerFailed
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.consumer_process import UserCode
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.disk import Disk
from rejoin.simulation.kernel import Actor, Millis, World
from rejoin.simulation.network import Latency, Network

START = 1_700_000_000_000
POLL_MS = 1_000
CHANGES = {PartitionsAssigned: "assigned", PartitionsRevoked: "revoked", PartitionsLost: "lost"}


class SimulatedConsumer:
    """One consumer's process, and its events over all its incarnations."""

    def __init__(self, actor: ConsumerActor) -> None:
        self.actor = actor
        self.events: list[Event] = []

    @property
    def core(self) -> ConsumerCore:
        assert self.actor.core is not None, f"{self.actor.name} is down"
        return self.actor.core

    def owned(self, topic: str = "t") -> list[int]:
        return [partition for name, partition in self.core.assignment() if name == topic]

    @property
    def changes(self) -> list[str]:
        """What happened to its assignment, such as ``revoked t:0,1``."""
        return [
            " ".join([CHANGES[type(event)], *(f"{topic}:{_list(found)}" for topic, found in event.partitions.items())])
            for event in self.events
            if isinstance(event, PartitionsAssigned | PartitionsRevoked | PartitionsLost)
        ]

    @property
    def processed(self) -> list[Range]:
        return [each for event in self.events if isinstance(event, RecordsProcessed) for each in event.ranges]

    @property
    def failures(self) -> list[str]:
        """The errors that ended its process."""
        return [event.problem for event in self.events if isinstance(event, ConsumerFailed)]


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


class SimulatedGroup:
    """A node and the consumers of group ``g``. ``settings`` are the coordinator's."""

    def __init__(
        self, *, topics: Mapping[str, int] | None = None, records_per_second: float = 0, **settings: Any
    ) -> None:
        self.world = World(1, START)
        self.world.listen(self._hear)
        self.network = Network(self.world, Latency(self.world.random, lambda _: 1, 1))
        self.disk = Disk(self.world, None)
        self.cluster = Cluster(self.world, self.disk, 1, Settings(**settings), 0, 1)
        self.node = self.cluster.nodes[0]
        self.members: dict[str, SimulatedConsumer] = {}
        self.events: list[Event] = []
        self.cluster.start(["g"])
        for name, partitions in (topics if topics is not None else {"t": 6}).items():
            self.cluster.create_topic(name, partitions, records_per_second)

    def _hear(self, actor: Actor, event: Event, now: Millis) -> None:
        self.events.append(event)
        if isinstance(event, ConsumerEvent | ConsumerFailed):
            self.members[actor.name].events.append(event)

    # -- the node

    def fail_over(self, down_ms: int = 0) -> None:
        """The node crashes and comes back after ``down_ms``, with nothing but the log."""
        if self.node.is_up:
            self.cluster.crash(self.node)
            self.world.control(self.now + max(1, down_ms), lambda _: self.cluster.restart(self.node))

    def grow(self, name: str, partitions: int) -> None:
        self.cluster.grow_topic(name, partitions)

    def _view(self) -> GroupView | None:
        return None if self.node.core is None else self.node.core.describe_group("g")

    def state(self) -> str:
        view = self._view()
        return "" if view is None else view.state

    def generation(self) -> int:
        view = self._view()
        assert view is not None, "the group is unknown"
        return view.generation

    # -- consumers

    def consumer(
        self,
        name: str,
        *,
        assignors: tuple[str, ...] = ("range",),
        processing: str = "0ms",
        **settings: Any,
    ) -> SimulatedConsumer:
        """Start a consumer that subscribes to ``t``, or start it again with the settings it had."""
        if name not in self.members:
            settings |= {"group_id": "g", "auto_offset_reset": "earliest", "partition_assignment_strategy": assignors}
            config = ConsumerConfig(client_id=name, **settings)
            code = UserCode(("t",), "auto", parse_processing_time(processing), POLL_MS)
            actor = ConsumerActor(self.world, self.network, self.cluster, config, code, name)
            self.members[name] = SimulatedConsumer(actor)
        self.members[name].actor.start()
        return self.members[name]

    def kill(self, name: str) -> None:
        """As kill -9 does."""
        self.members[name].actor.crash()

    def pause(self, name: str, ms: int) -> None:
        """As SIGSTOP, and SIGCONT after ``ms``."""
        self.members[name].actor.pause(self.now + ms)

    def close(self, name: str) -> None:
        self.members[name].actor.stop()

    def step(self, name: str, what: Input) -> None:
        self.members[name].actor.step(what)

    def running(self) -> dict[str, SimulatedConsumer]:
        return {name: member for name, member in self.members.items() if member.actor.is_up}

    def assignments(self) -> dict[str, list[int]]:
        return {name: member.owned() for name, member in self.running().items()}

    def failures(self) -> dict[str, list[str]]:
        return {name: member.failures for name, member in self.members.items() if member.failures}

    # -- time

    @property
    def now(self) -> Millis:
        return self.world.now

    def run(self, ms: int) -> None:
        """Let so much time pass."""
        self.world.run(self.now + ms)

    def run_until_stable(self, limit_ms: int = 60_000) -> int:
        """Run until the group is Stable and every consumer has seen that; how long it took."""
        began = self.now
        while self.now - began < limit_ms:
            self.run(10)
            if self.state() == "Stable" and all(member.core.is_stable for member in self.running().values()):
                return self.now - began
        raise AssertionError(f"the group is {self.state()} after {limit_ms} ms")


def covered(assignments: Mapping[str, Sequence[int]], partitions: int) -> bool:
    """True when every partition has exactly one owner."""
    owned = sorted(partition for each in assignments.values() for partition in each)
    return owned == list(range(partitions))
