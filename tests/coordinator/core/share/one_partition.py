"""A share-partition for tests of single rules: each write succeeds at once, unless it is held back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.share.window.acquiring import AcquireLimits
from rejoin.coordinator.core.share.window.effects import CallEnded, DeadLetter, FetchesWoken, StateWrite
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.coordinator.core.share.window.values import Acquired, ReadRange
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch

LOCK_MS: Final = 30_000
NO_LIMIT: Final = 2**31 - 1


@dataclass
class Settings:
    """The defaults of a group."""

    lock_duration_ms: int = LOCK_MS
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    allows_renewal: bool = True
    has_dead_letters: bool = False


class OnePartition:
    """A share-partition with a clock, its writes, its dead letters, and the errors of its calls in order."""

    def __init__(self, *batches: PersistedBatch, start: int = 0) -> None:
        self.settings = Settings()
        self.partition = SharePartition(0, self.settings)
        self.now = 0
        self.holds_back = False
        self.writes: list[StateWrite] = []
        self.letters: list[DeadLetter] = []
        self.errors: list[ErrorCode] = []
        self.woken = 0
        assert self.partition.start_loading()
        assert self.partition.loaded(PersistedState(0, start, batches), lambda: start) is ErrorCode.NONE
        self.settle()

    def settle(self) -> None:
        for effect in self.partition.take_effects():
            if isinstance(effect, StateWrite):
                self.writes.append(effect)
                if not self.holds_back:
                    self.answer(effect)
            elif isinstance(effect, DeadLetter):
                self.letters.append(effect)
            elif isinstance(effect, CallEnded):
                self.errors.append(effect.error)
            else:
                assert isinstance(effect, FetchesWoken)
                self.woken += 1
        self.partition.take_reports()

    def answer(self, write: StateWrite, error: ErrorCode = ErrorCode.NONE) -> None:
        self.partition.written(write.write_id, error)
        self.settle()

    def fetch(
        self, member: str, *read: tuple[int, int], most: int = NO_LIMIT, size: int = NO_LIMIT, by_record: bool = False
    ) -> list[tuple[int, int, int]]:
        """The rows that a member acquires of these batches of the log."""
        acquired = self.acquire(member, *read, most=most, size=size, by_record=by_record)
        return [(first, last, count) for first, last, count in acquired.rows]

    def acquire(
        self, member: str, *read: tuple[int, int], most: int = NO_LIMIT, size: int = NO_LIMIT, by_record: bool = False
    ) -> Acquired:
        offset = self.partition.next_fetch_offset()
        ranges = [ReadRange(*each) for each in read if each[1] >= offset]
        return self.partition.acquire(member, ranges, offset, AcquireLimits(most, size, by_record), self.now)

    def acknowledge(self, member: str, *batches: tuple[int, int, tuple[int, ...]]) -> ErrorCode | None:
        """The error of the call; none: it waits for a write."""
        asked = [
            AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types) for a, b, types in batches
        ]
        self.partition.acknowledge(None, member, asked, self.now)
        return self._ended()

    def release(self, member: str) -> ErrorCode | None:
        self.partition.release(None, member, self.now)
        return self._ended()

    def _ended(self) -> ErrorCode | None:
        before = len(self.errors)
        self.settle()
        return self.errors[-1] if len(self.errors) > before else None

    def wait(self, ms: int) -> list[tuple[int, int]]:
        """Locks that run out within so many ms."""
        self.now += ms
        ended = []
        while (offsets := self.partition.expire_next(self.now)) is not None:
            ended.append(offsets)
            self.settle()
        return ended

    def states(self) -> str:
        """Each run of the window from the start on, such as ``4-5 ACQUIRED 1 A``."""
        view, runs = self.partition.view(self.now), []
        for batch in view.batches:
            for run in batch.runs:
                if run.last_offset >= view.start_offset:
                    first = max(run.first_offset, view.start_offset)
                    holder = f" {run.member_id}" if run.member_id else ""
                    runs.append(f"{first}-{run.last_offset} {run.state.name} {run.delivery_count}{holder}")
        return ", ".join(runs)
