"""The partition of a record without one, as Java's producer chooses it: by its key, else a sticky one (KIP-794).

Kafka: BuiltInPartitioner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from rejoin.client.core.producer.state import TopicState
from rejoin.protocol.partitioner import partition_of_key

_LONGEST_CACHED: Final = 64

_partition_of_key = lru_cache(maxsize=8_192)(partition_of_key)


def by_key(key: bytes, count: int) -> int:
    """The partition of a key, of ``count`` partitions."""
    return _partition_of_key(key, count) if len(key) <= _LONGEST_CACHED else partition_of_key(key, count)


def next_sticky(topic: TopicState, random: Callable[[], float], *, adaptive: bool) -> None:
    """Choose a new sticky partition among those with a leader; with ``adaptive``, rather one with a short queue."""
    available = [partition for partition, leader in enumerate(topic.leaders) if leader.endpoint is not None]
    candidates = available or list(range(len(topic.leaders)))
    weights = _weights(topic, candidates) if adaptive else None
    topic.sticky_bytes = 0
    if weights is None:
        topic.sticky_partition = candidates[int(random() * len(candidates))]
        return
    at = int(random() * sum(weights))
    for partition, weight in zip(candidates, weights, strict=True):
        if at < weight:
            topic.sticky_partition = partition
            return
        at -= weight


def _weights(topic: TopicState, candidates: list[int]) -> list[int] | None:
    """How often each partition is to be chosen, or none where all are alike."""
    # Kafka: updatePartitionLoadStats. Nothing is known until each partition has a queue.
    if len(topic.queues) < len(topic.leaders) or len(candidates) < 2:
        return None
    sizes = [len(topic.queues[partition].batches) if partition in topic.queues else 0 for partition in candidates]
    longest = max(sizes)
    if longest == min(sizes):
        return None
    return [longest + 1 - size for size in sizes]
