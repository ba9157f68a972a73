"""The topics of the cluster as consumer groups see them, and the hash that stands for those of a subscription.

Kafka: CoordinatorMetadataImage, ModernGroup.computeMetadataHash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Protocol


class TopicsMetadata(Protocol):
    """The topics of the cluster."""

    version: int
    """Grows with every change of topics."""

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]:
        """The settings that groups have of their own, by group id."""

    def named(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""

    def id_of(self, topic: str) -> str:
        """The id of a topic that exists."""

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is no such topic."""

    def names(self) -> Collection[str]:
        """The names of all topics."""

    def __contains__(self, name: str) -> bool: ...


def ids_of(names: Iterable[str], topics: TopicsMetadata) -> dict[str, str]:
    """The names of those topics that exist, by their ids."""
    return {topics.id_of(name): name for name in names if name in topics}


def named_partitions(partitions: Mapping[str, Collection[int]], topics: TopicsMetadata) -> dict[str, list[int]]:
    """Partitions by the names of their topics, in order; without those of topics that are gone."""
    named = {topics.named(topic_id): sorted(indexes) for topic_id, indexes in partitions.items() if indexes}
    return dict(sorted((name, indexes) for name, indexes in named.items() if name is not None))


def metadata_hash(names: Iterable[str], topics: TopicsMetadata) -> int:
    """A number that stands for the subscribed topics as they are; 0 where there is none.

    Differs: Kafka's function is XXH3. Only equality counts, and a group of another log is looked at again anyway.
    """
    known = sorted(name for name in names if name in topics)
    if not known:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for name in known:
        digest.update(_topic_hash(name, topics.id_of(name), topics.partition_count(name)))
    return int.from_bytes(digest.digest(), "little", signed=True)


@lru_cache(maxsize=4096)
def _topic_hash(name: str, topic_id: str, partitions: int) -> bytes:
    return hashlib.blake2b(f"{topic_id} {name} {partitions}".encode(), digest_size=8).digest()
