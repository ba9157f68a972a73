"""Sentences on files in which nothing is known: the line that could be a client's, and the nearest known layout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rejoin.pipeline.reading.packed.opening import UNREADABLE, opened
from rejoin.pipeline.reading.peeling.peel import Peels
from rejoin.pipeline.reading.peeling.stamps import begins_with_time

_SPEAKS: Final = re.compile(rb"(?i)consumer|rebalanc|coordinator|joining|heartbeat|(?:group|client)[._ ]?id|kafka")
_SEARCHED: Final = 1 << 20
_MOST_FILES: Final = 100
_QUOTED: Final = 160
_NO_TEXT: Final = bytes(each for each in range(32) if each not in b"\t\n\v\f\r\x1b")
_MOST_OF_NO_TEXT: Final = 20
_LAYOUTS: Final = (
    (
        re.compile(rb"\s*\{.*\}\s*$"),
        "looks like JSON; the nearest known layout is JSON, a record a line, with its text in message, msg, log, line, "
        "event, MESSAGE or others",
    ),
    (re.compile(rb"\s*<[!?/\w]"), "looks like HTML or XML; give the log's text, a record a line"),
    (
        re.compile(rb"[^,\s]*(?:,[^,]*){2}"),
        "looks like a table with commas; the nearest known layout is CSV whose first line names the columns, one of "
        "them the message",
    ),
    (
        re.compile(rb"[^|\t]{1,60}(?:[|\t][^|\t]*){2}"),
        "looks like fields with | or tabs between them; the nearest known layout is CSV whose first line names the "
        "columns, one of them the message",
    ),
    (
        re.compile(rb"\s*(?:[\w.]+=(?:\"[^\"]*\"|\S*)\s+){2}"),
        'looks like key=value pairs; the nearest known layout is time="..." level=... msg="..."',
    ),
    (
        re.compile(rb".{1,200}?\d\d:\d\d:\d\d"),
        "has a time, but other text before it; the nearest known layout is [time] LEVEL text (logger)",
    ),
)
"""Layouts that are not read as they are, with the nearest that is."""


def nearest_layout(paths: Iterable[str]) -> str:
    """Sentences on files in which nothing is known: the first line that could be a client's, else the first line of
    all, and what it looks like; empty where there is no line."""
    first = ""
    for path in list(paths)[:_MOST_FILES]:
        try:
            with opened(path) as file:
                text = file.read(_SEARCHED)
        except UNREADABLE:
            continue
        if _MOST_OF_NO_TEXT * len(text.translate(None, _NO_TEXT)) < (_MOST_OF_NO_TEXT - 1) * len(text):
            first = first or f"{Path(path).name} is not text: it begins with the bytes {text[:4].hex(' ')}."
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if _SPEAKS.search(line) is not None:
                return f"The first line that could be a client's is {_quoted(path, number, line)}. It {_like(line)}."
            if not first and line.strip():
                first = f"No line could be a client's. The first is {_quoted(path, number, line)}. It {_like(line)}."
    return first


def _quoted(path: str, number: int, line: bytes) -> str:
    return f"line {number} of {Path(path).name}: {line[:_QUOTED].decode('utf-8', 'replace').strip()!r}"


def _like(line: bytes) -> str:
    if begins_with_time(Peels().peel(line.decode("utf-8", "replace")).text) is not None:
        return "begins with a time, as log4j, logback and Python's logging do, but no known client has this text"
    named = next((named for layout, named in _LAYOUTS if layout.match(line) is not None), None)
    return named or "begins with no known time; the nearest known layout is [time] LEVEL text (logger)"
