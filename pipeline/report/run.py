"""Reads inputs, makes the tables, writes them and the page: the report's only part that touches files.

Below the output folder: ``report.html``, and ``tables/NAME/day=.../group_id=.../*.parquet`` for each table, with
``events`` and ``quarantine``. What was there from an earlier report is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from rejoin.pipeline import schemas
from rejoin.pipeline.audits import violations
from rejoin.pipeline.findings import findings
from rejoin.pipeline.reading.broker_logs.tables import read_logs
from rejoin.pipeline.reading.inputs import InputFile, NoInput, as_parquet, find
from rejoin.pipeline.reading.journals import Bronze, from_table, parse, sort_out
from rejoin.pipeline.reading.text_lines import read_lines
from rejoin.pipeline.report.collect import MOST_GROUPS, collect
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.page import render
from rejoin.pipeline.schemas import QUARANTINE
from rejoin.pipeline.tables.balance import balance
from rejoin.pipeline.tables.commits import commits
from rejoin.pipeline.tables.member_sessions import member_sessions
from rejoin.pipeline.tables.ownership import ownership
from rejoin.pipeline.tables.pauses import pauses
from rejoin.pipeline.tables.rebalances import rebalances
from rejoin.pipeline.tables.records import progress, records
from rejoin.pipeline.tables.requests import requests
from rejoin.pipeline.tables.streams import streams

PAGE: Final = "report.html"
TABLES: Final = "tables"
TITLE: Final = "Why did my group rebalance?"
QUICK: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings of a session for little data: a report is many small queries; to compile one takes longer than it runs."""
KINDS: Final = ("journal", "parquet", "log")
_BY: Final = ("day", "group_id")
"""Columns by which tables lie in folders, as far as they have them."""

OnStep = Callable[[str], None]


def make_report(
    spark: SparkSession,
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    *,
    kind: str | None = None,
    groups: Sequence[str] = (),
    most_groups: int = MOST_GROUPS,
    timezone: str = "UTC",
    title: str = TITLE,
    on_step: OnStep = lambda _: None,
) -> Report:
    """Everything: tables and page below ``out``. ``on_step`` is called with the name of each step.

    Raises :class:`rejoin.pipeline.reading.inputs.NoInput` where there is nothing to read or nothing about groups in it.
    """
    found = to_read(inputs, out, kind)
    on_step(f"reading {len(found)} files")
    folder = out / TABLES
    bronze = read_events(spark, found, timezone)
    events = _write(in_one_run(bronze.events), schemas.EVENTS, folder / "events", by=("day",))
    quarantine = _write(bronze.quarantine, schemas.QUARANTINE, folder / "quarantine", by=())
    if events.where("group_id IS NOT NULL").limit(1).count() == 0:
        raise NoInput(_nothing(found, quarantine))
    tables: dict[str, DataFrame] = {}
    for name, make in all_tables():
        on_step(f"making {name.replace('_', ' ')}")
        tables[name] = _write(make(events, tables), schemas.TABLES[name], folder / name)
    report = collect(tables, quarantine, title=title, groups=groups, most_groups=most_groups, on_step=on_step)
    report.files = len(found)
    report.made = f"Made by rejoin report; the tables are in {folder}."
    if groups and not report.groups:
        known = sorted({row["group_id"] for row in report.others})
        raise NoInput(f"there is no group {' or '.join(groups)}; the input has {', '.join(known)}")
    (out / PAGE).write_text(render(report), encoding="utf-8")
    return report


def all_tables() -> Iterable[tuple[str, Callable[[DataFrame, Mapping[str, DataFrame]], DataFrame]]]:
    """Names of tables with how each is made of the events and the tables before it."""
    return (
        ("streams", lambda events, _: streams(events)),
        ("rebalances", lambda events, _: rebalances(events)),
        ("member_sessions", lambda events, tables: member_sessions(events, tables["rebalances"])),
        ("pauses", lambda events, tables: pauses(events, tables["rebalances"])),
        ("ownership", lambda events, _: ownership(events)),
        ("balance", lambda events, _: balance(events)),
        ("commits", lambda events, _: commits(events)),
        ("records", lambda events, _: records(events)),
        ("progress", lambda events, _: progress(events)),
        ("requests", lambda events, _: requests(events)),
        (
            "violations",
            lambda events, tables: violations(
                events, tables["rebalances"], tables["ownership"], tables["member_sessions"]
            ),
        ),
        ("findings", lambda events, tables: findings(tables, events)),
    )


def read_events(spark: SparkSession, found: Sequence[InputFile], timezone: str) -> Bronze:
    """The events of all files, and what could not be used."""
    parsed = parse(read_lines(spark, [each for each in found if each.kind == "journal"]))
    tables = [each for each in found if each.kind == "parquet"]
    for each in tables:
        if each.problem is None:
            parsed = parsed.unionByName(from_table(spark.read.parquet(each.path), fn.lit(each.path)))
    bronze = sort_out(parsed.persist())
    bad = [(each.path, None, each.problem, _kind_of(each), None) for each in tables if each.problem is not None]
    if bad:
        bronze = bronze._replace(quarantine=bronze.quarantine.unionByName(spark.createDataFrame(bad, QUARANTINE)))
    logs = [each for each in found if each.kind == "log"]
    if not logs:
        return bronze
    logged = read_logs(spark, logs, timezone=timezone)
    return Bronze(bronze.events.unionByName(logged.events), bronze.quarantine.unionByName(logged.quarantine))


def _kind_of(table: InputFile) -> str:
    return "not-a-row" if str(table.problem).startswith("not a table") else "unreadable"


def in_one_run(events: DataFrame) -> DataFrame:
    """The events of a service's consumers as of its own run, if the input is of one service.

    Each process has a run of its own unless it is given one; the events of a service and its consumers belong together,
    and share real time. Simulations name their own runs.
    """
    runs = events.where("source IN ('coordinator', 'client')").select("source", "run_id").distinct().collect()
    services = sorted({row.run_id for row in runs if row.source == "coordinator"})
    if len(services) != 1 or all(row.run_id == services[0] for row in runs):
        return events
    run_id = fn.when(fn.col("source") == "client", services[0]).otherwise(fn.col("run_id"))
    return events.withColumn("run_id", run_id)


def to_read(inputs: Sequence[str | os.PathLike[str]], out: Path, kind: str | None = None) -> list[InputFile]:
    """The files of a report. Raises :class:`pipeline.reading.inputs.NoInput` where it would write over one of them."""
    found = find(inputs)
    page, ours = os.path.realpath(out / PAGE), os.path.realpath(out / TABLES) + os.sep
    own = next((each.path for each in found if each.path == page or each.path.startswith(ours)), None)
    if own is not None:
        raise NoInput(f"{own}: lies where this report would write its page and tables; choose another --out")
    if kind == "parquet":
        return [as_parquet(each) for each in found]
    return [each._replace(kind=kind) for each in found] if kind in KINDS else found  # type: ignore[arg-type]


def _nothing(found: Sequence[InputFile], quarantine: DataFrame) -> str:
    """Why there is nothing to report on."""
    kinds = quarantine.groupBy("kind", "reason").agg(fn.count("*").alias("n")).orderBy(fn.desc("n"), "kind").limit(1)
    bad = [row.asDict() for row in kinds.collect()]
    seen = ", ".join(each.path for each in found[:3]) + (f" and {len(found) - 3} more files" if found[3:] else "")
    why = f"; {bad[0]['n']} lines are {bad[0]['kind']}: {bad[0]['reason']}" if bad else ""
    return (
        f"{seen}: nothing about consumer groups in there{why}. Expected journals of ours (*.jsonl), a broker's "
        "server.log with the lines of its group coordinator, or its kafka-request.log"
    )


def _write(table: DataFrame, schema: StructType, folder: Path, by: Sequence[str] = _BY) -> DataFrame:
    """Write a table anew, and give it back as it is on disk: whatever comes after is made of that."""
    by = [name for name in by if name in schema.fieldNames()]
    writer = table.write.mode("overwrite").option("partitionOverwriteMode", "static")
    (writer.partitionBy(*by) if by else writer).parquet(str(folder))
    session = table.sparkSession
    return session.read.schema(schema).parquet(str(folder)).select(*schema.fieldNames())
