"""Durations and sizes as people write them: ``250ms``, ``30s``, ``1h30m``, Kafka's tools' ``P1DT2H``; ``64MiB``."""

from __future__ import annotations

import re
from typing import Final

_MS: Final = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:us|ms|s|m|h|d))+")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_ISO: Final = re.compile(r"([-+]?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)

_BYTES: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SIZE: Final = re.compile(r"(\d+)\s*([A-Za-z]*)")

LONGEST_MS: Final = 3_653 * 86_400_000
"""Ten years, with their two or three leap days."""


def duration_ms(text: str, *, bare: str | None = None) -> float:
    """``250us``, ``30s`` or ``1h30m`` in ms; a number without a unit counts in ``bare``, if that is given.

    Raises ValueError saying what was expected.
    """
    text = text.strip()
    if bare is not None and _NUMBER.fullmatch(text):
        text += bare
    if not _DURATION.fullmatch(text):
        raise ValueError("expected a length of time with its unit, such as 250ms, 30s, 5m or 1h30m")
    length = sum(float(number) * _MS[unit] for number, unit in _PART.findall(text))
    if length > LONGEST_MS:
        raise ValueError("expected a length of time of at most ten years")
    return length


def format_duration(ms: int) -> str:
    """A duration as people write it: ``1h30m``, ``2.5s``, ``250ms``."""
    if ms < 1_000:
        return f"{ms}ms"
    parts = []
    for unit in ("d", "h", "m"):
        count, ms = divmod(ms, int(_MS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    if ms:
        parts.append(f"{ms / 1000:g}s")
    return "".join(parts)


def iso_duration_ms(text: str) -> int:
    """``P1DT2H30M`` or ``-PT5S`` in ms. Raises ValueError."""
    match = _ISO.fullmatch(text.strip())
    if match is None or not any(match.groups()[1:]):
        raise ValueError("expected PnDTnHnMnS")
    days, hours, minutes = (int(part or 0) for part in match.groups()[1:4])
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + float(match[5] or 0)
    return int(seconds * 1_000) * (-1 if match[1] == "-" else 1)


def size_bytes(text: str) -> int:
    """``64MiB``, ``100kB`` or a number of bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    units = {unit.lower(): count for unit, count in _BYTES.items()}
    if match is None or match[2].lower() not in units:
        raise ValueError("expected a number of bytes, or a size such as 64MiB, 512KiB or 100kB")
    return int(match[1]) * units[match[2].lower()]
