"""A kernel that leaves the order open: it offers the steps that could come next.

Calls that the ordinary kernel orders by time and lane are choices here. Messages of one connection keep their order;
which connection comes first is open. The clock stands still while messages travel, and goes on to the earliest timer;
only a *slow* step lets a timer overtake messages. Some calls are no choices, since nothing else can see when they
happen: the user's code of a process, and what the operator has scheduled for this instant. They run at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, NamedTuple

from rejoin.simulation.kernel import Act, Actor, Deadline, Lane, Millis, Order, Timer, World, order_of

BEGIN: Final[Millis] = 1_600_000_000_000
"""The clock's first instant: larger than any number in a state that is no instant."""

END: Final[Millis] = BEGIN + 10**10
"""The clock stays before it."""

FIRST_REQUEST: Final = 10**15
"""Numbers of requests begin here, so that they are known from other numbers."""

FIRST_PRODUCER: Final = 10**16
"""Producer ids begin here, for the same reason."""

_URGENT: Final = (Order.CONTROL, Order.USER)
MESSAGES: Final = (Order.REQUEST, Order.ANSWER, Order.DISK)


class ScheduledCall(NamedTuple):
    """A call that is to be made: not before ``when`` if it is no message."""

    when: Millis
    act: Act
    argument: Any


class Steady(Random):
    """Numbers that depend on nothing: each id is a new one, every other number is the middle of its range."""

    def __init__(self, world: ChoosingWorld) -> None:
        super().__init__(0)
        self.world = world

    def random(self) -> float:
        """The middle of [0, 1)."""
        return 0.5

    def getrandbits(self, k: int, /) -> int:
        """The number of the next id."""
        self.world.ids += 1
        return self.world.ids

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """The first number of the range."""
        return 0 if stop is None else start


class ChoosingTimer(Timer):
    """The timer of a core, which is asked for its deadline when it matters."""

    def __init__(self, actor: Actor, lane: Lane, deadline: Deadline, fire: Callable[[], None]) -> None:
        super().__init__(actor, lane, deadline, fire)
        world = actor.world
        assert isinstance(world, ChoosingWorld), "a choosing timer belongs to a choosing world"
        world.timers[lane] = self

    def due(self) -> Millis | None:
        """The instant at which it is due, or none; not before the end of its actor's pause."""
        deadline = self.deadline()
        return None if deadline is None else max(deadline, self.actor.paused_until)

    def reset(self) -> None:
        """Nothing is queued."""

    def update(self) -> None:
        """Nothing is queued."""


class ChoosingWorld(World):
    """The kernel of an explored run."""

    __slots__ = ("begins", "ids", "lanes", "timers")

    def __init__(self, begins: Millis = 0) -> None:
        super().__init__(0, begins)
        self.begins = begins
        self.random = Steady(self)
        self.first_request = FIRST_REQUEST
        self.first_producer_id = FIRST_PRODUCER
        self.lanes: dict[Lane, deque[ScheduledCall]] = {}
        self.timers: dict[Lane, ChoosingTimer] = {}
        self.ids = 0
        """How many ids have been made."""

    def new_random(self) -> Random:
        return self.random

    def new_timer(self, actor: Actor, lane: Lane, deadline: Deadline, fire: Callable[[], None]) -> Timer:
        return ChoosingTimer(actor, lane, deadline, fire)

    def at(self, when: Millis, lane: Lane, act: Act, argument: Any = None) -> None:
        self.lanes.setdefault(lane, deque()).append(ScheduledCall(max(when, self.now), act, argument))

    def postpone(self, actor: Actor, lane: Lane, act: Act, argument: Any) -> None:
        """Keep a call in a lane that is no message's, or it would come up again at once."""
        self.at(actor.paused_until, actor.lane(Order.CONTROL), act, argument)

    def __len__(self) -> int:
        return sum(len(entries) for entries in self.lanes.values())

    # -- what could come next

    def messages(self) -> list[Lane]:
        """Lanes with a message whose turn it could be: of requests, of answers, of ends of appends."""
        return sorted(lane for lane in self.lanes if order_of(lane) in MESSAGES)

    def timed(self) -> tuple[Millis, list[Lane]] | None:
        """The earliest instant at which something is due by time, and its lanes; none where nothing is."""
        due: dict[Millis, list[Lane]] = {}
        for lane, timer in self.timers.items():
            at = timer.due()
            if at is not None:
                due.setdefault(max(at, self.now), []).append(lane)
        for lane, entries in self.lanes.items():
            if order_of(lane) not in MESSAGES:
                at = min(entry.when for entry in entries)
                due.setdefault(max(at, self.now), []).append(lane)
        if not due:
            return None
        first = min(due)
        return first, sorted(set(due[first]))

    # -- taking a step

    def take(self, lane: Lane) -> None:
        """Let the first message of a lane arrive, now."""
        self._run(lane, self._pop(lane, 0))

    def drop(self, lane: Lane) -> ScheduledCall:
        """Lose the first message of a lane."""
        return self._pop(lane, 0)

    def fire(self, lane: Lane, at: Millis) -> None:
        """Let the clock go on to an instant, and do what is due there in a lane."""
        self.now = max(self.now, at)
        timer = self.timers.get(lane)
        if timer is not None and (due := timer.due()) is not None and due <= self.now:
            self.current = (self.now, lane)
            self.steps += 1
            timer.fire()
            return
        entries = self.lanes.get(lane, ())
        index = next((index for index, entry in enumerate(entries) if entry.when <= self.now), None)
        if index is not None:
            self._run(lane, self._pop(lane, index))

    def settle(self) -> None:
        """Run what is no choice: the user's code, the operator's schedule, and clients' timers that are due."""
        while (lane := next(self._urgent(), None)) is not None:
            self.fire(lane, self.now)

    def _urgent(self) -> Iterator[Lane]:
        for lane in sorted(self.lanes):
            if order_of(lane) in _URGENT and any(entry.when <= self.now for entry in self.lanes[lane]):
                yield lane
        for lane in sorted(self.timers):
            if order_of(lane) is Order.CONSUMER_TIMER:
                due = self.timers[lane].due()
                if due is not None and due <= self.now:
                    yield lane

    def _pop(self, lane: Lane, index: int) -> ScheduledCall:
        entries = self.lanes[lane]
        entry = entries[index]
        del entries[index]
        if not entries:
            del self.lanes[lane]
        return entry

    def _run(self, lane: Lane, entry: ScheduledCall) -> None:
        self.current = (self.now, lane)
        self.steps += 1
        entry.act(entry.argument)

    def run(self, until: Millis) -> None:
        """Run in the ordinary order: messages in that of their lanes, then what is due by time."""
        while True:
            self.settle()
            lanes = self.messages()
            if lanes:
                self.take(lanes[0])
                continue
            timed = self.timed()
            if timed is None or timed[0] > until:
                self.now = max(self.now, until)
                return
            self.fire(timed[1][0], timed[0])
