"""The kernel of the simulation: a heap of scheduled calls, one virtual clock, one source of randomness.

Calls of one instant run in a fixed order: by lane, then in the order in which they were scheduled. A lane stands for
the kind of a call and its actor, so the order does not depend on how many other calls were scheduled before. A request
that arrives at a deadline comes before the deadline, as the coordinator's rules want it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.journal.events.base import Event

Millis: TypeAlias = int
"""Whole milliseconds: an instant since the start of the simulation, or a length."""

Lane: TypeAlias = int
Act: TypeAlias = Callable[[Any], None]
Listener: TypeAlias = Callable[["Actor", Event, Millis], None]
Deadline: TypeAlias = Callable[[], Millis | None]
"""When a core wants its next call, or none."""

EventHandlers: TypeAlias = Mapping[type, Callable[[Any, Millis], None]]

_ACTORS: Final = 1 << 24
_SLOTS: Final = 64
"""Connections that one actor may have; a consumer has two to each node."""


def merged(*tables: EventHandlers) -> EventHandlers:
    """One table of handlers; where several handle an event, they do so in the order of the tables."""
    found: dict[type, list[Callable[[Any, Millis], None]]] = {}
    for table in tables:
        for kind, handler in table.items():
            found.setdefault(kind, []).append(handler)
    return {kind: each[0] if len(each) == 1 else _in_turn(each) for kind, each in found.items()}


def _in_turn(handlers: list[Callable[[Any, Millis], None]]) -> Callable[[Any, Millis], None]:
    def handle(event: Any, now: Millis) -> None:
        for handler in handlers:
            handler(event, now)

    return handle


class SelectiveListener(NamedTuple):
    """A listener that gets the events of some classes only."""

    listener: Listener
    kinds: Iterable[type]


class Order(IntEnum):
    """The order of calls within one instant."""

    CONTROL = 0
    DISK = 1
    REQUEST = 2
    NODE_TIMER = 3
    ANSWER = 4
    CONSUMER_TIMER = 5
    USER = 6


def order_of(lane: Lane) -> Order:
    """The kind of the calls of a lane."""
    return Order(lane if lane < _SLOTS else lane // _SLOTS // _ACTORS)


def actor_of(lane: Lane) -> int:
    """The number of the actor whose calls are in a lane."""
    return lane // _SLOTS % _ACTORS


def lane_in_place(lane: Lane, number: int) -> Lane:
    """The lane that an actor of another number would have in place of this one's."""
    return lane + (number - actor_of(lane)) * _SLOTS


class Actor:
    """A node or a consumer's process, which may be paused for a while."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.client_id = name
        """The client id that it sends."""
        self.number = world.enlist()
        self.random = world.new_random()
        self.paused_until: Millis = 0

    def lane(self, order: Order, slot: int = 0) -> Lane:
        """Where this actor comes in the order of an instant; ``slot`` distinguishes its connections."""
        return (order * _ACTORS + self.number) * _SLOTS + slot

    def later(self, act: Act, argument: Any, lane: Lane) -> bool:
        """Postpone a call to the end of this actor's pause. Returns false if it is not paused."""
        if self.paused_until <= self.world.now:
            return False
        self.world.postpone(self, lane, act, argument)
        return True

    def emit(self, event: Event) -> None:
        """Give an event to all listeners."""
        world = self.world
        for listener in world.listeners_of(type(event)):
            listener(self, event, world.now)


class Timer(ABC):
    """Calls an actor when its core's deadline is over, after the actor's pause if it is paused."""

    __slots__ = ("actor", "deadline", "fire", "lane")

    def __init__(self, actor: Actor, lane: Lane, deadline: Deadline, fire: Callable[[], None]) -> None:
        self.lane = lane
        self.actor = actor
        self.deadline = deadline
        self.fire = fire

    @abstractmethod
    def reset(self) -> None:
        """Forget the call that is queued."""

    @abstractmethod
    def update(self) -> None:
        """Queue a call if the core has an earlier deadline now."""


class CoreTimer(Timer):
    """A timer with a call on the heap.

    A deadline that moves to a later instant leaves its call on the heap; when that call runs, the deadline is asked
    again. Only a deadline that moves to an earlier instant needs another call.
    """

    __slots__ = ("_queued_at",)

    def __init__(self, actor: Actor, lane: Lane, deadline: Deadline, fire: Callable[[], None]) -> None:
        super().__init__(actor, lane, deadline, fire)
        self._queued_at: Millis | None = None

    def reset(self) -> None:
        self._queued_at = None

    def update(self) -> None:
        due = self.deadline()
        if due is not None and (self._queued_at is None or due < self._queued_at):
            self._queue(max(due, self.actor.world.now))

    def _queue(self, at: Millis) -> None:
        self._queued_at = at
        self.actor.world.at(at, self.lane, self._on_due, at)

    def _on_due(self, at: Millis) -> None:
        if at != self._queued_at:
            return
        actor = self.actor
        if actor.paused_until > actor.world.now:
            self._queue(actor.paused_until)
            return
        self._queued_at = None
        due = self.deadline()
        if due is not None and due <= actor.world.now:
            self.fire()
        else:
            self.update()


class World:
    """The heap and the clock. ``random`` seeds the random numbers of each actor when it is made."""

    __slots__ = (
        *("_actors", "_by_kind", "_heap", "_listeners", "_serial"),
        *("current", "first_producer_id", "first_request", "now", "random", "steps"),
    )

    def __init__(self, seed: int, start: Millis = 0) -> None:
        self.random = Random(seed)
        self.now: Millis = start
        self.current: tuple[Millis, Lane] = (0, 0)
        """Instant and lane of the call that runs right now."""
        self.steps = 0
        self.first_request = 0
        """Where clients begin to number their requests."""
        self.first_producer_id = 0
        """A number below all producer ids."""
        self._listeners: list[tuple[Listener, frozenset[type] | None]] = []
        self._by_kind: dict[type, tuple[Listener, ...]] = {}
        self._heap: list[tuple[Millis, Lane, int, Act, Any]] = []
        self._serial = 0
        self._actors = 0

    def listen(self, listener: Listener, kinds: Iterable[type] | None = None) -> None:
        """Call a listener with every event from now on, or only with those of some classes."""
        self._listeners.append((listener, None if kinds is None else frozenset(kinds)))
        self._by_kind.clear()

    def listeners_of(self, kind: type) -> tuple[Listener, ...]:
        """The listeners that get events of a class, in the order in which they were added."""
        found = self._by_kind.get(kind)
        if found is None:
            found = tuple(listener for listener, kinds in self._listeners if kinds is None or kind in kinds)
            self._by_kind[kind] = found
        return found

    def new_random(self) -> Random:
        """Random numbers of an actor's own, seeded by ``random``."""
        return Random(self.random.getrandbits(64))

    def new_timer(self, actor: Actor, lane: Lane, deadline: Deadline, fire: Callable[[], None]) -> Timer:
        """A timer of a core that an actor drives."""
        return CoreTimer(actor, lane, deadline, fire)

    def enlist(self) -> int:
        """The number of the next actor."""
        self._actors += 1
        return self._actors

    def postpone(self, actor: Actor, lane: Lane, act: Act, argument: Any) -> None:
        """Queue a call for the end of an actor's pause."""
        self.at(actor.paused_until, lane, act, argument)

    def at(self, when: Millis, lane: Lane, act: Act, argument: Any = None) -> None:
        """Schedule a call. One that is overdue runs at this instant."""
        self._serial += 1
        heappush(self._heap, (max(when, self.now), lane, self._serial, act, argument))

    def control(self, when: Millis, act: Act, argument: Any = None) -> None:
        """Schedule a call from outside: a fault, a deploy, a check of everything."""
        self.at(when, 0, act, argument)

    def is_past(self, when: Millis, lane: Lane) -> bool:
        """Whether what is due then and in this lane has happened already."""
        return (when, lane) < self.current

    def run(self, until: Millis) -> None:
        """Run all calls that are due by then, and stop the clock there."""
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
