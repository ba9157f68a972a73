"""How each request is refused as a whole: where its answer has room for one error.

Kafka: AbstractRequest.getErrorResponse of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rejoin.coordinator.core.offsets.commits import commit_answer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from rejoin.protocol.messages.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from rejoin.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rejoin.protocol.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from rejoin.protocol.messages.topics.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rejoin.protocol.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.types import Request, Response

NO_NODE: Final = -1


def no_coordinator(key: str, error: ErrorCode) -> Coordinator:
    """A key without a coordinator."""
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error)


def _join_group(_: JoinGroupRequest, version: int, error: ErrorCode) -> Response:
    return JoinGroupResponse(error_code=error, protocol_name=None if version >= 7 else "")


def _offset_fetch(request: OffsetFetchRequest, version: int, error: ErrorCode) -> Response:
    if version >= 8:
        groups = (OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups)
        return OffsetFetchResponse(groups=tuple(groups))
    if version >= 2:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=error)
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        )
    )


def _find_coordinator(request: FindCoordinatorRequest, version: int, error: ErrorCode) -> Response:
    if version >= 4:
        return FindCoordinatorResponse(
            coordinators=tuple(no_coordinator(key, error) for key in request.coordinator_keys)
        )
    return FindCoordinatorResponse(error_code=error, error_message=error.name, node_id=NO_NODE, host="", port=NO_NODE)


def _list_offsets(request: ListOffsetsRequest, _: int, error: ErrorCode) -> Response:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _metadata(request: MetadataRequest, _: int, error: ErrorCode) -> Response:
    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=error)
            for topic in request.topics or ()
        )
    )


def _delete_topics(request: DeleteTopicsRequest, version: int, error: ErrorCode) -> Response:
    if version >= 6:
        results = [
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error) for topic in request.topics
        ]
    else:
        results = [DeletableTopicResult(name=name, error_code=error) for name in request.topic_names]
    return DeleteTopicsResponse(responses=tuple(results))


def _write_txn_markers(request: WriteTxnMarkersRequest, _: int, error: ErrorCode) -> Response:
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


_REFUSALS: Final[dict[type[Request], Callable[[Any, int, ErrorCode], Response]]] = {
    ApiVersionsRequest: lambda _, __, error: ApiVersionsResponse(error_code=error),
    CreatePartitionsRequest: lambda request, _, error: CreatePartitionsResponse(
        results=tuple(CreatePartitionsTopicResult(name=topic.name, error_code=error) for topic in request.topics)
    ),
    CreateTopicsRequest: lambda request, _, error: CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=topic.name, error_code=error, error_message=None) for topic in request.topics
        )
    ),
    DeleteGroupsRequest: lambda request, _, error: DeleteGroupsResponse(
        results=tuple(DeletableGroupResult(group_id=name, error_code=error) for name in request.groups_names)
    ),
    DeleteTopicsRequest: _delete_topics,
    DescribeGroupsRequest: lambda request, _, error: DescribeGroupsResponse(
        groups=tuple(DescribedGroup(group_id=group_id, error_code=error) for group_id in request.groups)
    ),
    FindCoordinatorRequest: _find_coordinator,
    HeartbeatRequest: lambda _, __, error: HeartbeatResponse(error_code=error),
    JoinGroupRequest: _join_group,
    LeaveGroupRequest: lambda _, __, error: LeaveGroupResponse(error_code=error),
    ListGroupsRequest: lambda _, __, error: ListGroupsResponse(error_code=error),
    ListOffsetsRequest: _list_offsets,
    MetadataRequest: _metadata,
    OffsetCommitRequest: lambda request, _, error: commit_answer(request, {}, error),
    OffsetDeleteRequest: lambda _, __, error: OffsetDeleteResponse(error_code=error),
    OffsetFetchRequest: _offset_fetch,
    SyncGroupRequest: lambda _, __, error: SyncGroupResponse(error_code=error),
    TxnOffsetCommitRequest: lambda request, _, error: commit_answer(request, {}, error),
    WriteTxnMarkersRequest: _write_txn_markers,
}


def refusal(request: Request, version: int, error: ErrorCode) -> Response:
    """The answer that refuses this request with one error."""
    return _REFUSALS[type(request)](request, version, error)
