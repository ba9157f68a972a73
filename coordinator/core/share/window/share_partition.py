"""A share-partition: the records of one partition that the members of one share group have in flight.

How a leader uses it::

    partition = SharePartition(leader_epoch, settings)
    if partition.start_loading():
        ...                                      # read the state from the share coordinator
        error = partition.loaded(state, reset_offset)
    if partition.lock_fetch(token):              # at most one fetch reads it at a time
        if partition.may_acquire():
            offset = partition.next_fetch_offset()
            ...                                  # read the log from there
            acquired = partition.acquire(member_id, read, offset, limits, now)
        partition.unlock_fetch(token)
    for effect in partition.take_effects():      # after each call, depth first: see ``effects.py``
        ...
    while (fired := partition.expire_next(now)) is not None:
        ...                                      # one lock each; take the effects in between

Time is ``now``, in ms. A call without ``now`` sets no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.window.aborted import without
from rejoin.coordinator.core.share.window.acknowledging import BrokenAcknowledgementError, MemberChanges
from rejoin.coordinator.core.share.window.acquiring import AcquireLimits, Acquisition, BrokenAcquisitionError
from rejoin.coordinator.core.share.window.batches import ACQUIRED, ARCHIVED, Batch
from rejoin.coordinator.core.share.window.changes import (
    AnyChange,
    Pending,
    RecordChange,
    change_now,
    keep,
    roll_back,
)
from rejoin.coordinator.core.share.window.effects import (
    CallEnded,
    DeadLetter,
    FetchesWoken,
    StateWrite,
    WindowEffect,
)
from rejoin.coordinator.core.share.window.expiring import expire
from rejoin.coordinator.core.share.window.loading import load
from rejoin.coordinator.core.share.window.locks import NO_LOCK
from rejoin.coordinator.core.share.window.reports import (
    ABORTED,
    SESSION_CLOSED,
    Reported,
    RunReport,
    add_report,
)
from rejoin.coordinator.core.share.window.values import (
    Acquired,
    AcquiredRow,
    ReadRange,
    SharePartitionState,
    SharePartitionView,
    WindowSettings,
)
from rejoin.coordinator.core.share.window.window import StartInHoleError, Window
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch, PersistedState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgementBatch

LEADER_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Errors of the share coordinator, as clients of the leader see them; others are UNKNOWN_SERVER_ERROR."""

FENCING_ERRORS: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Errors of an acknowledgement, a release or a fetch after which the leader fences and drops the share-partition."""


class SharePartition:
    """One share-partition in one leader epoch. Effects collect until the caller takes them.

    No record is held by two members; acknowledged and archived records stay so; delivery counts never fall.
    """

    __slots__ = (
        "_effects",
        "_fetch_holder",
        "_letters",
        "_next_id",
        "_settings",
        "_window",
        "_writes",
        "leader_epoch",
        "state",
        "state_epoch",
    )

    def __init__(self, leader_epoch: int, settings: WindowSettings) -> None:
        self.state = SharePartitionState.EMPTY
        self.leader_epoch = leader_epoch
        self.state_epoch = 0
        self._settings = settings
        self._window = Window()
        self._effects: list[WindowEffect] = []
        self._writes: dict[int, Pending] = {}
        self._letters: dict[int, RecordChange] = {}
        self._next_id = 0
        self._fetch_holder: object = None

    def take_effects(self) -> list[WindowEffect]:
        """Effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def take_reports(self) -> list[RunReport]:
        """Reports of records since the last call, in order; to be taken when the effects are carried out."""
        window = self._window
        reports, window.reports = window.reports, []
        return reports

    def report_acquired(self, member_id: str, rows: Sequence[AcquiredRow]) -> None:
        """Report records that a response gives to a member."""
        reports = self._window.reports
        for first, last, count in rows:
            add_report(reports, RunReport(Reported.ACQUIRED, first, last, count, member_id))

    # --- loading

    def start_loading(self) -> bool:
        """Whether the caller should read the state now and end with ``loaded``: true once, for an empty one."""
        if self.state is not SharePartitionState.EMPTY:
            return False
        self.state = SharePartitionState.INITIALIZING
        return True

    def loaded(self, state: PersistedState | ErrorCode, reset_offset: Callable[[], int | None]) -> ErrorCode:
        """The state was read, or the share coordinator answered an error. Return the error for clients.

        ``reset_offset`` gives the offset by ``share.auto.offset.reset`` where the state has none; none: no record is
        that young. A share-partition that failed to load has to be dropped; the next fetch loads a new one.
        """
        if self.state is not SharePartitionState.INITIALIZING:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # fenced meanwhile
        error = self._load(state, reset_offset) if isinstance(state, PersistedState) else leader_error(state)
        self.state = SharePartitionState.ACTIVE if error is ErrorCode.NONE else SharePartitionState.FAILED
        return error

    def _load(self, state: PersistedState, reset_offset: Callable[[], int | None]) -> ErrorCode:
        start = reset_offset() if state.start_offset < 0 else state.start_offset
        if start is None:
            return ErrorCode.OFFSET_NOT_AVAILABLE
        archiving = load(self._window, start, state.batches, self._settings.delivery_count_limit)
        if archiving is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self.state_epoch = state.state_epoch
        self._send_letters(archiving)
        return ErrorCode.NONE

    def fence(self) -> None:
        """The share-partition is dropped: deleted, led elsewhere, or left behind by an error. Locks still run out."""
        self.state = SharePartitionState.FENCED

    # --- reading

    @property
    def is_active(self) -> bool:
        """Whether records can be acquired and acknowledged."""
        return self.state is SharePartitionState.ACTIVE

    @property
    def start_offset(self) -> int:
        """The start of the window: everything below is done with."""
        return self._window.start

    @property
    def end_offset(self) -> int:
        """The last offset of the window; the next offset if nothing is in flight."""
        return self._window.end

    @property
    def delivery_complete_count(self) -> int:
        """How many records of the window are acknowledged or archived."""
        return self._window.complete

    @property
    def in_flight_records(self) -> int:
        """How many records count against ``share.partition.max.record.locks``."""
        return self._window.in_flight

    @property
    def in_flight_batches(self) -> int:
        """How many batches the window has."""
        return len(self._window.batches)

    def lock_fetch(self, holder: object) -> bool:
        """Whether a fetch may read now; it then holds the lock. A fetch that holds it already may."""
        if self._fetch_holder is None:
            self._fetch_holder = holder
        return self._fetch_holder is holder

    def unlock_fetch(self, holder: object) -> None:
        """The fetch is over; another one may read."""
        if self._fetch_holder is holder:
            self._fetch_holder = None

    def may_acquire(self) -> bool:
        """Whether a fetch could acquire anything: something inside the window is available, or there is room."""
        window = self._window
        return self.next_fetch_offset() != window.end + 1 or window.in_flight < self._settings.max_record_locks

    def next_fetch_offset(self) -> int:
        """The offset from which the next fetch reads the log."""
        return self._window.next_fetch_offset()

    def acquire(
        self, member_id: str, read: Sequence[ReadRange], fetch_offset: int, limits: AcquireLimits, now: Millis
    ) -> Acquired:
        """Acquire records of whole log batches that were read from ``fetch_offset`` on, for a member."""
        acquisition = Acquisition(self._window, member_id, limits, self._settings, now)
        try:
            acquisition.run(read, fetch_offset)
        except BrokenAcquisitionError:
            return Acquired(broken=True)
        return Acquired(tuple(acquisition.rows), acquisition.count)

    def drop_aborted(self, acquired: Acquired, aborted: Sequence[ReadRange]) -> Acquired:
        """Archive batches of aborted transactions just acquired, and cut them out of the rows (``aborted.py``).

        # Kafka: maybeFilterAbortedTransactionalAcquiredRecords. Nothing is written.
        """
        window = self._window
        if not acquired.rows:
            return acquired
        for base, last in aborted:
            if window.floor(base) < 0:
                return Acquired(broken=True)
            window.archive(base, last, ACQUIRED, ABORTED)
        rows = without(acquired.rows, aborted)
        return Acquired(tuple(rows), sum(row.last_offset - row.first_offset + 1 for row in rows))

    def log_start_moved(self, log_start: int) -> None:
        """A fetch found that the log begins at a later offset than the window."""
        self._window.log_start_moved(log_start)

    # --- acknowledging

    def acknowledge(self, call: object, member_id: str, batches: Sequence[AcknowledgementBatch], now: Millis) -> None:
        """Acknowledge records; the result comes as ``CallEnded``. Check the form first (``acknowledgement_error``)."""
        work = MemberChanges(self._window, member_id, self._settings, now)
        try:
            error = work.acknowledge(batches)
        except BrokenAcknowledgementError:
            self._roll_back(work.changes, member_id, work.limit)
            self._effects.append(CallEnded(call, ErrorCode.UNKNOWN_SERVER_ERROR, breaks_request=True))
            return
        if error is not ErrorCode.NONE:
            self._roll_back(work.changes, member_id, work.limit)
            self._effects.append(CallEnded(call, error))
        else:
            self._write_or_end(Pending(work.changes, member_id, work.limit, call, reports=work.reports))

    def release(self, call: object, member_id: str, now: Millis, reason: str = SESSION_CLOSED) -> None:
        """Release everything that a member holds, as its session is gone; the result comes as ``CallEnded``.

        ``reason``: one of :data:`rejoin.journal.events.share_partitions.ReleasedBecause`, for the report.
        """
        work = MemberChanges(self._window, member_id, self._settings, now)
        work.release(reason)
        self._write_or_end(Pending(work.changes, member_id, work.limit, call, reports=work.reports))

    def _roll_back(self, changes: Sequence[AnyChange], member_id: str, limit: int) -> None:
        for change in changes:
            for each in change.parts():
                roll_back(self._window, each, member_id, limit)

    def _write_or_end(self, pending: Pending) -> None:
        if pending.changes:
            self._write(pending)
        else:
            self._effects.append(CallEnded(pending.call, ErrorCode.NONE))

    # --- persisting

    def _write(self, pending: Pending) -> None:
        window, write_id = self._window, self._take_id()
        self._writes[write_id] = pending
        runs: list[PersistedBatch] = []
        by_record = bytearray()
        for change in pending.changes:
            single = change.add_runs(runs)
            by_record += bytes((single,)) * (len(runs) - len(by_record))
        epochs = (self.state_epoch, self.leader_epoch)
        self._effects.append(
            StateWrite(write_id, *epochs, window.start, window.complete, tuple(runs), bytes(by_record))
        )

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def written(self, write_id: int, error: ErrorCode) -> None:
        """A write has its result: the share coordinator's error code, UNKNOWN_SERVER_ERROR for a broken call."""
        pending = self._writes.pop(write_id, None)
        if pending is None:
            return
        seen = leader_error(error)
        if pending.final:
            self._settle(pending, None)
        elif seen is not ErrorCode.NONE:
            self._roll_back(pending.changes, pending.member, pending.limit)
            self._effects.append(CallEnded(pending.call, seen))
        else:
            for change in pending.changes:
                keep(self._window, change)
            self._window.reports += pending.reports
            self._settle(pending, CallEnded(pending.call, ErrorCode.NONE))

    def _settle(self, pending: Pending, ended: CallEnded | None) -> None:
        """Move the start, end the call, and send what was archived to the dead-letter queue."""
        try:
            moved = self._window.move_start()
        except StartInHoleError:
            # Kafka: the callback ends here. The caller gets its success; dead letters are lost until a reload.
            if ended is not None:
                self._effects.append(ended)
            return
        if ended is not None:
            self._effects.append(ended)
        if moved and pending.wakes:
            self._effects.append(FetchesWoken())
        self._send_letters(pending.changes)

    def _send_letters(self, changes: Sequence[AnyChange]) -> None:
        for change in [part for each in changes if each.has_dead_letters for part in each.parts()]:
            for first, last, cause in change.dead_letters():
                letter_id = self._take_id()
                size = 1 if change.whole else last - first + 1
                archived = RecordChange(change.batch, first, last, bytes((ARCHIVED,)) * size, change.count)
                self._letters[letter_id] = archived
                self._effects.append(DeadLetter(letter_id, first, last, change.count, cause))

    def dead_letter_ended(self, letter_id: int, problem: str = "") -> None:
        """A dead letter is written, or has failed (``problem``): its records are archived in either case."""
        change = self._letters.pop(letter_id, None)
        if change is not None:
            self._window.report(Reported.DEAD_LETTERED, change.first, change.last, change.count, word=problem)
            change_now(self._window, change)
            self._write(Pending([change], final=True))

    # --- locks

    def next_deadline(self) -> Millis | None:
        """The instant at which the first lock runs out, or none."""
        return self._window.locks.next_deadline()

    def expire_next(self, now: Millis) -> tuple[int, int] | None:
        """End one lock that is due, and return its offsets; none: no lock is due.

        Take the effects before the next call, as their results may end other locks.
        """
        due = self._window.locks.pop_due(now)
        return None if due is None else self._expire(*due)

    def expire_lock(self, offset: int) -> tuple[int, int] | None:
        """End the lock of the record at an offset before its time, and return its offsets; none: it has no lock.

        The lock of a batch with one state ends for all of its records.
        """
        batch = self._locked(offset)
        if batch is None:
            return None
        first, last = (batch.first, batch.last) if batch.records is None else (offset, offset)
        return self._expire(batch, first, last)

    def holder(self, offset: int) -> str | None:
        """Id of the member that has a lock on the record at an offset."""
        batch = self._locked(offset)
        if batch is None:
            return None
        return batch.member if batch.records is None else batch.records.members[offset - batch.first]

    def _locked(self, offset: int) -> Batch | None:
        """The batch of the record at an offset, if the record has a lock."""
        window = self._window
        at = window.floor(offset)
        batch = window.batches[at] if at >= 0 else None
        if batch is None or batch.last < offset:
            return None
        lock = batch.lock if batch.records is None else batch.records.locks[offset - batch.first]
        return None if lock == NO_LOCK else batch

    def postpone_locks(self, by_ms: Millis) -> None:
        """Keep what is left of each lock: the clock has stepped, and no time has passed."""
        self._window.locks.postpone(by_ms)

    def _expire(self, batch: Batch, first: int, last: int) -> tuple[int, int]:
        changes = expire(self._window, batch, first, last, self._settings)
        if changes:
            self._write(Pending(changes, final=True, wakes=False))
            self._effects.append(FetchesWoken())
        return first, last

    # --- views

    def view(self, now: Millis) -> SharePartitionView:
        """The share-partition as a value, for descriptions and tests."""
        window = self._window
        return SharePartitionView(
            state=self.state,
            start_offset=window.start,
            end_offset=window.end,
            find_next=window.find_next,
            delivery_complete_count=window.complete,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            gap_window=None if window.gap is None else (window.gap, window.gap_end),
            batches=tuple(batch.view(now, window.locks) for batch in window.batches),
        )


def leader_error(error: ErrorCode) -> ErrorCode:
    """An error of the share coordinator as clients of the leader see it."""
    return LEADER_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
