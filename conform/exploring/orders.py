"""Orders in which answers are released: chosen by a seed, read from a list, and shrunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from random import Random
from typing import Final, Protocol, TypeAlias

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import BY_NAME
from rejoin.protocol.validation import nearest


class Act(StrEnum):
    """A choice that is no API. The name of an API releases its oldest held answer.

    Behind the name of an API may stand the name of an error, which is sent in place of the answer, or ``drop``: the
    connection is closed then.
    """

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


DROP: Final = "drop"

ERRORS: Final = {
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"),
    "SyncGroup": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "Heartbeat": ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION"),
    "OffsetFetch": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNSTABLE_OFFSET_COMMIT"),
    "OffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "ListOffsets": ("NOT_LEADER_OR_FOLLOWER",),
    "Fetch": ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR"),
    "OffsetForLeaderEpoch": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH", "TOPIC_AUTHORIZATION_FAILED"),
}
"""Errors that a seed may send in place of an answer. They end by themselves, and a client has to go on after them."""

_SLOW_CHANGES: Final = 0.12
_SLOW_ANYWAY: Final = 0.03
_EVENT: Final = 0.12
_WAITS: Final = 0.08
_FAILING_CHANGES: Final = 0.1
_FAILS: Final = 0.5


class WrongOrder(ValueError):
    """A list of choices that cannot be read, at a line where one is wrong."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class Chooser(Protocol):
    """Chooses what comes next."""

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        """One choice; none at the end. ``held`` are APIs of held answers, ``acts`` what else can be done now."""


class SeededChooser:
    """Chooses by a seed: at any time one API may be slow, whose answers then come after most others.

    With ``errors``, one API may fail at any time, and half of its answers are errors or the ends of their connections.
    """

    def __init__(self, seed: int, steps: int, *, errors: bool = False) -> None:
        self._random = Random(seed)
        self._left = steps
        self._errors = errors
        self._failing: str | None = None
        self._slow: str | None = None

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        if not self._left:
            return None
        self._left -= 1
        random = self._random
        if held and random.random() < _SLOW_CHANGES:
            self._slow = random.choice((*held, None))
        if self._errors and random.random() < _FAILING_CHANGES:
            self._failing = random.choice((*ERRORS, None))
        if acts and random.random() < _EVENT:
            return random.choice(acts)
        quick = [each for each in held if each != self._slow or random.random() < _SLOW_ANYWAY]
        if not quick or random.random() < _WAITS:
            return Act.WAIT
        api = random.choice(quick)
        if api == self._failing and random.random() < _FAILS:
            return f"{api} {random.choice((*ERRORS[api], DROP))}"
        return api


class ListedChooser:
    """Chooses what a list says."""

    def __init__(self, order: Sequence[str]) -> None:
        self._left = list(reversed(order))

    def next(self, held: Sequence[str], acts: Sequence[Act]) -> str | None:
        return self._left.pop() if self._left else None


def read_order(text: str) -> list[str]:
    """A list of choices, one a line; a line with ``#`` is a comment. Raises WrongOrder."""
    order = []
    for number, line in enumerate(text.splitlines(), start=1):
        each = " ".join(line.split())
        if not each or each.startswith("#"):
            continue
        name, _, instead = each.partition(" ")
        _known(name, [*BY_NAME] if instead else [*Act, *BY_NAME], "choice" if not instead else "API", number)
        if instead:
            _known(instead, [DROP, *ErrorCode.__members__], "error", number)
        order.append(each)
    if not order:
        raise WrongOrder("has no choices; expected one a line, such as Fetch or wait")
    return order


def _known(name: str, names: Sequence[str], kind: str, line: int) -> None:
    if name not in names:
        hint = nearest(name, names) or "; expected an API, such as Fetch, or wait, records and the like"
        raise WrongOrder(f"there is no {kind} {name}{hint}", line)


Fails: TypeAlias = Callable[[Sequence[str]], Awaitable[bool]]


async def shrunk(order: Sequence[str], fails: Fails, most: int) -> list[str]:
    """The order without the choices that it can do without and still fail, as far as so many looks go.

    The end comes first, since a failure needs nothing after it. What a choice would have released is held until a later
    choice, or the end of the order, releases it.
    """
    found = list(order)
    length = max(1, len(found) // 2)
    while most > 0:
        end = len(found)
        while end > 0 and most > 0:
            shorter = found[: max(0, end - length)] + found[end:]
            most -= 1
            if await fails(shorter):
                found = shorter
            end -= length
        if length == 1:
            break
        length = max(1, min(length // 2, len(found) // 2))
    return found
