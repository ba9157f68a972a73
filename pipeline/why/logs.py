"""Logs of brokers and of consumers, read in this process: the same functions as a report's, without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rejoin.pipeline.event_fields import EVENT_COLUMNS
from rejoin.pipeline.instants import WHOLE, LogWindow
from rejoin.pipeline.reading.coverage import Coverage
from rejoin.pipeline.reading.inputs import EXPECTED, InputFile
from rejoin.pipeline.reading.log_events import counts_of_files, events_of_files
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.reading.peeling.unknown_layouts import nearest_layout
from rejoin.pipeline.why.event_source import EventSource, unread_notes
from rejoin.pipeline.why.story import GroupStory, Row, SourceProblem

LARGEST: Final = 128 << 20
"""Bytes of all files together. More than that is for a report, which Spark makes."""
MOST_LINES: Final = 100_000
"""Lines about groups: 20,000 rebalances of a consumer, which take about a minute and 1 GB."""


_KNOWN_LINES: Final = (
    "The lines that are used are those of a known client, but say neither who joined or left a group nor why: give "
    "more of this log."
)


class LogSource(EventSource):
    """The events that logs show. What cannot be read is left out and noted."""

    def __init__(
        self,
        path: str,
        files: Sequence[InputFile],
        unread: Sequence[InputFile] = (),
        window: LogWindow = WHOLE,
        timezone: str = "UTC",
    ) -> None:
        """Raises :class:`SourceProblem` where no line is about a group, and where there is too much to read here."""
        size = sum(each.text_bytes for each in files)
        if size > LARGEST:
            raise SourceProblem(
                f"{path}: {size >> 20} MB of logs; expected at most {LARGEST >> 20} MB. "
                f"First run rejoin report {path} --out DIR, then rejoin why GROUP DIR"
            )
        read: list[Row] = []
        about_groups = 0
        for row in itertools.chain.from_iterable(read_file(each.path, each.problem, timezone) for each in files):
            about_groups += row.get("about") is not None
            if about_groups > MOST_LINES:
                raise SourceProblem(
                    f"{path}: more than {MOST_LINES:,} lines about groups. Give a part of the log; "
                    f"or run rejoin report {path} --out DIR, then rejoin why GROUP DIR"
                )
            read.append(row)
        rows, notes = window.cut(read)
        none = dict.fromkeys(EVENT_COLUMNS)
        events: list[Row] = [none | row for row in events_of_files(rows)]
        self._coverage = Coverage(notes=notes)
        self._coverage.add_files(counts_of_files(rows))
        self._coverage.add_events(events)
        if not any(row["group_id"] for row in events):
            nearest = _KNOWN_LINES if self._coverage.used else nearest_layout(each.path for each in files)
            used = self._coverage.sentences()[0] if self._coverage.lines else "no lines"
            named = sorted({row["about"][2:] for row in rows if (row.get("about") or "").startswith("g:")})
            what = (
                f"names {' and '.join(named[:3])}, but no line says what happened to the group"
                if named
                else "nothing about consumer groups in there"
            )
            raise SourceProblem(f"{path}: {what} ({used}). {nearest}{' ' * bool(nearest)}{EXPECTED}")
        at = [row["at_ms"] for row in events]
        super().__init__(path, events, unread_notes(unread, len(files) + len(unread)), (min(at), max(at)))

    def story(self, group_id: str) -> GroupStory:
        """All about one group, with how much of the logs was used."""
        story = super().story(group_id)
        return replace(story, read=self._coverage.sentences(group_id))
