"""``__share_group_state`` and the synthetic logs that share groups read, as simulated nodes get to know them.

Members of other groups read synthetic logs without a node. Share groups read through one, which must have their rate,
and after a restart the instant at which they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords
from rejoin.coordinator.core.share_state.coordinator import SHARE_GROUP_STATE_CONFIGS
from rejoin.coordinator.core.topics.configs import config_records
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.share_partitions import (
    SHARE_GROUP_STATE_TOPIC,
    SHARE_GROUP_STATE_TOPIC_ID,
    SharePartitionKey,
)
from rejoin.protocol.records.topics import PartitionData, PartitionRecord, TopicData, TopicRecord
from rejoin.protocol.types import TopicIdPartition
from rejoin.simulation.topic_log import TopicLog

FIRST_TOPICS_VERSION: Final = 1
"""The version of the topics with which a node starts: that of the transaction log."""


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """The topics of all share groups of a run."""

    partitions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By group and topic: the most partitions that it ever has."""
    synthetic: frozenset[str] = frozenset()
    """Topics without real logs."""
    dead_letters: frozenset[str] = frozenset()
    """Topics for dead letters."""

    def __bool__(self) -> bool:
        return bool(self.partitions)


def state_log(key: SharePartitionKey, partitions: int) -> TopicIdPartition:
    """The partition of ``__share_group_state`` that has the state of a share-partition."""
    index = partition_for(key.coordinator_key, partitions)
    return TopicIdPartition(SHARE_GROUP_STATE_TOPIC_ID, index, SHARE_GROUP_STATE_TOPIC)


def state_topic(partitions: int, version: int) -> TopicsChanged:
    """Input for a starting node: the topic with the state of share-partitions."""
    created = TopicData(name=SHARE_GROUP_STATE_TOPIC, topic_id=SHARE_GROUP_STATE_TOPIC_ID, records_per_second=None)
    all_partitions = PartitionData(
        topic_id=SHARE_GROUP_STATE_TOPIC_ID, partition_id=0, partitions=partitions, started_at=0
    )
    records: TopicsRecords = (
        TopicRecord(data=created),
        *config_records(SHARE_GROUP_STATE_TOPIC, SHARE_GROUP_STATE_CONFIGS),
        PartitionRecord(data=all_partitions),
    )
    return TopicsChanged(((version, records),), version, shares_events=True)


def synthetic_topic(log: TopicLog, topic_id: str, version: int) -> TopicsChanged:
    """Input for a node: a topic with synthetic logs as they are, or as they have grown."""
    created = TopicData(name=log.name, topic_id=topic_id, records_per_second=log.records_per_second)
    records: TopicsRecords = (TopicRecord(data=created), *_partitions(log, topic_id))
    return TopicsChanged(((version, records),), version)


def _partitions(log: TopicLog, topic_id: str) -> Iterator[PartitionRecord]:
    for started_at, alike in groupby(enumerate(log.partitions), lambda each: each[1].started_at):
        indexes = [index for index, _ in alike]
        yield PartitionRecord(
            data=PartitionData(
                topic_id=topic_id, partition_id=indexes[0], partitions=len(indexes), started_at=started_at
            )
        )
