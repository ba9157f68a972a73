"""Results of polls: fetched records, or records of synthetic logs, which are made when they are read.

A synthetic log over HTTP holds nothing but offsets; key and value follow from them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rejoin.client.core.effects import PollReturned
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.inputs import Millis, RecordRange
from rejoin.protocol.records.synthetic import synthetic_record
from rejoin.protocol.types import TopicPartition


def record(topic: str, partition: int, offset: int, timestamp: int) -> ConsumerRecord:
    """The synthetic record at an offset; each reading gives the same one, but for its timestamp."""
    return ConsumerRecord(topic, partition, offset, timestamp, *synthetic_record(topic, partition, offset))


class SyntheticRecords(Sequence[ConsumerRecord]):
    """The records of a range of a synthetic log."""

    __slots__ = ("_range", "_timestamp")

    def __init__(self, taken: RecordRange, timestamp: Millis) -> None:
        self._range = taken
        self._timestamp = timestamp

    def __len__(self) -> int:
        return self._range.end - self._range.start

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        topic, partition, start, end = self._range
        if isinstance(index, slice):
            return [record(topic, partition, offset, self._timestamp) for offset in range(start, end)[index]]
        return record(topic, partition, range(start, end)[index], self._timestamp)


def by_range(returned: PollReturned, timestamp: Millis) -> list[Sequence[ConsumerRecord]]:
    """The records of each range of a poll."""
    if returned.records is not None:
        return list(returned.records)
    return [SyntheticRecords(taken, timestamp) for taken in returned.ranges]


class Records(Sequence[ConsumerRecord]):
    """Records of one poll, by partition and offset. ``ranges`` go from position to position."""

    __slots__ = ("_length", "_parts", "ranges")

    def __init__(self, ranges: Iterable[RecordRange], parts: Iterable[Sequence[ConsumerRecord]]) -> None:
        self.ranges = tuple(ranges)
        self._parts = tuple(parts)
        self._length = sum(map(len, self._parts))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._parts)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return list(self)[index]
        at = index + self._length if index < 0 else index
        if at >= 0:
            for part in self._parts:
                if at < len(part):
                    return part[at]
                at -= len(part)
        raise IndexError(index)

    def parts(self) -> Iterable[tuple[RecordRange, Sequence[ConsumerRecord]]]:
        """The records of each range."""
        return zip(self.ranges, self._parts, strict=True)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that gave records, in the order in which they did."""
        return [TopicPartition(taken.topic, taken.partition) for taken in self.ranges]

    def by_partition(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records of each partition."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, part in zip(self.partitions(), self._parts, strict=True):
            found.setdefault(partition, []).extend(part)
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{t}-{p}[{start},{end})" for t, p, start, end in self.ranges)
        return f"Records({shown})"


class _Part:
    """The rest of a range. ``start`` is the position before its next record."""

    __slots__ = ("end", "index", "partition", "records", "start")

    def __init__(self, taken: RecordRange, records: Sequence[ConsumerRecord]) -> None:
        self.partition = TopicPartition(taken.topic, taken.partition)
        self.start, self.end = taken.start, taken.end
        self.records = records
        self.index = 0


class RecordBuffer:
    """Records that a poll returned and that are handed out one by one."""

    def __init__(self) -> None:
        self._parts: deque[_Part] = deque()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def fill(self, returned: PollReturned, timestamp: Millis) -> None:
        """Add the records of a poll."""
        for taken, records in zip(returned.ranges, by_range(returned, timestamp), strict=True):
            self._parts.append(_Part(taken, records))

    def next(self) -> ConsumerRecord:
        """The next record; there must be one."""
        part = self._parts[0]
        found = part.records[part.index]
        part.index += 1
        if part.index == len(part.records):
            self._parts.popleft()
        else:
            part.start = found.offset + 1
        return found

    def unread(self) -> Iterator[ConsumerRecord]:
        """The records that are not handed out yet."""
        for part in self._parts:
            yield from part.records[part.index :]

    def positions(self) -> dict[TopicPartition, int]:
        """The position before the first record of each partition."""
        return {part.partition: part.start for part in reversed(self._parts)}

    def take_all(self) -> Records:
        """Everything that is left."""
        parts, self._parts = self._parts, deque()
        return Records(
            [RecordRange(*part.partition, part.start, part.end) for part in parts],
            [part.records[part.index :] for part in parts],
        )

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the remaining records of these partitions."""
        dropped = set(partitions)
        self._parts = deque(part for part in self._parts if part.partition not in dropped)

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
