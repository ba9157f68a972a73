"""Reads the options of a command where they are plain pairs of name and value, without a parser's imports.

Cyclopts is a tenth of the time that ``rejoin serve`` needs to its first answer. It still reads everything else: help,
what is misspelt or of the wrong type, and what begins with a dash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


def plain_options(options: type, given: Sequence[str], short: Mapping[str, str]) -> dict[str, Any] | None:
    """The fields that ``options`` is made with, or None where a parser must read the options. ``short`` has aliases."""
    types = get_type_hints(options)
    found: dict[str, Any] = {}
    rest = iter(given)
    for option in rest:
        name, equals, value = option.partition("=")
        parameter = short.get(name, name.removeprefix("--").replace("-", "_"))
        if parameter not in types or not (name in short or name == "--" + parameter.replace("_", "-")):
            return None
        wanted = types[parameter]
        if wanted is bool:
            read: Any = None if equals else True
        else:
            text = value if equals else next(rest, "-")
            read = None if text.startswith("-") else _read(text, wanted)
        repeats = get_origin(wanted) is tuple
        if read is None or (parameter in found and not repeats):
            return None
        found[parameter] = (*found.get(parameter, ()), read) if repeats else read
    return found


def _read(text: str, wanted: Any) -> Any:
    """The value of an option, or None where it is not one of the wanted type."""
    origin = get_origin(wanted)
    if origin is Literal:
        return text if text in get_args(wanted) else None
    if origin is tuple or origin is UnionType:
        wanted = get_args(wanted)[0]
    if wanted is int:
        return int(text) if _INTEGER.fullmatch(text) else None
    return wanted(text) if wanted in (str, Path) else None
