"""``__transaction_state`` and the producer ids of simulated nodes, which have no topics log to agree on them."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords
from rejoin.coordinator.core.topics.configs import config_records
from rejoin.coordinator.core.transactions.coordinator import TRANSACTION_STATE_CONFIGS
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.topics import (
    PartitionData,
    PartitionRecord,
    ProducerIdsData,
    ProducerIdsRecord,
    TopicData,
    TopicRecord,
)
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_TOPIC_ID
from rejoin.protocol.types import TopicIdPartition

_IDS_OF_A_NODE: Final = 1_000_000_000
_IDS_OF_A_PROCESS: Final = 1_000_000
"""So many producer ids are a node's from one start to the next."""


def transaction_log(transactional_id: str, partitions: int) -> TopicIdPartition:
    """The partition of the transaction log that has a transactional id."""
    index = partition_for(transactional_id, partitions)
    return TopicIdPartition(TRANSACTION_STATE_TOPIC_ID, index, TRANSACTION_STATE_TOPIC)


def first_producer_id(node_id: int, incarnation: int) -> int:
    """The first producer id that a node gives out from one start to the next."""
    return node_id * _IDS_OF_A_NODE + incarnation * _IDS_OF_A_PROCESS


def transaction_topic(partitions: int, node_id: int, first_id: int) -> TopicsChanged:
    """Input for a starting node: the transaction log, and its first producer id."""
    records: TopicsRecords = (
        TopicRecord(
            data=TopicData(name=TRANSACTION_STATE_TOPIC, topic_id=TRANSACTION_STATE_TOPIC_ID, records_per_second=None)
        ),
        *config_records(TRANSACTION_STATE_TOPIC, TRANSACTION_STATE_CONFIGS),
        PartitionRecord(
            data=PartitionData(topic_id=TRANSACTION_STATE_TOPIC_ID, partition_id=0, partitions=partitions, started_at=0)
        ),
        ProducerIdsRecord(data=ProducerIdsData(broker_id=node_id, next_producer_id=first_id)),
    )
    return TopicsChanged(((1, records),), 1, shares_events=True)
