"""The journal: events on disk, one JSON object a line, and the only code that writes or reads them.

Coordinator, consumers and simulation all write it and the pipeline reads it, so it lives here, and so this module does
plain blocking file I/O, which nothing else in this package does. A row says which run it belongs to, who wrote it
(``source``, ``node``), its place in that writer's stream (``seq``, dense from 1, going on over restarts), the instant,
the name of the event and then the event's own fields, flat.

A stream is the rows of one source and node. It lies in segments, ``<source>-<node>-<first seq>.jsonl``; the newest one
has ``.open`` behind its name until it is full or its writer closes, when it is synced and renamed. Rows reach the file
in whole lines on ``flush``; a crash loses what was not flushed, and at most leaves a half line, which readers leave out
and the next writer cuts off.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from rejoin.journal.events.base import Event

SCHEMA_VERSION: Final = 1

Source = Literal["coordinator", "client", "simulation"]
"""Who writes: a service, a process of consumers, or a simulation of both."""

SOURCES: Final[tuple[str, ...]] = get_args(Source)

SEGMENT_ROWS: Final = 100_000
SEGMENT_BYTES: Final = 64 * 2**20
_OPEN: Final = ".jsonl.open"
_CLOSED: Final = ".jsonl"


class Envelope(BaseModel):
    """What every row begins with. ``at_ms`` is ms since 1970, or since the start of a simulation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    run_id: str
    source: Source
    node: str
    seq: int = Field(ge=1)
    at_ms: int
    event: str


class Row(NamedTuple):
    """A row that was read: its envelope, and the event as the very class that its writer used."""

    envelope: Envelope
    event: Event

    @property
    def seq(self) -> int:
        return self.envelope.seq


class Line(NamedTuple):
    """A row as it stands in the file, without its line end."""

    seq: int
    text: bytes


class JournalError(Exception):
    """A journal that cannot be read or written as it is; the text names file and line."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


class JournalInUse(JournalError):
    """Another writer holds this stream."""


class JournalSchema:
    """The rows that a set of events makes: one model for each, told apart by ``event``."""

    def __init__(self, events: Iterable[type[Event]]) -> None:
        self.events = {event.name: event for event in events}
        self.models = {name: _row_model(event) for name, event in self.events.items()}
        models: Any = reduce(or_, self.models.values())
        rows: Any = Annotated[models, Field(discriminator="event")] if len(self.models) > 1 else models
        self._rows: TypeAdapter[Envelope] = TypeAdapter(rows)

    def read(self, text: bytes | str) -> Row:
        """Read one row. Raises ``pydantic.ValidationError`` for anything that is not exactly one of these rows."""
        row = self._rows.validate_json(text)
        event = self.events[row.event]
        values = {name: getattr(row, name) for name in event.model_fields}
        envelope = Envelope.model_construct(**{name: getattr(row, name) for name in Envelope.model_fields})
        return Row(envelope, event.model_construct(**values))

    def json_schema(self) -> dict[str, Any]:
        """The rows as JSON Schema."""
        return self._rows.json_schema()


def _row_model(event: type[Event]) -> type[Envelope]:
    taken = event.model_fields.keys() & Envelope.model_fields.keys()
    assert not taken, f"{event.__name__} has fields of the envelope: {', '.join(sorted(taken))}"
    fields: dict[str, Any] = {"event": (Literal[event.name], ...)}
    fields |= {name: (info.rebuild_annotation(), info) for name, info in event.model_fields.items()}
    model: type[Envelope] = create_model(f"{event.__name__}Row", __base__=Envelope, __doc__=event.__doc__, **fields)
    return model


class RowEncoder:
    """Writes rows of one stream and run as JSON."""

    def __init__(self, run_id: str, source: Source, node: str) -> None:
        head = json.dumps(
            {"schema_version": SCHEMA_VERSION, "run_id": run_id, "source": source, "node": node}, separators=(",", ":")
        )
        self._head = head[:-1] + ',"seq":'

    def encode(self, seq: int, at_ms: int, event: Event) -> Line:
        """The row of an event."""
        fields = event.__pydantic_serializer__.to_json(event)
        comma = b"" if fields == b"{}" else b","
        head = f'{self._head}{seq},"at_ms":{at_ms},"event":"{event.name}"'.encode()
        return Line(seq, head + comma + fields[1:])


class StreamName(NamedTuple):
    """Whose rows: a source and its node. As text it is the beginning of a segment's file name."""

    source: str
    node: str

    def __str__(self) -> str:
        return f"{self.source}-{quote(self.node, safe='')}"


class Segment(NamedTuple):
    """One file of a stream."""

    stream: StreamName
    first: int
    path: Path

    @property
    def is_open(self) -> bool:
        return self.path.name.endswith(_OPEN)


def segments(directory: Path | str) -> list[Segment]:
    """Every segment in a directory, by stream and first row. Other files are left alone."""
    found: list[Segment] = []
    for path in Path(directory).iterdir():
        stem = path.name.removesuffix(".open").removesuffix(_CLOSED)
        name, dash, first = stem.rpartition("-")
        source, _, node = name.partition("-")
        if path.name.endswith((_CLOSED, _OPEN)) and dash and first.isdecimal() and source in SOURCES:
            found.append(Segment(StreamName(source, unquote(node)), int(first), path))
    return sorted(found)


class JournalWriter:
    """The one writer of a stream. ``append`` buffers; call ``flush`` within about 100 ms, and ``close`` at the end.

    The driver's ``flush`` may fail with ``OSError`` (a full disk): nothing is lost then, the next one goes on where it
    stopped.
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
    ) -> None:
        self.directory = Path(directory)
        self.stream = StreamName(source, node)
        self._segment_rows = segment_rows
        self._segment_bytes = segment_bytes
        self._encoder = RowEncoder(run_id, source, node)
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._file: int | None = None
        self._path = self.directory
        self._rows = 0
        self._bytes = 0
        self._closed = False
        with _usable(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.directory / f"{self.stream}.lock")
            try:
                self._seq = self._recover()
            except BaseException:
                os.close(self._lock)
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
        return self.record(event, at_ms).seq

    def record(self, event: Event, at_ms: int) -> Line:
        """Take an event down and return its row."""
        line = self._encoder.encode(self._seq + 1, at_ms, event)
        self._seq += 1
        self._buffer.append(line.text + b"\n")
        self._buffered += len(line.text) + 1
        return line

    def flush(self) -> None:
        """Hand what is buffered to the operating system, and close the segment when it is full."""
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
            os.close(self._lock)

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
        first = self._seq - len(self._buffer) + 1
        self._path = self.directory / f"{self.stream}-{first:012d}{_OPEN}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._rows = self._bytes = 0

    def _close_segment(self) -> None:
        assert self._file is not None
        os.fsync(self._file)
        os.close(self._file)
        self._file = None
        _close_name(self._path)

    def _recover(self) -> int:
        """Repair what a crash left open, and find out where the stream goes on."""
        mine = [segment for segment in segments(self.directory) if segment.stream == self.stream]
        for segment in mine:
            if segment.is_open:
                _repair(segment.path)
        mine = [segment for segment in segments(self.directory) if segment.stream == self.stream]
        return _last_seq(mine[-1].path) if mine else 0


def check_directory(directory: Path) -> None:
    """Make a directory for journals where there is none. Raises :class:`JournalError` where none can be written."""
    with _usable(directory):
        directory.mkdir(parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextmanager
def _usable(directory: Path) -> Iterator[None]:
    """What the system says of a directory becomes a problem that names it."""
    try:
        yield
    except OSError as problem:
        is_other = isinstance(problem, FileExistsError | NotADirectoryError)
        said = "this is no directory" if is_other else f"cannot be used: {problem.strerror}"
        raise JournalError(directory, None, f"{said}; expected a directory to write the journal to") from problem


def _lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise JournalInUse(path, None, "another process writes this stream; give this one a name of its own") from None
    return lock


def _close_name(path: Path) -> None:
    path.rename(path.with_name(path.name.removesuffix(".open")))
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _repair(path: Path) -> None:
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        whole = _line_end_before(file, size)
        if whole < size:
            file.truncate(whole)
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
        return _seq_of(path, None, file.read().rstrip(b"\n"))


def _seq_of(path: Path, line: int | None, text: bytes) -> int:
    try:
        row = json.loads(text)
    except ValueError as problem:
        raise JournalError(path, line, f"not JSON: {problem}") from None
    seq = row.get("seq") if isinstance(row, dict) else None
    if not isinstance(seq, int):
        raise JournalError(path, line, "not a row of a journal: it has no seq")
    return seq


class _Placed(NamedTuple):
    path: Path
    number: int
    line: Line


def read_lines(
    directory: Path | str,
    after: int = 0,
    limit: int | None = None,
    *,
    source: str | None = None,
    node: str | None = None,
) -> Iterator[Line]:
    """The rows behind ``after`` as they stand in the files, at most ``limit``.

    Where a directory holds several streams they come one after the other, in order of their names. A half last line of
    an open segment is left out. Anything else that is broken raises :class:`JournalError`.
    """
    return (placed.line for placed in islice(_placed_lines(directory, after, source, node), limit))


def read_journal(
    directory: Path | str,
    schema: JournalSchema,
    after: int = 0,
    limit: int | None = None,
    *,
    source: str | None = None,
    node: str | None = None,
) -> Iterator[Row]:
    """The same rows with their typed events; see :func:`read_lines`."""
    for path, number, line in islice(_placed_lines(directory, after, source, node), limit):
        try:
            yield schema.read(line.text)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise JournalError(path, number, f"{where}: {first['msg']}") from None


def _placed_lines(directory: Path | str, after: int, source: str | None, node: str | None) -> Iterator[_Placed]:
    for stream in sorted({segment.stream for segment in segments(directory)}):
        if (source is None or stream.source == source) and (node is None or stream.node == node):
            yield from _stream_lines(directory, stream, after)


def _stream_lines(directory: Path | str, stream: StreamName, after: int) -> Iterator[_Placed]:
    mine = [segment for segment in segments(directory) if segment.stream == stream]
    begin = max((index for index, segment in enumerate(mine) if segment.first <= after + 1), default=0)
    expected: int | None = None
    for segment in mine[begin:]:
        for number, text in enumerate(_whole_lines(segment), 1):
            seq = _seq_of(segment.path, number, text)
            if number == 1 and seq != segment.first:
                raise JournalError(segment.path, number, f"row {seq} in a segment that begins with {segment.first}")
            if expected is not None and seq != expected:
                raise JournalError(segment.path, number, f"row {seq} where row {expected} was to come")
            expected = seq + 1
            if seq > after:
                yield _Placed(segment.path, number, Line(seq, text))


def _whole_lines(segment: Segment) -> Iterator[bytes]:
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


def events_in(*modules: Any) -> list[type[Event]]:
    """The events that modules define: every class of theirs that nothing there derives from."""
    classes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Event) and value.__module__ == module.__name__
    ]
    return [each for each in classes if not any(each in other.__bases__ for other in classes)]
