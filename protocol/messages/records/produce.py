"""Produce (key 0): append record batches to partitions.

v5 adds the first offset of the log to the answer, v7 zstd, v8 what is wrong with single records (KIP-467), v10 where
the leader is (KIP-951), v12 adding a partition to a transaction by its first batch (KIP-890), v13 topic ids (KIP-516).
"""

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER, LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.types import (
    ZERO_UUID,
    In,
    Int16,
    Int32,
    Int64,
    KafkaUuid,
    PartitionIndex,
    Records,
    TopicId,
    TopicName,
    TransactionalId,
)


class PartitionProduceData(Struct):
    """The batches for one partition."""

    index: PartitionIndex
    records: Records | None


class TopicProduceData(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 12, needed=True)] = ""
    topic_id: Annotated[TopicId, In(13, needed=True)] = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...]


class ProduceRequest(Request):
    """Append batches. With acks of 0 nothing is answered, with -1 all in-sync replicas must have them."""

    transactional_id: TransactionalId | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        PartitionProduceResponse(index=partition.index, error_code=error, base_offset=-1)
                        for partition in topic.partition_data
                    ),
                )
                for topic in self.topic_data
            )
        )


class BatchIndexAndErrorMessage(Struct):
    """A record that the broker refused, and with it the batch."""

    batch_index: Int32 = 0
    batch_index_error_message: str | None = None


class PartitionProduceResponse(Struct):
    """The offset of the first record, or why the batch was refused."""

    index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, In(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], In(8)] = ()
    error_message: Annotated[str | None, In(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, In(10, tag=0)] = UNKNOWN_LEADER


class TopicProduceResponse(Struct):
    """Partitions of one topic."""

    name: Annotated[TopicName, In(0, 12)] = ""
    topic_id: Annotated[KafkaUuid, In(13)] = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...] = ()


class ProduceResponse(Response):
    """A result for each partition."""

    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], In(10, tag=0)] = ()
