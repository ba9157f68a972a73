"""Files of text as lines with their numbers, large files in pieces. Nothing here needs Spark or Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Final, NamedTuple

from rejoin.journal.renames import upgraded_text
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.reading.limits import EXACT, LONGEST, TOO_LARGE
from rejoin.pipeline.reading.packed.opening import UNREADABLE, opened

PIECE_BYTES: Final = 128 * 2**20
"""Larger files are read by several tasks. Each counts the line ends before its piece, which is a matter of memchr."""

SHOWN_BYTES: Final = 4_096
"""Bytes of a line that is too long, as the quarantine has them."""
_BATCH_BYTES: Final = 4 * 2**20
_COUNT_BYTES: Final = 2**20
_DIGITS: Final = bytes(ord("0") if chr(each).isdecimal() and each < 128 else each for each in range(256))
_LONG_NUMBER: Final = b"0" * 16
"""Whether there is a number this long is seen in a whole batch at once, with all digits made alike."""
_VERSION: Final = b'"schema_version"'
_BOM: Final = b"\xef\xbb\xbf"


class Piece(NamedTuple):
    """The lines that begin from ``start`` up to, and not including, ``end``, in bytes; all of a gzip file."""

    path: str
    start: int
    end: int
    closed: bool


def pieces(files: Iterable[InputFile], piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """Pieces for the tasks to read, the largest first: a large piece at the end would keep all others waiting."""
    cut = [
        Piece(file.path, start, min(start + piece_bytes, file.size) if not file.is_packed else -1, not file.is_open)
        for file in files
        if file.problem is None
        for start in range(0, 1 if file.is_packed else max(file.size, 1), piece_bytes)
    ]
    return sorted(cut, key=lambda piece: (piece.start - piece.end, piece.path, piece.start))


class LinesOfPiece(NamedTuple):
    """Lines that follow each other in one file. A row without a number says why there are no more."""

    path: str
    numbers: list[int | None]
    lines: list[bytes]
    problems: list[str | None]
    """Why a line cannot be taken as it is, where that is known before it is decoded."""

    def decoded(self) -> tuple[list[str], list[str | None]]:
        """The texts of the lines; bytes that are no UTF-8 are shown as U+FFFD, and are a problem."""
        try:
            return [line.decode() for line in self.lines], self.problems
        except UnicodeDecodeError:
            decoded = [_decoded(line) for line in self.lines]
            problems = [known or problem for known, (_, problem) in zip(self.problems, decoded, strict=True)]
            return [text for text, _ in decoded], problems


def read_piece(piece: Piece) -> Iterator[LinesOfPiece]:
    """The lines of a piece; a file that breaks off ends with a row without line that says so."""
    try:
        with opened(piece.path) as file:
            number = _lines_before(file, piece.start)
            yield from _batches(file, piece, number)
    except UNREADABLE as problem:
        yield LinesOfPiece(piece.path, [None], [b""], [f"cannot be read to its end: {problem}"])


def _lines_before(file: IO[bytes], start: int) -> int:
    """How many lines begin before ``start``; the file is left where the next one begins."""
    ends = 0
    left = start
    last = b"\n"
    while left > 0 and (chunk := file.read(min(left, _COUNT_BYTES))):
        ends += chunk.count(b"\n")
        left -= len(chunk)
        last = chunk[-1:]
    if last == b"\n":
        return ends
    _skip_line(file)
    return ends + 1


def _batches(file: IO[bytes], piece: Piece, before: int) -> Iterator[LinesOfPiece]:
    number = before
    position = file.tell()
    while piece.end < 0 or position < piece.end:
        want = _BATCH_BYTES if piece.end < 0 else min(_BATCH_BYTES, piece.end - position)
        chunk = file.read(want)
        if not chunk:
            return
        if not chunk.endswith(b"\n"):
            chunk += file.readline(LONGEST)
        position += len(chunk)
        ended = chunk.endswith(b"\n")
        lines = chunk.split(b"\n")
        last = lines.pop()
        problems: list[str | None] = [None] * len(lines)
        if len(last) >= LONGEST:
            position += _skip_line(file)
            ended = True
            lines.append(last[:SHOWN_BYTES])
            problems.append(f"longer than {LONGEST} bytes")
        if not ended and piece.closed:
            lines.append(last)
            problems.append(None if _is_whole(last) else "a half line: the file breaks off within it")
        if number == 0 and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0][len(_BOM) :]
        if lines:
            if b"\r" in chunk:
                lines = [line.removesuffix(b"\r") for line in lines]
            if _LONG_NUMBER in chunk.translate(_DIGITS):
                problems = [known or _number_problem(line) for known, line in zip(problems, lines, strict=True)]
            if _VERSION in chunk:
                lines = [upgraded_text(line) for line in lines]
            numbers: list[int | None] = list(range(number + 1, number + len(lines) + 1))
            yield LinesOfPiece(piece.path, numbers, lines, problems)
        number += len(lines)


def _skip_line(file: IO[bytes]) -> int:
    """Skip the rest of a line; returns its bytes."""
    skipped = 0
    while chunk := file.readline(_COUNT_BYTES):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its end is all there; only of JSON can that be known."""
    if not line.lstrip().startswith(b"{"):
        return True
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _number_problem(line: bytes) -> str | None:
    """A number of a journal's line that is too large to count with, or none."""
    if _LONG_NUMBER not in line.translate(_DIGITS):
        return None
    try:
        left = [json.loads(line)]
    except (ValueError, RecursionError):
        return None
    while left:
        each = left.pop()
        if isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list):
            left += each
        elif isinstance(each, int) and each not in EXACT:
            return f"{TOO_LARGE}: {str(each)[:30]}; expected at most 2^53"
    return None


def _decoded(line: bytes) -> tuple[str, str | None]:
    try:
        return line.decode(), None
    except UnicodeDecodeError as problem:
        return line.decode(errors="replace"), f"not UTF-8: byte 0x{line[problem.start]:02x} at {problem.start + 1}"
