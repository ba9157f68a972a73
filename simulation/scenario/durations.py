"""Lengths of time in a scenario: text with a unit outside, whole milliseconds inside."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from rejoin.protocol.units import duration_ms, format_duration


def parse_duration(value: object) -> int:
    """A length of time in whole ms; 0 needs no unit. Raises ValueError saying what was expected."""
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    return round(duration_ms(value if isinstance(value, str) else ""))


def _at_least_one(ms: int) -> int:
    if ms < 1:
        raise ValueError("expected a length of time of at least 1ms")
    return ms


Duration = Annotated[int, BeforeValidator(parse_duration), PlainSerializer(format_duration), Field(ge=0)]
Length = Annotated[Duration, AfterValidator(_at_least_one)]
"""A duration other than 0."""
