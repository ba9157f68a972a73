"""Logs of brokers and of consumers, read in this process: the same functions as a report's, without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson

from rejoin.pipeline.event_fields import EVENT_COLUMNS
from rejoin.pipeline.reading.client_logs.owners import UNNAMED, named_groups
from rejoin.pipeline.reading.coverage import Coverage, first_candidate
from rejoin.pipeline.reading.inputs import EXPECTED, InputFile
from rejoin.pipeline.reading.log_events import events_of_subject
from rejoin.pipeline.reading.log_files import read_file
from rejoin.pipeline.vocabulary import BROKER_LOG, EXACT
from rejoin.pipeline.why.event_source import EventSource
from rejoin.pipeline.why.story import GroupStory, Row, SourceProblem

RUN: Final = "logs"
LARGEST: Final = 64 << 20
"""Bytes of all files together. More than that is for a report, which Spark makes."""


class LogSource(EventSource):
    """The events that logs show. What cannot be read is left out and noted."""

    def __init__(self, path: Path, files: Sequence[InputFile], timezone: str = "UTC") -> None:
        """Raises :class:`SourceProblem` where no line is about a group, and where there is too much to read here."""
        if sum(each.size for each in files) > LARGEST:
            raise SourceProblem(
                f"{path}: {sum(each.size for each in files) >> 20} MB of logs; expected at most {LARGEST >> 20} MB. "
                f"First run rejoin report {path} --out DIR, then rejoin why GROUP DIR"
            )
        rows = [row for each in files for row in read_file(each.path, each.problem, timezone)]
        events = list(_events(rows))
        self._coverage = Coverage()
        self._coverage.add_files(orjson.loads(row["body"]) for row in rows if row["what"] == "file")
        self._coverage.add_events(events)
        if not any(row["group_id"] for row in events):
            candidate = first_candidate(each.path for each in files)
            used = self._coverage.sentences()[0] if self._coverage.lines else "no lines"
            named = sorted({row["about"][2:] for row in rows if (row.get("about") or "").startswith("g:")})
            what = (
                f"names {' and '.join(named[:3])}, but no line says what happened to the group"
                if named
                else "nothing about consumer groups in there"
            )
            raise SourceProblem(f"{path}: {what} ({used}). {candidate}{' ' * bool(candidate)}{EXPECTED}")
        first, last = events[0]["at_ms"], events[-1]["at_ms"]
        super().__init__(path, events, (), (first, last))

    def story(self, group_id: str) -> GroupStory:
        """All about one group, with how much of the logs was used."""
        story = super().story(group_id)
        return replace(story, read=self._coverage.sentences(group_id))


def _events(rows: Iterable[dict[str, Any]]) -> Iterator[Row]:
    """Rows of the table ``events``, in the order of their times."""
    by_subject: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row.get("about") is not None:
            by_subject[row["about"]].append(row)
    unnamed = [about for about in by_subject if about.startswith(UNNAMED)]
    of_groups = ((about, row["body"]) for about in by_subject if about.startswith("g:") for row in by_subject[about])
    groups = named_groups([about.removeprefix(UNNAMED) for about in unnamed], of_groups if unnamed else ())
    for about in unnamed:
        by_subject[groups[about]] += by_subject.pop(about)
    made: list[Row] = []
    for about, found in by_subject.items():
        found.sort(key=lambda row: (row["order_ms"], row["node"], row["file"], row["line"]))
        made += events_of_subject(about, found)
    made.sort(key=lambda row: row["order_ms"])
    none = dict.fromkeys(EVENT_COLUMNS) | {"confidence": EXACT, "source": BROKER_LOG, "run_id": RUN}
    yield from (none | event | {"seq": nth} for nth, event in enumerate(made, start=1))
