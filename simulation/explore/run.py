"""A run whose order is chosen step by step: its state, the choices in it, and copies that go on by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from rejoin.simulation.explore.choosing import Choice, Choosing, played
from rejoin.simulation.explore.copying import copied
from rejoin.simulation.explore.form import digest_of, form_of
from rejoin.simulation.explore.kernel import BEGIN, ChoosingWorld
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.checked_simulation import CheckedSimulation
from rejoin.simulation.simulation import Simulation


class ExploredRun:
    """One run, checked. ``watch`` sees its simulation before that begins."""

    def __init__(self, scenario: Scenario, watch: Callable[[Simulation], None] | None = None) -> None:
        self.world = ChoosingWorld(BEGIN)
        self.simulation = Simulation(played(scenario), skip=False, world=self.world)
        if watch is not None:
            watch(self.simulation)
        self.choosing = Choosing(scenario, self.simulation, self.world)
        self.checked = CheckedSimulation(self.simulation, every_ms=None)
        self.simulation.begin()
        after = exploring_of(scenario).after
        if after:
            self.world.run(BEGIN + after)
        self.world.settle()

    def copy(self) -> Self:
        """A run of its own in the state of this one."""
        made: Self = copied(self)
        return made

    def choices(self) -> list[Choice]:
        """The steps that could come next, always in the same order: first those without a fault."""
        return self.choosing.choices()

    def take(self, choice: Choice) -> None:
        """Take a step, and check what must hold.

        Raises :class:`~rejoin.simulation.search.observations.Violation` where a rule is broken.
        """
        self.choosing.take(choice)
        self.checked.check_now()

    def label(self, choice: Choice) -> str:
        """A choice in words."""
        return self.choosing.label(choice)

    def is_settled(self) -> bool:
        """Whether nothing travels, and all that must hold in the end holds."""
        return not self.world.messages() and self.checked.holds_at_the_end()

    # -- the state

    def known(self) -> dict[int, str]:
        """The objects that a form names."""
        simulation = self.simulation
        known = {
            id(self): "run",
            id(self.choosing): "choosing",
            id(simulation): "simulation",
            id(self.world): "world",
            id(simulation.network): "network",
            id(simulation.cluster): "cluster",
            id(simulation.disk): "disk",
            id(simulation.actions): "actions",
            id(simulation.operator): "operator",
        }
        if self.choosing.free is not None:
            known.update(self.choosing.free.known())
        return known

    def parts(self) -> Iterator[Any]:
        """Everything that what follows may depend on."""
        simulation = self.simulation
        yield self.choosing.faults_left
        yield self.choosing.events_left
        for lane in sorted(self.world.lanes):
            yield lane
            yield from ((entry.act, entry.argument) for entry in self.world.lanes[lane])
        cluster = simulation.cluster
        for node in cluster.nodes:
            yield node.core
            yield node.paused_until
        yield [(partition, node.index) for partition, node in cluster.leaders.items()]
        yield [(name, len(topic.partitions)) for name, topic in cluster.topics.items()]
        for partition, log in simulation.disk.logs.items():
            yield partition
            yield log.state()
        for name, consumer in simulation.consumers.items():
            yield name
            yield consumer.core
            yield (consumer.wanted, consumer.stopping, consumer.closing, consumer.busy)
            yield (consumer.stuck_until, consumer.paused_until, consumer.in_hand())
        if self.choosing.free is not None:
            yield from self.choosing.free.parts()

    def form(self) -> list[Any]:
        """The canonical form of the state."""
        simulation = self.simulation
        known = self.known()
        known.update((id(node), node.name) for node in simulation.cluster.nodes)
        known.update((id(consumer), consumer.name) for consumer in simulation.consumers.values())
        return form_of(self.world.now, known, self.parts())

    def digest(self) -> bytes:
        """128 bits of the canonical form."""
        return digest_of(self.form())

    @property
    def now(self) -> Millis:
        """Virtual time since the world began, in ms."""
        return self.world.now - BEGIN
