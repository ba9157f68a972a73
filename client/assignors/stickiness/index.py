"""Numbers in place of partitions, so that the sticky algorithms sort and compare integers.

The key of partition p of the topic with rank r (topics ordered by name) is `p * topics + r`. Ascending keys
are partitions ordered by number, then topic: the order in which Kafka decides what a member keeps. Every
integer is the key of one partition, also of one that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from rejoin.client.assignors.base import Partition
from rejoin.protocol.java import utf16_sorted

_DENSE_SLACK = 1 << 16


class PartitionNumbering:
    """The topics of one assignment, by rank, and the keys of their partitions."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.names = utf16_sorted(counts)
        self.ranks = {name: rank for rank, name in enumerate(self.names)}
        self.counts = [counts[name] for name in self.names]
        self.topics = len(self.names)
        self.total = sum(self.counts)

    def keys(self, partitions: Sequence[Partition]) -> list[int]:
        """Keys of the partitions whose topic is known, in the order given."""
        ranks, topics = self.ranks, self.topics
        try:
            return [number * topics + ranks[topic] for topic, number in partitions]
        except KeyError:
            return [number * topics + ranks[topic] for topic, number in partitions if topic in ranks]

    def partition(self, key: int) -> Partition:
        """The partition of one key."""
        number, rank = divmod(key, self.topics)
        return (self.names[rank], number)

    def partitions(self, keys: Iterable[int]) -> list[Partition]:
        """The partitions of many keys, in their order."""
        topics, names = self.topics, self.names
        return [(names[key % topics], key // topics) for key in keys]

    def exists(self, key: int) -> bool:
        """Whether the topic has a partition of this number."""
        number, rank = divmod(key, self.topics)
        return 0 <= number < self.counts[rank]

    def topic_keys(self, rank: int) -> range:
        """Keys of all partitions of a topic, ascending."""
        return range(rank, rank + self.counts[rank] * self.topics, self.topics)

    def marks(self) -> bytearray | None:
        """A byte for every key up to the highest one; None when topics differ so in size that most would be idle."""
        size = self.topics * max(self.counts, default=0)
        return bytearray(size) if size <= 4 * self.total + _DENSE_SLACK else None


def missing_keys(index: PartitionNumbering, ranks: Iterable[int], taken: set[int]) -> list[int]:
    """Keys of all partitions that are not in `taken`, topics in the order of `ranks`.

    `taken` may hold partitions that do not exist; then the answer is Kafka's, not the plain difference.
    """
    ranks = list(ranks)
    if not taken:
        return list(chain.from_iterable(map(index.topic_keys, ranks)))
    stuck = _first_stuck(index, ranks, taken)
    found: list[int] = []
    for position, rank in enumerate(ranks):
        if stuck is not None and stuck <= position:
            found.extend(index.topic_keys(rank))
        else:
            found.extend(key for key in index.topic_keys(rank) if key not in taken)
    return found


def _first_stuck(index: PartitionNumbering, ranks: Sequence[int], taken: Iterable[int]) -> int | None:
    """The place in `ranks` from which on everything counts as missing; None if nothing non-existent is taken."""
    # Kafka: getUnassignedPartitions walks two sorted lists side by side. A taken partition that does not exist
    # never meets its equal, and whatever comes after it counts as unassigned although a member keeps it.
    positions = {rank: position for position, rank in enumerate(ranks)}
    stuck = None
    for key in taken:
        if not index.exists(key):
            number, rank = divmod(key, index.topics)
            after = positions[rank] + (number >= 0)
            stuck = after if stuck is None else min(stuck, after)
    return stuck


class Row:
    """Partitions in a row, as two columns: dealt out without first making a tuple of each."""

    def __init__(self, names: list[str], numbers: list[int]) -> None:
        self._names = names
        self._numbers = numbers

    @classmethod
    def of_everything(cls, index: PartitionNumbering) -> Row:
        """All partitions, by topic and number."""
        ascending = list(range(max(index.counts, default=0)))
        names: list[str] = []
        numbers: list[int] = []
        for name, count in zip(index.names, index.counts, strict=True):
            names += [name] * count
            numbers += ascending if count == len(ascending) else ascending[:count]
        return cls(names, numbers)

    @classmethod
    def of_keys(cls, index: PartitionNumbering, keys: Iterable[int]) -> Row:
        """The partitions of these keys, in their order."""
        return cls.of_partitions(index.partitions(keys))

    @classmethod
    def of_partitions(cls, partitions: Iterable[Partition]) -> Row:
        """These partitions, in their order."""
        listed = list(partitions)
        return cls([topic for topic, _ in listed], [number for _, number in listed])

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Partition]:
        return zip(self._names, self._numbers, strict=True)

    def take(self, start: int, stop: int, step: int = 1) -> Iterator[Partition]:
        """The partitions at places start, start + step, … below stop."""
        return zip(self._names[start:stop:step], self._numbers[start:stop:step], strict=True)
