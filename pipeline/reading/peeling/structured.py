"""Peelers of lines that are records with fields: JSON, CSV and logfmt."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from rejoin.pipeline.reading.peeling.peeled import MOST_MORE, Peeled
from rejoin.pipeline.reading.peeling.stamps import Stamp, begins_with_time, stamp_at

MESSAGES: Final = (
    *("message", "msg", "log", "MESSAGE", "line", "textPayload", "event", "@message", "_raw", "body", "text"),
    *("short_message", "renderedMessage", "RenderedMessage", "@m", "content"),
)
"""Fields that loggers and collectors keep the message in; the first that is there counts."""
_AROUND: Final = ("jsonPayload", "_source", "result", "content", "attributes", "record", "fields", "data")
"""Fields whose value is the record, where the outer object is a collector's."""
TIMES: Final = (
    *("@timestamp", "timestamp", "time", "ts", "asctime", "timeMillis", "instant", "@t", "datetime", "date"),
    *("__REALTIME_TIMESTAMP", "eventTime", "_time", "receiveTimestamp", "ingestionTime"),
)
LOGGERS: Final = ("logger_name", "loggerName", "logger", "log.logger", "log_name", "name", "class", "SourceContext")
LEVELS: Final = ("level", "log.level", "severity", "loglevel", "levelname", "level_name", "PRIORITY")
_ORIGINS: Final = (
    *("kubernetes.pod_name", "kubernetes.pod.name", "pod", "pod_name", "labels.pod", "resource.labels.pod_name"),
    *("kubernetes.container_name", "kubernetes.container.name", "container", "container_name", "labels.container"),
    *("resource.labels.container_name", "labels.app", "logStreamName", "@logStream", "SYSLOG_IDENTIFIER"),
    *("service.name", "_HOSTNAME", "host.name", "hostname", "host", "stream_name"),
)
_MOST_ORIGINS: Final = 2
_LATEST_SECONDS: Final = 100_000_000_000
_LATEST_MILLIS: Final = 100_000_000_000_000
_LATEST_MICROS: Final = 100_000_000_000_000_000
_DEEPEST: Final = 5
_LOGFMT: Final = re.compile(r'(?:^|\s)(?P<name>[A-Za-z_@][\w.@-]*)=(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<bare>[^\s"]*))')
_ESCAPED: Final = re.compile(r'\\(["\\nt])')
_ESCAPES: Final = {"n": "\n", "t": "\t"}
_LONGEST_HEADER: Final = 1_000
_NAME_OF_CELL: Final = re.compile(r"[\w@. -]{1,40}")
_CSV_MESSAGES: Final = ("message", "msg", "log", "line", "content", "@message", "_raw", "text", "body")


def json_object(line: Peeled) -> Peeled | None:
    """A JSON object that has a message: of a logger, of a container runtime, or of a collector."""
    if line.text[:1] != "{":
        return None
    try:
        fields = json.loads(line.text.rstrip().rstrip(",.;"))
    except (ValueError, RecursionError):
        return None
    return of_fields(line, fields) if isinstance(fields, dict) else None


def of_fields(line: Peeled, fields: dict[str, Any], depth: int = 0) -> Peeled | None:
    """The message of a record with fields, with its time, its logger and where it comes from."""
    inner = _event_of_rdkafka(fields) or next(
        (fields[name] for name in _there(_AROUND, tuple(fields)) if isinstance(fields[name], dict)), None
    )
    message = _message(fields)
    if isinstance(inner, dict) and depth < _DEEPEST and (message is None or "fac" in inner or _is_record(inner)):
        found = of_fields(line, inner, depth + 1)
        if found is not None:
            return replace(found, stamp=found.stamp or _stamp(fields), origin=_origin(line.origin, fields))
    if message is None:
        return None
    if isinstance(fields.get("fac"), str):
        message = f"{fields['fac']}: {message}"
    first, *rest = message.rstrip("\r\n").split("\n")
    return Peeled(
        first,
        _stamp(fields) or line.stamp,
        _origin(line.origin, fields),
        _text(fields, LOGGERS) or line.logger,
        _text(fields, LEVELS) or line.level,
        fields,
        tuple(rest[:MOST_MORE]),
        line.is_partial or ("stream" in fields and "log" in fields and not message.endswith("\n")),
        line.peelers,
    )


def fields_behind(line: Peeled) -> Peeled | None:
    """``text {"timestamp": …, "logger": …}``: a logger that writes its values behind the message."""
    start, text = line.text.find(' {"'), _SINCE.sub("", line.text.rstrip())
    if start < 0 or not text.endswith("}"):
        return None
    try:
        fields = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or _LOGGED.isdisjoint(fields):
        return None
    return replace(
        line,
        text=line.text[:start],
        stamp=_stamp(fields) or line.stamp,
        logger=_text(fields, LOGGERS) or line.logger,
        level=_text(fields, LEVELS) or line.level,
        fields={**line.fields, **fields},
    )


_SINCE: Final = re.compile(r" \+\d+ms$")
"""How long ago the logger's last line was, which Nest writes behind each."""
_LOGGED: Final = frozenset(("timestamp", "@timestamp", "time", "ts", "logger", "level"))
"""Fields that a logger adds. JSON without one of these belongs to the message."""


def _is_record(inner: Mapping[str, Any]) -> bool:
    return _message(inner) is not None and _stamp(inner) is not None


def _event_of_rdkafka(fields: Mapping[str, Any], depth: int = 0) -> dict[str, Any] | None:
    """The object of node-rdkafka's ``event.log``, wherever an application's logger has put it."""
    if isinstance(fields.get("fac"), str) and isinstance(fields.get("message"), str):
        return None if depth == 0 else dict(fields)
    if depth > _DEEPEST:
        return None
    inner = [each for each in fields.values() if isinstance(each, dict)]
    if not inner:
        return None
    return next((found for each in inner if (found := _event_of_rdkafka(each, depth + 1)) is not None), None)


@lru_cache(maxsize=256)
def _there(names: tuple[str, ...], keys: tuple[str, ...]) -> tuple[str, ...]:
    """The names that an object with these keys can have, with dots or without."""
    return tuple(name for name in names if name in keys or name.partition(".")[0] in keys)


def _message(fields: Mapping[str, Any]) -> str | None:
    for name in _there(MESSAGES, tuple(fields)):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, dict) and isinstance(value.get("short_msg"), str):
            return str(value["short_msg"])
        if isinstance(value, dict) and isinstance(value.get("stringValue"), str):
            return str(value["stringValue"])
        if name == "MESSAGE" and isinstance(value, list):
            # journald writes bytes where a message has control characters, such as colours.
            return bytes(each for each in value if isinstance(each, int) and 0 <= each < 256).decode(errors="replace")
    return None


def _named(fields: Mapping[str, Any], name: str) -> Any:
    """A field by its name, with dots or as an object in an object."""
    if name in fields:
        return fields[name]
    value: Any = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    values = (_named(fields, name) for name in _there(names, tuple(fields)))
    return next((str(each) for each in values if isinstance(each, str | int) and not isinstance(each, bool)), None)


def _origin(outer: tuple[str, ...], fields: Mapping[str, Any]) -> tuple[str, ...]:
    names = _there(_ORIGINS, tuple(fields))
    found = [each for name in names if isinstance(each := _named(fields, name), str) and each]
    return (*outer, *dict.fromkeys(each for each in found[:_MOST_ORIGINS] if each not in outer))


def _stamp(fields: Mapping[str, Any]) -> Stamp | None:
    for name in _there(TIMES, tuple(fields)):
        value = fields.get(name)
        found = _of_instant(value) if isinstance(value, dict) else stamp_of(value)
        if found is not None:
            return found
    return None


def _of_instant(value: Mapping[str, Any]) -> Stamp | None:
    """log4j's ``{"epochSecond": 1731668130, "nanoOfSecond": 336000000}``."""
    seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond")
    if not isinstance(seconds, int):
        return None
    return Stamp(at_ms=seconds * 1_000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0))


def stamp_of(value: Any) -> Stamp | None:
    """A field's time: text, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        if value.isdigit() and 10 <= len(value) <= 19:
            return stamp_of(int(value))
        begun = begins_with_time(value)
        return begun.stamp if begun is not None else None
    if not isinstance(value, int | float) or not 100_000_000 <= value < 10 * _LATEST_MICROS * 100:
        return None
    if value < _LATEST_SECONDS:
        return Stamp(at_ms=round(value * 1_000))
    divisor = 1 if value < _LATEST_MILLIS else 1_000 if value < _LATEST_MICROS else 1_000_000
    return Stamp(at_ms=int(value) // divisor)


def logfmt(line: Peeled) -> Peeled | None:
    """``time=… level=info msg="joining group" group=g``, as logrus, slog and zap's console write it."""
    if "=" not in line.text or not ("msg=" in line.text or "message=" in line.text):
        return None
    fields: dict[str, Any] = {}
    start = None
    for found in _LOGFMT.finditer(line.text):
        start = found.start() if start is None else start
        fields[found["name"]] = found["bare"] if found["quoted"] is None else _unescaped(found["quoted"])
    begun = begins_with_time(line.text)
    if _message(fields) is None or (start and (begun is None or start > begun.end + 40)):
        return None
    peeled = of_fields(line, fields)
    return replace(peeled, stamp=peeled.stamp or begun.stamp) if peeled is not None and begun is not None else peeled


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text) if "\\" in text else text


class CsvRows:
    """Peels the rows of one file's CSV. The header, where there is one, says which cell is the message."""

    def __init__(self) -> None:
        self._names: list[str] | None = None
        self._header: list[str] = []

    def __call__(self, line: Peeled) -> Peeled | None:
        text = line.text
        if text[:1] != '"' and not self._is_row(text):
            return None
        try:
            cells = next(csv.reader([text]), [])
        except csv.Error:
            # A cell of more than 128 KiB is no line of a log.
            return None
        if len(cells) < 2:
            return None
        if self._names is None and any(cell.strip().lower() in _CSV_MESSAGES for cell in cells):
            self._header = [cell.strip() for cell in cells]
            self._names = [cell.lower() for cell in self._header]
            return line.inside("")
        message = self._cell_of_message(cells)
        fields = {name: cell for name, cell in zip(self._header, cells, strict=False) if cell}
        first, *rest = cells.pop(message).rstrip("\r\n").split("\n")
        stamps = [(nth, begun) for nth, cell in enumerate(cells) if (begun := begins_with_time(cell)) is not None]
        origin = [cell for nth, cell in enumerate(cells) if cell and nth not in dict(stamps) and len(cell) <= 100]
        inside = line.inside(first, stamps[0][1].stamp if stamps else None, "/".join(origin[:_MOST_ORIGINS]) or None)
        return replace(
            inside,
            logger=_text(fields, LOGGERS) or line.logger,
            level=_text(fields, LEVELS) or line.level,
            fields={**line.fields, **fields},
            more=tuple(rest[:MOST_MORE]),
        )

    def _is_row(self, text: str) -> bool:
        """Whether a line without a quotation mark at its beginning is a row: a time, a comma, cells."""
        if self._names is not None:
            return text.count(",") >= len(self._names) - 1
        names = {each.strip().strip('"').lower() for each in text.split(",")} if len(text) < _LONGEST_HEADER else set()
        if len(names) > 1 and names & set(_CSV_MESSAGES) and all(map(_NAME_OF_CELL.fullmatch, names)):
            return True
        begun = stamp_at(text)
        return begun is not None and text[begun.end : begun.end + 1] == "," and '"' in text

    def _cell_of_message(self, cells: list[str]) -> int:
        if self._names is not None:
            named = (self._names.index(name) for name in _CSV_MESSAGES if name in self._names)
            found = next(named, len(cells))
            if found < len(cells):
                return found
        return max(range(len(cells)), key=lambda nth: (not _is_time(cells[nth]), len(cells[nth]), nth))


def _is_time(cell: str) -> bool:
    """Whether a cell has a time and nothing behind it."""
    begun = begins_with_time(cell)
    return begun is not None and begun.end == len(cell)


def written_at(path_time: float) -> datetime:
    """When a file was written, from its modification time in seconds."""
    return datetime.fromtimestamp(path_time, UTC)
