"""Reads a journal: rows as they stand in the files, or as typed events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from rejoin.journal.envelope import JournalLine, JournalRow, StreamName
from rejoin.journal.events.coordinator import JournalRowsLost
from rejoin.journal.schema import JournalSchema
from rejoin.journal.segments import JournalError, segments, seq_of, whole_lines
from rejoin.protocol.validation import reason


def read_lines(
    directory: Path | str,
    after: int = 0,
    limit: int | None = None,
    *,
    source: str | None = None,
    node: str | None = None,
) -> Iterator[JournalLine]:
    """The rows behind ``after`` as they stand in the files, at most ``limit``.

    Where a directory holds several streams they come one after the other, in order of their names. A half last line of
    an open segment is left out. Anything else that is broken raises :class:`JournalError`.
    """
    return (placed.line for placed in islice(_numbered_lines(directory, after, source, node), limit))


def read_journal(
    directory: Path | str,
    schema: JournalSchema,
    after: int = 0,
    limit: int | None = None,
    *,
    source: str | None = None,
    node: str | None = None,
) -> Iterator[JournalRow]:
    """Rows with their typed events; see :func:`read_lines`."""
    for path, number, line in islice(_numbered_lines(directory, after, source, node), limit):
        try:
            yield schema.read(line.text)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise JournalError(path, number, f"{where}: {reason(first)}" if where else reason(first)) from None


class _NumberedLine(NamedTuple):
    path: Path
    number: int
    line: JournalLine


def _numbered_lines(directory: Path | str, after: int, source: str | None, node: str | None) -> Iterator[_NumberedLine]:
    for stream in sorted({segment.stream for segment in segments(directory)}):
        if (source is None or stream.source == source) and (node is None or stream.node == node):
            yield from _stream_lines(directory, stream, after)


def _stream_lines(directory: Path | str, stream: StreamName, after: int) -> Iterator[_NumberedLine]:
    mine = [segment for segment in segments(directory) if segment.stream == stream]
    begin = max((index for index, segment in enumerate(mine) if segment.first <= after + 1), default=0)
    expected: int | None = None
    for segment in mine[begin:]:
        for number, text in enumerate(whole_lines(segment), 1):
            seq = seq_of(segment.path, number, text)
            if number == 1 and seq != segment.first:
                raise JournalError(segment.path, number, f"row {seq} in a segment that begins with {segment.first}")
            if expected is not None and seq != expected and not _is_known_gap(text, seq - expected):
                raise JournalError(segment.path, number, f"row {seq} where row {expected} was expected")
            expected = seq + 1
            if seq > after:
                yield _NumberedLine(segment.path, number, JournalLine(seq, text))


def _is_known_gap(text: bytes, rows: int) -> bool:
    """Whether a row says that just so many before it are lost."""
    row = json.loads(text)
    return bool(row.get("event") == JournalRowsLost.name and row.get("rows_lost") == rows)
