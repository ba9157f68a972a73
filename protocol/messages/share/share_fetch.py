"""ShareFetch (key 78): acquire records of share-partitions, and acknowledge earlier ones (KIP-932).

v1 is the first version of a release. v2 adds the acquire mode (KIP-1206) and renewals of locks (KIP-1222).
"""

from __future__ import annotations

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.share.acknowledgements import NO_HINT, AcknowledgementBatch, ShareLeader
from rejoin.protocol.types import (
    ZERO_UUID,
    FetchedRecords,
    GroupId,
    In,
    Int8,
    Int16,
    Int32,
    Int64,
    KafkaUuid,
    MemberId,
    PartitionIndex,
    TopicId,
)


class ShareFetchPartition(Struct):
    """A partition of the session, with acknowledgements of records that were fetched before."""

    partition_index: PartitionIndex
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = ()


class ShareFetchTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[ShareFetchPartition, ...]


class ForgottenShareTopic(Struct):
    """Partitions that leave the session."""

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...]


class ShareFetchRequest(Request):
    """Acquire up to ``max_records``; wait until there are ``min_bytes``, or for ``max_wait_ms``.

    Session epochs: 0 opens, -1 closes. Acquire modes: 0 by batches, 1 never more records than asked for.
    """

    group_id: GroupId | None = None
    member_id: MemberId | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    max_records: Annotated[Int32, In(1, needed=True)] = 0
    batch_size: Annotated[Int32, In(1, needed=True)] = 0
    share_acquire_mode: Annotated[Int8, In(2)] = 0
    is_renew_ack: Annotated[bool, In(2)] = False
    topics: tuple[ShareFetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenShareTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ShareFetchResponse(error_code=error)


class AcquiredRecords(Struct):
    """Records that the member holds now, and how often each was delivered, this time included."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


class ShareFetchablePartition(Struct):
    """Batches of one partition; of their records the member holds those that are acquired."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acknowledge_error_code: ErrorCode = ErrorCode.NONE
    acknowledge_error_message: str | None = None
    current_leader: ShareLeader = NO_HINT
    records: FetchedRecords = b""
    acquired_records: tuple[AcquiredRecords, ...] = ()


class ShareFetchableTopic(Struct):
    """Partitions of one topic."""

    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[ShareFetchablePartition, ...] = ()


class ShareFetchResponse(Response):
    """Partitions with records, errors or acknowledgements. Locks last ``acquisition_lock_timeout_ms``."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, In(1)] = 0
    responses: tuple[ShareFetchableTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
