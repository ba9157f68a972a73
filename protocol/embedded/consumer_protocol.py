"""The embedded consumer protocol: the bytes inside JoinGroup (a subscription) and SyncGroup (an assignment).

Kafka's coordinator does not look into them, except for the topic names of a subscription. The layouts are
big-endian and without the compact encodings of newer messages: an array has a 4-byte count, a string a
2-byte length, bytes a 4-byte length with -1 for null. A 2-byte version comes first. A version newer than
the highest one known here is read with the highest layout, for no version takes a field away.

Source: Kafka's ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, ConsumerProtocol;
KIP-429 (owned partitions, v1), KIP-792 (generation, v2), KIP-881 (rack, v3).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat

from rejoin.protocol.java import utf16_key, utf16_sorted
from rejoin.protocol.types import TopicPartition

LOWEST_VERSION = 0
HIGHEST_VERSION = 3

NO_GENERATION = -1

_INT16_MAX = 0x7FFF
_LONGEST_KEPT = 16_384
"""Characters of a topic list that is kept."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's message to the leader: its topics, and the partitions that it owned last.

    `generation_id` is -1 when the member has none, or when its version could not say. `version` is the one
    it was read with; it does not take part in comparisons.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    version: int = field(default=HIGHEST_VERSION, compare=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader's message to a member: its partitions, in the assignor's order."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """The bytes of a subscription; fields that `version` does not know are left out.

    Raises ValueError for a version below 0 and for a name longer than 32767 bytes.
    """
    version = _known(version, "subscription")
    out = [struct.pack(">h", version)]
    # Kafka: ConsumerProtocol.serializeSubscription sorts, so that equal subscriptions are equal bytes.
    topics = utf16_sorted(subscription.topics)
    out.append(struct.pack(">i", len(topics)))
    out.extend(_string(topic) for topic in topics)
    out.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        owned = sorted(subscription.owned_partitions, key=lambda owned: (utf16_key(owned[0]), owned[1]))
        out.append(_by_topic(owned))
    if version >= 2:
        out.append(struct.pack(">i", subscription.generation_id))
    if version >= 3:
        out.append(struct.pack(">h", -1) if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(out)


def decode_subscription(data: bytes) -> Subscription:
    """Read a subscription of any version; bytes after its last field are ignored.

    Raises ValueError naming the field when the bytes end too early or a length makes no sense.
    """
    reader = _Reader(data, "subscription")
    version = _known(reader.int16("version"), "subscription")
    topics = _shared(tuple(reader.string("topics") for _ in range(reader.count("topics"))))
    user_data = reader.nullable_bytes("userData")
    owned: tuple[TopicPartition, ...] = ()
    generation_id = NO_GENERATION
    rack_id = None
    if version >= 1:
        owned = reader.partitions("ownedPartitions")
    if version >= 2:
        generation_id = reader.int32("generationId")
    if version >= 3:
        # Kafka: an empty rack is no rack.
        rack_id = reader.nullable_string("rackId") or None
    return Subscription(topics, user_data, owned, generation_id, rack_id, version)


def subscription_topics(metadata: bytes) -> tuple[str, ...] | None:
    """The topics of a subscription, or None when the bytes are none: all that a coordinator reads of it.

    Only the layout of version 0 is read, the prefix of all others, and the version itself is not looked at.
    """
    # Kafka: ClassicGroup.computeSubscribedTopics.
    # Differs: there, only a number cut short counts as unparsable; a wrong length ends the join as an unknown error.
    reader = _Reader(metadata, "subscription")
    try:
        reader.int16("version")
        topics = tuple(reader.string("topics") for _ in range(reader.count("topics")))
        reader.nullable_bytes("userData")
    except ValueError:
        return None
    return topics


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """The bytes of an assignment. Raises ValueError as `encode_subscription` does."""
    return encode_partitions(assignment.partitions, assignment.user_data, version)


def encode_partitions(
    partitions: Iterable[tuple[str, int]], user_data: bytes | None = None, version: int = HIGHEST_VERSION
) -> bytes:
    """`encode_assignment` for the plain tuples an assignor returns, without building an `Assignment`."""
    version = _known(version, "assignment")
    return struct.pack(">h", version) + _by_topic(partitions) + _nullable_bytes(user_data)


def decode_assignment(data: bytes) -> Assignment:
    """Read an assignment of any version; bytes after its last field are ignored.

    Raises ValueError naming the field when the bytes end too early (an empty assignment is such a case)
    or a length makes no sense.
    """
    reader = _Reader(data, "assignment")
    _known(reader.int16("version"), "assignment")
    partitions = reader.partitions("assignedPartitions")
    return Assignment(partitions, reader.nullable_bytes("userData"))


def _shared(topics: tuple[str, ...]) -> tuple[str, ...]:
    """One object for equal topic lists: the members of a group mostly want the same, and are then quick to compare."""
    # Long lists are not kept: what a client sends must not fill the memory.
    return _kept(topics) if sum(map(len, topics)) <= _LONGEST_KEPT else topics


@lru_cache(maxsize=256)
def _kept(topics: tuple[str, ...]) -> tuple[str, ...]:
    return topics


def _known(version: int, what: str) -> int:
    if version < LOWEST_VERSION:
        raise ValueError(f"unsupported {what} version: {version}")
    return min(version, HIGHEST_VERSION)


def _string(text: str) -> bytes:
    encoded = text.encode("utf-8")
    if len(encoded) > _INT16_MAX:
        raise ValueError(f"a name of {len(encoded)} bytes does not fit: at most {_INT16_MAX}")
    return struct.pack(">h", len(encoded)) + encoded


def _nullable_bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _by_topic(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Partitions gathered by topic, topics and partitions in the order in which they are first met."""
    gathered: dict[str, list[int]] = {}
    for topic, partition in partitions:
        gathered.setdefault(topic, []).append(partition)
    out = [struct.pack(">i", len(gathered))]
    for topic, numbers in gathered.items():
        out.append(_string(topic))
        out.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(out)


class _Reader:
    """Reads fields in order and never past the end; every complaint names the field."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def int16(self, field: str) -> int:
        return int.from_bytes(self._take(2, field), "big", signed=True)

    def int32(self, field: str) -> int:
        return int.from_bytes(self._take(4, field), "big", signed=True)

    def count(self, field: str) -> int:
        """The count of an array, refused when it is negative or cannot fit in what is left."""
        count = self.int32(field)
        if count < 0:
            raise ValueError(f"{self._what}: {field} has a negative count ({count})")
        if count > len(self._data) - self._at:
            raise ValueError(f"{self._what}: {field} counts {count}, with {self._left()} left")
        return count

    def string(self, field: str) -> str:
        text = self.nullable_string(field)
        if text is None:
            raise ValueError(f"{self._what}: {field} holds a null where a name is needed")
        return text

    def nullable_string(self, field: str) -> str | None:
        length = self.int16(field)
        return None if length < 0 else sys.intern(str(self._take(length, field), "utf-8", "replace"))

    def nullable_bytes(self, field: str) -> bytes | None:
        length = self.int32(field)
        return None if length < 0 else bytes(self._take(length, field))

    def partitions(self, field: str) -> tuple[TopicPartition, ...]:
        found: list[TopicPartition] = []
        for _ in range(self.count(field)):
            topic = self.string(field)
            count = self.count(field)
            numbers = struct.unpack(f">{count}i", self._take(4 * count, field))
            found.extend(map(TopicPartition._make, zip(repeat(topic), numbers, strict=False)))
        return tuple(found)

    def _take(self, size: int, field: str) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError(f"{self._what}: {field} needs {size} bytes, with {self._left()} left")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _left(self) -> str:
        left = len(self._data) - self._at
        return f"{left} byte{'' if left == 1 else 's'}"
