"""The world: a heap of what happens next, one clock, one source of chance.

What happens at one instant happens in a fixed order: first by lane, then in the order in which it was asked for. The
lane says what kind of thing it is and whom it befalls, so that the order does not depend on how many other things were
asked for before. A request that arrives at a deadline comes before the deadline, as the coordinator's rules want it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, TypeAlias

from rejoin.journal.events.base import Event

Millis: TypeAlias = int
"""Whole milliseconds: an instant since the start of the simulation, or a length."""

Lane: TypeAlias = int
Act: TypeAlias = Callable[[Any], None]
Listener: TypeAlias = Callable[["Actor", Event, Millis], None]
EventHandlers: TypeAlias = Mapping[type, Callable[[Any, Millis], None]]

_PARTIES: Final = 1 << 24
_SLOTS: Final = 64
"""Connections that one party may have; a consumer has two to each node."""


class Order(IntEnum):
    """What comes first of all that happens at one instant."""

    CONTROL = 0
    DISK = 1
    REQUEST = 2
    NODE_TIMER = 3
    ANSWER = 4
    CONSUMER_TIMER = 5
    USER = 6


class Actor:
    """Somebody in the world whose clock may stop for a while: a node or a consumer's process."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.number = world.enlist()
        self.random = Random(world.random.getrandbits(64))
        self.paused_until: Millis = 0

    def lane(self, order: Order, slot: int = 0) -> Lane:
        """This party's place among what happens at one instant; ``slot`` tells its connections apart."""
        return (order * _PARTIES + self.number) * _SLOTS + slot

    def later(self, act: Act, argument: Any, lane: Lane) -> bool:
        """True when the party is paused: then this comes back to it when the pause is over, in its own lane."""
        if self.paused_until <= self.world.now:
            return False
        self.world.at(self.paused_until, lane, act, argument)
        return True

    def emit(self, event: Event) -> None:
        """Say an event to whoever listens."""
        world = self.world
        for hear in world.listeners:
            hear(self, event, world.now)


class World:
    """The heap and the clock. ``random`` gives every party its own stream when it is made, in the order of making."""

    __slots__ = ("_heap", "_parties", "_serial", "current", "listeners", "now", "random", "steps")

    def __init__(self, seed: int, start: Millis = 0) -> None:
        self.random = Random(seed)
        self.now: Millis = start
        self.current: tuple[Millis, Lane] = (0, 0)
        """When and in which lane the thing is that happens right now."""
        self.steps = 0
        self.listeners: list[Listener] = []
        self._heap: list[tuple[Millis, Lane, int, Act, Any]] = []
        self._serial = 0
        self._parties = 0

    def enlist(self) -> int:
        """The next party's number."""
        self._parties += 1
        return self._parties

    def at(self, when: Millis, lane: Lane, act: Act, argument: Any = None) -> None:
        """Have something happen. What is due already happens at this instant."""
        self._serial += 1
        heappush(self._heap, (max(when, self.now), lane, self._serial, act, argument))

    def control(self, when: Millis, act: Act, argument: Any = None) -> None:
        """Have something happen from outside: a fault, a deploy, a look at everything."""
        self.at(when, 0, act, argument)

    def run(self, until: Millis) -> None:
        """Let everything happen that is due by then, and stop the clock there."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            when, lane, _, act, argument = heappop(heap)
            self.now = when
            self.current = (when, lane)
            self.steps += 1
            act(argument)
        self.now = max(self.now, until)

    def __len__(self) -> int:
        return len(self._heap)
