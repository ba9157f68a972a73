"""What version 1 wrote, journals and a table of events, gives the same tables as it did then."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.journals import events_of_table, sorted_out
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.tables.group_tables import rebalances
from tests.paths import JOURNALS

REBALANCES = [
    ("clicks-app", 1, "completed", "join-new"),
    ("clicks-app", 2, "completed", "join-new"),
    ("orders-app", 1, "completed", "join-new"),
    ("orders-app", 2, "completed", "session-expiry"),
]
OF_THE_SERVICE = [
    ("orders-app", 1, "superseded", "join-new"),
    ("orders-app", 2, "completed", "join-new"),
    ("orders-app", 3, "emptied", "leave"),
]


def test_journals() -> None:
    read = read_events(find([JOURNALS / "service", JOURNALS / "simulation"]), "UTC")
    assert read.quarantine.num_rows == 0
    events = read.events.to_pylist()
    assert len(events) == 372 + 138
    table: pa.Table = rebalances(read.events)
    found = table.select(["run_id", "group_id", "number", "outcome", "cause"]).to_pylist()
    rows = sorted((run_id == "simulation-1", *rest) for run_id, *rest in (each.values() for each in found))
    assert [row[1:] for row in rows if row[0]] == REBALANCES
    assert [row[1:] for row in rows if not row[0]] == OF_THE_SERVICE
    assert [row["notified"] for row in events if row["event"] == "group_left"].count(True) == 2
    assert {row["topic"] for row in events if row["event"] == "partition_elected"} == {"__consumer_offsets"}
    notes = [row for row in events if row["event_json"] is not None]
    assert [(row["event"], row["group_id"]) for row in notes] == [("offsets_committed", "tx-app")]


def test_a_table_of_events() -> None:
    table = pq.read_table(JOURNALS / "table")
    assert {"fact", "told", "rebalances"} <= set(table.column_names)
    read = sorted_out(events_of_table(table, "events.parquet"))
    assert read.quarantine.num_rows == 0
    assert read.events.num_rows == table.num_rows
    for old, new in (("told", "notified"), ("rebalances", "rebalance")):
        assert read.events[new].null_count == table[old].null_count
    assert "done" not in read.events["event"].to_pylist()
