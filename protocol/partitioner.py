"""Which partition something belongs to: a group's among the offsets partitions, and a record's by its key."""

from functools import lru_cache
from typing import Final

from rejoin.protocol.java import LONGEST_CACHED, string_hash


def partition_for(group_id: str, count: int) -> int:
    """The partition of ``__consumer_offsets`` that holds this group, of ``count`` partitions.

    Kafka: ``Utils.abs(groupId.hashCode()) % count``. The absolute value, with the smallest integer becoming 0; the
    producer's partitioner masks the sign bit instead, which gives other partitions for negative hashes.
    """
    return _partition_of_name(group_id, count) if len(group_id) <= LONGEST_CACHED else _partition(group_id, count)


def _partition(group_id: str, count: int) -> int:
    value = string_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % count


_partition_of_name = lru_cache(maxsize=16_384)(_partition)


def partition_of_key(key: bytes, count: int) -> int:
    """The partition of a record with this key, as the Java producer chooses it.

    Kafka: ``BuiltInPartitioner.partitionForKey``.
    """
    return (murmur2(key) & 0x7FFF_FFFF) % count


_MIX: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C
_32_BITS: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of keys. Kafka: ``Utils.murmur2``, without the sign."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MIX & _32_BITS
        part = (part ^ (part >> 24)) * _MIX & _32_BITS
        value = (value * _MIX & _32_BITS) ^ part
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MIX & _32_BITS
    value = (value ^ (value >> 13)) * _MIX & _32_BITS
    return value ^ (value >> 15)
