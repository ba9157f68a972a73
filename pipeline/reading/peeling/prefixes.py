"""Peelers of what collectors and tools put before a line: names, times, numbers of lines, quotation marks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from rejoin.pipeline.reading.peeling.peeled import Peeled
from rejoin.pipeline.reading.peeling.stamps import LEVELS, Begun, begins_with_time, stamp_at

_QUOTE: Final = re.compile(r"\s*(?:> ?)+")
_CODE: Final = re.compile(r"(?:[-*] )?(?P<mark>`{1,2})(?P<inside>[^`].*)(?P=mark)\s*")
_NUMBER: Final = re.compile(r"(?P<number>\d{1,8})[:-](?=\D)|(?P<before>\d{1,8})[:-](?=\d)")
_FILE: Final = re.compile(
    r"(?P<file>(?:\.{0,2}/)?(?:[\w.@+-]+/)*[\w.@+-]+\.(?:log|out|txt|json|jsonl|err|gz)(?:\.\d{1,4})?(?:\.gz)?|"
    r"/?(?:[\w.@+-]+/){1,12}[\w.@+-]+)[:-](?:\d{1,8}[:-])?(?=\S)"
)
_COMPOSE: Final = re.compile(r"(?P<origin>[^\s|\[{%\"]{1,100})\s*\|(?:\s|$)")
_KUBECTL: Final = re.compile(r"\[(?P<origin>(?:pod/)?[a-z0-9][\w.-]*/[\w.-]+)\]\s")
_KAIL: Final = re.compile(r"(?P<origin>[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*\[[\w.-]+\]):\s")
_STERN: Final = re.compile(r"(?:[a-z0-9-]+ )?(?P<origin>[a-z0-9][a-z0-9.-]*-[a-z0-9]{4,10}(?:-[a-z0-9]{5})? [\w.-]+) ")
_STREAM: Final = re.compile(r"\s*std(?:out|err) (?P<part>[FP]) ?")
_SYSLOG: Final = re.compile(
    r" (?:(?P<host>[\w.:-]+) |(?=[\w./@-]{1,100}: \{\"))(?P<tag>[\w./@-]{1,100})(?:\[(?P<process>\d+)\])?: ?"
)
_HEROKU: Final = re.compile(r" (?P<origin>(?:app|heroku)\[[\w.-]+\]): ?")
_RFC_5424: Final = re.compile(
    r" (?P<host>\S{1,255}) (?P<app>\S{1,48}) (?P<process>\S{1,128}) \S{1,32} (?:-|(?:\[(?:\\.|[^\]\\])*\])+) ?\ufeff?"
)
_PRIORITY: Final = re.compile(r"<\d{1,3}>1 ")
_LOG_STREAM: Final = re.compile(r"\s(?P<origin>[\w.#-]*(?:/[\w.$\[\]#-]+)+)(?:\s|$)")
_SEPARATOR: Final = re.compile(r"[\])\"']*\s*(?:\||,|;|-(?=\s))?\s*")
_LEVEL: Final = re.compile(rf"(?:{LEVELS})\b", re.IGNORECASE)
_BEGINS_RECORD: Final = re.compile(r"\{\s*\"|\"\d|%[0-7]\||\[[\"{]?(?:\w[\w.]*)\] ")
_NANOSECONDS: Final = 7
_LONGEST_NAME: Final = 110


def quote(line: Peeled) -> Peeled | None:
    """``> line``, ``**line**``, ``| line |``, ``- `line` ``: Markdown's; a console's prompt, or a quoted indent."""
    if line.text[:2] == "| " and line.text.rstrip()[-2:] == " |" and _begins_record(row := line.text.strip("| ")):
        return line.inside(row)
    if line.text[:2] == "**" and (bold := line.text.strip())[-2:] == "**" and _begins_record(inside := bold[2:-2]):
        return line.inside(inside)
    if "`" in line.text[:3] and (code := _CODE.fullmatch(line.text)) is not None and _begins_record(code["inside"]):
        return line.inside(code["inside"])
    if line.text[:1] in "> \t" and (found := _QUOTE.match(line.text)) is not None:
        return line.inside(line.text[found.end() :])
    if line.text[:1] in " \t" and _begins_record(rest := line.text.lstrip()):
        return line.inside(rest)
    return None


def _begins_record(text: str) -> bool:
    """Whether a text begins as the first line of a record does, or as a wrapper of one does."""
    wrappers = (_BEGINS_RECORD, _KUBECTL, _COMPOSE, _KAIL, _PRIORITY)
    return begins_with_time(text) is not None or any(each.match(text) is not None for each in wrappers)


def number_of_line(line: Peeled) -> Peeled | None:
    """``12:line`` and ``12-line``: ``grep -n`` and its context."""
    found = _NUMBER.match(line.text) if line.text[:1].isdigit() else None
    if found is None or stamp_at(line.text) is not None:
        return None
    rest = line.text[found.end() :]
    if found["before"] is not None and begins_with_time(rest) is None:
        return None
    return line.inside(rest)


def name_of_file(line: Peeled) -> Peeled | None:
    """``a.log:line`` and ``logs/a.log:12:line``: ``grep`` over several files."""
    first = line.text[: line.text.find(" ")]
    found = _FILE.match(line.text) if "." in first or "/" in first else None
    if found is None or stamp_at(line.text) is not None:
        return None
    rest = line.text[found.end() :]
    if not _begins_record(rest) and "." not in found["file"]:
        return None
    return line.inside(rest, origin=found["file"])


def container(line: Peeled) -> Peeled | None:
    """``web-1  | line`` of docker compose, ``[pod/name/container] line`` of kubectl, ``space/pod[container]: line``."""
    text = line.text
    found = _KUBECTL.match(text) if text[:1] == "[" else None
    if found is None and "|" in text[:_LONGEST_NAME]:
        found = _COMPOSE.match(text)
    if found is None and "]: " in text[:_LONGEST_NAME]:
        found = _KAIL.match(text)
    if found is None or _LEVEL.fullmatch(found["origin"]) is not None or stamp_at(line.text) is not None:
        return None
    return line.inside(line.text[found.end() :], origin=found["origin"])


def pod(line: Peeled) -> Peeled | None:
    """``orders-7c9f8b6d5-x2k4q app line``, as stern writes it without colours."""
    found = _STERN.match(line.text) if line.text[:1].islower() else None
    if found is None:
        return None
    rest = line.text[found.end() :]
    return line.inside(rest, origin=found["origin"]) if _begins_record(rest) else None


def collected(line: Peeled) -> Peeled | None:
    """A collector's time before the line, with what the collector names behind its time: stream, host, log group."""
    begun = begins_with_time(line.text)
    if begun is None:
        return None
    for read in (_with_stream, _from_syslog, _from_log_group, _before_a_record):
        found = read(line, begun)
        if found is not None:
            return found
    return None


def _with_stream(line: Peeled, begun: Begun) -> Peeled | None:
    """``2024-11-15T10:55:30.336Z stdout F line``: the files of container runtimes."""
    found = _STREAM.match(line.text, begun.end)
    if found is None:
        return None
    inside = line.inside(line.text[found.end() :], begun.stamp)
    return replace(inside, is_partial=found["part"] == "P")


def _from_syslog(line: Peeled, begun: Begun) -> Peeled | None:
    """``Nov 15 10:55:30 host app[12]: line``, in the older and the newer form, with either kind of time."""
    if _PRIORITY.match(line.text) is not None:
        found = _RFC_5424.match(line.text, begun.end)
        return line.inside(line.text[found.end() :], begun.stamp, _host(found, "app")) if found is not None else None
    if (found := _HEROKU.match(line.text, begun.end)) is not None:
        return line.inside(line.text[found.end() :], begun.stamp, found["origin"])
    found = _SYSLOG.match(line.text, begun.end)
    if found is None or _LEVEL.fullmatch(found["host"] or "") is not None:
        return None
    is_syslog = begun.stamp.date is not None and len(begun.stamp.date) == 5
    if not is_syslog and (found["process"] is None or begun.stamp.zone is None):
        return None
    return line.inside(line.text[found.end() :], begun.stamp, _host(found, "tag"))


def _host(found: re.Match[str], name: str) -> str:
    process = found["process"]
    host = f"{found['host']}/" if found["host"] else ""
    return f"{host}{found[name]}" + (f"[{process}]" if process not in (None, "-") else "")


def _from_log_group(line: Peeled, begun: Begun) -> Peeled | None:
    """``2024-11-15T10:55:30.336000+00:00 group/stream line``: ``aws logs tail``."""
    found = _LOG_STREAM.match(line.text, begun.end)
    if found is None or begun.stamp.zone is None:
        return None
    return line.inside(line.text[found.end() :], begun.stamp, found["origin"])


def _before_a_record(line: Peeled, begun: Begun) -> Peeled | None:
    """A time before what begins like a line itself: with a time of its own, as JSON, or as librdkafka's lines do."""
    separator = _SEPARATOR.match(line.text, begun.end)
    start = separator.end() if separator is not None else begun.end
    rest = line.text[start:]
    if rest.startswith("{") or re.match(r"%[0-7]\|", rest) is not None:
        return line.inside(rest, begun.stamp)
    own = begins_with_time(rest)
    if own is not None and _is_more_than_a_time(own) and start > begun.end:
        return line.inside(rest, begun.stamp)
    is_of_a_runtime = len(begun.stamp.fraction or "") >= _NANOSECONDS and begun.stamp.zone is not None
    if is_of_a_runtime and line.text[begun.end : begun.end + 1] == " " and _LEVEL.match(rest) is None:
        return line.inside(line.text[begun.end + 1 :], begun.stamp)
    return None


def _is_more_than_a_time(own: Begun) -> bool:
    """Whether a time can be the beginning of a record; three numbers with colons may be part of a text."""
    return own.stamp.date is not None or own.stamp.at_ms is not None or own.stamp.fraction is not None
