"""The user data of the `sticky` assignor: the partitions a member was last given, by topic, and the generation.

Version 0 is an array of (topic, array of partition numbers), version 1 adds a 4-byte generation; there is no
version number. All numbers are big-endian, counts 4 bytes, names with a 2-byte length.

Source: Kafka's StickyAssignor.serializeTopicPartitionAssignment; KIP-54, KIP-341.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from operator import itemgetter

from rejoin.client.assignors.base import Partition
from rejoin.client.assignors.stickiness.claims import Claim
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.protocol.embedded.consumer_protocol import NO_GENERATION, Subscription
from rejoin.protocol.java import computed_map_order

TopicNumbers = tuple[str, tuple[int, ...]]
"""(topic, partition numbers)."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

_WORTH_A_SHAPE = 128
_MOST_SHAPES = 4


def encode_sticky_user_data(partitions: Iterable[Partition], generation: int) -> bytes:
    """Version 1. Topics stand in map order, numbers in the order given."""
    gathered: dict[str, list[int]] = {}
    lookups = []
    for topic, number in partitions:
        lookups.append(topic)
        gathered.setdefault(topic, []).append(number)
    # Kafka: grouped with computeIfAbsent, and written as the map iterates.
    listed = [(topic, tuple(gathered[topic])) for topic in computed_map_order(lookups)]
    return _encoded(listed) + _INT32.pack(generation)


def _encoded(listed: Sequence[TopicNumbers]) -> bytes:
    """Version 0."""
    out = [_INT32.pack(len(listed))]
    for topic, numbers in listed:
        name = topic.encode("utf-8")
        out.append(_INT16.pack(len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(out)


def decode_sticky_user_data(data: bytes | None) -> tuple[list[TopicNumbers], int]:
    """The claimed partitions and their generation: -1 in version 0, and no partitions if the data is unreadable."""
    if not data:
        return [], NO_GENERATION
    listed: list[TopicNumbers] = []
    at = 4
    try:
        (topics,) = _INT32.unpack_from(data)
        if not 0 <= topics <= len(data) - at:
            return [], NO_GENERATION
        for _ in range(topics):
            (length,) = _INT16.unpack_from(data, at)
            start, at = at + 2, at + 2 + length
            (count,) = _INT32.unpack_from(data, at)
            if length < 0 or count < 0:
                return [], NO_GENERATION
            listed.append((str(data[start:at], "utf-8", "replace"), struct.unpack_from(f">{count}i", data, at + 4)))
            at += 4 + 4 * count
    except struct.error:
        return [], NO_GENERATION
    return listed, _INT32.unpack_from(data, at)[0] if len(data) - at >= 4 else NO_GENERATION


class StickyClaimReader:
    """Reads the claims of the members of one group.

    Members of a balanced group mostly have equally many partitions of each topic, and so user data that
    differs in numbers only: what was worked out for one is used for the next of the same shape.

    `as_listed`: whether the keys of a claim must be in the order of the user data; if not, they are by topic.
    """

    def __init__(self, index: PartitionNumbering, as_listed: bool) -> None:
        self._index = index
        self._as_listed = as_listed
        self._shapes: list[_Shape] = []

    def read(self, subscription: Subscription) -> Claim:
        """The claim in a member's user data."""
        data = subscription.user_data or b""
        subscription_generation = max(subscription.generation_id, NO_GENERATION)
        for shape in self._shapes:
            if shape.fits(data):
                keys, partitions, generation = shape.read(data)
                return Claim(keys, generation, subscription_generation, partitions)
        listed, generation = decode_sticky_user_data(data)
        if len(data) >= _WORTH_A_SHAPE and len(self._shapes) < _MOST_SHAPES:
            self._learn(data, listed)
        ranks, topics = self._index.ranks, self._index.topics
        known = [(ranks[topic], numbers) for topic, numbers in listed if topic in ranks]
        if not self._as_listed:
            known.sort()
        keys = [number * topics + rank for rank, numbers in known for number in numbers]
        return Claim(keys, generation, subscription_generation)

    def _learn(self, data: bytes, listed: Sequence[TopicNumbers]) -> None:
        encoded = _encoded(listed)
        some_known = any(topic in self._index.ranks for topic, numbers in listed if numbers)
        if some_known and len(data) == len(encoded) + 4 and data.startswith(encoded):
            self._shapes.append(_Shape(self._index, data, listed, self._as_listed))


class _Shape:
    """User data of version 1 in which everything is fixed but the partition numbers and the generation."""

    def __init__(self, index: PartitionNumbering, data: bytes, listed: Sequence[TopicNumbers], as_listed: bool) -> None:
        layout = [">4x"]
        mask = bytearray(b"\xff" * 4)
        names: list[str] = []
        for topic, numbers in listed:
            head = 2 + len(topic.encode("utf-8")) + 4
            layout.append(f"{head}x{len(numbers)}i")
            mask += b"\xff" * head + bytes(4 * len(numbers))
            names += [topic] * len(numbers)
        mask += bytes(4)
        self._length = len(data)
        self._mask = int.from_bytes(mask, "big")
        self._fixed = int.from_bytes(data, "big") & self._mask
        self._numbers = struct.Struct("".join(layout) + "i")
        self._topics = index.topics
        # Places among the numbers of those whose topic is known, in the order in which they are wanted.
        positions = [position for position, name in enumerate(names) if name in index.ranks]
        if not as_listed:
            positions.sort(key=lambda position: index.ranks[names[position]])
        self._pick = itemgetter(*positions, -1)
        self._names = [names[position] for position in positions]
        self._ranks = [index.ranks[name] for name in self._names]

    def fits(self, data: bytes) -> bool:
        """Whether this user data differs in numbers only: seen as one large number, that is a mask and a comparison."""
        return len(data) == self._length and int.from_bytes(data, "big") & self._mask == self._fixed

    def read(self, data: bytes) -> tuple[list[int], list[Partition], int]:
        """Keys, the same as partitions, and the generation."""
        *numbers, generation = self._pick(self._numbers.unpack(data))
        topics = self._topics
        keys = [number * topics + rank for number, rank in zip(numbers, self._ranks, strict=True)]
        return keys, list(zip(self._names, numbers, strict=True)), generation
