"""The files of a journal: which there are, and the whole lines in them.

A stream is the rows of one source and node. It lies in segments, ``<source>-<node>-<first seq>.jsonl``; the newest one
has ``.open`` behind its name until it is full or its writer closes, when it is synced and renamed. Rows reach the file
in whole lines; a crash loses what was not flushed and leaves at most half a line, which readers skip and the next
writer cuts off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from rejoin.journal.envelope import SOURCES, StreamName

OPEN: Final = ".jsonl.open"
CLOSED: Final = ".jsonl"


class JournalError(Exception):
    """A journal that cannot be read or written as it is; the text names file and line."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


class JournalInUse(JournalError):
    """Another writer holds this stream."""


class Segment(NamedTuple):
    """One file of a stream."""

    stream: StreamName
    first: int
    path: Path

    @property
    def is_open(self) -> bool:
        return self.path.name.endswith(OPEN)


def segments(directory: Path | str) -> list[Segment]:
    """Every segment in a directory, by stream and first row. Other files are left alone."""
    found: list[Segment] = []
    for path in Path(directory).iterdir():
        stem = path.name.removesuffix(".open").removesuffix(CLOSED)
        name, dash, first = stem.rpartition("-")
        source, _, node = name.partition("-")
        if path.name.endswith((CLOSED, OPEN)) and dash and first.isdecimal() and source in SOURCES:
            found.append(Segment(StreamName(source, unquote(node)), int(first), path))
    return sorted(found)


def whole_lines(segment: Segment) -> Iterator[bytes]:
    try:
        file = segment.path.open("rb")
    except FileNotFoundError:
        # Its writer closed it since the directory was listed.
        file = segment.path.with_name(segment.path.name.removesuffix(".open")).open("rb")
    with file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                yield line[:-1]
            elif not segment.is_open:
                raise JournalError(segment.path, number, "a half line in a closed segment")


def seq_of(path: Path, line: int | None, text: bytes) -> int:
    try:
        row = json.loads(text)
    except ValueError as problem:
        raise JournalError(path, line, f"not JSON: {problem}") from None
    seq = row.get("seq") if isinstance(row, dict) else None
    if not isinstance(seq, int):
        raise JournalError(path, line, "not a row of a journal: it has no seq")
    return seq
