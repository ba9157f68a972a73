"""Counts during a run what became of the records: processed, processed twice, late, lost.

A partition's log is counted from the first position any consumer of the group started at. A record that was never
processed but lies before the committed or processed offsets is lost: a consumer committed past it. The numbers are
those of :mod:`rejoin.client.workload.accounting`, which counts them from journals afterwards.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.journal.events.client import CommitSucceeded, PositionsFound, RecordsProcessed
from rejoin.simulation.kernel import EventHandlers, Millis


class OffsetRange(NamedTuple):
    """Offsets from ``start`` up to, and not including, ``end``."""

    start: int
    end: int


@dataclass(slots=True)
class Ledger:
    """One partition of one group. ``spans`` are what was processed, in order and never touching."""

    first: int | None = None
    committed: int | None = None
    spans: list[OffsetRange] = field(default_factory=list)
    processed: int = 0
    twice: int = 0
    late: int = 0

    def process(self, start: int, end: int) -> list[OffsetRange]:
        """Note a range as processed; returns the parts of it that are new."""
        if self.spans and self.spans[-1].end == start:
            self.spans[-1] = OffsetRange(self.spans[-1].start, end)
            self.processed += end - start
            return [OffsetRange(start, end)]
        fresh: list[OffsetRange] = []
        at = start
        touched: list[OffsetRange] = []
        for span in reversed(self.spans):
            if span.end < start:
                break
            if span.start <= end:
                touched.append(span)
        for span in reversed(touched):
            if at < span.start:
                fresh.append(OffsetRange(at, min(span.start, end)))
            at = max(at, span.end)
        if at < end:
            fresh.append(OffsetRange(at, end))
        new = sum(each.end - each.start for each in fresh)
        self.processed += new
        self.twice += end - start - new
        for span in touched:
            self.spans.remove(span)
        insort(
            self.spans, OffsetRange(min([start, *(s.start for s in touched)]), max([end, *(s.end for s in touched)]))
        )
        return fresh

    def lost(self) -> list[OffsetRange]:
        """The ranges that no consumer processed, before an offset that was committed or processed."""
        reached = self.first if self.first is not None else (self.spans[0].start if self.spans else 0)
        if self.spans:
            reached = min(reached, self.spans[0].start)
        gaps = []
        for span in self.spans:
            if span.start > reached:
                gaps.append(OffsetRange(reached, span.start))
            reached = max(reached, span.end)
        if self.committed is not None and self.committed > reached:
            gaps.append(OffsetRange(reached, self.committed))
        return gaps


class Accounting:
    """The ledgers of all groups. ``written_by`` gives the end of a partition's log at an instant."""

    def __init__(self, written_by: Callable[[str, int, Millis], int], late_ms: Millis) -> None:
        self._written_by = written_by
        self._late_ms = late_ms
        self.ledgers: dict[tuple[str, str, int], Ledger] = {}
        self.handlers: EventHandlers = {
            RecordsProcessed: self._processed,
            PositionsFound: self._found,
            CommitSucceeded: self._committed,
        }
        """Handlers by event class; other events do not matter here."""

    def _processed(self, event: RecordsProcessed, now: Millis) -> None:
        for done in event.ranges:
            self.process(event.group_id, done.topic, done.partition, done.start, done.end, now)

    def process(self, group_id: str | None, topic: str, partition: int, start: int, end: int, now: Millis) -> None:
        """Note a range as processed at an instant."""
        ledger = self._ledger(group_id, topic, partition)
        late = self._written_by(topic, partition, now - self._late_ms)
        for span in ledger.process(start, end):
            ledger.late += max(0, min(span.end, late) - span.start)

    def _found(self, event: PositionsFound, _: Millis) -> None:
        for topic, offsets in event.positions.items():
            for partition, offset in offsets.items():
                ledger = self._ledger(event.group_id, topic, partition)
                ledger.first = offset if ledger.first is None else min(ledger.first, offset)

    def _committed(self, event: CommitSucceeded, _: Millis) -> None:
        for topic, offsets in event.positions.items():
            for partition, offset in offsets.items():
                self.commit(event.group_id, topic, partition, offset)

    def commit(self, group_id: str | None, topic: str, partition: int, offset: int) -> None:
        """Note an offset as committed."""
        ledger = self._ledger(group_id, topic, partition)
        ledger.committed = max(offset, ledger.committed or 0)

    def _ledger(self, group_id: str | None, topic: str, partition: int) -> Ledger:
        key = (group_id or "", topic, partition)
        found = self.ledgers.get(key)
        if found is None:
            found = self.ledgers[key] = Ledger()
        return found
