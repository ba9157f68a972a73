"""A run whose order is chosen step by step: its state, the choices in it, and what each of them does."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple, Self

from rejoin.client.core.inputs import Failure
from rejoin.protocol.errors import ErrorCode
from rejoin.simulation.explore.copying import copied
from rejoin.simulation.explore.form import digest_of, form_of
from rejoin.simulation.explore.kernel import BEGIN, ChoosingWorld
from rejoin.simulation.explore.world import ExploredScenario
from rejoin.simulation.kernel import Lane, Millis, Order, order_of
from rejoin.simulation.network import Exchange
from rejoin.simulation.search.checked_simulation import CheckedSimulation
from rejoin.simulation.simulation import Simulation

NEVER_LOOKS: Final = {"offsets.retention.check.interval.ms": 2_147_483_647}
"""Settings of nodes whose timers would keep equal states apart."""


class Kind(IntEnum):
    """What a choice does."""

    ARRIVE = 0
    """The first message of a lane arrives, or its first append ends."""
    FIRE = 1
    """What is due in a lane happens; the clock goes on to it."""
    LOSE = 2
    """The first message of a lane is lost with its connection."""
    FAIL = 3
    """The first append of a lane fails."""
    OVERTAKE = 4
    """As FIRE, while messages travel."""
    ACT = 5
    """An event of the scenario happens."""


FAULTS: Final = (Kind.LOSE, Kind.FAIL, Kind.OVERTAKE, Kind.ACT)


class Choice(NamedTuple):
    """A step that could come next. ``where``: a lane, or the number of an event."""

    kind: Kind
    where: int


class ExploredRun:
    """One run. Copies of it go on by themselves."""

    def __init__(self, scenario: ExploredScenario) -> None:
        self.scenario = scenario
        self.explore = scenario.explore
        self.world = ChoosingWorld()
        coordinator = scenario.coordinator
        settings = {**NEVER_LOOKS, **coordinator.settings}
        played = scenario.model_copy(
            update={"events": (), "coordinator": coordinator.model_copy(update={"settings": settings})}
        )
        self.simulation = Simulation(played, skip=False, world=self.world)
        self.simulation.network.times_out = False
        if not self.explore.appends:
            self.simulation.disk.draw = None
        self.checked = CheckedSimulation(self.simulation, every_ms=None)
        self.faults_left = self.explore.faults
        self.events_left = tuple(range(len(scenario.events)))
        self.simulation.begin()
        if self.explore.after:
            self.world.run(BEGIN + self.explore.after)
        self.world.settle()

    def copy(self) -> Self:
        """A run of its own in the state of this one."""
        made: Self = copied(self)
        return made

    # -- choices

    def choices(self) -> list[Choice]:
        """The steps that could come next, always in the same order: first those without a fault."""
        world, explore = self.world, self.explore
        lanes, timed = world.messages(), world.timed()
        found = [Choice(Kind.ARRIVE, lane) for lane in lanes]
        if timed is not None and (not lanes or timed[0] <= world.now):
            found += [Choice(Kind.FIRE, lane) for lane in timed[1]]
        if not self.faults_left:
            return found
        for lane in lanes:
            order = order_of(lane)
            if order is Order.DISK:
                if explore.failing_appends:
                    found.append(Choice(Kind.FAIL, lane))
            elif explore.lost_requests if order is Order.REQUEST else explore.lost_answers:
                found.append(Choice(Kind.LOSE, lane))
        if explore.slow and lanes and timed is not None and timed[0] > world.now:
            found += [Choice(Kind.OVERTAKE, lane) for lane in timed[1]]
        found += [
            Choice(Kind.ACT, number)
            for number in self.events_left
            if world.now - BEGIN >= self.scenario.events[number].at
        ]
        return found

    def take(self, choice: Choice) -> None:
        """Take a step. Raises :class:`~rejoin.simulation.search.observations.Violation` where a rule is broken."""
        if choice.kind in FAULTS:
            self.faults_left -= 1
        match choice.kind:
            case Kind.ARRIVE:
                self.world.take(choice.where)
            case Kind.FIRE | Kind.OVERTAKE:
                timed = self.world.timed()
                assert timed is not None, "something was due"
                self.world.fire(choice.where, timed[0])
            case Kind.LOSE:
                exchange: Exchange = self.world.drop(choice.where).argument
                exchange.connection.fail_all(Failure.DISCONNECT)
            case Kind.FAIL:
                self._fail(choice.where)
            case Kind.ACT:
                self.events_left = tuple(each for each in self.events_left if each != choice.where)
                self.simulation.actions.carry_out(self.scenario.events[choice.where].action)
        self.world.settle()
        self._forget_void()

    def _fail(self, lane: Lane) -> None:
        entry = self.world.drop(lane)
        wanted, stored, _ = entry.argument
        entry.act((wanted, stored, ErrorCode.NOT_ENOUGH_REPLICAS))

    def _forget_void(self) -> None:
        """Take messages of connections that are no more off their lanes: they arrive nowhere."""
        lanes = self.world.lanes
        for lane in list(lanes):
            if order_of(lane) in (Order.REQUEST, Order.ANSWER):
                for entry in list(lanes[lane]):
                    argument = entry.argument
                    if isinstance(argument, Exchange) and argument.serial != argument.connection.serial:
                        lanes[lane].remove(entry)
                if not lanes[lane]:
                    del lanes[lane]

    # -- the state

    def known(self) -> dict[int, str]:
        """The objects that a form names."""
        simulation = self.simulation
        known = {
            id(self): "run",
            id(simulation): "simulation",
            id(self.world): "world",
            id(simulation.network): "network",
            id(simulation.cluster): "cluster",
            id(simulation.disk): "disk",
            id(simulation.actions): "actions",
            id(simulation.operator): "operator",
        }
        return known

    def parts(self) -> Iterator[Any]:
        """Everything that what follows may depend on."""
        simulation = self.simulation
        yield self.faults_left
        yield self.events_left
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

    def label(self, choice: Choice) -> str:
        """A choice in words."""
        if choice.kind is Kind.ACT:
            event = self.scenario.events[choice.where]
            return f"event {choice.where}: {event.kind}"
        lane = choice.where
        if choice.kind in (Kind.FIRE, Kind.OVERTAKE):
            timer = self.world.timers.get(lane)
            who = timer.actor.name if timer is not None else order_of(lane).name.lower()
            return f"time passes: {who}" + (", while messages travel" if choice.kind is Kind.OVERTAKE else "")
        argument = self.world.lanes[lane][0].argument
        if not isinstance(argument, Exchange):
            return "an append fails" if choice.kind is Kind.FAIL else "an append ends"
        kind = type(argument.request).__name__.removesuffix("Request")
        who, node = argument.connection.ends
        what = (
            f"{who}'s {kind} to {node}"
            if order_of(lane) is Order.REQUEST
            else f"{node}'s answer to {who}'s {kind}"
        )
        return f"{what} is lost" if choice.kind is Kind.LOSE else f"{what} arrives"
