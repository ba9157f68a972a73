"""Limits of values in lines of journals and logs. Lines beyond them go to the quarantine."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1 << 24
"""Bytes of a line."""

LATEST_MS: Final = 7_258_118_400_000
"""2200-01-01 in ms since 1970."""

EARLIEST_MS: Final = -86_400_000
"""Simulations begin at 0, which is a day earlier in some time zones."""

INT32: Final = range(-(2**31), 2**31)
"""Generations, epochs, partitions and counts."""

INT64: Final = range(-(2**63), 2**63)
"""Offsets, lengths and sizes."""

EXACT: Final = range(-(2**53) + 1, 2**53)
"""Numbers in journals. Sums and differences of such numbers have 64 bits."""

MOST: Final = 1_000_000_000
"""Generations, epochs, counts and rates of journals. Sums and differences of such numbers have 32 bits."""

MOST_PARTITIONS: Final = 100_000
"""Partitions of a topic: the service makes no more."""

TOO_LARGE: Final = "a number is too large"
NO_INSTANT: Final = "expected an instant between 1970 and 2200"


def is_instant(at_ms: float) -> bool:
    """Whether something can have happened then."""
    return EARLIEST_MS <= at_ms < LATEST_MS
