"""Inputs and outputs of the node, in order: the one source of all evidence.

A mark is how many steps there were. Old steps are dropped when there are too many, and asking for them is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Final, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Context, Input, Millis, PersisterFault, Received
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.protocol.message import Request, Response
from rejoin.transcript.sizes import size_of

KEPT_STEPS: Final = 200_000
KEPT_BYTES: Final = 256 * 2**20
_STEP_BYTES: Final = 256


@dataclass(slots=True)
class Interception:
    """A request that a fault answered, or lost, in the node's place."""

    request: Request
    context: Context
    error: str
    text: str
    response: Response | None = None
    """The answer in the place of the node's, where the fault has one."""


StepInput: TypeAlias = Input | Interception


@dataclass(slots=True)
class Step:
    """One input with its instant and all that came of it at once. ``took_ms`` is real time."""

    number: int
    at: Millis
    what: StepInput
    effects: list[Effect]
    took_ms: float = 0.0
    size: int = 0
    """The memory it takes, about."""


@dataclass(frozen=True, slots=True)
class StepsSnapshot:
    """The recorded steps as they were at some instant."""

    steps: tuple[Step, ...]
    mark: int
    size: int


class StepsGone(Exception):
    """Steps were asked for that are not kept any more."""

    def __init__(self, since: int, first: int) -> None:
        super().__init__(f"what happened since mark {since} is not kept any more; the oldest mark that is, is {first}")
        self.first = first


class StepRecorder:
    """Keeps the newest steps, as many as fit. ``began_at`` is the instant at which the node was ready."""

    def __init__(self, kept_steps: int = KEPT_STEPS, kept_bytes: int = KEPT_BYTES) -> None:
        self.kept_steps = kept_steps
        self.kept_bytes = kept_bytes
        self.size = 0
        """The memory that the kept steps take, about."""
        self._steps: deque[Step] = deque()
        self.mark = 0
        self.began_at: Millis = 0
        self.is_on = False

    def begin(self, now: Millis) -> None:
        """Start anew: what came before does not count."""
        self._steps.clear()
        self.size = 0
        self.mark = 0
        self.began_at = now
        self.is_on = True

    def add(self, at: Millis, what: StepInput, effects: list[Effect], took_ms: float = 0.0) -> None:
        """Take in a step; one of which nothing came is kept only if it was asked for."""
        if self.is_on and (effects or isinstance(what, (Received, Interception, PersisterFault))):
            self.mark += 1
            asked = what.request if isinstance(what, (Received, Interception)) else None
            # Without the tokens of replies: they hold what waits for them.
            said = sum(size_of(each.response if isinstance(each, Reply) else each) for each in effects)
            step = Step(self.mark, at, what, effects, took_ms, _STEP_BYTES + size_of(asked) + said)
            self._steps.append(step)
            self.size += step.size
            while len(self._steps) > self.kept_steps or (self.size > self.kept_bytes and len(self._steps) > 1):
                self.size -= self._steps.popleft().size

    @property
    def first(self) -> int:
        """The oldest mark whose followers are all kept."""
        return self.mark - len(self._steps)

    def since(self, mark: int) -> list[Step]:
        """The steps behind a mark. Raises :class:`StepsGone` when some of them are not kept."""
        if mark < self.first:
            raise StepsGone(mark, self.first)
        return list(islice(self._steps, mark - self.first, None))

    def keep(self) -> StepsSnapshot:
        """The steps recorded up to now."""
        return StepsSnapshot(tuple(self._steps), self.mark, self.size)

    def go_back(self, kept: StepsSnapshot) -> None:
        """Forget what came after."""
        self._steps.clear()
        self._steps.extend(kept.steps)
        self.size = kept.size
        self.mark = kept.mark


class RecordedNode(Node):
    """A node that has every step recorded."""

    def __init__(
        self,
        settings: Settings,
        new_id: Callable[[], str],
        recorder: StepRecorder,
        *,
        topics_logged: bool = False,
        file_users: FileUsers = NO_USERS,
    ) -> None:
        super().__init__(settings, new_id, topics_logged=topics_logged, file_users=file_users)
        self._recorder = recorder

    def step(self, what: Input, now: Millis, *, is_late: bool = False) -> list[Effect]:
        assert not is_late, "a transcript has no late inputs: a driven clock is on time"
        began = perf_counter()
        effects = super().step(what, now)
        self._recorder.add(now, what, effects, (perf_counter() - began) * 1_000)
        return effects

    def shared(self) -> tuple[object, ...]:
        return (*super().shared(), self._recorder)
