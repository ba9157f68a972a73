"""Fetch as each version of it is written, and the partitions of an answer. No decision is made here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.fetch.session import FetchContents
from rejoin.protocol.messages.records.fetch import (
    FIRST_FETCH_WITH_TOPIC_IDS,
    FetchablePartitionResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rejoin.protocol.types import ZERO_UUID, TopicPartition

CONSUMER_REPLICA_ID = -1


def fetch(config: ConsumerConfig, contents: FetchContents, version: int) -> FetchRequest:
    """A Fetch with the contents of its session."""
    with_ids = version >= FIRST_FETCH_WITH_TOPIC_IDS
    topics: dict[tuple[str, str], list[FetchPartition]] = {}
    for (topic, partition), wanted in contents.wanted.items():
        topics.setdefault((topic, wanted.topic_id), []).append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=wanted.leader_epoch if version >= 9 else -1,
                fetch_offset=wanted.offset,
                partition_max_bytes=wanted.max_bytes,
            )
        )
    forgotten: dict[tuple[str, str], list[int]] = {}
    for (topic, partition), topic_id in contents.forgotten:
        forgotten.setdefault((topic, topic_id), []).append(partition)
    has_sessions = version >= 7
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=config.fetch_max_bytes,
        isolation_level=1 if config.isolation_level == "read_committed" else 0,
        session_id=contents.session_id if has_sessions else 0,
        session_epoch=contents.epoch if has_sessions else -1,
        topics=tuple(
            FetchTopic(
                topic="" if with_ids else topic,
                topic_id=topic_id if with_ids else ZERO_UUID,
                partitions=tuple(partitions),
            )
            for (topic, topic_id), partitions in topics.items()
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(
                topic="" if with_ids else topic,
                topic_id=topic_id if with_ids else ZERO_UUID,
                partitions=tuple(partitions),
            )
            for (topic, topic_id), partitions in forgotten.items()
        ),
        rack_id=config.client_rack if version >= 11 else "",
    )


def fetched_partitions(
    response: FetchResponse, names: Mapping[str, str]
) -> Iterator[tuple[TopicPartition, FetchablePartitionResponse]]:
    """Every partition of an answer; ``names`` are the topics by id. A topic id without a name has the name ''."""
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index), partition


def offset_for_leader_epoch(
    epochs: Mapping[TopicPartition, tuple[int, int]], version: int
) -> OffsetForLeaderEpochRequest:
    """Ask where epochs end: the leader's epoch as it is known, and the epoch of the position, by partition."""
    topics: dict[str, list[OffsetForLeaderPartition]] = {}
    for (topic, partition), (current, epoch) in epochs.items():
        topics.setdefault(topic, []).append(
            OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        )
    return OffsetForLeaderEpochRequest(
        replica_id=CONSUMER_REPLICA_ID if version >= 3 else -2,
        topics=tuple(OffsetForLeaderTopic(topic=topic, partitions=tuple(each)) for topic, each in topics.items()),
    )
