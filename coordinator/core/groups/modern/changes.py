"""Writing: the records of one request are replayed at once, and its reply leaves when they are stored.

If they can't be stored, the group is as it was before them, with the changes that came later made again: so memory
has what the log has. Kafka does the same with snapshots of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar

from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import Cause
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record

Undo: TypeAlias = Callable[[], object]
"""Undoes the change of a record."""

OnWritten: TypeAlias = Callable[[ErrorCode], None]
"""Called when a change is stored, or with the error that a client gets."""

Step: TypeAlias = Callable[[], Undo]
"""Makes something so, and returns what undoes it."""


def nothing_to_undo() -> None:
    """Undoes a record that has changed nothing."""


class UndoableReplay(Protocol):
    """Replays the records of one kind of groups."""

    def replay(self, record: Record) -> Undo:
        """Apply a record; returns what undoes it."""

    def repair(self, group_id: str) -> None:
        """A change of a group has failed behind which others were made: mend what depends on both."""


class RecordChanges:
    """The records of one request, each replayed when it is written."""

    __slots__ = (
        *("_deferred", "_replay", "_steps", "_undo"),
        *("assignor", "cause", "events", "is_stored", "on_failed", "records"),
    )

    def __init__(self, replay: UndoableReplay) -> None:
        self._replay = replay
        self._steps: list[Step] = []
        self._undo: list[Undo] = []
        self._deferred: list[Step] = []
        self.records: list[Record] = []
        self.events: list[Event] = []
        """Emitted when the records are stored, before those that are made from them."""
        self.cause: Cause | None = None
        """Why the group has a new epoch; none where it is for its topics alone."""
        self.assignor = ""
        """The assignor that computed the target."""
        self.is_stored = False
        self.on_failed: list[Callable[[], None]] = []
        """Called when the records cannot be stored, after they were undone."""

    def write(self, *records: Record) -> None:
        """Write records, and make them so."""
        for record in records:
            self.records.append(record)
            self._do(partial(self._replay.replay, record))

    def defer(self, record: Record) -> None:
        """Write a record that comes true behind all others of this request."""
        self.records.append(record)
        self._deferred.append(partial(self._replay.replay, record))

    def make(self, records: Iterable[Record], step: Step) -> None:
        """Write records without replay; ``step`` makes the change and returns its undoing."""
        self.records += records
        self._do(step)

    def _do(self, step: Step) -> None:
        self._steps.append(step)
        self._undo.append(step())

    def finish(self) -> None:
        """Make the deferred records so."""
        for step in self._deferred:
            self._do(step)
        self._deferred = []

    def undo(self) -> None:
        """Make none of it so."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def redo(self) -> None:
        """Make all of it so again, on what is there now."""
        self._undo = [step() for step in self._steps]


C = TypeVar("C", bound=RecordChanges)


class Writes(Generic[C]):
    """The changes of one shard's groups of one kind that are being written."""

    def __init__(self, log: ShardLog, replay: UndoableReplay, changes: Callable[[UndoableReplay], C]) -> None:
        self._log = log
        self._replay = replay
        self._changes = changes
        self._in_flight: dict[str, list[C]] = {}
        self.on_stored: Callable[[str, C], None] = _nothing
        """Called with a group id when a change of the group is in the log."""

    def begin(self) -> C:
        """A change without records yet."""
        return self._changes(self._replay)

    def is_writing(self, group_id: str) -> bool:
        """Whether anything of a group is in flight."""
        return group_id in self._in_flight

    @property
    def groups_in_flight(self) -> list[str]:
        """The groups of which anything is in flight."""
        return list(self._in_flight)

    def commit(self, group_id: str, changes: C, on_written: OnWritten) -> None:
        """Write a change; one without records waits for those before it that are in flight."""
        changes.finish()
        if changes.records:
            self.append(group_id, changes, ReplyCompletion(on_written))
        elif group_id in self._in_flight:
            self._log.append((), ReplyCompletion(on_written))
        else:
            on_written(ErrorCode.NONE)

    def append(self, group_id: str, changes: C, then: AppendCompletion) -> None:
        """Write a change that has records."""
        self._in_flight.setdefault(group_id, []).append(changes)
        self._log.append(tuple(changes.records), ChangesCompletion(self, group_id, changes, then))

    def stored(self, group_id: str, changes: C) -> None:
        """A change is in the log."""
        changes.is_stored = True
        in_flight = self._in_flight.get(group_id, [])
        while in_flight and in_flight[0].is_stored:
            del in_flight[0]
        if not in_flight:
            self._in_flight.pop(group_id, None)
        self.on_stored(group_id, changes)

    def failed(self, group_id: str, changes: C) -> None:
        """A change is not in the log: undo it, and keep what came later."""
        in_flight = self._in_flight[group_id]
        at = in_flight.index(changes)
        later = in_flight[at + 1 :]
        for each in reversed(in_flight[at:]):
            each.undo()
        del in_flight[at]
        for each in later:
            each.redo()
        if later:
            # Differs: Kafka appends before it takes the next request, so nothing is ever made of what fails later.
            self._replay.repair(group_id)
        if not in_flight:
            del self._in_flight[group_id]
        for call in changes.on_failed:
            call()

    def committed(self, group_id: str, read: Callable[[], None]) -> None:
        """Read a group as the log has it, without appends in flight."""
        in_flight = self._in_flight.get(group_id, [])
        for each in reversed(in_flight):
            each.undo()
        read()
        for each in in_flight:
            each.redo()


def _nothing(_: str, __: RecordChanges) -> None:
    """Called where nothing is to be done with a stored change."""


@dataclass(slots=True)
class ReplyCompletion(AppendCompletion):
    """A reply that waits for its own records, or for the writes before it."""

    on_written: OnWritten

    def ended(self, error: ErrorCode) -> None:
        self.on_written(response_error_of_write(error))


@dataclass(slots=True)
class ChangesCompletion(AppendCompletion, Generic[C]):
    """A change being written."""

    writes: Writes[C]
    group_id: str
    changes: C
    then: AppendCompletion

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self._settle(error)
        self.then.ended(error)

    def ended_late(self, error: ErrorCode) -> None:
        self._settle(error)
        self.then.ended_late(error)

    def _settle(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.writes.stored(self.group_id, self.changes)
        else:
            self.writes.failed(self.group_id, self.changes)
