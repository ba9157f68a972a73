"""Names of clients on a terminal: what would move its cursor or change its colours is written out instead."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any


def printable(text: str) -> str:
    """The text with everything that is no visible character as an escape of Python's, such as ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable_lines(text: str) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """JSON whose strings have everything that is not visible as an escape of JSON's, such as ``\\u202e``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def printable_fields(_: object, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: the fields of a log line for a terminal. Only a traceback keeps its lines."""
    return {
        name: (printable_lines if name == "exception" else printable)(value) if isinstance(value, str) else value
        for name, value in fields.items()
    }
