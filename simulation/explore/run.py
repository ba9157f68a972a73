"""A run whose order is chosen step by step: its state, the choices in it, and copies that go on by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final, Self

from rejoin.client.core.consumer import ConsumerCore
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.actors.share.consumer import ShareConsumerActor
from rejoin.simulation.explore.canonical.form import FAR, LEAST_AGE, Inside, digest_of, form_of
from rejoin.simulation.explore.canonical.shares import MemberOf, rotation_of
from rejoin.simulation.explore.canonical.symmetry import Renaming, named_by, renamings, symmetric_groups
from rejoin.simulation.explore.choosing import Choice, Choosing, played
from rejoin.simulation.explore.copying import copied
from rejoin.simulation.explore.kernel import BEGIN, MESSAGES, ChoosingWorld
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.kernel import Actor, Millis, actor_of, order_of
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.checked_simulation import CheckedSimulation
from rejoin.simulation.simulation import Simulation

SAME: Final = Renaming({})
"""All clients keep their places."""


class ExploredRun:
    """One run, checked. ``watch`` sees its simulation before that begins.

    With ``symmetry`` equal members of a group may change places, where the world lets them.
    """

    def __init__(
        self, scenario: Scenario, watch: Callable[[Simulation], None] | None = None, *, symmetry: bool = True
    ) -> None:
        self.symmetric = symmetric_groups(scenario) if symmetry else frozenset()
        self.world = ChoosingWorld(BEGIN)
        self.metadata_age = metadata_age_of(scenario)
        self.simulation = Simulation(played(scenario), skip=False, world=self.world)
        if watch is not None:
            watch(self.simulation)
        self.choosing = Choosing(scenario, self.simulation, self.world)
        self._rotation = rotation_of(scenario)
        self.checked = CheckedSimulation(self.simulation, every_ms=None, scenario=scenario)
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
        self.checked.check_all_logs()

    def label(self, choice: Choice) -> str:
        """A choice in words."""
        return self.choosing.label(choice)

    def is_settled(self) -> bool:
        """Whether nothing travels, every transaction has ended, and all that must hold in the end holds."""
        return not self.world.messages() and self.checked.is_over()

    # -- the state

    def known(self, renaming: Renaming = SAME) -> dict[int, str]:
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
        }
        known.update((id(actor), renaming.name(actor.name)) for actor in self.actors())
        known.update(
            (id(connection), f"connection {renaming.lane(connection.request_lane)}")
            for connection in simulation.network.connections
        )
        if self.choosing.free is not None:
            known.update(self.choosing.free.known())
        return known

    def actors(self, renaming: Renaming = SAME) -> Iterator[Actor]:
        """Everything that runs by itself, always in the same order."""
        simulation = self.simulation
        yield simulation.operator
        yield from simulation.cluster.nodes
        yield from sorted(simulation.consumers.values(), key=lambda consumer: renaming.name(consumer.name))
        for producers in simulation.producers.values():
            yield from producers
        yield from simulation.readers.values()

    def parts(self, renaming: Renaming = SAME) -> Iterator[Any]:
        """Everything that what follows may depend on."""
        simulation = self.simulation
        yield self.choosing.faults_left
        yield self.choosing.events_left
        yield from self._travelling(renaming)
        for actor in self.actors(renaming):
            yield actor.name
            if isinstance(actor, ShareConsumerActor):
                yield MemberOf("" if actor.core is None else actor.core.describe().member_id)
            yield Inside(actor)
        cluster, disk = simulation.cluster, simulation.disk
        yield [(partition, node.index) for partition, node in cluster.leaders.items()]
        yield (cluster.group_settings, cluster.access_changes)
        yield list(cluster.topics.values())
        yield (disk.error, disk.slower_ms, disk.pending_appends, disk.pending_reads)
        for partition in sorted(disk.logs, key=str):
            yield partition
            yield disk.logs[partition].state()
        if self.choosing.free is not None:
            yield from self.choosing.free.parts()

    def _travelling(self, renaming: Renaming) -> Iterator[Any]:
        """Calls that wait for their turn, and the connections in use."""
        lanes, network = self.world.lanes, self.simulation.network
        for lane in sorted(lanes, key=renaming.lane):
            yield renaming.lane(lane)
            for entry in lanes[lane]:
                yield from (entry.act, entry.argument)
                if order_of(lane) not in MESSAGES:
                    yield entry.when
        yield (network.blocked, network.delays, network.lost_requests, network.lost_answers)
        for place, connection in sorted(
            ((renaming.lane(each.request_lane), each) for each in network.connections), key=itemgetter(0)
        ):
            if connection.client.names_connections:
                yield connection.serial
            if connection.waiting or connection.is_breaking or connection.undelivered:
                yield (place, connection.is_breaking, connection.undelivered)
                yield list(connection.waiting.values())

    def form(self, renaming: Renaming = SAME) -> list[Any]:
        """The canonical form of the state, with clients in the places of others."""
        known, parts = self.known(renaming), self.parts(renaming)
        return renaming.tokens(
            form_of(
                self.world.now,
                known,
                parts,
                by_appearance=bool(self.symmetric),
                metadata_age=self.metadata_age,
                rotation=self._rotation,
            )
        )

    def digest(self) -> bytes:
        """128 bits of the canonical form: of the least one, where members may change places."""
        if not self.symmetric:
            return digest_of(self.form())
        return min(digest_of(self.form(renaming)) for renaming in renamings(self._equal_members(), self._sign))

    def _equal_members(self) -> list[list[ConsumerProcess]]:
        """Members that may change places: those that no event names that may still happen."""
        choosing = self.choosing
        named = named_by(choosing.scenario, choosing.events_left if choosing.faults_left else ())
        found: dict[str, list[ConsumerProcess]] = {}
        for consumer in self.simulation.consumers.values():
            if consumer.client_id in self.symmetric and consumer.name not in named:
                found.setdefault(consumer.client_id, []).append(consumer)
        return list(found.values())

    def _sign(self, consumer: ConsumerProcess) -> tuple[Any, ...]:
        """Something by which most members differ, whatever their names are: their ids, made one after the other."""
        core = consumer.core
        member_id = core.generation.member_id if isinstance(core, ConsumerCore) else ""
        lanes = self.world.lanes
        messages = sum(len(entries) for lane, entries in lanes.items() if actor_of(lane) == consumer.number)
        return member_id, consumer.incarnation, core is None, messages

    @property
    def now(self) -> Millis:
        """Virtual time since the world began, in ms."""
        return self.world.now - BEGIN


def metadata_age_of(scenario: Scenario) -> Millis:
    """The longest age at which a client of a world asks for metadata again, where any does."""
    groups = scenario.groups.values()
    ages = [LEAST_AGE, *(each.metadata_max_age for each in groups)]
    ages += [each.transform.metadata_max_age for each in groups if each.transform is not None]
    ages += [each.metadata_max_age for each in scenario.producers.values()]
    ages += [each.metadata_max_age for each in scenario.readers.values()]
    return max(age for age in ages if age < FAR)
