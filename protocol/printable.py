"""Names of clients on a terminal: what would move its cursor or change its colours is written out instead."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything that is no visible character as an escape of Python's, such as ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
