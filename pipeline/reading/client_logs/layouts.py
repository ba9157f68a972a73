"""A client's log, cut into records: when, and what. Layouts are those that clients' loggers have in use.

A line that begins without a time belongs to the record before it: a stack trace, or settings one below the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any, BinaryIO, Final

from rejoin.pipeline.reading.broker_logs.lines import (
    MOST_CONTINUATIONS,
    QUOTED,
    BrokenLine,
    LogClock,
    json_time,
    numbered_lines,
    quoted,
)
from rejoin.pipeline.reading.limits import LONGEST, NO_INSTANT, is_instant

KNOWN: Final = (
    "a date and a time before the message, as log4j, logback, Spring Boot, Python's logging and franz-go write them"
    " (2026-01-31 12:00:00,123 or 2026-01-31T12:00:00.123Z); Go's log package (2026/01/31 12:00:00); librdkafka"
    " (%4|1769860800.123|MAXPOLL|...); JSON, a record a line"
)
"""Layouts that are read: the error for other logs lists them."""

_ORIGIN: Final = r"(?P<origin>(?:[^\s|\[{%]{1,100}\s*\|\s+)?)"
_STORED: Final = r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\S* (?:std(?:out|err) [FP] )?(?=\S*[\d{%]))?"
_TIME: Final = r"(?P<time>\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
_ISO: Final = re.compile(
    _ORIGIN + _STORED + r"(?:(?P<level>[A-Z]{4,8}):?\s+)?(?:time=)?[\[\"(]?"
    r"(?P<date>\d{4}-\d\d-\d\d)[ T]" + _TIME + r"(?P<zone> ?Z| ?[+-]\d\d:?\d\d)?[\])\"]?(?P<rest>.*)",
    re.DOTALL,
)
_GO: Final = re.compile(
    _ORIGIN + _STORED + r"(?:\[?\w+\]?:?\s+)?(?P<date>\d{4}/\d\d/\d\d) " + _TIME + r"(?P<rest>.*)", re.DOTALL
)
_RDKAFKA: Final = re.compile(
    _ORIGIN + _STORED + r"%[0-7]\|(?P<seconds>\d{9,11})\.(?P<millis>\d{3})\|(?P<rest>.*)", re.DOTALL
)
_JSON: Final = re.compile(_ORIGIN + _STORED + r"(?P<body>\{.*)", re.DOTALL)
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_MESSAGES: Final = ("message", "msg")
_LOGGERS: Final = ("logger_name", "loggerName", "logger", "log.logger", "name")


@dataclass(frozen=True, slots=True)
class ClientRecord:
    """A message of a process. ``text`` is what stands behind the time; of JSON the message alone, with its
    other fields in ``fields``."""

    line: int
    at_ms: int
    text: str
    origin: str = ""
    logger: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    more: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordCounts:
    """Counts of a file's lines by kind."""

    lines: int = 0
    records: int = 0
    continuations: int = 0
    blank: int = 0
    unplaced: int = 0
    """Lines before the first record: of no layout that is known."""
    not_utf8: int = 0


class ClientLines:
    """Cuts one file into records. ``counts`` says how much there was of what."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._clock = LogClock(zone)
        self.counts = RecordCounts()

    def records(self, file: BinaryIO | Iterable[bytes]) -> Iterator[ClientRecord | BrokenLine]:
        """Every record and every broken line, in the file's order. Nothing in a file makes this fail."""
        held: ClientRecord | None = None
        more: list[str] = []
        for number, raw, whole in numbered_lines(file):
            self.counts.lines = number
            if whole is None:
                yield BrokenLine(number, f"longer than {LONGEST} bytes", quoted(raw[:QUOTED]))
                continue
            text = self._text(raw)
            if not text.strip():
                self.counts.blank += 1
                continue
            found = self._record(number, text)
            if isinstance(found, ClientRecord):
                if held is not None:
                    yield _with(held, more)
                held, more = found, []
                self.counts.records += 1
            elif found is not None:
                yield BrokenLine(number, found, quoted(text))
            elif held is not None:
                self.counts.continuations += 1
                if len(more) < MOST_CONTINUATIONS:
                    more.append(text)
            else:
                self.counts.unplaced += 1
        if held is not None:
            yield _with(held, more)

    def _text(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            self.counts.not_utf8 += 1
            text = raw.decode("latin-1")
        return _ESCAPES.sub("", text) if "\x1b" in text else text

    def _record(self, number: int, text: str) -> ClientRecord | str | None:
        """A record; or what is wrong with the line; or None for one that does not begin as a record does."""
        if (found := _ISO.match(text)) is not None:
            date = found["date"]
        elif (found := _GO.match(text)) is not None:
            date = found["date"].replace("/", "-")
        elif (found := _RDKAFKA.match(text)) is not None:
            at_ms = int(found["seconds"]) * 1_000 + int(found["millis"])
            return ClientRecord(number, at_ms, found["rest"], _origin(found))
        elif (found := _JSON.match(text)) is not None:
            return self._of_json(number, found)
        else:
            return None
        zone = found.groupdict().get("zone")
        try:
            at_ms = self._clock.read(date, found["time"], found["fraction"], zone)
        except ValueError as problem:
            return f"no such time: {problem}"
        return ClientRecord(number, at_ms, found["rest"], _origin(found))

    def _of_json(self, number: int, found: re.Match[str]) -> ClientRecord | str | None:
        try:
            fields = json.loads(found["body"])
        except (ValueError, RecursionError):
            return "not JSON, though it begins like it: cut short" if found["body"].startswith('{"') else None
        message = next((fields[name] for name in _MESSAGES if isinstance(fields.get(name), str)), None)
        if message is None:
            return None
        at = json_time({"timestamp": fields["asctime"]} if "asctime" in fields else fields, self._clock)
        if isinstance(at, str):
            return at
        if not is_instant(at):
            return f"no such time: {at}; {NO_INSTANT}"
        logger = next((fields[name] for name in _LOGGERS if isinstance(fields.get(name), str)), None)
        first, *rest = message.split("\n")
        return ClientRecord(number, at, first, _origin(found), logger, fields, tuple(rest[:MOST_CONTINUATIONS]))


def first_unplaced(file: BinaryIO | Iterable[bytes]) -> BrokenLine:
    """The first line of a file that has no line of a known layout, and which layouts are known."""
    for number, raw, _ in numbered_lines(file):
        if raw.strip():
            text = quoted(raw[:120])
            return BrokenLine(number, f"its layout is not known: {text!r}; known are {KNOWN}", quoted(raw[:QUOTED]))
    return BrokenLine(0, f"its layout is not known; known are {KNOWN}", "")


def _origin(found: re.Match[str]) -> str:
    return found["origin"].strip(" |\t")


def _with(held: ClientRecord, more: list[str]) -> ClientRecord:
    if not more:
        return held
    return ClientRecord(held.line, held.at_ms, held.text, held.origin, held.logger, held.fields, (*held.more, *more))
