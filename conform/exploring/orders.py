"""Orders in which answers are released: chosen by a seed, read from a list, and shrunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from random import Random
from typing import Final, Protocol, TypeAlias

from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.validation import nearest


class Act(StrEnum):
    """A choice that is no API. The name of an API releases its oldest held answer."""

    NATURAL = "natural"
    """Release the oldest held answer, if there is one."""

    WAIT = "wait"
    """Release nothing for a while, so that the client's own timers go on."""

    RECORDS = "records"
    """Write a record to each partition."""

    JOIN = "join"
    """A second member joins the group."""

    LEAVE = "leave"
    """The second member leaves."""

    REMOVE = "remove"
    """The coordinator removes the client from the group, as the end of its session would."""

    LEADER = "leader"
    """With several brokers, another one leads the partitions of the topic."""


_SLOW_CHANGES: Final = 0.12
_SLOW_ANYWAY: Final = 0.03
_EVENT: Final = 0.12
_WAITS: Final = 0.08


class WrongOrder(ValueError):
    """A list of choices that cannot be read."""


class Chooser(Protocol):
    """Chooses what comes next."""

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        """One choice; none at the end. ``held`` are APIs of held answers, ``acts`` what else can be done now."""


class SeededChooser:
    """Chooses by a seed: at any time one API may be slow, whose answers then come after most others."""

    def __init__(self, seed: int, steps: int) -> None:
        self._random = Random(seed)
        self._left = steps
        self._slow: str | None = None

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        if not self._left:
            return None
        self._left -= 1
        random = self._random
        if held and random.random() < _SLOW_CHANGES:
            self._slow = random.choice((*held, None))
        if acts and random.random() < _EVENT:
            return random.choice(acts)
        quick = [each for each in held if each != self._slow or random.random() < _SLOW_ANYWAY]
        if not quick or random.random() < _WAITS:
            return Act.WAIT
        return random.choice(quick)


class ListedChooser:
    """Chooses what a list says."""

    def __init__(self, order: Sequence[str]) -> None:
        self._left = list(reversed(order))

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        return self._left.pop() if self._left else None


def read_order(text: str) -> list[str]:
    """A list of choices, one a line; a line with ``#`` is a comment. Raises WrongOrder."""
    order = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    known = [*Act, *BY_NAME]
    for each in order:
        if each not in known:
            raise WrongOrder(f"there is no choice {each}{nearest(each, known)}")
    if not order:
        raise WrongOrder("expected choices, one a line, such as Fetch or wait")
    return order


Fails: TypeAlias = Callable[[Sequence[str]], Awaitable[bool]]


async def shrunk(order: Sequence[str], fails: Fails, plays: int) -> list[str]:
    """The order with natural choices wherever it still fails, as far as so many plays go.

    A real client's threads and timers are its own: a play that passes once keeps the choice, though it may fail again.
    """
    found = _trimmed(order)
    length = max(1, len(found) // 2)
    while plays > 0:
        at = 0
        while at < len(found) and plays > 0:
            changed = _trimmed([*found[:at], *[Act.NATURAL] * length, *found[at + length :]])
            if changed != _trimmed(found):
                plays -= 1
                if await fails(changed):
                    found = changed
            at += length
        if length == 1:
            break
        length = max(1, length // 2)
    return found


def _trimmed(order: Sequence[str]) -> list[str]:
    """The order without natural choices at its end."""
    found = list(order)
    while found and found[-1] == Act.NATURAL:
        found.pop()
    return found
