"""Records, made when they are read: a topic's log holds nothing but offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rejoin.client.core.inputs import RecordRange
from rejoin.protocol.records.synthetic import synthetic_record
from rejoin.protocol.types import TopicPartition


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record. Key and value follow from its offset; ``timestamp`` is when it was handed out, ms since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes


def record(topic: str, partition: int, offset: int, timestamp: int) -> ConsumerRecord:
    """The record at an offset; each reading gives the same one, but for its timestamp."""
    return ConsumerRecord(topic, partition, offset, timestamp, *synthetic_record(topic, partition, offset))


class Records(Sequence[ConsumerRecord]):
    """What one poll returned, by partition and offset. Records are made as they are read."""

    __slots__ = ("_length", "ranges", "timestamp")

    def __init__(self, ranges: Sequence[RecordRange], timestamp: int) -> None:
        self.ranges = tuple(ranges)
        self.timestamp = timestamp
        self._length = sum(taken.end - taken.start for taken in self.ranges)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ConsumerRecord]:
        for topic, partition, start, end in self.ranges:
            for offset in range(start, end):
                yield record(topic, partition, offset, self.timestamp)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return list(self)[index]
        at = index + self._length if index < 0 else index
        if at >= 0:
            for topic, partition, start, end in self.ranges:
                if at < end - start:
                    return record(topic, partition, start + at, self.timestamp)
                at -= end - start
        raise IndexError(index)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that gave records, in the order in which they did."""
        return [TopicPartition(taken.topic, taken.partition) for taken in self.ranges]

    def __repr__(self) -> str:
        shown = ", ".join(f"{t}-{p}[{start},{end})" for t, p, start, end in self.ranges)
        return f"Records({shown})"
