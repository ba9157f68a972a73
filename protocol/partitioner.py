"""Which offsets partition, and so which coordinator, a group belongs to."""

from functools import lru_cache

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
