"""Inputs and outputs of the node, in order: the one source of all evidence.

A mark is how many steps there were. Old steps are dropped when there are too many, and asking for them is refused.
Steps may be added as the bytes that were sent: these are decoded when they are first asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Final, Protocol, TypeAlias

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Context, Elapsed, Input, Millis, PersisterFault, Received
from rejoin.coordinator.core.node import Node
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers
from rejoin.protocol.message import Request, Response
from rejoin.transcript.sizes import size_of

KEPT_STEPS: Final = 200_000
KEPT_BYTES: Final = 256 * 2**20
_STEP_BYTES: Final = 256
_NOTHING: Final = Elapsed()


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


class EncodedStep(Protocol):
    """A step as bytes."""

    def decode(self) -> tuple[StepInput, list[Effect]]:
        """The input and its effects; time that passed without any, where the bytes cannot be read."""


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
    encoded: EncodedStep | None = None
    """The bytes that are still to be decoded; until then input and effects are empty."""


def _decoded_size(what: StepInput, effects: list[Effect]) -> int:
    """The memory of a step, about; without the tokens of replies, which hold what waits for them."""
    asked = what.request if isinstance(what, (Received, Interception)) else None
    said = sum(size_of(each.response if isinstance(each, Reply) else each) for each in effects)
    return _STEP_BYTES + size_of(asked) + said


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
        self._has_encoded = False

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
            self._append(Step(self.mark, at, what, effects, took_ms, _decoded_size(what, effects)))

    def add_encoded(self, at: Millis, encoded: EncodedStep, size: int) -> Step:
        """Take in a step of so many bytes, which is decoded when it is first asked for."""
        step = Step(self.mark + 1, at, _NOTHING, [], 0.0, _STEP_BYTES + size, encoded)
        if self.is_on:
            self.mark += 1
            self._has_encoded = True
            self._append(step)
        return step

    def decode(self, step: Step) -> None:
        """Decode a step, if it is not yet."""
        if step.encoded is None:
            return
        before = step.size
        step.what, step.effects = step.encoded.decode()
        step.encoded = None
        step.size = _decoded_size(step.what, step.effects)
        if self.first < step.number <= self.mark:
            self.size += step.size - before
            self._drop_oldest()

    def _append(self, step: Step) -> None:
        self._steps.append(step)
        self.size += step.size
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        while len(self._steps) > self.kept_steps or (self.size > self.kept_bytes and len(self._steps) > 1):
            self.size -= self._steps.popleft().size

    @property
    def first(self) -> int:
        """The oldest mark whose followers are all kept."""
        return self.mark - len(self._steps)

    def since(self, mark: int) -> list[Step]:
        """The steps behind a mark. Raises :class:`StepsGone` when some of them are not kept."""
        self._decode_since(mark)
        if mark < self.first:
            raise StepsGone(mark, self.first)
        return list(islice(self._steps, mark - self.first, None))

    def all(self) -> list[Step]:
        """The steps that are kept."""
        self._decode_since(self.first)
        return list(self._steps)

    def _decode_since(self, mark: int) -> None:
        """Decode, the newest first: decoded steps take more memory, and the oldest may have to go."""
        if self._has_encoded:
            steps = [step for step in islice(self._steps, max(mark - self.first, 0), None) if step.encoded is not None]
            for step in reversed(steps):
                if step.number <= self.first:
                    break
                self.decode(step)

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
