"""How much of logs was used, and what had to be concluded about them: said at the top of every answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rejoin.pipeline.reading.client_logs.cluster import COORDINATOR
from rejoin.pipeline.vocabulary import CLIENT_LOG

OF_MEMBERS: Final = ("source", "node", "group_id", "event", "client_id", "members")
"""Columns of events from which it follows whose log is there."""
JOINS: Final = ("join_sent", "generation_joined")
_NAMED: Final = 3
_ABOUT_FILES: Final = {
    "turned_round": "the newest line is the first: read from the end",
    "untimed": "no times in the log: only the order of its lines is known",
    "year_guessed": "no year or no date in its times: they are those of when the file was written",
}
"""Marks of files, with what they mean for a reader."""
MARKS: Final = tuple(_ABOUT_FILES)


@dataclass(slots=True)
class Coverage:
    """Counts of the lines of all logs."""

    lines: int = 0
    used: int = 0
    not_known: int = 0
    going_on: int = 0
    """Lines that go on with the record before them."""
    guessed: int = 0
    """Lines that were recognised by their text alone."""
    marked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Marks to the files that have them."""
    members: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Groups to how many members have a log, and how many there are at least."""

    notes: list[str] = field(default_factory=list)
    """Further notes about all logs."""

    def add_files(self, counts: Iterable[Mapping[str, Any]]) -> None:
        """Add the counts of files, as readers make them."""
        for row in counts:
            self.lines += row["lines"]
            self.used += row["statements"] + row["requests"]
            self.not_known += row["broken"]
            self.going_on += row["continuations"]
            self.guessed += row["guessed"]
            for mark in MARKS:
                if row[mark]:
                    self.marked[mark].append(Path(row["file"]).name)

    def add_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add whose log is there, from rows of the table ``events``."""
        logged: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
        most: dict[str, int] = defaultdict(int)
        others = set()
        for row in events:
            group = row["group_id"]
            if group is None:
                continue
            if row["source"] != CLIENT_LOG:
                others.add(group)
            elif row["event"] in JOINS and row["node"] != COORDINATOR:
                logged[group].add((row["node"], row["client_id"]))
            most[group] = max(most[group], len(row["members"] or ()))
        for group, keys in logged.items():
            # Lines before the first that names its client are of the same process.
            named = {node for node, client in keys if client is not None}
            consumers = {each for each in keys if each[1] is not None or each[0] not in named}
            if group not in others:
                self.members[group] = (len(consumers), max(most[group], len(consumers)))

    def sentences(self, group_id: str | None = None) -> list[str]:
        """Notes about all logs, and about the members of one group or of all; none where there are no logs."""
        if not self.lines:
            return []
        parts = [f"{self.used:,} used" + (f" ({self.guessed:,} by the text alone, inferred)" if self.guessed else "")]
        rest = self.lines - self.used - self.not_known - self.going_on
        parts += [f"{self.not_known:,} not known"] if self.not_known > 0 else []
        parts += [f"{rest:,} of other components"] if rest > 0 else []
        chosen = {name: each for name, each in self.members.items() if group_id in (None, name)}
        about = "".join(f"; {_of_members(name if len(chosen) > 1 else '', *each)}" for name, each in _few(chosen))
        notes = [f"{self.lines:,} line{'s' if self.lines > 1 else ''}: {', '.join(parts)}{about}"]
        return [*notes, *self.notes, *(f"{_names(files)}: {_ABOUT_FILES[mark]}" for mark, files in self.marked.items())]


def _of_members(group: str, logged: int, most: int) -> str:
    of_group = f" of {group}" if group else ""
    if most > logged:
        return f"{logged} of at least {most} members{of_group} {'has its' if logged == 1 else 'have their'} log"
    return f"the log of 1 member{of_group}" if logged == 1 else f"the logs of {logged} members{of_group}"


def _few(members: Mapping[str, tuple[int, int]]) -> Sequence[tuple[str, tuple[int, int]]]:
    return list(members.items())[:_NAMED]


def _names(files: Sequence[str]) -> str:
    return ", ".join(files[:_NAMED]) + (f" and {len(files) - _NAMED} more" if files[_NAMED:] else "")
