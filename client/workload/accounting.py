"""Outcomes of records, counted from consumers' journals: processed, processed again, or lost.

A partition's log is counted from the first position any consumer of the group started at up to the furthest offset that
was processed or committed. An offset in between that no consumer processed is lost: the group has gone past it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.journal.events.base import Event
from rejoin.journal.events.client import CommitSucceeded, PositionsFound, RecordsProcessed


class OffsetSpan(NamedTuple):
    """Offsets from ``start`` up to, and not including, ``end``."""

    start: int
    end: int


@dataclass(slots=True)
class Account:
    """One partition of one group."""

    group_id: str
    topic: str
    partition: int
    processed: int = 0
    duplicated: int = 0
    lost: int = 0
    committed: int | None = None
    lost_spans: list[OffsetSpan] = field(default_factory=list)


@dataclass(slots=True)
class _Ledger:
    spans: list[OffsetSpan] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)


def account(events: Iterable[Event]) -> list[Account]:
    """The accounts of all partitions, by group, topic and partition. The order of the events does not matter."""
    ledgers: dict[tuple[str, str, int], _Ledger] = {}

    def ledger(group_id: str | None, topic: str, partition: int) -> _Ledger:
        return ledgers.setdefault((group_id or "", topic, partition), _Ledger())

    for event in events:
        match event:
            case RecordsProcessed():
                for done in event.ranges:
                    ledger(event.group_id, done.topic, done.partition).spans.append(OffsetSpan(done.start, done.end))
            case PositionsFound() | CommitSucceeded():
                for topic, offsets in event.positions.items():
                    for partition, offset in offsets.items():
                        kept = ledger(event.group_id, topic, partition)
                        (kept.starts if isinstance(event, PositionsFound) else kept.committed).append(offset)
            case _:
                pass
    return [_settle(*key, ledgers[key]) for key in sorted(ledgers)]


def _settle(group_id: str, topic: str, partition: int, ledger: _Ledger) -> Account:
    result = Account(group_id, topic, partition)
    result.committed = max(ledger.committed, default=None)
    spans = sorted(ledger.spans)
    reached = min([*ledger.starts, *(span.start for span in spans[:1])], default=0)
    for span in spans:
        if span.start > reached:
            result.lost_spans.append(OffsetSpan(reached, span.start))
        fresh = max(0, span.end - max(span.start, reached))
        result.processed += fresh
        result.duplicated += span.end - span.start - fresh
        reached = max(reached, span.end)
    if result.committed is not None and result.committed > reached:
        result.lost_spans.append(OffsetSpan(reached, result.committed))
    result.lost = sum(span.end - span.start for span in result.lost_spans)
    return result
