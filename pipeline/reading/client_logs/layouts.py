"""A client's log, cut into records: when, and what. Layouts are those that clients' loggers have in use.

A line that begins without a time belongs to the record before it: a stack trace, or settings one below the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, BinaryIO, Final

from rejoin.pipeline.reading.broker_logs.lines import (
    MOST_CONTINUATIONS,
    QUOTED,
    BrokenLine,
    LogClock,
    json_instant,
    numbered_lines,
    quoted,
)
from rejoin.pipeline.reading.limits import LONGEST
from rejoin.pipeline.reading.peeling.peel import JSON, Peels
from rejoin.pipeline.reading.peeling.peeled import Peeled
from rejoin.pipeline.reading.peeling.stamps import LEVELS, Calendar, Stamp, begins_with_time
from rejoin.pipeline.vocabulary import instant_of_line

_SECOND_LINE: Final = re.compile(rf"(?:{LEVELS}|FINE|CONFIG): ")
"""java.util.logging: time, class and method are one line, level and message the next."""
_PLAIN: Final = re.compile(
    rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\t\n]{0,40}?\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b"
)
"""A record with a level. A line without one may go on with the record before, behind a collector's time."""
_WORDS: Final = re.compile(
    rb"afka|onsum|roup|artition|eartbeat|oordinat|ebalanc|thrd|oin|ssign|evok|ommit|opic|ubscri|ffset|ession|ember|"
    rb"eader|roker|arama|ync|lient|tream|poll|stat|[{}|]"
)
"""Parts of words of which each line of a client has one: a record that has none is of another component."""
MOST_ORIGINS: Final = 1_000
"""Containers or hosts of one file whose last record waits for lines that go on with it."""

KNOWN: Final = (
    "a date and a time before the message, as log4j, logback, Spring Boot, Python's logging and franz-go write them"
    " (2026-01-31 12:00:00,123 or 2026-01-31T12:00:00.123Z); Go's log package (2026/01/31 12:00:00); librdkafka"
    " (%4|1769860800.123|MAXPOLL|...); JSON, a record a line"
)
"""Layouts that are read: the error for other logs lists them."""


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
class _Open:
    """A record that the next lines of its origin may go on with."""

    record: ClientRecord
    has_own_time: bool
    """Whether the line itself has the time, and not only its envelope."""
    more: list[str] = field(default_factory=list)

    @property
    def is_only_a_header(self) -> bool:
        """Whether the message is in the next line, as with the client of Erlang."""
        return not self.more and self.record.text.rstrip().endswith("):")

    def goes_on_with(self, line: Peeled) -> bool:
        """Whether a line without a time of its own belongs here: collectors stamp each line of a stack trace, too.

        Each line of one message has the same fields, which are the collector's.
        """
        return self.has_own_time and line.logger is None and line.fields.keys() == self.record.fields.keys()


@dataclass(slots=True)
class RecordCounts:
    """Counts of a file's lines by kind."""

    lines: int = 0
    records: int = 0
    continuations: int = 0
    blank: int = 0
    others: int = 0
    """Records of other components, which are counted and not read."""
    unplaced: int = 0
    """Lines before the first record: of no layout that is known."""
    not_utf8: int = 0


class ClientLines:
    """Cuts one file into records. ``counts`` says how much there was of what."""

    def __init__(
        self,
        zone: tzinfo = UTC,
        written: datetime | None = None,
        *,
        is_untimed: bool = False,
        keeps_errors: bool = False,
    ) -> None:
        """``written``: when the file was, for times that have no year or no date. ``keeps_errors``: whether errors of
        other components are records, too, for the sake of the exceptions below them.

        Where a file ``is_untimed``, a line is a record unless it is indented, and the lines' numbers stand for times:
        they give the order and nothing else.
        """
        self._is_untimed = is_untimed
        self._keeps_errors = keeps_errors
        self._clock = LogClock(zone)
        self._calendar = Calendar(written)
        self._peels = Peels()
        self._open: dict[str, _Open] = {}
        """The record of each origin that lines may still go on with."""
        self.counts = RecordCounts()

    @property
    def is_date_guessed(self) -> bool:
        """Whether times had a year or a date added that stands nowhere in the file."""
        return self._calendar.guessed and not self._is_untimed

    def records(self, file: BinaryIO | Iterable[bytes]) -> Iterator[ClientRecord | BrokenLine]:
        """Every record and every broken line, in the file's order. Nothing in a file makes this fail."""
        for number, raw, whole in numbered_lines(file):
            self.counts.lines = max(self.counts.lines, number)
            if whole is None:
                yield BrokenLine(number, f"longer than {LONGEST} bytes", quoted(raw[:QUOTED]))
                continue
            if self._is_of_others(raw):
                yield from self._release("")
                self.counts.records += 1
                self.counts.others += 1
                continue
            line = self._peels.peel(self._text(raw))
            origin = "/".join(line.origin)
            if not line.text.strip():
                self.counts.blank += 1
                continue
            last = self._open.get(origin)
            found = self._record(number, line, origin, last)
            if isinstance(found, _Open):
                yield from self._release(origin)
                self._open[origin] = found
                self.counts.records += 1
                if len(self._open) > MOST_ORIGINS:
                    yield from self._release(next(iter(self._open)))
            elif found is not None:
                yield BrokenLine(number, found, quoted(line.text))
            elif last is not None:
                self.counts.continuations += 1
                if not last.more and (second := _SECOND_LINE.match(line.text)) is not None:
                    header = last.record.text.split()
                    last.record = replace(
                        last.record, text=line.text[second.end() :], logger=header[0] if header else last.record.logger
                    )
                elif len(last.more) < MOST_CONTINUATIONS:
                    last.more.append(line.text)
            else:
                self.counts.unplaced += 1
        for origin in sorted(self._open, key=lambda each: self._open[each].record.line):
            yield from self._release(origin)

    def _is_of_others(self, raw: bytes) -> bool:
        """Whether a line begins a record without any word of a client. It is not looked at further.

        Of several origins, a line may end the record of any.
        """
        if _PLAIN.match(raw) is None or _WORDS.search(raw) is not None:
            return False
        if self._keeps_errors and b"ERROR" in raw:
            return False
        return not self._open or (len(self._open) == 1 and "" in self._open)

    def _release(self, origin: str) -> Iterator[ClientRecord]:
        last = self._open.pop(origin, None)
        if last is not None:
            yield last.record if not last.more else replace(last.record, more=(*last.record.more, *last.more))

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.counts.not_utf8 += 1
            return raw.decode("latin-1")

    def _record(self, number: int, line: Peeled, origin: str, before: _Open | None) -> _Open | str | None:
        """A record; or what is wrong with the line; or None for one that does not begin as a record does."""
        begun = begins_with_time(line.text)
        if begun is None and line.text.startswith('{"') and JSON not in line.peelers:
            return None if _is_json(line.text) else "not JSON, though it begins like it: cut short"
        if begun is not None:
            stamp: Stamp | None = begun.stamp
            text = line.text[begun.end :].removeprefix("|")
        elif self._is_untimed:
            goes_on = line.text[:1].isspace() or (before is not None and before.is_only_a_header)
            stamp, text = None if goes_on else Stamp(at_ms=instant_of_line(number)), line.text
        elif line.stamp is None or (before is not None and before.goes_on_with(line)):
            return None
        else:
            stamp, text = line.stamp, line.text
        if stamp is None:
            return None
        at = self._at(self._calendar.whole(stamp))
        if isinstance(at, str):
            return at
        return _Open(ClientRecord(number, at, text, origin, line.logger, line.fields, line.more), begun is not None)

    def _at(self, stamp: Stamp) -> int | str:
        """The instant of a whole time, or why there is none."""
        if stamp.at_ms is not None:
            return json_instant(stamp.at_ms)
        try:
            return self._clock.read(str(stamp.date), stamp.time, stamp.fraction, stamp.zone)
        except ValueError as problem:
            return f"no such time: {problem}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def first_unplaced(file: BinaryIO | Iterable[bytes]) -> BrokenLine:
    """The first line of a file that has no line of a known layout, and which layouts are known."""
    for number, raw, _ in numbered_lines(file):
        if raw.strip():
            text = quoted(raw[:120])
            return BrokenLine(number, f"its layout is not known: {text!r}; known are {KNOWN}", quoted(raw[:QUOTED]))
    return BrokenLine(0, f"its layout is not known; known are {KNOWN}", "")
