"""The events of a transactional id: each change of its metadata that is stored is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rejoin.coordinator.core.transactions.metadata import (
    IS_DECIDED,
    TransactionMetadata,
    TransactionState,
    TxnTransit,
)
from rejoin.journal.events.base import Event, PartitionsByTopic
from rejoin.journal.events.transactions import (
    PartitionsAddedToTxn,
    ProducerIdInitialized,
    TransactionCompleted,
    TransactionPrepared,
    TransactionStarted,
)
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated


def events_of(metadata: TransactionMetadata, transit: TxnTransit) -> Iterator[Event]:
    """Events of a change, from the metadata before it."""
    if transit.state is TransactionState.EMPTY:
        yield _initialized(metadata, transit)
    elif transit.state is TransactionState.ONGOING:
        yield _added(metadata, transit)
    elif transit.state in IS_DECIDED:
        yield unvalidated(
            TransactionPrepared,
            transactional_id=metadata.transactional_id,
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            committed=transit.state is TransactionState.PREPARE_COMMIT,
            ended_by=metadata.ended_by,
            transaction_version=transit.client_version,
            partition_count=len(transit.partitions),
            open_ms=transit.updated_at - transit.started_at,
        )
    else:
        yield unvalidated(
            TransactionCompleted,
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            committed=transit.state is TransactionState.COMPLETE_COMMIT,
            ended_by=metadata.ended_by,
            open_ms=metadata.updated_at - metadata.started_at,
            markers_ms=transit.updated_at - metadata.updated_at,
        )
        if transit.producer_id != metadata.producer_id:
            yield _initialized(metadata, transit)


def _initialized(metadata: TransactionMetadata, transit: TxnTransit) -> Event:
    rotates = transit.producer_id != metadata.producer_id
    return ProducerIdInitialized(
        transactional_id=metadata.transactional_id,
        producer_id=transit.producer_id,
        producer_epoch=transit.producer_epoch,
        transaction_timeout_ms=transit.timeout_ms,
        previous_producer_id=metadata.producer_id if rotates else None,
    )


def _added(metadata: TransactionMetadata, transit: TxnTransit) -> Event:
    if metadata.state is TransactionState.ONGOING:
        return unvalidated(
            PartitionsAddedToTxn,
            transactional_id=metadata.transactional_id,
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            partitions=_by_topic(each for each in transit.partitions if each not in metadata.partitions),
        )
    return unvalidated(
        TransactionStarted,
        transactional_id=metadata.transactional_id,
        producer_id=transit.producer_id,
        producer_epoch=transit.producer_epoch,
        partitions=_by_topic(transit.partitions),
        transaction_timeout_ms=transit.timeout_ms,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> PartitionsByTopic:
    topics: PartitionsByTopic = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics
