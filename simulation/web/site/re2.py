"""Stands in for google-re2 where it cannot be had, with Python's own expressions: what RE2 does not know is refused.

The two agree on the expressions that topics are chosen by: classes, repetition, alternatives, groups and anchors.
"""

from __future__ import annotations

import re
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import SimpleNamespace
from typing import Any, Final

_UNKNOWN_TO_RE2: Final = {
    constants.GROUPREF,
    constants.GROUPREF_EXISTS,
    constants.ASSERT,
    constants.ASSERT_NOT,
    constants.ATOMIC_GROUP,
    constants.POSSESSIVE_REPEAT,
}


class error(Exception):  # noqa: N801 - re2's own name
    """This is no expression of RE2."""


Options = SimpleNamespace
"""RE2's options; none of them changes what is matched here."""


def compile(pattern: str, options: Options | None = None) -> re.Pattern[str]:  # noqa: A001 - re2's own name
    """Compiled form of a pattern. Raises :class:`error` for one that RE2 would refuse."""
    try:
        parsed = parser.parse(pattern)
    except re.error as problem:
        raise error(str(problem)) from None
    if _names(parsed) & _UNKNOWN_TO_RE2:
        raise error(f"{pattern}: RE2 has no references, no look-around and no possessive repetition")
    return re.compile(pattern, re.ASCII)


def _names(parsed: Any) -> set[Any]:
    """The operators of a parsed pattern."""
    found = set()
    for operator, argument in parsed:
        found.add(operator)
        parts = argument if isinstance(argument, (tuple, list)) else [argument]
        for part in parts:
            inner = part if isinstance(part, list) else [part]
            for each in inner:
                if isinstance(each, parser.SubPattern):
                    found |= _names(each)
    return found
