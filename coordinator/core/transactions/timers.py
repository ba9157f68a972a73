"""The timers of the transaction coordinator, and of what waits for it."""

from __future__ import annotations

from enum import IntEnum


class TransactionTimer(IntEnum):
    """Kinds of timers. Of several at one instant, the lower number fires first."""

    ABORT_TIMED_OUT = 2_200
    EXPIRY = 2_201
    MARKERS = 2_202
    VERIFICATION = 2_203
