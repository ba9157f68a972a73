"""ShareAcknowledge (key 79): accept, release, reject or renew records that the member holds (KIP-932).

v1 is the first version of a release. v2 adds renewals of locks (KIP-1222).
"""

from __future__ import annotations

from typing import Annotated

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.share.acknowledgements import NO_HINT, AcknowledgementBatch, ShareLeader
from rejoin.protocol.types import ZERO_UUID, GroupId, In, Int32, KafkaUuid, MemberId, PartitionIndex, TopicId


class ShareAcknowledgePartition(Struct):
    """Acknowledgements of one partition."""

    partition_index: PartitionIndex
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


class ShareAcknowledgeTopic(Struct):
    """Partitions of one topic."""

    topic_id: TopicId
    partitions: tuple[ShareAcknowledgePartition, ...]


class ShareAcknowledgeRequest(Request):
    """Acknowledge records; session epoch -1 also closes the session, which releases what is still held."""

    group_id: GroupId | None = None
    member_id: MemberId | None
    share_session_epoch: Int32
    is_renew_ack: Annotated[bool, In(2)] = False
    topics: tuple[ShareAcknowledgeTopic, ...]

    def error_response(self, version: int, error: ErrorCode) -> Response:
        return ShareAcknowledgeResponse(error_code=error)


class AcknowledgedPartition(Struct):
    """The result for one partition."""

    partition_index: PartitionIndex = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    current_leader: ShareLeader = NO_HINT


class AcknowledgedTopic(Struct):
    """Partitions of one topic."""

    topic_id: KafkaUuid = ZERO_UUID
    partitions: tuple[AcknowledgedPartition, ...] = ()


class ShareAcknowledgeResponse(Response):
    """A result for each partition."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    acquisition_lock_timeout_ms: Annotated[Int32, In(2)] = 0
    responses: tuple[AcknowledgedTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
