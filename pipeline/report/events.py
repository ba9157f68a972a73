"""The events of all inputs of a report: of little data as rows of this process, of much on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from rejoin.pipeline.instants import WHOLE, LogWindow
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.journals import EventRows, events_of_lines, events_of_table, sorted_out, without_copies
from rejoin.pipeline.reading.log_events import broken_of_files, counts_of_files, events_of_files
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.reading.runs import run_of_service
from rejoin.pipeline.reading.text_lines import lines_of
from rejoin.pipeline.schemas import EVENTS, QUARANTINE, VERSION


def read_events(
    found: Sequence[InputFile], timezone: str, coverage: Coverage | None = None, window: LogWindow = WHOLE
) -> EventRows:
    """Events of all files, as one run, by their names, and what could not be used.

    ``coverage`` gets the counts of logs.
    """
    read = [events_of_lines(lines_of(each for each in found if each.kind == "journal"))]
    read += [sorted_out(table) for table in _of_tables(found)]
    once = without_copies(_together(read))
    broken = pa.Table.from_pylist(unread(found), QUARANTINE)
    logged = _of_logs(logs_of(found), timezone, coverage, window)
    all_read = _together([once, EventRows(EVENTS.empty_table(), broken), logged])
    return all_read._replace(events=_in_one_run(all_read.events.sort_by("event")))


def _together(read: Iterable[EventRows]) -> EventRows:
    events, quarantine = zip(*read, strict=True)
    return EventRows(pa.concat_tables(events), pa.concat_tables(quarantine))


def _of_tables(found: Iterable[InputFile]) -> Iterator[pa.Table]:
    for each in found:
        if each.kind == "parquet" and each.problem is None:
            with ParquetFile(each.path) as file:
                for batch in file.iter_batches():
                    yield events_of_table(pa.Table.from_batches([batch]), each.path)


def _of_logs(logs: Sequence[InputFile], timezone: str, coverage: Coverage | None, window: LogWindow) -> EventRows:
    read = [row for each in logs for row in read_file(each.path, each.problem, timezone)]
    rows, notes = window.cut(read)
    if coverage is not None:
        coverage.notes += notes
        coverage.add_files(counts_of_files(rows))
    events = events_of_files(rows)
    names = {name for row in events for name in row}
    columns = [
        pa.array([row.get(each.name) for row in events], each.type)
        if each.name in names
        else pa.nulls(len(events), each.type)
        for each in EVENTS
    ]
    table = pa.Table.from_arrays(columns, schema=EVENTS)
    versions = pa.repeat(pa.scalar(VERSION, EVENTS.field(0).type), len(events))
    return EventRows(
        table.set_column(0, EVENTS.field(0), versions), pa.Table.from_pylist(list(broken_of_files(rows)), QUARANTINE)
    )


def unread(found: Iterable[InputFile]) -> list[dict[str, Any]]:
    """Rows of the quarantine for files that are not read."""
    return [
        {"file": each.path, "reason": each.problem, "kind": each.kind_of_problem}
        for each in found
        if each.problem is not None
    ]


def logs_of(found: Iterable[InputFile]) -> list[InputFile]:
    """The logs that can be read."""
    return [each for each in found if each.kind == "log" and each.problem is None]


def _in_one_run(events: pa.Table) -> pa.Table:
    """The events of a service's consumers as of its own run, if the input is of one service.

    Each process has a run of its own unless it is given one; the events of a service and its consumers belong together,
    and share real time. Simulations name their own runs.
    """
    pairs = events.group_by(["source", "run_id"]).aggregate([]).select(["source", "run_id"])
    run_id = run_of_service((row["source"], row["run_id"]) for row in pairs.to_pylist())
    if run_id is None:
        return events
    in_one = pc.if_else(pc.equal(events["source"], "client"), pa.scalar(run_id), events["run_id"])
    return events.set_column(events.schema.get_field_index("run_id"), EVENTS.field("run_id"), in_one)
