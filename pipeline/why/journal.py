"""A journal: a directory of segments, or one file, of a coordinator or of a simulated run. Spark is not started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rejoin.journal.reader import read_lines
from rejoin.journal.segments import JournalError, segments
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.why.events import READ_EVENTS, events_of, findings_of, rebalances_of, sessions_of
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group
from rejoin.pipeline.why.tables import names_of, status_after

_EVENT: Final = re.compile(rb'"event": ?"([a-z_]+)"')


def is_journal(path: Path) -> bool:
    """Whether a path is a journal: a file of rows, or a directory with segments."""
    return path.suffix == ".jsonl" if path.is_file() else bool(segments(path))


def findings_of_journal(text: str, group_id: str) -> list[dict[str, str]]:
    """What rules find in a journal about a group, the worst first: ``severity``, ``title``, ``setting``, ``advice``."""
    wanted = [line.decode("utf-8") for line in _wanted(text.encode("utf-8").splitlines())]
    events, _ = events_of(wanted)
    end_ms = max((row["at_ms"] for row in events), default=0)
    found = findings_of(group_id, events, rebalances_of(group_id, events), end_ms)
    return [{name: row[name] or "" for name in ("severity", "title", "setting", "advice")} for row in found]


class JournalSource:
    """The events of a journal, read at once."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`SourceProblem` for what is no journal."""
        self._path = path
        try:
            lines = [text.decode("utf-8") for text in _lines(path)]
        except (JournalError, OSError, UnicodeDecodeError) as problem:
            raise SourceProblem(f"{path}: {problem}") from None
        self._events, unread = events_of(lines)
        if unread and not self._events:
            raise SourceProblem(f"{path}: its rows are none of a journal of this version; rejoin report says why")
        self._notes = [f"{unread} rows could not be read; rejoin report says why"] if unread else []
        self._end_ms = max((row["at_ms"] for row in self._events), default=0)

    def groups(self) -> list[GroupStatus]:
        """All groups, by id."""
        return [self._status(group_id, rebalances_of(group_id, self._events)) for group_id in self._group_ids()]

    def story(self, group_id: str) -> GroupStory:
        """All about one group."""
        known = self._group_ids()
        if group_id not in known:
            raise unknown_group(group_id, known, str(self._path))
        rebalances = rebalances_of(group_id, self._events)
        found = findings_of(group_id, self._events, rebalances, self._end_ms)
        names = names_of(sessions_of(group_id, self._events))
        return GroupStory(self._status(group_id, rebalances), rebalances, found, names, self._notes)

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        found: list[Row] = []
        for group_id in self._group_ids():
            found += findings_of(group_id, self._events, rebalances_of(group_id, self._events), self._end_ms)
        return sorted(found, key=order)

    def _group_ids(self) -> list[str]:
        return sorted({row["group_id"] for row in self._events if row["group_id"] is not None})

    def _status(self, group_id: str, rebalances: list[Row]) -> GroupStatus:
        if not rebalances:
            return GroupStatus(group_id, rebalances=0)
        return status_after(group_id, rebalances[-1], len(rebalances))


def _lines(path: Path) -> Iterator[bytes]:
    """The rows of events that are looked at."""
    texts = (line.text for line in read_lines(path)) if path.is_dir() else path.read_bytes().splitlines()
    return _wanted(texts)


def _wanted(texts: Iterable[bytes]) -> Iterator[bytes]:
    for text in texts:
        named = _EVENT.search(text)
        if named is None or named[1].decode() in READ_EVENTS:
            yield text
