"""Rows to draw of request logs, which the journal of ``rejoin proxy`` is: concluded as a report concludes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rejoin.journal.envelope import SCHEMA_VERSION, Envelope, JournalRow
from rejoin.journal.recording.group_recording import SCHEMA
from rejoin.pipeline.drawn.row_events import event_of
from rejoin.pipeline.reading.log_events import events_of_files
from rejoin.pipeline.reading.log_files import read_file

REQUEST_LOGS: Final = "kafka-request.log*"
UNNAMED: Final = "coordinator"
"""The node of all rows, as lines of requests do not name their broker."""


def request_logs(folder: Path) -> list[Path]:
    """The request logs in a folder; none where the path is no folder."""
    return sorted(folder.glob(REQUEST_LOGS)) if folder.is_dir() else []


def rows_of_logs(files: list[Path]) -> list[JournalRow]:
    """The events that are drawn, in the order of time."""
    events = events_of_files(row for file in files for row in read_file(str(file)))
    found = []
    for row in events:
        event = SCHEMA.events.get(row["event"])
        if event is None:
            continue
        envelope = Envelope.model_construct(
            schema_version=SCHEMA_VERSION,
            run_id=row["run_id"],
            source="coordinator",
            node=UNNAMED,
            seq=row["seq"],
            at_ms=row["at_ms"],
            event=row["event"],
        )
        found.append(JournalRow(envelope, event_of(event, row)))
    return found
