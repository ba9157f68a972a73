"""Journals: files, and directories of them, of coordinators, consumers or simulated runs. Spark is not started."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rejoin.journal.reader import read_lines
from rejoin.journal.segments import JournalError, segments
from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.reading.inputs import InputFile, what_to_do
from rejoin.pipeline.reading.pieces import pieces, read_piece
from rejoin.pipeline.why.event_source import EventSource, unread_notes
from rejoin.pipeline.why.events import (
    READ_EVENTS,
    events_of,
    findings_of,
    rebalances_of,
)
from rejoin.pipeline.why.story import SourceProblem

_EVENT: Final = re.compile(r'"event": ?"([a-z_]+)"')
_INSTANT: Final = re.compile(r'"at_ms": ?(\d{1,15})\b')


class _JournalLines(NamedTuple):
    """The lines of journals that are looked at, and from when to when all of them are."""

    texts: list[str]
    problems: list[str | None]
    places: list[tuple[str, int | None]]
    """File and number of each line."""
    recorded: tuple[int, int]


class _Unread(NamedTuple):
    """A line that is no row of a journal of this version."""

    file: str
    line: int | None
    problem: str | None


def findings_of_journal(text: str, group_id: str) -> list[dict[str, str]]:
    """Findings in a journal about a group, the worst first: ``severity``, ``title``, ``setting``, ``advice``."""
    events, _ = events_of([line for line in text.split("\n") if _is_wanted(line)])
    end_ms = max((row["at_ms"] for row in events), default=0)
    found = findings_of(group_id, events, rebalances_of(group_id, events), end_ms)
    return [{name: row[name] or "" for name in ("severity", "title", "setting", "advice")} for row in found]


class JournalSource(EventSource):
    """The events of journals, read at once. What cannot be read is left out and noted."""

    def __init__(self, paths: Sequence[Path], found: Sequence[InputFile]) -> None:
        """Raises :class:`SourceProblem` where there is no journal among the files."""
        path = " ".join(map(str, paths))
        journals = [each for each in found if each.kind == "journal" and each.problem is None]
        if not journals:
            raise _no_journal(path, found)
        lines = _read(journals)
        events, others = events_of(lines.texts, lines.problems)
        unread = [_Unread(*lines.places[number], mistake.reason) for number, mistake in others]
        if unread and not events:
            raise SourceProblem(
                f"{path}: its rows are none of a journal of this version, {_first(unread)}; rejoin report says why"
            )
        super().__init__(
            path, events, [*_notes(found, unread), *(note for each in paths for note in _gaps(each))], lines.recorded
        )


def _no_journal(path: str, found: Sequence[InputFile]) -> SourceProblem:
    """Why there is nothing to read: it may not be, or it is for a report."""
    problem = next((each for each in found if each.problem is not None), None)
    if problem is not None and all(each.problem is not None for each in found):
        to_do = what_to_do(found)
        return SourceProblem(f"{path}: {problem.problem}; {to_do[:1].lower()}{to_do[1:]}")
    others = next(each for each in found if each.problem is None)
    kind = "is a file of Parquet" if others.kind == "parquet" else "is a file"
    wrong = kind if Path(path).is_file() else f"no journal in there, but {Path(others.path).name}"
    return SourceProblem(
        f"{path}: {wrong}; expected a folder that rejoin report or rejoin watch wrote, a journal (*.jsonl), or logs. "
        f"For anything else, first run rejoin report {path} --out DIR, then rejoin why GROUP DIR"
    )


def _read(journals: Iterable[InputFile]) -> _JournalLines:
    """The lines that are looked at, and those of which it is not clear what they are."""
    read = _JournalLines([], [], [], (0, 0))
    instants: list[int] = []
    for piece in pieces(journals):
        for lines in read_piece(piece):
            texts, problems = lines.decoded()
            for text, problem, number in zip(texts, problems, lines.numbers, strict=True):
                if problem is not None or _is_wanted(text):
                    read.texts.append(text)
                    read.problems.append(problem)
                    read.places.append((lines.path, number))
            named = (_INSTANT.search(text) for text in (texts[0], texts[-1]))
            instants += [int(each[1]) for each in named if each is not None]
    return read._replace(recorded=(min(instants, default=0), max(instants, default=0)))


def _is_wanted(text: str) -> bool:
    """Whether the line has an event that is read, or none that can be found."""
    named = _EVENT.search(text)
    return named is None or named[1] in READ_EVENTS


def _notes(found: Sequence[InputFile], unread: Sequence[_Unread]) -> Iterator[str]:
    """Notes about files and lines that are left out."""
    yield from unread_notes([each for each in found if each.problem is not None], len(found))
    if unread:
        yield f"{count(len(unread), 'line')} could not be read, {_first(unread)}; rejoin report says why"
    others = [each for each in found if each.kind != "journal" and each.problem is None]
    if others:
        names = ", ".join(Path(each.path).name for each in others[:3])
        yield f"only rejoin report reads what is no journal: {names}{', ...' if others[3:] else ''}"


def _gaps(path: Path) -> Iterator[str]:
    """Gaps between the segments of a directory, whose rows are numbered."""
    try:
        if path.is_dir() and segments(path):
            deque(read_lines(path), maxlen=0)
    except JournalError as problem:
        yield f"{problem.problem} in {problem.path.name}; rejoin report counts what is missing"
    except OSError:
        return  # what may not be read is noted already


def _first(unread: Sequence[_Unread]) -> str:
    first = min(unread, key=lambda each: (each.file, each.line or 0))
    where = "" if first.line is None else f"line {first.line} of "
    why = f" ({first.problem})" if first.problem else ""
    return f"the first is {where}{Path(first.file).name}{why}"
