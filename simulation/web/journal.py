"""A journal as a source of the laboratory's page: its groups, and what is drawn of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from rejoin.journal.envelope import JournalRow
from rejoin.journal.reader import read_lines
from rejoin.journal.recording.consumer_journals import ConsumerJournals
from rejoin.journal.recording.group_recording import SCHEMA, GroupRecording
from rejoin.journal.segments import JournalError
from rejoin.protocol.validation import reason

_EVENT: Final = re.compile(rb'"event": ?"([a-z_]+)"')
_INSTANT: Final = re.compile(rb'"at_ms": ?([0-9]{1,15})\b')
_SIMULATED_BEFORE: Final = 1_000_000_000_000
"""Instants below this are ms since the start of a simulation (2001 in ms since 1970)."""


class JournalRecording:
    """The rows of a journal, a directory of segments or one file, in the order of time."""

    def __init__(self, path: Path, rows: Iterable[JournalRow] | None = None) -> None:
        """``rows`` are those of the path where they were read. Raises :class:`JournalError`, and OSError."""
        self._end = 0
        self._rows = sorted(self._read(path) if rows is None else rows, key=lambda row: row.envelope.at_ms)
        if not self._rows:
            raise JournalError(
                path, None, "has no events of groups; expected the journal of a coordinator or a simulation"
            )
        runs = {row.envelope.run_id for row in self._rows if row.envelope.source == "simulation"}
        if len(runs) > 1:
            raise JournalError(path, None, f"holds {len(runs)} simulated runs; give the journal of one")
        self._end = max(self._end, self._rows[-1].envelope.at_ms)
        begin = self._rows[0].envelope.at_ms
        self._origin = 0 if begin < _SIMULATED_BEFORE else begin
        self._consumers = ConsumerJournals((row.envelope.at_ms - self._origin, row.event) for row in self._rows)
        named = (getattr(row.event, "group_id", None) for row in self._rows)
        self.groups = sorted({group_id for group_id in named if group_id})
        self._title = f"The journal {path.name}"

    def head(self) -> dict[str, Any]:
        """Head of the recording, with which the page begins."""
        return {
            "recorded": True,
            "live": False,
            "title": self._title,
            "origin": self._origin,
            "groups": self.groups,
        }

    def piece(self, group_id: str) -> dict[str, Any]:
        """All that is drawn of a group."""
        recording = GroupRecording(group_id, self._origin, self._consumers)
        for row in self._rows:
            recording.add(row)
        return {**recording.take(self._end), "scenario": recording.scenario()}

    def _read(self, path: Path) -> Iterator[JournalRow]:
        """The rows that are drawn."""
        for number, text in _lines(path):
            event, instant = _EVENT.search(text), _INSTANT.search(text)
            if event is None or instant is None:
                raise JournalError(path, number, "expected a row of a journal, as JSON with event and at_ms")
            self._end = max(self._end, int(instant[1]))
            if event[1].decode() not in SCHEMA.events:
                continue
            try:
                yield SCHEMA.read(text)
            except ValidationError as problem:
                first = problem.errors(include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                raise JournalError(path, number, f"{where}: {reason(first)}") from None


def is_journal(path: Path) -> bool:
    """Whether a path is meant as a journal, and not as a scenario."""
    return path.is_dir() or path.suffix == ".jsonl"


def _lines(path: Path) -> Iterator[tuple[int | None, bytes]]:
    if path.is_dir():
        yield from ((None, line.text) for line in read_lines(path))
        return
    with path.open("rb") as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
