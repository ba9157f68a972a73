"""Which offsets partition, and so which coordinator, a group belongs to."""

from functools import lru_cache

from rejoin.protocol.java import string_hash


@lru_cache(maxsize=65_536)
def partition_for(group_id: str, count: int) -> int:
    """The partition of ``__consumer_offsets`` that holds this group, of ``count`` partitions.

    Kafka: ``Utils.abs(groupId.hashCode()) % count``. The absolute value, with the smallest integer becoming 0; the
    producer's partitioner masks the sign bit instead, which gives other partitions for negative hashes.
    """
    value = string_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % count
