"""The table ``findings`` of much data: Spark brings the rows of each group to one task, which judges it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import COUNTS_BROKERS, OF_ALL_GROUPS, rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import (
    COMMIT_APIS,
    FAILED_APIS,
    MINUTE_MS,
    READ_ONE_BY_ONE,
    ROWS,
    RunContext,
)
from rejoin.pipeline.findings.rules.brokers import SHARED, one_for_each_event
from rejoin.pipeline.findings.rules.offsets_log import SLOW_LOAD_MS
from rejoin.pipeline.tables.common import ends_of_runs
from rejoin.pipeline.vocabulary import EXACT, LOGS, REQUEST


def findings(tables: Mapping[str, DataFrame], events: DataFrame) -> DataFrame:
    """The table ``findings`` from the tables of ``READS`` and the events: one row for each finding.

    All rows of a group that the rules look at go to one task; of pauses, ownership and records only sums do.
    """
    rows = rows_of_groups(tables, events)
    judged = rows.groupBy("run_id", "group_id").applyInArrow(_judge_group, schema=schemas.FINDINGS)
    # Those of one event of a broker come to one place, all others stay in the places of their groups.
    of_brokers = F.col("finding").isin(*SHARED)
    key = F.when(of_brokers, F.lit(None)).otherwise(F.col("group_id"))
    return judged.withColumn("key", key).groupBy("run_id", "key").applyInArrow(_join_groups, schema=schemas.FINDINGS)


def rows_of_groups(tables: Mapping[str, DataFrame], events: DataFrame) -> DataFrame:
    """What the rules look at: one row for each row of a table that is about a group, with what is known of its run."""
    parts = [
        _part("rebalance", tables["rebalances"]),
        _part("session", tables["member_sessions"]),
        _part("balance", tables["balance"]),
        _part("pauses", pauses_by_generation(tables["pauses"])),
        _part("owned", _first_owned(tables["ownership"])),
        _part("loss", _losses(tables["records"])),
        _part("commits", _commits(events)),
        _part("event", _events(events, tables["member_sessions"])),
    ]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part, allowMissingColumns=True)
    return rows.join(F.broadcast(_runs(events)), "run_id", "left")


def _runs(events: DataFrame) -> DataFrame:
    """What holds for all groups of a run: when it ends, how many brokers there are, and what the source reports."""
    from_logs = F.col("source").isin(*LOGS)
    joins = (F.col("event") == "member_joined") & from_logs & (F.col("confidence") == EXACT)
    of_brokers = F.col("event").isin(*COUNTS_BROKERS)
    known = events.groupBy("run_id").agg(
        F.max(F.coalesce(joins, F.lit(False))).alias("joins_reported"),
        F.max(F.col("event") == REQUEST).alias("requests_read"),
        F.count_distinct(F.when(of_brokers, F.col("node"))).cast("int").alias("brokers"),
    )
    ends = ends_of_runs(events).select("run_id", F.col("ends_at_ms").alias("end_ms"))
    return ends.join(known, "run_id")


def _part(kind: str, table: DataFrame) -> DataFrame:
    names = [each.name for each in fields(ROWS[kind])]
    return table.select("run_id", "group_id", F.struct(*names).alias(kind))


def pauses_by_generation(pauses: DataFrame) -> DataFrame:
    """Pauses by the generation that ended them: rows of :class:`~rejoin.pipeline.findings.history.GenerationPauses`."""
    return (
        pauses.where(
            F.col("generation_to").isNotNull() & F.col("ended_at_ms").isNotNull() & (F.col("end") == "assigned")
        )
        .groupBy("run_id", "group_id", "generation_to", "kind")
        .agg(
            F.count("*").alias("pauses"),
            F.sum("stopped_ms").alias("stopped_ms"),
            F.max("ended_at_ms").alias("ended_at_ms"),
            F.min(F.col("confidence") != EXACT).alias("guessed"),
        )
    )


def _first_owned(ownership: DataFrame) -> DataFrame:
    return (
        ownership.where(F.col("kind") == "owned")
        .groupBy("run_id", "group_id", "topic", "partition")
        .agg(F.min("from_ms").alias("first_ms"))
    )


def _losses(records: DataFrame) -> DataFrame:
    return (
        records.where(F.col("kind") == "lost")
        .groupBy("run_id", "group_id", "topic", "partition")
        .agg(
            F.sum("records").alias("records"),
            F.count("*").alias("ranges"),
            F.min("at_ms").alias("first_ms"),
            F.max("at_ms").alias("last_ms"),
        )
    )


def _commits(events: DataFrame) -> DataFrame:
    """Commits that were stored, by minute."""
    of_journals = F.col("event") == "offsets_committed"
    of_requests = (F.col("event") == REQUEST) & F.col("api").isin(*COMMIT_APIS) & (F.col("error") == "NONE")
    return (
        events.where((of_journals | of_requests) & F.col("group_id").isNotNull())
        .groupBy("run_id", "group_id", (F.col("at_ms") / MINUTE_MS).cast("long").alias("minute"))
        .agg(
            F.count("*").alias("commits"),
            F.sum(F.when(F.col("offsets").isNotNull(), F.size("offsets"))).alias("offsets"),
            F.count_distinct(F.coalesce("member_id", "client_id")).alias("committers"),
        )
    )


def _events(events: DataFrame, sessions: DataFrame) -> DataFrame:
    names = [each.name for each in fields(ROWS["event"])]
    not_stored = (F.col("event") == "rebalance_started") & (F.col("cause") == "store-failure")
    failed = (F.col("event") == REQUEST) & F.col("api").isin(*FAILED_APIS) & (F.col("error") != "NONE")
    wanted = events.where(F.col("event").isin(*READ_ONE_BY_ONE) | not_stored | failed)
    of_groups = wanted.where(F.col("group_id").isNotNull()).select("run_id", "group_id", *names)
    of_all = _of_brokers(events, sessions, names)
    return of_groups.unionByName(_of_topics(wanted, sessions, names)).unionByName(of_all)


def _of_topics(wanted: DataFrame, sessions: DataFrame, names: list[str]) -> DataFrame:
    """An event of a topic concerns every group that reads it, and may concern each whose topics are not known."""
    readers = sessions.select("run_id", "group_id", F.explode_outer("topics").alias("read")).distinct()
    known = readers.groupBy("run_id", "group_id").agg(F.collect_set("read").alias("read"))
    of_topics = wanted.where(F.col("group_id").isNull() & F.col("topic").isNotNull()).drop("group_id")
    concerns = (F.size("read") == 0) | F.array_contains("read", F.col("topic"))
    return of_topics.join(known, "run_id", "inner").where(concerns).select("run_id", "group_id", *names)


def _of_brokers(events: DataFrame, sessions: DataFrame, names: list[str]) -> DataFrame:
    """The stop of a broker, and a load that was slow or failed, may concern every group."""
    groups = sessions.select("run_id", "group_id").distinct()
    slow = (F.col("event") == "partition_loaded") & (F.col("load_ms") >= SLOW_LOAD_MS)
    concerns_all = F.col("event").isin(*OF_ALL_GROUPS) | slow
    of_brokers = events.where(F.col("group_id").isNull() & concerns_all).drop("group_id")
    return of_brokers.join(groups, "run_id", "inner").select("run_id", "group_id", *names)


def _judge_group(table: pa.Table) -> pa.Table:
    """All findings of one group, from its rows."""
    schema = to_arrow_schema(schemas.FINDINGS)
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for kind in ROWS:
        column = table.column(kind).combine_chunks()
        rows[kind] = column.drop_null().to_pylist()
    keys = {name: table.column(name)[0].as_py() for name in ("group_id", *(each.name for each in fields(RunContext)))}
    if keys["group_id"] is None:
        return schema.empty_table()
    run = RunContext(**{each.name: keys[each.name] for each in fields(RunContext)})
    return pa.Table.from_pylist(list(rows_of(GroupHistory.of(run, keys["group_id"], rows))), schema=schema)


def _join_groups(table: pa.Table) -> pa.Table:
    """Findings about one event of a broker as one, with all groups that it met."""
    found = table.drop_columns(["key"]).to_pylist()
    return pa.Table.from_pylist(one_for_each_event(found), schema=to_arrow_schema(schemas.FINDINGS))
