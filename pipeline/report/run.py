"""Reads inputs, makes the tables, writes them and the page: the report's only part that touches files.

Below the output folder: ``report.html``, ``laboratory.html`` to step through its groups, and
``tables/NAME/day=.../group_id=.../*.parquet`` for each table, with ``events`` and ``quarantine``. What was there from
an earlier report is replaced.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from rejoin.pipeline import schemas
from rejoin.pipeline.drawn.beside_report import draw, events_to_draw
from rejoin.pipeline.findings.annotations import Annotation
from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.reading.coverage import OF_MEMBERS, Coverage, first_candidate
from rejoin.pipeline.reading.inputs import EXPECTED, InputFile, NoInput, find, must_name_groups, named
from rejoin.pipeline.reading.parquet_files import as_parquet, with_whole_pages
from rejoin.pipeline.report.annotations import annotate, keep_annotations
from rejoin.pipeline.report.collect import collect
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.defaults import MOST_GROUPS, TITLE
from rejoin.pipeline.report.events import PlainRows, in_one_run, read_events, rows_of_events
from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.page.findings import STEPPED
from rejoin.pipeline.report.parquet_tables import Keep, OnStep, in_process, on_disk, rows_in_process, stored
from rejoin.pipeline.report.tables import all_tables, make_tables
from rejoin.pipeline.vocabulary import CLIENT_LOG, LOGS

PAGE: Final = "report.html"
TABLES: Final = "tables"
SMALL_BYTES: Final = 40 * 2**20
"""Up to this size, about 100,000 events, a report in this process takes a third of the CPU of one on Spark's terms."""
QUICK: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # All rows are in one place anyway: to send some to where the others are would be a job of its own.
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # It would compute rows while a query is planned, before what is the same for all of them is computed once.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
"""Settings of a session for little data: to compile a query, or to spread it out, takes longer than to run it."""
_SUBJECTS: Final = ("group_id", "producer_id")
"""Columns that say what an event is about; a report needs an event with one of them."""
KINDS: Final = ("journal", "parquet", "log")
_BYTES_A_ROW: Final = 400
_PACKED: Final = 15
"""How much longer a journal is than its gzip."""


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
    small: bool | None = None,
    ahead: Future[PlainRows] | None = None,
    annotations: Sequence[Annotation] = (),
) -> Report:
    """Everything: tables and page below ``out``. ``on_step`` is called with each step.

    ``small``: keep tables in this process as well as on disk; the default is what :func:`is_small` says.
    ``annotations``: what happened around the groups, for the charts and the rule about it.
    ``ahead``: rows of the inputs that :func:`rejoin.pipeline.report.events.read_ahead` reads already.

    Raises :class:`rejoin.pipeline.reading.inputs.NoInput` where there is nothing to read or nothing about groups in it.
    """
    found = [with_whole_pages(each) for each in to_read(inputs, out, kind)]
    must_name_groups(found)
    on_step(f"reading {count(len(found), 'file')}")
    folder = out / TABLES
    small = is_small(found) if small is None else small
    keep: Keep = in_process if small else on_disk
    rows, coverage = None, Coverage()
    if small:
        read = rows_of_events(spark, found, timezone, ahead, coverage)
        names_groups = any(read.events.column(each).null_count < read.events.num_rows for each in _SUBJECTS)
        rows = read.events
        events = rows_in_process(spark, read.events, schemas.EVENTS, folder / "events", ("day",))
        quarantine = rows_in_process(spark, read.quarantine, schemas.QUARANTINE, folder / "quarantine", ())
    else:
        bronze = read_events(spark, found, timezone, coverage)
        events = keep(in_one_run(bronze.events), schemas.EVENTS, folder / "events", ("day",))
        quarantine = keep(bronze.quarantine, schemas.QUARANTINE, folder / "quarantine", ())
        names_groups = not events.where(" OR ".join(f"{each} IS NOT NULL" for each in _SUBJECTS)).isEmpty()
    if not names_groups:
        raise NoInput(_nothing(found, quarantine))
    tables = make_tables(events, folder, rows=rows, on_step=on_step)
    readable = stored(schemas.EVENTS, folder / "events") if rows is None else ds.dataset(rows)
    about = {"title": title, "groups": groups, "most_groups": most_groups, "logged": _logged_groups(coverage, readable)}
    report = collect(tables.stored(), quarantine, on_step=on_step, **about)
    _count_files(report, found, readable, coverage)
    report.made = f"Made by rejoin report; the tables are in {folder}."
    if groups and not report.groups:
        known = sorted({row["group_id"] for row in report.others})
        raise NoInput(f"there is no group {' or '.join(groups)}; the input has {', '.join(known)}")
    shutil.rmtree(folder / "annotations", ignore_errors=True)
    if annotations:
        annotate(report, annotations)
        keep_annotations(annotations, folder / "annotations")
    on_step("laboratory")
    draw(report, events_to_draw(readable, report), out)
    (out / PAGE).write_text(render(report), encoding="utf-8")
    return report


def _count_files(report: Report, found: Sequence[InputFile], events: ds.Dataset, coverage: Coverage) -> None:
    """Say which files were read. One that could not be is no line of the quarantine, though it has a row there."""
    report.unread = [each for each in found if each.problem is not None]
    report.files = len(found) - len(report.unread)
    report.silent = _without_events([each for each in found if each.problem is None], events)
    numbers = Counter(dict(report.quarantine_kinds)) - Counter(each.kind_of_problem for each in report.unread)
    report.quarantine_kinds = numbers.most_common()
    report.coverage = _covered(coverage, events)
    whole = {each.path for each in report.unread}
    report.quarantine = [row for row in report.quarantine if row["line"] is not None or row["file"] not in whole]


def _logged_groups(coverage: Coverage, events: ds.Dataset) -> dict[tuple[str, str], tuple[int, int]]:
    """From when to when logs speak of each group: an excerpt may have no whole rebalance of it."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    columns = ["run_id", "group_id", "at_ms"]
    for batch in events.to_batches(columns=columns, filter=ds.field("source").isin(LOGS)) if coverage.lines else ():
        sums = pa.Table.from_batches([batch]).group_by(columns[:2]).aggregate([("at_ms", "min"), ("at_ms", "max")])
        for row in sums.to_pylist():
            if row["group_id"] is not None:
                key, first, last = (row["run_id"], row["group_id"]), row["at_ms_min"], row["at_ms_max"]
                before = found.get(key, (first, last))
                found[key] = min(first, before[0]), max(last, before[1])
    return found


def _covered(coverage: Coverage, events: ds.Dataset) -> list[str]:
    """Sentences on how much of the logs was used."""
    if coverage.lines:
        asked = ds.field("source") == CLIENT_LOG
        for batch in events.to_batches(columns=list(OF_MEMBERS), filter=asked):
            coverage.add_events(batch.to_pylist())
    return coverage.sentences()


def _without_events(found: Sequence[InputFile], events: ds.Dataset) -> list[str]:
    """Files of which no line became an event. A Parquet file has the names of the files that it was made of."""
    named = {file for batch in events.to_batches(columns=["file"]) for file in batch["file"].unique().to_pylist()}
    return [each.path for each in found if each.kind != "parquet" and each.path not in named]


def is_small(found: Iterable[InputFile]) -> bool:
    """Whether the work is less than what it takes to spread it out."""
    return sum(map(_bytes_of_events, found)) <= SMALL_BYTES


def _bytes_of_events(file: InputFile) -> int:
    """About how long a file's events are as lines."""
    if file.kind == "parquet" and file.problem is None:
        return int(read_metadata(file.path).num_rows) * _BYTES_A_ROW
    return file.size * _PACKED if file.path.endswith(".gz") else file.size


def to_read(inputs: Sequence[str | os.PathLike[str]], out: Path, kind: str | None = None) -> list[InputFile]:
    """The files of a report. Raises :class:`pipeline.reading.inputs.NoInput` where it would write over one of them."""
    found = find(inputs)
    written = {os.path.realpath(out / each) for each in (PAGE, STEPPED)}
    ours = os.path.realpath(out / TABLES) + os.sep
    own = next((each.path for each in found if each.path in written or each.path.startswith(ours)), None)
    if own is not None:
        raise NoInput(f"{own}: lies where this report would write its pages and tables; choose another --out")
    if kind == "parquet":
        return [as_parquet(each) for each in found]
    return [each._replace(kind=kind) for each in found] if kind in KINDS else found  # type: ignore[arg-type]


def other_files(out: Path) -> tuple[list[str], list[str]]:
    """Files in a report's folder that belong to no report: below its tables, and beside them."""
    if not out.is_dir():
        return [], []
    ours = {"events", "quarantine", "annotations", *(name for name, _ in all_tables())}
    tables = out / TABLES
    below = sorted(each.name for each in tables.iterdir() if each.name not in ours) if tables.is_dir() else []
    beside = sorted(each.name for each in out.iterdir() if each.name not in (PAGE, STEPPED, TABLES))
    return [each for each in below if not each.startswith(".")], [each for each in beside if not each.startswith(".")]


def _nothing(found: Sequence[InputFile], quarantine: DataFrame) -> str:
    """Why there is nothing to report on."""
    kinds = quarantine.groupBy("kind", "reason").agg(fn.count("*").alias("n")).orderBy(fn.desc("n"), "kind").limit(1)
    bad = [row.asDict() for row in kinds.collect()]
    why = f"; {bad[0]['n']} lines are {bad[0]['kind']}: {bad[0]['reason']}" if bad else ""
    candidate = first_candidate(each.path for each in found if each.kind == "log" and each.problem is None)
    return f"{named(found)}: nothing about consumer groups in there{why}. {candidate}{' ' * bool(candidate)}{EXPECTED}"
