"""AddPartitionsToTxn (key 24): partitions become part of a transaction, which begins with the first.

Up to v3 a client sends it for its own transaction. From v4 on brokers do, for several, and may only ask (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.types import (
    In,
    Int16,
    Int32,
    PartitionIndex,
    ProducerId,
    TopicName,
    TopicPartition,
    TransactionalId,
)

FIRST_ADD_PARTITIONS_OF_BROKERS = 4


class AddPartitionsToTxnTopic(Struct):
    """Partitions of one topic."""

    name: TopicName
    partitions: tuple[PartitionIndex, ...]


class AddPartitionsToTxnTransaction(Struct):
    """A transaction of which a broker has records. ``verify_only``: add nothing."""

    transactional_id: Annotated[TransactionalId, In(4)]
    producer_id: Annotated[ProducerId, In(4)]
    producer_epoch: Annotated[Int16, In(4)]
    verify_only: Annotated[bool, In(4)] = False
    topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], In(4)]


class AddPartitionsToTxnRequest(Request):
    """Add partitions to a transaction (up to v3), or to several."""

    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], In(4, needed=True)] = ()
    v3_and_below_transactional_id: Annotated[TransactionalId, In(0, 3, needed=True)] = ""
    v3_and_below_producer_id: Annotated[ProducerId, In(0, 3, needed=True)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, In(0, 3, needed=True)] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], In(0, 3, needed=True)] = ()

    def error_response(self, version: int, error: ErrorCode) -> Response:
        if version >= FIRST_ADD_PARTITIONS_OF_BROKERS:
            return AddPartitionsToTxnResponse(error_code=error)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topic_results(self.v3_and_below_topics, error))


class AddPartitionsToTxnPartitionResult(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    partition_error_code: ErrorCode = ErrorCode.NONE


class AddPartitionsToTxnTopicResult(Struct):
    """Partitions of one topic."""

    name: TopicName = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()


class AddPartitionsToTxnResult(Struct):
    """The results for one transaction."""

    transactional_id: Annotated[TransactionalId, In(4)] = ""
    topic_results: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], In(4)] = ()


class AddPartitionsToTxnResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[ErrorCode, In(4)] = ErrorCode.NONE
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], In(4)] = ()
    results_by_topic_v3_and_below: Annotated[tuple[AddPartitionsToTxnTopicResult, ...], In(0, 3)] = ()


def topic_results(
    topics: tuple[AddPartitionsToTxnTopic, ...],
    others: ErrorCode,
    errors: Mapping[TopicPartition, ErrorCode] | None = None,
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    """A result for each partition: ``others`` where ``errors`` has none."""
    known = errors or {}
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=known.get(TopicPartition(topic.name, index), others),
                )
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
