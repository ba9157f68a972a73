"""Sleep sets: of steps whose order makes no difference one order is taken, and every state is still met.

A step sleeps in a state if another path leads to where it leads: one of the same length, on which it came earlier. It
wakes when a step is taken that it depends on, and when its state is met again by a path on which it is awake.

Two arrivals are independent if they are of messages of two clients and at least one is an answer: that changes nothing
but its client. Arrivals that make an id are not, since names sort by the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from rejoin.simulation.explore.choosing import Choice, Kind
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.kernel import Order, actor_of, order_of
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.share_groups import share_groups

Sleep: TypeAlias = frozenset[Choice]

AWAKE: Final[Sleep] = frozenset()


class CannotBeReduced(ValueError):
    """In a world of this kind clients share more than their nodes."""


def check_reducible(scenario: Scenario) -> None:
    """Refuse worlds in which clients see each other elsewhere than at a node."""
    shared = scenario.written_topics or share_groups(scenario) or exploring_of(scenario).free is not None
    if shared or any(group.streams is not None for group in scenario.groups.values()):
        raise CannotBeReduced("only worlds of classic and consumer groups without records can be reduced")


class Sleepers:
    """Which steps sleep in which state, and which have to be taken from a state that was gone on from already."""

    def __init__(self) -> None:
        self._asleep: dict[int, Sleep] = {}
        self._again: dict[int, Sleep] = {}
        self._newest = -1
        """The state with the largest number that was gone on from."""

    def met(self, state: int, sleep: Sleep) -> None:
        """A state is met for the first time."""
        if sleep:
            self._asleep[state] = sleep

    def met_again(self, state: int, sleep: Sleep) -> bool:
        """A state is met once more. Returns whether it has to be gone on from again."""
        before = self._asleep.get(state, AWAKE)
        awake = before - sleep
        if not awake:
            return False
        self._asleep[state] = before & sleep
        if state > self._newest:
            return False
        is_new = state not in self._again
        self._again[state] = self._again.get(state, AWAKE) | awake
        return is_new

    def to_take(self, state: int, choices: Sequence[Choice]) -> tuple[list[Choice], list[Choice]]:
        """The steps to be taken now from a state, and those that sleep there."""
        again = self._again.pop(state, None)
        self._newest = max(self._newest, state)
        asleep = self._asleep.get(state, AWAKE)
        if again is None:
            return [each for each in choices if each not in asleep], [each for each in choices if each in asleep]
        return [each for each in choices if each in again], [each for each in choices if each in asleep]


def sleep_after(taken: Choice, quiet: Iterable[Choice]) -> Sleep:
    """Steps that sleep after one that made no id: of ``quiet`` steps, which sleep already or made none either."""
    return frozenset(each for each in quiet if _are_independent(taken, each))


def _are_independent(one: Choice, other: Choice) -> bool:
    if one.kind is not Kind.ARRIVE or other.kind is not Kind.ARRIVE:
        return False
    orders = {order_of(one.where), order_of(other.where)}
    return (
        Order.ANSWER in orders
        and orders <= {Order.ANSWER, Order.REQUEST}
        and actor_of(one.where) != actor_of(other.where)
    )
