"""The events of one share-partition, made of its window's reports and of what its leader does.

Records that are handled one by one, as their locks run out, are one event for each run of them: reports are collected
until the outermost call is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Literal

from rejoin.coordinator.core.effects import DeferredEvents
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.settings import SharePartitionSettings
from rejoin.coordinator.core.share.window.reports import GAP, REJECT, Reported, RunReport
from rejoin.coordinator.core.share.window.share_partition import SharePartition
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.base import Event
from rejoin.journal.events.share_partitions import (
    ShareLocksExpired,
    SharePartitionLoaded,
    SharePersisterFailed,
    ShareRecordsAcknowledged,
    ShareRecordsAcquired,
    ShareRecordsArchived,
    ShareRecordsDeadLettered,
    ShareRecordsReleased,
    ShareWindowFull,
    ShareWindowMoved,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType
from rejoin.protocol.types import TopicIdPartition
from rejoin.protocol.unvalidated import unvalidated

_WORDS: Final = {int(each): each.name.lower() for each in AcknowledgeType}
_ARCHIVED_BY: Final = {int(AcknowledgeType.GAP): GAP, int(AcknowledgeType.REJECT): REJECT}
_RELEASED: Final = bytes((AcknowledgeType.RELEASE,))
_CLASSES: Final[dict[Reported, type[Event]]] = {
    Reported.ACQUIRED: ShareRecordsAcquired,
    Reported.ACKNOWLEDGED: ShareRecordsAcknowledged,
    Reported.EXPIRED: ShareLocksExpired,
    Reported.RELEASED: ShareRecordsReleased,
    Reported.ARCHIVED: ShareRecordsArchived,
    Reported.DEAD_LETTERED: ShareRecordsDeadLettered,
}


class SharePartitionEvents:
    """Emits the events of one share-partition. Use it as a context around calls whose reports belong together."""

    __slots__ = ("_ctx", "_depth", "_is_full", "_machine", "_names", "_settings", "_window")

    def __init__(
        self,
        ctx: StepContext,
        group_id: str,
        partition: TopicIdPartition,
        settings: SharePartitionSettings,
        machine: SharePartition,
    ) -> None:
        _, index, topic = partition
        self._ctx = ctx
        self._names: dict[str, Any] = {"group_id": group_id, "topic": topic, "partition": index}
        self._settings = settings
        self._machine = machine
        self._depth = 0
        self._window: tuple[int, int] | None = None
        self._is_full = False

    def __enter__(self) -> None:
        # What has happened before is in the journal before what it leads to.
        if not self._depth:
            self._emit_all()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._emit_all()

    def loaded(self, *, is_reset: bool, log_start: int | None) -> None:
        """The state was read; ``is_reset``: it had no offset. ``log_start``: where the log begins, if it is known."""
        machine = self._machine
        start = machine.start_offset
        reset: Any = self._settings.offset_reset.partition(":")[0] if is_reset else None
        self._window = (start, machine.end_offset)
        self._ctx.emit(
            SharePartitionLoaded(
                **self._names,
                start_offset=start,
                state_epoch=machine.state_epoch,
                leader_epoch=machine.leader_epoch,
                reset=reset,
                skipped_records=None if reset is None or log_start is None else max(0, start - log_start),
            )
        )

    def persister_failed(self, operation: Literal["read", "write"], error: ErrorCode) -> None:
        """The share coordinator has answered an error, or nothing."""
        self._ctx.emit(SharePersisterFailed(**self._names, operation=operation, error=error.name))

    def _emit_all(self) -> None:
        machine = self._machine
        reports = machine.take_reports()
        if reports:
            self._ctx.emit_deferred(self._of_records(reports))
        window = (machine.start_offset, machine.end_offset)
        if window == self._window or not machine.is_active:
            return
        self._window = window
        start, end = window
        in_flight, limit = machine.in_flight_records, self._settings.max_record_locks
        self._ctx.emit(
            unvalidated(ShareWindowMoved, **self._names, start_offset=start, end_offset=end, in_flight=in_flight)
        )
        was_full, self._is_full = self._is_full, in_flight >= limit
        if self._is_full and not was_full:
            self._ctx.emit(ShareWindowFull(**self._names, start_offset=start, end_offset=end, limit=limit))

    def _of_records(self, reports: Sequence[RunReport]) -> DeferredEvents:
        settings = self._settings
        made = RecordsEvents(reports, self._names, self._ctx.now, settings.lock_duration_ms, settings.dead_letter_topic)
        return DeferredEvents(self._names["group_id"], made.counts(), made.events)


class RecordsEvents:
    """The events of reports, by the time and the settings of their step. A fetch of single records has a hundred."""

    __slots__ = ("_dead_letter_topic", "_lock_ms", "_names", "_now", "_reports")

    def __init__(
        self,
        reports: Sequence[RunReport],
        names: dict[str, Any],
        now: Millis,
        lock_ms: Millis,
        dead_letter_topic: str,
    ) -> None:
        self._reports = reports
        self._names = names
        self._now = now
        self._lock_ms = lock_ms
        self._dead_letter_topic = dead_letter_topic

    def counts(self) -> dict[type[Event], int]:
        """How many events of each class there are."""
        found: dict[Reported, int] = {}
        archived = 0
        for report in self._reports:
            kinds, reported = report.kinds, report.kind
            if len(kinds) <= 1:
                found[reported] = found.get(reported, 0) + 1
                archived += bool(kinds) and (kinds[0] in _ARCHIVED_BY or (bool(report.word) and kinds == _RELEASED))
                continue
            runs = bytes([kind for kind, _ in groupby(kinds)])
            found[reported] = found.get(reported, 0) + len(runs)
            archived += sum([runs.count(kind) for kind in _ARCHIVED_BY])
            if report.word:
                archived += runs.count(_RELEASED)
        if archived:
            found[Reported.ARCHIVED] = found.get(Reported.ARCHIVED, 0) + archived
        return {_CLASSES[reported]: count for reported, count in found.items()}

    def events(self) -> list[Event]:
        """The events, in order. Models are made unvalidated."""
        return [
            self._event(each) for report in self._reports for each in (_by_kind(report) if report.kinds else (report,))
        ]

    def _event(self, report: RunReport) -> Event:
        fields: dict[str, Any] = {
            **self._names,
            "first_offset": report.first_offset,
            "last_offset": report.last_offset,
            "delivery_count": report.delivery_count,
        }
        word: Any = report.word
        held_ms = max(0, (self._now if report.until is None else report.until) - report.since)
        match report.kind:
            case Reported.ACQUIRED:
                return unvalidated(ShareRecordsAcquired, **fields, member_id=report.member, lock_ms=self._lock_ms)
            case Reported.ACKNOWLEDGED:
                return unvalidated(
                    ShareRecordsAcknowledged, **fields, member_id=report.member, type=word, held_ms=held_ms
                )
            case Reported.EXPIRED:
                return unvalidated(ShareLocksExpired, **fields, member_id=report.member, held_ms=held_ms)
            case Reported.RELEASED:
                return unvalidated(ShareRecordsReleased, **fields, member_id=report.member, reason=word)
            case Reported.ARCHIVED:
                return unvalidated(ShareRecordsArchived, **fields, reason=word)
            case Reported.DEAD_LETTERED:
                topic = self._dead_letter_topic
                return unvalidated(ShareRecordsDeadLettered, **fields, dead_letter_topic=topic, error=word or None)


def _by_kind(report: RunReport) -> Iterator[RunReport]:
    """An acknowledgement as runs of one type, each with what is archived by it."""
    if len(report.kinds) == 1:
        _, first, last, count, member, _, since, until, (verdict,) = report
        yield RunReport(report.kind, first, last, count, member, _WORDS[verdict], since, until)
        cause = report.word if verdict == AcknowledgeType.RELEASE else _ARCHIVED_BY.get(verdict)
        if cause:
            yield RunReport(Reported.ARCHIVED, first, last, count, word=cause)
        return
    first, runs = report.first_offset, groupby(report.kinds)
    for kind, run in runs:
        last = report.last_offset if len(report.kinds) == 1 else first + len(tuple(run)) - 1
        yield report._replace(first_offset=first, last_offset=last, word=_WORDS[kind], kinds=b"")
        reason = report.word if kind == AcknowledgeType.RELEASE else _ARCHIVED_BY.get(kind)
        if reason:
            yield RunReport(Reported.ARCHIVED, first, last, report.delivery_count, word=reason)
        first = last + 1
