"""Fetch (key 1): read record batches of partitions.

v5 adds the first offset of the log, v7 sessions (KIP-227), v9 leader epochs, v11 the rack (KIP-392), v12 the epoch of
the last batch (KIP-595), v13 topic ids (KIP-516), v15 the replica as a tagged field, v16 where the leader is
(KIP-951), v17 the replica's directory, v18 its high watermark.
"""

from typing import Annotated, Final

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER, LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.types import (
    ZERO_UUID,
    BrokerId,
    FetchedRecords,
    In,
    Int8,
    Int32,
    Int64,
    KafkaUuid,
    PartitionIndex,
    ProducerId,
    TopicId,
    TopicName,
)
from rejoin.protocol.unvalidated import unvalidated


class ReplicaState(Struct):
    """The follower that asks; -1 for a consumer."""

    replica_id: BrokerId = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    """A partition, and where to read it from."""

    partition: PartitionIndex
    current_leader_epoch: Annotated[Int32, In(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, In(12)] = -1
    log_start_offset: Annotated[Int64, In(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[KafkaUuid, In(17, tag=0)] = ZERO_UUID
    high_watermark: Annotated[Int64, In(18, tag=1)] = 2**63 - 1


class FetchTopic(Struct):
    """Partitions of one topic."""

    topic: Annotated[TopicName, In(0, 12, needed=True)] = ""
    topic_id: Annotated[TopicId, In(13, needed=True)] = ZERO_UUID
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Struct):
    """Partitions that leave the session."""

    topic: Annotated[TopicName, In(0, 12, needed=True)] = ""
    topic_id: Annotated[TopicId, In(13, needed=True)] = ZERO_UUID
    partitions: tuple[PartitionIndex, ...]


_CONSUMER: Final = unvalidated(ReplicaState, replica_id=-1, replica_epoch=-1)


class FetchRequest(Request):
    """Read from partitions; wait until there are ``min_bytes``, or for ``max_wait_ms``."""

    cluster_id: Annotated[str | None, In(12, tag=0)] = None
    replica_id: Annotated[BrokerId, In(0, 14)] = -1
    replica_state: Annotated[ReplicaState, In(15, tag=1)] = _CONSUMER
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, In(7)] = 0
    session_epoch: Annotated[Int32, In(7)] = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], In(7, needed=True)] = ()
    rack_id: Annotated[str, In(11)] = ""

    @property
    def is_from_broker(self) -> bool:
        """Whether a replica asks, not a consumer."""
        return self.replica_id >= 0 or self.replica_state.replica_id >= 0

    def error_response(self, version: int, error: ErrorCode) -> Response:
        # Kafka: FetchRequest.getErrorResponse. From v13 on the error at the top says it for all partitions.
        if version >= FIRST_FETCH_WITH_TOPIC_IDS:
            return FetchResponse(error_code=error, session_id=self.session_id)
        return FetchResponse(
            error_code=error,
            session_id=self.session_id,
            responses=tuple(
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=tuple(failed_partition(partition.partition, error) for partition in topic.partitions),
                )
                for topic in self.topics
            ),
        )


FIRST_FETCH_WITH_TOPIC_IDS: Final = 13


class EpochEndOffset(Struct):
    """The newest epoch that both logs have, and its end: where a consumer's log went another way."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Struct):
    """A snapshot of the metadata log; for followers only."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    """A transaction whose records must be skipped, from its first offset to its marker."""

    producer_id: ProducerId = 0
    first_offset: Int64 = 0


NO_EPOCH: Final = unvalidated(EpochEndOffset, epoch=-1, end_offset=-1)
NO_SNAPSHOT: Final = unvalidated(SnapshotId, end_offset=-1, epoch=-1)


class FetchablePartitionResponse(Struct):
    """The batches of one partition, and how far its log goes."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, In(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, In(12, tag=0)] = NO_EPOCH
    current_leader: Annotated[LeaderIdAndEpoch, In(12, tag=1)] = UNKNOWN_LEADER
    snapshot_id: Annotated[SnapshotId, In(12, tag=2)] = NO_SNAPSHOT
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    preferred_read_replica: Annotated[BrokerId, In(11)] = -1
    # Kafka: empty where there is nothing, as some clients take null for an error. Null is the definition's default.
    records: FetchedRecords | None = b""


def failed_partition(partition_index: int, error: ErrorCode) -> FetchablePartitionResponse:
    """A partition that cannot be read."""
    return FetchablePartitionResponse(partition_index=partition_index, error_code=error, high_watermark=-1)


class FetchableTopicResponse(Struct):
    """Partitions of one topic."""

    topic: Annotated[TopicName, In(0, 12)] = ""
    topic_id: Annotated[KafkaUuid, In(13)] = ZERO_UUID
    partitions: tuple[FetchablePartitionResponse, ...] = ()


class FetchResponse(Response):
    """Fetched partitions; in a session only those with changes."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[ErrorCode, In(7)] = ErrorCode.NONE
    session_id: Annotated[Int32, In(7)] = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], In(16, tag=0)] = ()
