"""Log files, cut into records: when, how grave, who said it, what, and where it stands.

Read are the layouts that brokers write (``[2023-09-30 21:00:09,106] INFO message (logger)`` and its relatives), what
containers and collectors put before it, and log4j's JSON layouts. A line that begins without a time belongs to the
record before it: a stack trace, a list of settings, a wrapped message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, BinaryIO, Final, NamedTuple

from rejoin.pipeline.reading.limits import LONGEST, NO_INSTANT, is_instant

MOST_CONTINUATIONS: Final = 200
"""Lines of a record that are kept; longer stack traces are counted, not kept."""

QUOTED: Final = 500
"""Characters of a broken line that are shown."""


@dataclass(frozen=True, slots=True)
class Record:
    """What one party logged at one time. ``origin`` is what a collector put before the line, such as a container."""

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
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_HEAD: Final = re.compile(
    r"(?P<origin>(?:[^\s|\[{]{1,100}\s*\|\s+)?)"
    r"(?:(?P<stored>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\S*) (?:std(?:out|err) [FP] )?)?"
    r"\[?(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[,.](?P<fraction>\d{1,9}))?"
    r"(?P<zone> ?Z| ?[+-]\d\d:?\d\d)?\]?\s+"
    r"(?:\[(?P<thread>[^\]]*)\]\s+)?"
    r"\[?(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\]?\s+"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_TIMED: Final = re.compile(r"(?:[^\s|\[{]{1,100}\s*\|\s+)?\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_TAIL: Final = re.compile(r"\s+\((?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?\)(?:\s+\[[^\]]*\])?\s*$")
_LEADING_LOGGER: Final = re.compile(
    r"(?P<logger>[A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?(?: -|:) (?P<rest>.*)", re.DOTALL
)
_JSON_START: Final = re.compile(r"(?:[^\s|\[{]{1,100}\s*\|\s+)?\{")

TRACE: Final = re.compile(
    r"\s+at \S+\(|\s*Caused by: |\s*Suppressed: |\s*\.\.\. \d+ (?:more|common)|[\w.$]+(?:Exception|Error)\b"
)
GROUPISH: Final = re.compile(
    r"\[Group(?:Coordinator|MetadataManager) |kafka\.coordinator\.group\.|(?:rebalance|Stabilized|leader for) group "
)
"""What a line has that comes from a group coordinator, also when its beginning or its end is missing."""


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
    """What was met in a file."""

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

    def __init__(self, zone: tzinfo = UTC, marks: Iterable[bytes] = ()) -> None:
        """With ``marks``, records without any of these in their first line are not read closely: see UNREAD."""
        self._clock = LogClock(zone)
        self._marks = tuple(marks)
        self.read = LineCounts()
        self._logger_seen = False

    def records(self, file: BinaryIO | Iterable[bytes]) -> Iterator[Record | BrokenLine]:
        """Every record and every broken line, in the file's order. Nothing in a file makes this fail."""
        held: Record | None = None
        more: list[str] = []
        last_at: int | None = None
        for number, raw, whole in numbered_lines(file):
            self.read.lines = number
            if whole is None:
                yield BrokenLine(number, f"longer than {LONGEST} bytes", quoted(raw[:QUOTED]))
                continue
            if self._marks and _PLAIN.match(raw) is not None and not any(mark in raw for mark in self._marks):
                found: Record | str | None = UNREAD
                text = ""
            else:
                text = self._text(raw)
                if not text.strip():
                    self.read.blank += 1
                    continue
                found = self._record(number, text)
            if isinstance(found, Record):
                if held is not None:
                    yield from self._release(held, more)
                held, more = found, []
                self.read.records += 1
                if found is UNREAD:
                    continue
                if last_at is not None and found.at_ms < last_at - 1_000:
                    self.read.clock_steps += 1
                last_at = found.at_ms
                continue
            if found is None and held is not None and self._belongs(held, more, text):
                self.read.continuations += 1
                if len(more) < MOST_CONTINUATIONS:
                    more.append(text)
                continue
            reason = found or self._lonely(text)
            if reason is not None:
                yield BrokenLine(number, reason, quoted(text))
            else:
                self.read.unrelated += 1
        if held is not None:
            yield from self._release(held, more)

    def _text(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            self.read.not_utf8 += 1
            text = raw.decode("latin-1")
        return _ESCAPES.sub("", text) if "\x1b" in text else text

    def _record(self, number: int, text: str) -> Record | str | None:
        """A record; or what is wrong with the line; or None for a line that has no time."""
        match = _HEAD.match(text)
        if match is None:
            if _JSON_START.match(text) is not None:
                return _json_record(number, text, self._clock)
            return "a time, but no level behind it: cut short" if _TIMED.match(text) and GROUPISH.search(text) else None
        try:
            at = self._clock.read(match["date"], match["time"], match["fraction"], match["zone"])
        except ValueError as problem:
            return f"no such time: {problem}"
        rest, logger = match["rest"], None
        tail = _tail(rest)
        if tail is not None:
            logger, rest = tail["logger"], rest[: tail.start()]
            self._logger_seen = True
        elif (leading := _LEADING_LOGGER.match(rest)) is not None:
            logger, rest = leading["logger"], leading["rest"]
        level = "WARN" if match["level"] == "WARNING" else match["level"]
        return Record(number, at, level, logger, rest.rstrip(), match["origin"].strip(" |\t"))

    def _belongs(self, held: Record, more: list[str], text: str) -> bool:
        """Whether a line without a time goes on with the record before it."""
        if TRACE.match(text) is not None or GROUPISH.search(text) is None:
            return "\x00" not in text
        # A wrapped message of the coordinator ends with its logger on a later line.
        return held.logger is None and not more and GROUPISH.search(held.message) is not None

    def _lonely(self, text: str) -> str | None:
        if "\x00" in text:
            return "bytes that are no text"
        if GROUPISH.search(text) is not None:
            return "the beginning of the line is missing"
        return None

    def _release(self, held: Record, more: list[str]) -> Iterator[Record | BrokenLine]:
        """Finish a record: join a wrapped message, and report one without its end."""
        kept = tuple(more)
        if held.logger is None and GROUPISH.search(held.message) is not None and not held.message.startswith("{"):
            together = held.message
            for count, text in enumerate(kept[:4], 1):
                together = f"{together} {text.strip()}"
                tail = _tail(together)
                if tail is not None:
                    wrapped = together[: tail.start()].rstrip()
                    yield Record(held.line, held.at_ms, held.level, tail["logger"], wrapped, held.origin, kept[count:])
                    return
            if self._logger_seen:
                yield BrokenLine(held.line, "the end of the line is missing", quoted(held.message))
                return
        yield (
            held
            if held is UNREAD
            else Record(held.line, held.at_ms, held.level, held.logger, held.message, held.origin, kept)
        )


def _tail(text: str) -> re.Match[str] | None:
    """The logger behind a message, looked for from the end."""
    start = text.rfind(" (")
    return _TAIL.match(text, start) if start >= 0 else None


def numbered_lines(file: BinaryIO | Iterable[bytes]) -> Iterator[tuple[int, bytes, bool | None]]:
    """Lines with their numbers, without line ends; None marks one that is too long."""
    if not hasattr(file, "readline"):
        for number, raw in enumerate(file, 1):
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


# --- JSON layouts

_TIMES: Final = ("@timestamp", "timestamp", "time", "ts", "timeMillis")
_MESSAGES: Final = ("message", "msg", "log")
_LEVELS: Final = ("level", "log.level", "severity", "loglevel")
_LOGGERS: Final = ("logger_name", "loggerName", "logger", "log.logger", "class")


def _json_record(number: int, text: str, clock: LogClock) -> Record | str | None:
    """A record of a JSON layout, None for JSON that is something else."""
    origin, brace, body = text.partition("{")
    try:
        fields = json.loads(brace + body)
    except (ValueError, RecursionError):
        return "not JSON, though it begins like it" if GROUPISH.search(text) else None
    message = _first(fields, _MESSAGES)
    if not isinstance(message, str):
        return None
    at = json_time(fields, clock)
    if isinstance(at, str):
        return at if GROUPISH.search(text) else None
    logger, level = _first(fields, _LOGGERS), _first(fields, _LEVELS)
    more = fields.get("stack_trace") or fields.get("exception") or ""
    return Record(
        number,
        at,
        str(level or "INFO").upper(),
        str(logger) if logger else None,
        message.rstrip(),
        origin.strip(" |\t"),
        tuple(str(more).splitlines()[:MOST_CONTINUATIONS]),
    )


def _first(fields: dict[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def json_time(fields: dict[str, Any], clock: LogClock) -> int | str:
    instant = fields.get("instant")
    if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
        nanos = instant.get("nanoOfSecond")
        return json_instant(instant["epochSecond"] * 1_000 + (nanos // 1_000_000 if isinstance(nanos, int) else 0))
    value = _first(fields, _TIMES)
    if isinstance(value, int | float):
        # Seconds or milliseconds: no log is from before 1973 or after 5138.
        return json_instant(value if value > 100_000_000_000 else value * 1_000)
    match = re.match(
        r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{1,9}))?( ?Z| ?[+-]\d\d:?\d\d)?", str(value or "")
    )
    if match is None:
        return "JSON without a time"
    try:
        return clock.read(match[1], match[2], match[3], match[4])
    except ValueError as problem:
        return f"no such time: {problem}"


def json_instant(at_ms: float) -> int | str:
    return int(at_ms) if is_instant(at_ms) else f"no such time: {str(at_ms)[:30]}; {NO_INSTANT}"
