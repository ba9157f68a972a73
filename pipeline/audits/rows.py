"""The rows of one group that audits look at, and the rows that they make. Nothing here needs Spark or Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rejoin.pipeline.tables.groups.rows import Row, date_of
from rejoin.pipeline.vocabulary import CLIENT_LOG

EVIDENCE: Final = ("source", "node", "seq", "at_ms", "event", "file", "line")
"""Columns by which an event is named as a proof."""

Partition: TypeAlias = tuple[str, int]
Found: TypeAlias = Iterable[Row]


@dataclass(frozen=True, slots=True)
class AuditedGroup:
    """Rows of one group, in any order; of some tables only those that may show a violation."""

    run_id: str
    group_id: str
    events: Sequence[Row] = ()
    offsets: Sequence[Row] = ()
    """Committed, deleted and found offsets, a row for each partition of an event."""
    rebalances: Sequence[Row] = ()
    sessions: Sequence[Row] = ()
    intervals: Sequence[Row] = ()
    """Rows of ``ownership``."""

    def violation(self, kind: str, at_ms: int, **values: Any) -> Row:
        """A row of the table."""
        about = {"run_id": self.run_id, "day": date_of(at_ms), "group_id": self.group_id}
        return {**about, "kind": kind, "at_ms": at_ms, **values}


def proves_owner(interval: Mapping[str, Any]) -> bool:
    """Whether the source of an interval of ownership proves the owner. Logs of consumers do not: a line may be missing,
    each has its own clock, and owners of members without a log are not known."""
    return bool(interval["from_source"] != CLIENT_LOG)


def proof(event: Mapping[str, Any]) -> Row:
    """An event as evidence."""
    return {name: event[name] for name in EVIDENCE}


def start_of(interval: Mapping[str, Any], event: str) -> Row:
    """The event with which an interval of ownership began, as evidence."""
    began = {"source": interval["from_source"], "seq": interval["from_seq"], "at_ms": interval["from_ms"]}
    return proof({**interval, **began, "event": event})


def nulls_first(*values: Any) -> tuple[tuple[bool, Any], ...]:
    """A key by which values sort that may be none."""
    return tuple((value is not None, value) for value in values)
