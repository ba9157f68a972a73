"""The choices in a run whose order is open, and what each of them does."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rejoin.client.core.inputs import Failure
from rejoin.coordinator.core.effects import Append
from rejoin.protocol.errors import ErrorCode
from rejoin.simulation.explore.canonical.form import FAR
from rejoin.simulation.explore.free.clients import FreeClients
from rejoin.simulation.explore.kernel import ChoosingWorld
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.kernel import Lane, Millis, Order, order_of
from rejoin.simulation.network import Exchange
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.protocols import protocols_of

if TYPE_CHECKING:
    from rejoin.simulation.simulation import Simulation

NEVER_LOOKS: Final = {
    "offsets.retention.check.interval.ms": 2_147_483_647,
    "log.retention.check.interval.ms": 2_147_483_647,
    "producer.id.expiration.check.interval.ms": 2_147_483_647,
    "share.coordinator.cold.partition.snapshot.interval.ms": 2_147_483_647,
    "share.coordinator.state.topic.prune.interval.ms": 2_147_483_647,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 2_147_483_647,
}
"""Settings of nodes whose timers would keep equal states apart."""


class Kind(IntEnum):
    """The kind of a choice, by its effect."""

    ARRIVE = 0
    """The first message of a lane arrives, or its first append ends."""
    FIRE = 1
    """The call that is due in a lane is made; the clock goes on to its instant."""
    LOSE = 2
    """The first message of a lane is lost with its connection."""
    FAIL = 3
    """The first append of a lane fails."""
    OVERTAKE = 4
    """As FIRE, while messages travel."""
    ACT = 5
    """An event of the scenario happens."""
    SEND = 6
    """A free client sends a letter, which arrives at once."""
    WAIT = 7
    """Time passes, and nothing is due yet."""


FAULTS: Final = (Kind.LOSE, Kind.FAIL, Kind.OVERTAKE, Kind.ACT)


class Choice(NamedTuple):
    """A step that could come next. ``where``: a lane, or the number of an event, of a letter, or of a wait."""

    kind: Kind
    where: int


def played(scenario: Scenario) -> Scenario:
    """The scenario that a run with an open order plays: without events, and without timers that keep states apart."""
    coordinator = scenario.coordinator
    settings = {**NEVER_LOOKS, **coordinator.settings}
    changed = coordinator.model_copy(update={"settings": settings})
    return scenario.model_copy(update={"events": (), "coordinator": changed})


def _is_append(argument: object) -> bool:
    """Whether what ends is an append, and no read."""
    return isinstance(argument, tuple) and isinstance(argument[0], Append)


class Choosing:
    """The choices of one run, and how many faults it may still have."""

    def __init__(self, scenario: Scenario, simulation: Simulation, world: ChoosingWorld) -> None:
        self.scenario = scenario
        self.explore = exploring_of(scenario)
        self.simulation = simulation
        self.world = world
        self.faults_left = self.explore.faults
        self.events_left = tuple(range(len(scenario.events)))
        self.free = None if self.explore.free is None else FreeClients(self.explore.free, simulation)
        simulation.network.times_out = False
        simulation.cluster.changes_nodes = False
        # The simulation does not know the events, which may bring members of another protocol.
        simulation.cluster.same_topic_ids |= any(
            protocols_of(scenario, group_id).keys() - {"classic"} for group_id in scenario.groups
        )
        if not self.explore.appends:
            simulation.disk.draw = None

    def choices(self) -> list[Choice]:
        """The steps that could come next, always in the same order: first those without a fault."""
        world, explore = self.world, self.explore
        lanes, timed = world.messages(), world.timed()
        if timed is not None and timed[0] > world.now + FAR:
            timed = None
        found = [] if self.free is None else self._free_choices(self.free, timed)
        found += [Choice(Kind.ARRIVE, lane) for lane in lanes]
        if timed is not None and (not lanes or timed[0] <= world.now):
            found += [Choice(Kind.FIRE, lane) for lane in timed[1]]
        if not self.faults_left:
            return found
        for lane in lanes:
            order = order_of(lane)
            if order is Order.DISK:
                if explore.failing_appends and _is_append(world.lanes[lane][0].argument):
                    found.append(Choice(Kind.FAIL, lane))
            elif explore.lost_requests if order is Order.REQUEST else explore.lost_answers:
                found.append(Choice(Kind.LOSE, lane))
        if explore.slow and lanes and timed is not None and timed[0] > world.now:
            found += [Choice(Kind.OVERTAKE, lane) for lane in timed[1]]
        found += [
            Choice(Kind.ACT, number)
            for number in self.events_left
            if world.now - world.begins >= self.scenario.events[number].at
        ]
        return found

    def _free_choices(self, free: FreeClients, timed: tuple[Millis, list[Lane]] | None) -> list[Choice]:
        waits = (
            Choice(Kind.WAIT, number)
            for number, wait in enumerate(free.free.waits)
            if timed is None or self.world.now + wait < timed[0]
        )
        return [*(Choice(Kind.SEND, number) for number in free.sendable()), *waits]

    def take(self, choice: Choice) -> None:
        """Take a step. Raises :class:`~rejoin.simulation.search.observations.Violation` where a rule is broken."""
        if choice.kind in FAULTS:
            self.faults_left -= 1
        if self.free is not None:
            self.free.begin_step()
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
            case Kind.SEND:
                assert self.free is not None, "only worlds with free clients have letters"
                self.free.send(choice.where)
            case Kind.WAIT:
                assert self.free is not None, "only worlds with free clients have waits"
                self.world.now += self.free.free.waits[choice.where]
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

    # -- words

    def label(self, choice: Choice) -> str:
        """A choice in words."""
        if choice.kind is Kind.ACT:
            event = self.scenario.events[choice.where]
            return f"event {choice.where}: {event.kind}"
        if choice.kind is Kind.SEND and self.free is not None:
            return self.free.label(choice.where)
        if choice.kind is Kind.WAIT and self.free is not None:
            return f"{self.free.free.waits[choice.where]} ms pass"
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
        what = f"{who}'s {kind} to {node}" if order_of(lane) is Order.REQUEST else f"{node}'s answer to {who}'s {kind}"
        return f"{what} is lost" if choice.kind is Kind.LOSE else f"{what} arrives"
