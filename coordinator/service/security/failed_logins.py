"""How often logins from one address may fail: one count for both protocols."""

from __future__ import annotations

from typing import Final

_MINUTE: Final = 60.0
_MOST_ADDRESSES: Final = 10_000


class FailedLogins:
    """Counts failed logins by address; so many in a minute are allowed. Times are seconds of the event loop."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._failed: dict[str, tuple[float, int]] = {}
        """For each address, when its minute began, and how many failed since."""

    def add(self, address: str, now: float) -> None:
        """A login has failed."""
        began, count = self._failed.pop(address, (now, 0))
        self._failed[address] = (began, count + 1) if now < began + _MINUTE else (now, 1)
        if len(self._failed) > _MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]

    def wait_seconds(self, address: str, now: float) -> float:
        """How long an address is refused; 0: it is not."""
        began, count = self._failed.get(address, (now, 0))
        return max(0.0, began + _MINUTE - now) if count >= self._per_minute else 0.0
