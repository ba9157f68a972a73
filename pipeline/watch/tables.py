"""The tables of what a stream has kept so far, brought up to date with the batches that are new.

They lie below ``OUT/tables``, see :mod:`rejoin.pipeline.incremental`. What is still needed of the events before is kept
in this process and, now and then, on disk; whatever interrupts this, it goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.incremental.runs import SCHEMA
from rejoin.pipeline.incremental.tables import IncrementalTables
from rejoin.pipeline.watch.store import WatchStore

MOST_ROWS: Final = 100_000
"""Rows of a step; a batch that has more is one step."""

_SHOWN: Final = (
    *("rebalance_id", "group_id", "cause", "cause_member_id", "cause_group_instance_id", "cause_client_id"),
    *("ended_at_ms", "outcome", "unavailable_ms", "moved", "generation_to"),
)
"""Columns of ``rebalances`` that a dashboard shows."""

Row = dict[str, Any]


class TableSummary(NamedTuple):
    """Tables of the events up to and with a batch."""

    batch: int
    rebalances: int
    quarantined: int
    findings: list[Row]
    """Rows of ``findings``, the worst first."""
    ended: list[Row]
    """Rebalances that ended since the summary before, in the order of their ends."""
    groups: list[Row]
    """Each group at each of its coordinators."""


class WatchTables:
    """The tables of a store. It is for one thread."""

    def __init__(self, store: WatchStore) -> None:
        self._store = store
        self._tables: IncrementalTables | None = None
        self._began = False
        self._given: set[str] = set()
        """Rebalances in summaries of steps that are not kept yet: a step that is done once more gives none again."""

    def updates(
        self, on_step: Callable[[str], None] = lambda _: None, *, everything: bool = False
    ) -> Iterator[TableSummary]:
        """Take in all batches that are committed, with a summary after each step; the first has all that was known.

        ``everything``: then look at all groups, whatever befell them. What ``on_step`` raises ends it, and the next
        call goes on from what was kept.
        """
        tables, self._tables = self._tables or IncrementalTables(self._store.folder), None
        if not self._began:
            self._began = True
            yield self._summary(tables, tables.ended())
        head = self._store.committed()
        for batch, events, quarantined in self._steps(tables.step + 1, head):
            on_step(f"making tables of {count(events.num_rows, 'event')}")
            ended = tables.take(events, batch, quarantined=quarantined, everything=everything and batch == head)
            summary = self._summary(tables, ended)
            # A step that cannot be kept is done once more, and gives its rebalances then.
            is_kept = tables.save()
            self._given = set() if is_kept else self._given.union(row["rebalance_id"] for row in summary.ended)
            yield summary
        self._tables = tables

    def close(self) -> None:
        """Keep what is known, for the next time."""
        if self._tables is not None:
            self._tables.save(now=True)

    def _summary(self, tables: IncrementalTables, ended: pa.Table) -> TableSummary:
        rows = [row for row in ended.select(_SHOWN).to_pylist() if row["rebalance_id"] not in self._given]
        rows.sort(key=lambda row: (row["ended_at_ms"], row["rebalance_id"]))
        found = sorted(tables.findings(), key=order)
        return TableSummary(tables.step, tables.count("rebalances"), tables.quarantined, found, rows, tables.groups())

    def _steps(self, first: int, last: int) -> Iterator[tuple[int, pa.Table, int]]:
        """Batches with their events and the number of their broken lines; of small ones several together."""
        waiting: list[pa.Table] = []
        for batch in range(first, last + 1):
            waiting.append(_read(self._store.events / f"batch_id={batch}"))
            if batch == last or sum(each.num_rows for each in waiting) >= MOST_ROWS:
                rows = pa.concat_tables(waiting).combine_chunks()
                events = rows.filter(pc.is_null(rows["kind_"])).select(SCHEMA.names)
                yield batch, events, rows.num_rows - events.num_rows
                waiting = []


def _read(folder: Path) -> pa.Table:
    schema = SCHEMA.append(pa.field("kind_", pa.string()))
    parts = [pq.ParquetFile(path).read(schema.names).cast(schema) for path in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables([schema.empty_table(), *parts])
