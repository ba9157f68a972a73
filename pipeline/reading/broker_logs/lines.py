"""Log files, cut into records: when, how grave, who said it, what, and where it stands.

Read are the layouts that brokers write (``[2023-09-30 21:00:09,106] INFO message (logger)`` and its relatives), what
containers and collectors put before it, and log4j's JSON layouts. A line that begins without a time belongs to the
record before it: a stack trace, a list of settings, a wrapped message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, BinaryIO, Final, NamedTuple

from rejoin.pipeline.reading.limits import LONGEST, NO_INSTANT, is_instant
from rejoin.pipeline.reading.peeling.peel import JSON, Peels
from rejoin.pipeline.reading.peeling.peeled import Peeled
from rejoin.pipeline.reading.peeling.stamps import LEVELS, Calendar, Stamp, begins_with_time

MOST_CONTINUATIONS: Final = 200
"""Lines of a record that are kept; longer stack traces are counted, not kept."""

QUOTED: Final = 500
"""Characters of a broken line that are shown."""


@dataclass(frozen=True, slots=True)
class Record:
    """One log entry of one process. ``origin`` is the prefix that a collector added, such as a container's name."""

    line: int
    at_ms: int
    level: str
    logger: str | None
    message: str
    origin: str = ""
    more: tuple[str, ...] = ()


class BrokenLine(NamedTuple):
    """A line that should have been readable and is not."""

    line: int
    reason: str
    text: str


UNREAD: Final = Record(0, 0, "", "", "")
"""Stands for a record that was not read closely, as it has none of the marks that were looked for."""

_PLAIN: Final = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_USUAL: Final = re.compile(
    r"\[?(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
    r"(?P<zone> ?Z| ?[+-]\d\d:?\d\d)?\]?\s+(?:\[(?!\d{4}-)[^\]]*\]\s+)?"
    r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]?\s+(?P<rest>[^\x1b]*)",
    re.DOTALL,
)
"""The layout of Kafka's own configuration, and of most others: nothing is around it, as the level follows the time."""
_BEHIND_TIME: Final = re.compile(
    rf"\s*(?:\[(?P<thread>[^\]]*)\]\s+)?\[?(?P<level>{LEVELS})\]?(?::|\s)\s*(?P<rest>.*)", re.DOTALL
)
_TAIL: Final = re.compile(r"\s+\((?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?\)(?:\s+\[[^\]]*\])?\s*$")
_LEADING_LOGGER: Final = re.compile(
    r"(?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?(?: -|:) (?P<rest>.*)", re.DOTALL
)

TRACE: Final = re.compile(
    r"\s+at \S+\(|\s*Caused by: |\s*Suppressed: |\s*\.\.\. \d+ (?:more|common)|[\w.$]+(?:Exception|Error)\b"
)
GROUPISH: Final = re.compile(
    r"\[Group(?:Coordinator|MetadataManager) |kafka\.coordinator\.group\.|(?:rebalance|Stabilized|leader for) group "
)
"""The mark of a group coordinator's line, found also when the line's beginning or end is missing."""


class LogClock:
    """Reads the times of one file. Brokers write local times without a zone, in the order in which they passed."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._minute = ""
        self._minute_ms = 0
        self._last: int | None = None

    def read(self, date: str, time: str, fraction: str | None, zone: str | None) -> int:
        """Milliseconds since 1970. Raises ValueError for what is no time."""
        minute = f"{date} {time[:5]}{zone or ''}"
        if minute != self._minute:
            self._minute_ms = self._begin(date, time[:5], zone)
            self._minute = minute
        at = self._minute_ms + int(time[6:]) * 1_000 + int((fraction or "0")[:3].ljust(3, "0"))
        self._last = at
        return at

    def _begin(self, date: str, minute: str, zone: str | None) -> int:
        local = datetime.fromisoformat(f"{date}T{minute}")
        if not is_instant(_millis(local.replace(tzinfo=UTC))):
            raise ValueError(f"{date} {minute}; {NO_INSTANT}")
        if zone:
            return _millis(local.replace(tzinfo=_offset(zone.strip())))
        first, second = local.replace(tzinfo=self._zone), local.replace(tzinfo=self._zone, fold=1)
        at = _millis(first)
        # In autumn an hour passes twice: it is the second time when the first would lie behind us.
        if self._last is not None and first.utcoffset() != second.utcoffset() and at + 60_000 <= self._last:
            return _millis(second)
        return at


def _millis(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))


@dataclass(slots=True)
class LineCounts:
    """Counters of a file's lines."""

    lines: int = 0
    records: int = 0
    not_utf8: int = 0
    continuations: int = 0
    blank: int = 0
    unrelated: int = 0
    """Lines that are no record and belong to none."""
    clock_steps: int = 0
    """Times that lie more than a second before the one of the line before."""


class Lines:
    """Cuts one file into records. ``read`` says how much there was of what."""

    def __init__(self, zone: tzinfo = UTC, marks: Iterable[bytes] = (), written: datetime | None = None) -> None:
        """With ``marks``, records without any of these in their first line are not read closely: see UNREAD.

        ``written``: when the file was, for times without a year or a date.
        """
        self._clock = LogClock(zone)
        self._calendar = Calendar(written)
        self._peels = Peels()
        self._marks = tuple(marks)
        self.read = LineCounts()
        self._logger_seen = False

    def records(self, file: BinaryIO | Iterable[bytes]) -> Iterator[Record | BrokenLine]:
        """Every record and every broken line, in the file's order. Nothing in a file makes this fail."""
        last: Record | None = None
        more: list[str] = []
        last_at: int | None = None
        for number, raw, whole in numbered_lines(file):
            self.read.lines = max(self.read.lines, number)
            if whole is None:
                yield BrokenLine(number, f"longer than {LONGEST} bytes", quoted(raw[:QUOTED]))
                continue
            if self._marks and _PLAIN.match(raw) is not None and not any(mark in raw for mark in self._marks):
                found: Record | str | None = UNREAD
                text = ""
            else:
                text = self._text(raw)
                usual = _USUAL.fullmatch(text)
                if usual is not None:
                    found = self._usual_record(number, usual)
                else:
                    line = self._peels.peel(text)
                    text = line.text
                    if not text.strip():
                        self.read.blank += 1
                        continue
                    found = self._record(number, line)
            if isinstance(found, Record):
                if last is not None:
                    yield from self._release(last, more)
                last, more = found, []
                self.read.records += 1
                if found is UNREAD:
                    continue
                if last_at is not None and found.at_ms < last_at - 1_000:
                    self.read.clock_steps += 1
                last_at = found.at_ms
                continue
            if found is None and last is not None and self._belongs(last, more, text):
                self.read.continuations += 1
                if len(more) < MOST_CONTINUATIONS:
                    more.append(text)
                continue
            reason = found or self._lonely(text)
            if reason is not None:
                yield BrokenLine(number, reason, quoted(text))
            else:
                self.read.unrelated += 1
        if last is not None:
            yield from self._release(last, more)

    def _text(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            self.read.not_utf8 += 1
            text = raw.decode("latin-1")
        return text

    def _record(self, number: int, line: Peeled) -> Record | str | None:
        """A record; or what is wrong with the line; or None for a line that has no time."""
        text = line.text
        begun = begins_with_time(text)
        behind = _BEHIND_TIME.match(text, begun.end if begun is not None else 0)
        stamp = begun.stamp if begun is not None else line.stamp
        if stamp is None:
            if GROUPISH.search(text) is None:
                return None
            is_json = JSON in line.peelers
            return (
                "JSON without a time" if is_json else "not JSON, though it begins like it" if text[:1] == "{" else None
            )
        if behind is None and line.level is None and line.logger is None:
            return "a time, but no level behind it: cut short" if GROUPISH.search(text) else None
        at = self._at(stamp)
        if isinstance(at, str):
            return at
        rest = behind["rest"] if behind is not None else text if begun is None else text[begun.end :].lstrip()
        rest, logger = self._with_logger(rest, line.logger)
        level = (behind["level"] if behind is not None else line.level or "INFO").upper()
        more = line.more or tuple(_trace_of(line.fields))
        level = "WARN" if level == "WARNING" else level
        return Record(number, at, level, logger, rest.rstrip(), "/".join(line.origin), more)

    def _usual_record(self, number: int, found: re.Match[str]) -> Record | str:
        stamp = self._calendar.whole(Stamp(found["date"], found["time"], found["fraction"], found["zone"]))
        at = self._at(stamp)
        if isinstance(at, str):
            return at
        message, logger = self._with_logger(found["rest"], None)
        return Record(number, at, found["level"], logger, message.rstrip())

    def _with_logger(self, text: str, logger: str | None) -> tuple[str, str | None]:
        """A message without the logger that stands behind or before it."""
        tail = _tail(text)
        if tail is not None:
            self._logger_seen = True
            return text[: tail.start()], tail["logger"]
        leading = _LEADING_LOGGER.match(text)
        return (leading["rest"], leading["logger"]) if leading is not None else (text, logger)

    def _at(self, stamp: Stamp) -> int | str:
        """The instant of a time, or why there is none."""
        stamp = self._calendar.whole(stamp)
        if stamp.at_ms is not None:
            return json_instant(stamp.at_ms)
        try:
            return self._clock.read(str(stamp.date), stamp.time, stamp.fraction, stamp.zone)
        except ValueError as problem:
            return f"no such time: {problem}"

    def _belongs(self, last: Record, more: list[str], text: str) -> bool:
        """Whether a line without a time goes on with the record before it."""
        if TRACE.match(text) is not None or GROUPISH.search(text) is None:
            return "\x00" not in text
        # A wrapped message of the coordinator ends with its logger on a later line.
        return last.logger is None and not more and GROUPISH.search(last.message) is not None

    def _lonely(self, text: str) -> str | None:
        if "\x00" in text:
            return "bytes that are no text"
        if GROUPISH.search(text) is not None:
            return "the beginning of the line is missing"
        return None

    def _release(self, last: Record, more: list[str]) -> Iterator[Record | BrokenLine]:
        """Finish a record: join a wrapped message, and report one without its end."""
        kept = tuple(more)
        if last.logger is None and GROUPISH.search(last.message) is not None and not last.message.startswith("{"):
            together = last.message
            for count, text in enumerate(kept[:4], 1):
                together = f"{together} {text.strip()}"
                tail = _tail(together)
                if tail is not None:
                    wrapped = together[: tail.start()].rstrip()
                    yield Record(last.line, last.at_ms, last.level, tail["logger"], wrapped, last.origin, kept[count:])
                    return
            if self._logger_seen:
                yield BrokenLine(last.line, "the end of the line is missing", quoted(last.message))
                return
        yield (
            last
            if last is UNREAD
            else Record(last.line, last.at_ms, last.level, last.logger, last.message, last.origin, kept)
        )


def _tail(text: str) -> re.Match[str] | None:
    """The logger behind a message, looked for from the end."""
    start = text.rfind(" (")
    return _TAIL.match(text, start) if start >= 0 else None


def numbered_lines(file: BinaryIO | Iterable[bytes]) -> Iterator[tuple[int, bytes, bool | None]]:
    """Lines with their numbers, without line ends; None marks one that is too long.

    A file that is read in another order numbers its lines itself.
    """
    if not hasattr(file, "readline"):
        for number, raw in file.numbered() if hasattr(file, "numbered") else enumerate(file, 1):
            yield number, raw.rstrip(b"\r\n"), True
        return
    number = 0
    while raw := file.readline(LONGEST):
        number += 1
        if len(raw) < LONGEST or raw.endswith(b"\n"):
            yield number, raw.rstrip(b"\r\n"), True
            continue
        first = raw
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(LONGEST)
        yield number, first, None


def quoted(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return text[:QUOTED].replace("\x00", "\N{SYMBOL FOR NULL}")


def _trace_of(fields: dict[str, Any]) -> list[str]:
    """The stack trace that a JSON layout has beside the message."""
    text = fields.get("stack_trace") or fields.get("exception") or ""
    return str(text).splitlines()[:MOST_CONTINUATIONS]


def json_instant(at_ms: float) -> int | str:
    return int(at_ms) if is_instant(at_ms) else f"no such time: {str(at_ms)[:30]}; {NO_INSTANT}"
