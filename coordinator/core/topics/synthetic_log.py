"""The log of a partition without records: where it ends is a function of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from rejoin.coordinator.core.inputs import Millis

_SLOWEST: Final = 1e-9
"""A record in thirty years, in records a second: slower logs do not grow."""


@dataclass(slots=True)
class SyntheticLog:
    """One partition's synthetic log. ``base_offset`` records were there at ``started_at``."""

    started_at: Millis
    base_offset: int = 0

    def end_offset(self, now: Millis, records_per_second: float) -> int:
        """The offset that the next record will get."""
        return self.base_offset + max(0, int((now - self.started_at) * records_per_second / 1000))

    def first_record_since(
        self, timestamp: Millis, now: Millis, records_per_second: float
    ) -> tuple[int, Millis] | None:
        """The first offset not older than a time, with its own time; none where there is no such record yet."""
        end = self.end_offset(now, records_per_second)
        if timestamp <= self.started_at:
            return (0, self.started_at) if end else None
        offset = self._first_not_before(timestamp, records_per_second)
        if not records_per_second or offset >= end:
            return None
        return offset, self.timestamp_of(offset, records_per_second)

    def _first_not_before(self, timestamp: Millis, records_per_second: float) -> int:
        """The offset of the first record that is not older than a time after the start, there yet or not."""
        return self.base_offset + math.ceil((timestamp - self.started_at) * records_per_second / 1000)

    def timestamp_of(self, offset: int, records_per_second: float) -> Millis:
        """The time of a record: the latest one at which it is not too old to be found."""
        if offset <= self.base_offset or not records_per_second:
            return self.started_at
        timestamp = self.started_at + int((offset - self.base_offset) * 1000 / records_per_second)
        # Rounding may be off by one, and looking up by time is the rule.
        while self._first_not_before(timestamp + 1, records_per_second) <= offset:
            timestamp += 1
        while self._first_not_before(timestamp, records_per_second) > offset:
            timestamp -= 1
        return timestamp

    def there_at(self, offset: int, records_per_second: float) -> Millis | None:
        """When the log has got a record with this offset, or none where it never will."""
        if offset < self.base_offset:
            return self.started_at
        if records_per_second < _SLOWEST:
            return None
        at = self.started_at + math.ceil((offset + 1 - self.base_offset) * 1000 / records_per_second)
        while self.end_offset(at, records_per_second) <= offset:
            at += 1
        return at
