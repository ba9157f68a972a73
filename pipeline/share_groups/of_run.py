"""The rows of one share group that rules look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Row = Mapping[str, Any]
_MOVED: Final = "share_window_moved"


@dataclass(frozen=True, slots=True)
class ShareGroupOfRun:
    """One share group of one run."""

    run_id: str
    group_id: str
    tables: Mapping[str, Sequence[Row]]

    @property
    def deliveries(self) -> Sequence[Row]:
        """Late or ended without success, by their begin."""
        return self.tables["share_deliveries"]

    @property
    def archived(self) -> Sequence[Row]:
        """Archived records and dead letters, by time."""
        return self.tables["share_archived"]

    @property
    def windows(self) -> Sequence[Row]:
        """Changes of windows after they had stood, and failures, by time."""
        return self.tables["share_windows"]

    @property
    def partitions(self) -> Sequence[Row]:
        """Sums of each share-partition."""
        return self.tables["share_partitions"]

    def covering(self, place: str, offset: int) -> list[Row]:
        """Deliveries of one record."""
        return [
            row
            for row in self.deliveries
            if place_of(row) == place and row["first_offset"] <= offset <= row["last_offset"]
        ]

    def fate(self, place: str, offset: int) -> str:
        """A sentence about what became of a record that no member accepted; empty if that is not known."""
        rows = [
            row
            for row in self.archived
            if place_of(row) == place and row["first_offset"] <= offset <= row["last_offset"]
        ]
        archived = [row for row in rows if row["event"] == "share_records_archived"]
        letters = [row for row in rows if row["event"] == "share_records_dead_lettered"]
        if not archived:
            return ""
        why = {"delivery-limit": " at the delivery limit", "log-start": " as the log begins behind it"}
        made = f" It was archived{why.get(archived[-1]['reason'], '')}: no member gets it again"
        if letters and letters[-1]["error"] is None:
            return f"{made}; {letters[-1]['dead_letter_topic']} has its dead letter."
        return f"{made}{'; its dead letter was refused' if letters else ''}."


def place_of(row: Row) -> str:
    """The share-partition of a row, as ``orders-0``."""
    return f"{row['topic']}-{row['partition']}"


def evidence_of(row: Row) -> dict[str, Any]:
    """The row that another one is known from."""
    begins = "acquired_at_ms" in row and row["acquired_at_ms"] is not None
    at_ms = row["acquired_at_ms"] if begins else row.get("at_ms", row.get("ended_at_ms"))
    if "source" not in row:
        # Sums have no row of their own.
        return {**dict.fromkeys(("source", "node", "seq", "file", "line")), "at_ms": row["last_at_ms"], "event": _MOVED}
    event = row.get("event") or "share_records_acquired"
    return {**{name: row[name] for name in ("source", "node", "seq", "file", "line")}, "at_ms": at_ms, "event": event}
