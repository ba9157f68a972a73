"""The tables of all events that a stream has kept so far, made by the functions that a batch uses.

They lie below ``OUT/tables`` as a report writes them. A table is written anew as a whole; which batches it holds is
written down last, so that whatever interrupts this, it is made once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from rejoin.pipeline import findings, schemas
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.live.store import WatchStore, write_json
from rejoin.pipeline.reading.journals import sort_out
from rejoin.pipeline.report.parquet_tables import MOST_ROWS, Keep, in_process, on_disk
from rejoin.pipeline.report.tables import Tables, all_tables, keep_table

WANTED: Final = (*findings.READS, *schemas.TRANSACTION_TABLES, "findings")
"""Tables that are kept up to date."""

_AS_OF: Final = "as_of.json"

Row = dict[str, Any]


class TableSummary(NamedTuple):
    """Tables of the events up to and with a batch."""

    batch: int
    rebalances: int
    quarantined: int
    findings: list[Row]
    """Rows of ``findings``, the worst first."""


def make_tables(
    spark: SparkSession, store: WatchStore, on_table: Callable[[str], None] = lambda _: None
) -> TableSummary:
    """Make the tables of all events that are committed, unless they are there already."""
    batch = store.committed("events")
    if _as_of(store.tables) != batch:
        parsed = store.read_events(spark).drop("batch_id").persist()
        try:
            _make(parsed, store.tables, on_table)
        finally:
            parsed.unpersist()
        write_json(store.tables / _AS_OF, {"batch": batch})
    return _made(spark, store.tables, batch)


def _make(parsed: DataFrame, folder: Path, on_table: Callable[[str], None]) -> None:
    small = parsed.count() <= MOST_ROWS
    keep: Keep = in_process if small else on_disk
    bronze = sort_out(parsed)
    events = keep(bronze.events, schemas.EVENTS, folder / "events", ("day",))
    keep(bronze.quarantine, schemas.QUARANTINE, folder / "quarantine", ())
    rows = events.toArrow() if small else None
    tables = Tables()
    for name, make in all_tables(rows):
        if name in WANTED:
            on_table(name)
            tables.put(name, keep_table(name, make(events, tables), folder, events.sparkSession, here=small))


def read_table(spark: SparkSession, folder: Path) -> DataFrame:
    """A table that was written here, by the folder's name."""
    own = {"events": schemas.EVENTS, "quarantine": schemas.QUARANTINE}
    schema = own.get(folder.name) or schemas.TABLES[folder.name]
    return spark.read.schema(schema).parquet(str(folder)).select(*schema.fieldNames())


def _made(spark: SparkSession, folder: Path, batch: int) -> TableSummary:
    if batch < 0:
        return TableSummary(batch, 0, 0, [])
    found = [row.asDict() for row in read_table(spark, folder / "findings").collect()]
    return TableSummary(
        batch,
        read_table(spark, folder / "rebalances").count(),
        read_table(spark, folder / "quarantine").count(),
        sorted(found, key=order),
    )


def _as_of(folder: Path) -> int | None:
    try:
        known: Mapping[str, int] = json.loads((folder / _AS_OF).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return known.get("batch")
