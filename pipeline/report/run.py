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
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.parquet import read_metadata

from rejoin.pipeline import schemas
from rejoin.pipeline.drawn.beside_report import draw, events_to_draw
from rejoin.pipeline.findings.annotations import Annotation
from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.instants import WHOLE, LogWindow
from rejoin.pipeline.reading.coverage import OF_MEMBERS, Coverage
from rejoin.pipeline.reading.inputs import EXPECTED, InputFile, NoInput, find, must_name_groups, named
from rejoin.pipeline.reading.parquet_files import as_parquet, with_whole_pages
from rejoin.pipeline.reading.peeling.unknown_layouts import nearest_layout
from rejoin.pipeline.report.annotations import annotate, keep_annotations
from rejoin.pipeline.report.collect import collect, kinds_of
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.defaults import MOST_GROUPS, TITLE
from rejoin.pipeline.report.events import read_events
from rejoin.pipeline.report.page import render
from rejoin.pipeline.report.page.findings import STEPPED
from rejoin.pipeline.report.parquet_tables import OnStep, stored, write_rows
from rejoin.pipeline.report.tables import all_tables, make_tables
from rejoin.pipeline.tables.whole_groups import Rows
from rejoin.pipeline.vocabulary import CLIENT_LOG, LOGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = "report.html"
TABLES: Final = "tables"
SMALL_BYTES: Final = 40 * 2**20
"""Up to this size, about 100,000 events, a report is made in this process: Spark takes longer to start."""
_SUBJECTS: Final = ("group_id", "producer_id")
"""Columns that say what an event is about; a report needs an event with one of them."""
KINDS: Final = ("journal", "parquet", "log")
_BYTES_A_ROW: Final = 400


def make_report(
    inputs: Sequence[str | os.PathLike[str]],
    out: Path,
    *,
    spark: SparkSession | None = None,
    kind: str | None = None,
    groups: Sequence[str] = (),
    most_groups: int = MOST_GROUPS,
    timezone: str = "UTC",
    title: str = TITLE,
    on_step: OnStep = lambda _: None,
    annotations: Sequence[Annotation] = (),
    window: LogWindow = WHOLE,
) -> Report:
    """Everything: tables and page below ``out``. ``on_step`` is called with each step.

    ``spark``: makes the tables of data of any size; without it all rows are in this process, see :func:`is_small`.
    ``annotations``: what happened around the groups, for the charts and the rule about it. ``window``: from when to
    when logs are read.

    Raises :class:`rejoin.pipeline.reading.inputs.NoInput` where there is nothing to read or nothing about groups in it.
    """
    found = [with_whole_pages(each) for each in to_read(inputs, out, kind)]
    must_name_groups(found)
    on_step(f"reading {count(len(found), 'file')}")
    folder = out / TABLES
    coverage = Coverage()
    events, readable, quarantine = _kept_events(spark, found, timezone, folder, coverage, window)
    about_something = [pc.field(each).is_valid() for each in _SUBJECTS]
    if not readable.head(1, filter=reduce(or_, about_something)).num_rows:
        raise NoInput(_nothing(found, quarantine))
    tables = make_tables(events, folder, on_step=on_step)
    report = collect(
        tables.stored(),
        quarantine,
        title=title,
        groups=groups,
        most_groups=most_groups,
        logged=_logged_groups(coverage, readable),
        on_step=on_step,
    )
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


def _kept_events(
    spark: SparkSession | None,
    found: Sequence[InputFile],
    timezone: str,
    folder: Path,
    coverage: Coverage,
    window: LogWindow,
) -> tuple[Rows, ds.Dataset, ds.Dataset]:
    """The events, kept below a folder, those for readers without Spark, and the quarantine."""
    kept = {"events": (schemas.EVENTS, ("day",)), "quarantine": (schemas.QUARANTINE, ())}
    if spark is None:
        read = read_events(found, timezone, coverage, window)
        for name, rows in read._asdict().items():
            write_rows(rows, kept[name][0], folder / name, kept[name][1])
        return read.events, ds.dataset(read.events), ds.dataset(read.quarantine)
    from rejoin.pipeline.report import on_spark  # noqa: PLC0415 (only where rows are Spark's)

    bronze = on_spark.read_events(spark, found, timezone, coverage, window)
    events, _ = (
        on_spark.on_disk(table, kept[name][0], folder / name, kept[name][1]) for name, table in bronze._asdict().items()
    )
    return events, *(stored(schema, folder / name) for name, (schema, _) in kept.items())


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
    return file.text_bytes


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


def _nothing(found: Sequence[InputFile], quarantine: ds.Dataset) -> str:
    """Why there is nothing to report on."""
    why = ""
    if bad := kinds_of(quarantine):
        kind, count_of_kind = bad[0]
        row = quarantine.head(1, filter=pc.field("kind") == kind).to_pylist()[0]
        why = f"; {count_of_kind} lines are {kind}: {row['reason']}"
    nearest = nearest_layout(each.path for each in found if each.kind == "log" and each.problem is None)
    return f"{named(found)}: nothing about consumer groups in there{why}. {nearest}{' ' * bool(nearest)}{EXPECTED}"
