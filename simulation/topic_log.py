"""A topic's synthetic logs: records without contents, of which only the offsets and the times are known."""

from __future__ import annotations

from bisect import bisect_right

from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
from rejoin.simulation.kernel import Millis


class TopicLog:
    """A topic's synthetic logs: where a partition ends is a function of the instant."""

    def __init__(
        self, name: str, partitions: int, records_per_second: float, now: Millis, until: Millis | None = None
    ) -> None:
        self.name = name
        self.records_per_second = records_per_second
        self.until = until
        self.deleted_at: Millis | None = None
        self.partitions = [SyntheticLog(now) for _ in range(partitions)]

    def grow(self, partitions: int, now: Millis) -> None:
        """Have so many partitions from now on; the new ones are empty."""
        self.partitions += [SyntheticLog(now) for _ in range(partitions - len(self.partitions))]

    @property
    def is_gone(self) -> bool:
        """Whether the topic was deleted."""
        return self.deleted_at is not None

    def delete(self, now: Millis) -> None:
        """Have no more records: what was written by now stays known, for those who count."""
        self.deleted_at = now
        self.until = now if self.until is None else min(now, self.until)

    def end(self, partition: int, now: Millis) -> int:
        if partition >= len(self.partitions):
            return 0
        last = now if self.until is None else min(now, self.until)
        return self.partitions[partition].end_offset(last, self.records_per_second)

    def written_at(self, partition: int, offset: int) -> Millis:
        """The last instant at which the log does not have this offset yet, or a moment before that."""
        log = self.partitions[partition]
        return log.started_at + int((offset + 1 - log.base_offset) * 1_000 / self.records_per_second) - 1


class CountedLog(TopicLog):
    """A topic whose records are counted as they are written, with their instants."""

    def __init__(self, name: str, partitions: int, now: Millis) -> None:
        super().__init__(name, partitions, 0.0, now)
        self._written_at: list[list[Millis]] = [[] for _ in range(partitions)]
        self._ends: list[list[int]] = [[] for _ in range(partitions)]

    def append(self, partition: int, records: int, now: Millis) -> None:
        """Write so many records at an instant, which is not before any other."""
        at, ends = self._written_at[partition], self._ends[partition]
        end = (ends[-1] if ends else 0) + records
        if at and at[-1] == now:
            ends[-1] = end
        else:
            at.append(now)
            ends.append(end)

    def grow(self, partitions: int, now: Millis) -> None:
        added = max(0, partitions - len(self.partitions))
        super().grow(partitions, now)
        self._written_at += [[] for _ in range(added)]
        self._ends += [[] for _ in range(added)]

    def end(self, partition: int, now: Millis) -> int:
        if partition >= len(self.partitions):
            return 0
        before = bisect_right(self._written_at[partition], now)
        return self._ends[partition][before - 1] if before else 0

    def written_at(self, partition: int, offset: int) -> Millis:
        return self._written_at[partition][bisect_right(self._ends[partition], offset)] - 1
