"""Lengths of time as scenarios write them: ``250ms``, ``30s``, ``5m``, ``1h``, ``2d``, or several units: ``1m30s``."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")

LONGEST_MS: Final = 3_653 * _UNITS["d"]
"""Ten years, the two or three leap days among them."""


def parse_duration(text: object) -> int:
    """A length of time in ms. Raises ValueError saying what was expected."""
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return 0
    if not isinstance(text, str) or not _WHOLE.fullmatch(text.strip()):
        raise ValueError("expected a length of time with its unit, such as 250ms, 30s, 5m or 1h30m")
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if length > LONGEST_MS:
        raise ValueError("expected a length of time of at most ten years")
    return round(length)


def show_duration(ms: int) -> str:
    """A length of time as people write it: ``1h30m``, ``2.5s``, ``250ms``."""
    if ms < 1_000:
        return f"{ms}ms"
    parts = []
    for unit in ("d", "h", "m"):
        count, ms = divmod(ms, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    if ms:
        parts.append(f"{ms / 1000:g}s")
    return "".join(parts)


def _something(ms: int) -> int:
    if ms < 1:
        raise ValueError("expected a length of time of at least 1ms")
    return ms


Duration = Annotated[int, BeforeValidator(parse_duration), PlainSerializer(show_duration), Field(ge=0)]
Length = Annotated[Duration, AfterValidator(_something)]
"""A duration that is not nothing."""
