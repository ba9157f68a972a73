"""What version 1 wrote, journals and a table of events, gives the same tables as it did then."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rejoin.pipeline.reading.inputs import find
from rejoin.pipeline.reading.on_spark import from_table, sort_out
from rejoin.pipeline.report.on_spark import read_events
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


def test_journals(spark: SparkSession) -> None:
    read = read_events(spark, find([JOURNALS / "service", JOURNALS / "simulation"]), "UTC")
    assert read.quarantine.count() == 0
    events = read.events.persist()
    assert events.count() == 372 + 138
    found = rebalances(events).select("run_id", "group_id", "number", "outcome", "cause").collect()
    rows = sorted((row.run_id == "simulation-1", *row[1:]) for row in found)
    assert [row[1:] for row in rows if row[0]] == REBALANCES
    assert [row[1:] for row in rows if not row[0]] == OF_THE_SERVICE
    left = events.where("event = 'group_left'").select("notified").collect()
    assert [row.notified for row in left].count(True) == 2
    assert {row.topic for row in events.where("event = 'partition_elected'").collect()} == {"__consumer_offsets"}
    notes = events.where("event_json IS NOT NULL").collect()
    assert [(row.event, row.group_id) for row in notes] == [("offsets_committed", "tx-app")]


def test_a_table_of_events(spark: SparkSession) -> None:
    table = spark.read.parquet(str(JOURNALS / "table"))
    assert {"fact", "told", "rebalances"} <= set(table.columns)
    read = sort_out(from_table(table, "events.parquet").persist())
    assert read.quarantine.count() == 0
    assert read.events.count() == table.count()
    for old, new in (("told", "notified"), ("rebalances", "rebalance")):
        assert read.events.where(f"{new} IS NOT NULL").count() == table.where(f"{old} IS NOT NULL").count()
    assert read.events.where("event = 'done'").count() == 0
