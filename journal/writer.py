"""Writes a journal: one writer a stream, which goes on where the one before stopped.

Plain blocking file I/O: drivers call it, cores do not. :mod:`rejoin.journal.segments` describes the files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rejoin.journal.envelope import RowEncoder, Source, StreamName
from rejoin.journal.events.base import Event
from rejoin.journal.file_lock import FileLock, FileLocked
from rejoin.journal.segments import OPEN, JournalError, JournalInUse, segments, seq_of

SEGMENT_ROWS: Final = 100_000
SEGMENT_BYTES: Final = 64 * 2**20
MOST_WAITING_BYTES: Final = 64 * 2**20
"""Rows that wait in memory while the journal cannot be written. Those that do not fit are lost, and counted."""

_NS_A_MS: Final = 1_000_000


class JournalWriter:
    """The one writer of a stream. ``append`` buffers; call ``flush`` within about 100 ms, and ``close`` at the end.

    The driver's ``flush`` may fail with ``OSError`` (a full disk): the next one goes on where it stopped. Rows wait in
    memory up to ``most_waiting_bytes``; the newest ones are lost beyond that, until ``take_lost`` was called.
    """

    def __init__(
        self,
        directory: Path | str,
        run_id: str,
        source: Source,
        node: str,
        *,
        segment_rows: int = SEGMENT_ROWS,
        segment_bytes: int = SEGMENT_BYTES,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self.directory = Path(directory)
        self.stream = StreamName(source, node)
        self._segment_rows = segment_rows
        self._segment_bytes = segment_bytes
        self._most_waiting_bytes = most_waiting_bytes
        self._lost = 0
        self._encoder = RowEncoder(run_id, source, node)
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._file: int | None = None
        self._path = self.directory
        self._rows = 0
        self._bytes = 0
        self._modified_ms = 0
        self._closed = False
        with _usable(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.directory / f"{self.stream}.lock")
            try:
                self._seq = self._recover()
            except BaseException:
                self._lock.release()
                raise

    @property
    def seq(self) -> int:
        """The number of the newest row, 0 where there is none."""
        return self._seq

    @property
    def unflushed_bytes(self) -> int:
        return self._buffered

    def append(self, event: Event, at_ms: int) -> int:
        """Take an event down and return its number."""
        self.record(event, at_ms)
        return self._seq

    def record(self, event: Event, at_ms: int) -> bytes:
        """Take an event down and return its row, whose number is ``seq``."""
        line = self._encoder.encode(self._seq + 1, at_ms, event)
        self._seq += 1
        if self._lost or self._buffered > self._most_waiting_bytes:
            self._lost += 1
        else:
            self._buffer.append(line + b"\n")
            self._buffered += len(line) + 1
        return line

    def take_lost(self) -> int:
        """How many rows are lost since this was last asked; after a flush, with an event that says so."""
        assert not self._buffer, "what waits is written first: the lost rows come after it"
        lost, self._lost = self._lost, 0
        return lost

    def flush(self) -> None:
        """Hand buffered rows to the operating system, and close the segment when it is full."""
        while self._buffer:
            if self._file is None:
                self._open_segment()
            self._write(self._take())
            if self._rows >= self._segment_rows or self._bytes >= self._segment_bytes:
                self._close_segment()

    def close(self) -> None:
        """Flush, close the segment and let go of the stream."""
        if self._closed:
            return
        self._closed = True
        try:
            self.flush()
            if self._file is not None:
                self._close_segment()
        finally:
            self._lock.release()

    def _take(self) -> list[bytes]:
        """The buffered rows that still belong into this segment, up to its limits."""
        rows, size = self._rows, self._bytes
        for index, line in enumerate(self._buffer, 1):
            rows += 1
            size += len(line)
            if rows >= self._segment_rows or size >= self._segment_bytes:
                return self._buffer[:index]
        return self._buffer[:]

    def _write(self, lines: list[bytes]) -> None:
        assert self._file is not None
        data = memoryview(b"".join(lines))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        finally:
            self._buffered -= written
            self._bytes += written
            if written == len(data):
                self._rows += len(lines)
                del self._buffer[: len(lines)]
            else:
                self._drop(written)

    def _drop(self, written: int) -> None:
        """Forget what a failed write still got out; the rest of a torn row comes first in the next one."""
        while written >= len(self._buffer[0]):
            written -= len(self._buffer.pop(0))
            self._rows += 1
        self._buffer[0] = self._buffer[0][written:]

    def _open_segment(self) -> None:
        first = self._seq - self._lost - len(self._buffer) + 1
        self._path = self.directory / f"{self.stream}-{first:012d}{OPEN}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._rows = self._bytes = 0

    def _close_segment(self) -> None:
        assert self._file is not None
        self._modified_ms = _date_behind(self._modified_ms, self._file)
        os.fsync(self._file)
        os.close(self._file)
        self._file = None
        _close_name(self._path)

    def _recover(self) -> int:
        """Repair the segment that a crash left open, and find where the stream continues."""
        mine = [segment for segment in segments(self.directory) if segment.stream == self.stream]
        for segment in mine:
            if segment.is_open:
                _repair(segment.path, self._modified_ms)
            else:
                self._modified_ms = max(self._modified_ms, segment.path.stat().st_mtime_ns // _NS_A_MS)
        mine = [segment for segment in segments(self.directory) if segment.stream == self.stream]
        if not mine:
            return 0
        self._modified_ms = max(self._modified_ms, mine[-1].path.stat().st_mtime_ns // _NS_A_MS)
        return _last_seq(mine[-1].path)


def check_directory(directory: Path) -> None:
    """Make a directory for journals where there is none. Raises :class:`JournalError` where none can be written."""
    with _usable(directory):
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextmanager
def _usable(directory: Path) -> Iterator[None]:
    """Turn an OSError about a directory into a problem that names it."""
    try:
        yield
    except OSError as problem:
        is_other = isinstance(problem, FileExistsError | NotADirectoryError)
        said = "this is no directory" if is_other else f"cannot be used: {problem.strerror}"
        raise JournalError(directory, None, f"{said}; expected a directory to write the journal to") from problem


def _lock(path: Path) -> FileLock:
    try:
        return FileLock(path)
    except FileLocked as problem:
        holder = f", {problem.holder}" if problem.holder else ""
        said = f"another process writes this stream{holder}; give this one a name of its own"
        raise JournalInUse(path, None, said) from None


def _close_name(path: Path) -> None:
    path.rename(path.with_name(path.name.removesuffix(".open")))
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _date_behind(before_ms: int, file: int) -> int:
    """Let a segment be modified after the one before it. Spark takes files by that instant, in ms.

    The disk's clock may have been set back, and two small segments end within one ms.
    """
    modified_ms = os.fstat(file).st_mtime_ns // _NS_A_MS
    if modified_ms <= before_ms:
        modified_ms = before_ms + 1
        os.utime(file, ns=(modified_ms * _NS_A_MS, modified_ms * _NS_A_MS))
    return modified_ms


def _repair(path: Path, before_ms: int) -> None:
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        whole = _line_end_before(file, size)
        if whole < size:
            file.truncate(whole)
        _date_behind(before_ms, file.fileno())
        os.fsync(file.fileno())
    if whole == 0:
        path.unlink()
    else:
        _close_name(path)


def _line_end_before(file: Any, position: int) -> int:
    """Where the last whole line before ``position`` ends, 0 where there is none."""
    while position > 0:
        start = max(0, position - 2**16)
        file.seek(start)
        found: int = file.read(position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _last_seq(path: Path) -> int:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = _line_end_before(file, size - 1)
        file.seek(start)
        return seq_of(path, None, file.read().rstrip(b"\n"))
