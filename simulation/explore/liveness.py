"""Liveness by reachability: from every state a way without faults leads to where what must hold in the end holds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Final

from rejoin.simulation.explore.choosing import FAULTS, Choice
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.kernel import Millis
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.observations import Violation

SLACK_MS: Final[Millis] = 60_000
MOST_AT_ONCE: Final = 100
"""After so many messages in one instant the clock goes on though others travel: a client that asks the old coordinator
again and again, without a pause, is stopped by nothing but time."""
NO_WAY: Final = "a_state_has_no_way_to_settle"


def bound_of(scenario: Scenario) -> Millis:
    """How long a world may take to settle without faults.

    A group takes a session, a rebalance, and the time that ends a restart; a transaction of a process that is gone its
    timeout; a record of a producer the time after which it fails.
    """
    longest = 0
    for group in scenario.groups.values():
        transaction = 0 if group.transform is None else group.transform.transaction_timeout
        longest = max(longest, group.session_timeout + group.max_poll_interval + group.revive + transaction)
    return max(longest, *(each.delivery_timeout for each in scenario.producers.values()), 0) + SLACK_MS


class Graph:
    """The states of an exploration by number, in the order in which they were met, and the edges without faults.

    A state takes 5 bytes and an edge 8: the edges to a state are a chain, each with the number of the one before.
    """

    def __init__(self) -> None:
        self.settled = bytearray()
        """By state: 1 where all that must hold in the end holds, and nothing travels."""
        self._last = array("I")
        """By state: the number of the last edge to it and 1, or 0."""
        self._from = array("I")
        """By edge: the state that it comes from."""
        self._earlier = array("I")
        """By edge: the number of the one before to the same state and 1, or 0."""

    def met(self, run: ExploredRun) -> None:
        """Take the next state."""
        self.add(run.is_settled())

    def add(self, is_settled: bool) -> None:
        """Take the next state, of which this is known."""
        self.settled.append(is_settled)
        self._last.append(0)

    def edge(self, before: int, choice: Choice, after: int) -> None:
        """Take an edge between two states."""
        if choice.kind not in FAULTS and before != after:
            self._from.append(before)
            self._earlier.append(self._last[after])
            self._last[after] = len(self._from)

    def stuck(self, leaves: Iterable[tuple[int, Callable[[], ExploredRun]]], bound: Millis) -> array[int]:
        """The states from which no way leads to a settled one, in the order in which they were met.

        ``leaves`` are states that were not gone on from: from each of them the ordinary order is tried, for ``bound``
        ms of virtual time.
        """
        good = bytearray(self.settled)
        for state, is_settled in enumerate(self.settled):
            if is_settled:
                self._spread(good, state)
        for state, run_of in leaves:
            if not good[state] and settles(run_of(), bound):
                good[state] = 1
                self._spread(good, state)
        return array("I", (state for state, is_good in enumerate(good) if not is_good))

    def _spread(self, good: bytearray, state: int) -> None:
        """From what leads to a good state a way leads on."""
        waiting = array("I", (state,))
        while waiting:
            edge = self._last[waiting.pop()]
            while edge:
                source = self._from[edge - 1]
                edge = self._earlier[edge - 1]
                if not good[source]:
                    good[source] = 1
                    waiting.append(source)

    def size(self) -> int:
        """Bytes of memory that are in use."""
        numbers = len(self._last) + len(self._from) + len(self._earlier)
        return len(self.settled) + numbers * self._last.itemsize


def settles(run: ExploredRun, bound: Millis) -> bool:
    """Try a run: true if it settles within ``bound`` ms of virtual time and breaks no rule. The run is used up."""
    try:
        return _settles(run, bound)
    except Violation:
        return False


def _settles(run: ExploredRun, bound: Millis) -> bool:
    """Lanes take turns, so that two members that answer each other's every message do not keep a third one waiting."""
    world = run.world
    until, turn, at_once = world.now + bound, -1, 0
    while world.now <= until:
        if run.is_settled():
            return True
        lanes, timed = world.messages(), world.timed()
        if lanes and (at_once < MOST_AT_ONCE or timed is None):
            turn = next((lane for lane in lanes if lane > turn), lanes[0])
            world.take(turn)
            at_once += 1
        elif timed is not None:
            at_once = 0
            world.fire(timed[1][0], timed[0])
        else:
            return False
        world.settle()
    return False
