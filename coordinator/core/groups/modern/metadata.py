"""The topics of the cluster as consumer groups see them, and the hash that stands for those of a subscription.

Kafka: CoordinatorMetadataImage, ModernGroup.computeMetadataHash.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from rejoin.protocol.embedded.consumer_protocol import encode_partitions
from rejoin.protocol.java import hashed_order, uuid_hash


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


def embedded_assignment(partitions: Mapping[str, Collection[int]], topics: TopicsMetadata, version: int) -> bytes:
    """An assignment as a classic member reads it, with topics in the order of Kafka's map; without those that are gone.

    Kafka: GroupMetadataManager.prepareAssignment, Utils.toConsumerProtocolAssignment.
    """
    ordered = [(topics.named(topic_id), partitions[topic_id]) for topic_id in hashed_order([*partitions], uuid_hash)]
    named = [(name, index) for name, indexes in ordered if name is not None for index in sorted(indexes)]
    return encode_partitions(named, None, version)


def metadata_hash(names: Iterable[str], topics: TopicsMetadata) -> int:
    """A number that stands for the subscribed topics as they are; 0 where there is none."""
    known = sorted(name for name in names if name in topics)
    if not known:
        return 0
    hashes = (_topic_hash(name, topics.id_of(name), topics.partition_count(name)) for name in known)
    unsigned = int.from_bytes(_xxh3(b"".join(hashes)), "little")
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


@lru_cache(maxsize=4096)
def _topic_hash(name: str, topic_id: str, partitions: int) -> bytes:
    """The hash of a topic: a magic byte, its id, its name, and its partitions, none of which has racks here."""
    high, low = struct.unpack(">QQ", base64.urlsafe_b64decode(f"{topic_id}=="))
    text = name.encode("utf-16-le")
    head = struct.pack("<BQQ", 0, high, low) + text + struct.pack("<ii", len(text) // 2, partitions)
    return _xxh3(head + struct.pack(f"<{partitions}i", *range(partitions)))


def _xxh3(data: bytes) -> bytes:
    """The hash as Kafka's library writes it: its lowest byte first."""
    from xxhash import xxh3_64_digest  # noqa: PLC0415 - most processes have no consumer groups

    return xxh3_64_digest(data)[::-1]
