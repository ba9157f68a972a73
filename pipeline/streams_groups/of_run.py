"""The rows of one streams group that rules look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoin.pipeline.vocabulary import EXACT

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamsGroupOfRun:
    """One streams group of one run."""

    run_id: str
    group_id: str
    tables: Mapping[str, Sequence[Row]]

    @property
    def tasks(self) -> Sequence[Row]:
        """Active tasks that had no owner for a while, by their begin."""
        return self.tables["tasks"]

    @property
    def restores(self) -> Sequence[Row]:
        """Standbys that were never ready."""
        return self.tables["task_restores"]

    @property
    def changes(self) -> Sequence[Row]:
        """Changes of what lets the application run, by time."""
        return self.tables["streams_changes"]

    def is_not_ready(self, from_ms: int, to_ms: int) -> bool:
        """True if the group lacked topics at some time within this one."""
        return any(
            row["status"] is not None and row["at_ms"] <= to_ms and (row["to_ms"] is None or row["to_ms"] >= from_ms)
            for row in self.changes
        )


def task_of(row: Row) -> str:
    """The task of a row as Kafka names it, such as ``1_0``."""
    return f"{row['subtopology']}_{row['task']}"


def is_exact(rows: Iterable[Row]) -> bool:
    """True if all rows are known from what sources say literally."""
    return all(row["confidence"] == EXACT for row in rows)


def evidence_of(row: Row) -> dict[str, Any]:
    """The row that another one is known from."""
    at_ms = next(row[name] for name in ("at_ms", "from_ms", "last_at_ms") if name in row)
    event = row.get("event") or ("streams_task_offsets_reported" if "reports" in row else "streams_member_assigned")
    return {**{name: row[name] for name in ("source", "node", "seq", "file", "line")}, "at_ms": at_ms, "event": event}
