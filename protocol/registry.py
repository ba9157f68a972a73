"""The table of APIs: name, key, versions, messages, and the path each has over HTTP.

Routes, clients, logs and tests are made from this table; a new API is one line here and one file beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from rejoin.protocol.types import Request, Response


@dataclass(frozen=True, slots=True)
class Api:
    """One of Kafka's requests: ``key`` is the number on the wire, versions are inclusive."""

    name: str
    key: int
    min_version: int
    max_version: int
    request: type[Request]
    response: type[Response]
    path: str

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def _api(name: str, key: int, versions: tuple[int, int], request: type[Request], response: type[Response]) -> Api:
    dashed = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    return Api(name, key, versions[0], versions[1], request, response, f"/v1/{dashed}")


LIST_OFFSETS: Final = _api("ListOffsets", 2, (0, 10), ListOffsetsRequest, ListOffsetsResponse)
METADATA: Final = _api("Metadata", 3, (0, 12), MetadataRequest, MetadataResponse)
OFFSET_COMMIT: Final = _api("OffsetCommit", 8, (0, 9), OffsetCommitRequest, OffsetCommitResponse)
OFFSET_FETCH: Final = _api("OffsetFetch", 9, (0, 9), OffsetFetchRequest, OffsetFetchResponse)
FIND_COORDINATOR: Final = _api("FindCoordinator", 10, (0, 6), FindCoordinatorRequest, FindCoordinatorResponse)
JOIN_GROUP: Final = _api("JoinGroup", 11, (0, 9), JoinGroupRequest, JoinGroupResponse)
HEARTBEAT: Final = _api("Heartbeat", 12, (0, 4), HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP: Final = _api("LeaveGroup", 13, (0, 5), LeaveGroupRequest, LeaveGroupResponse)
SYNC_GROUP: Final = _api("SyncGroup", 14, (0, 5), SyncGroupRequest, SyncGroupResponse)
DESCRIBE_GROUPS: Final = _api("DescribeGroups", 15, (0, 6), DescribeGroupsRequest, DescribeGroupsResponse)
LIST_GROUPS: Final = _api("ListGroups", 16, (0, 5), ListGroupsRequest, ListGroupsResponse)
API_VERSIONS: Final = _api("ApiVersions", 18, (0, 4), ApiVersionsRequest, ApiVersionsResponse)
CREATE_TOPICS: Final = _api("CreateTopics", 19, (0, 7), CreateTopicsRequest, CreateTopicsResponse)
DELETE_TOPICS: Final = _api("DeleteTopics", 20, (0, 6), DeleteTopicsRequest, DeleteTopicsResponse)
WRITE_TXN_MARKERS: Final = _api("WriteTxnMarkers", 27, (0, 1), WriteTxnMarkersRequest, WriteTxnMarkersResponse)
TXN_OFFSET_COMMIT: Final = _api("TxnOffsetCommit", 28, (0, 5), TxnOffsetCommitRequest, TxnOffsetCommitResponse)
CREATE_PARTITIONS: Final = _api("CreatePartitions", 37, (0, 3), CreatePartitionsRequest, CreatePartitionsResponse)
DELETE_GROUPS: Final = _api("DeleteGroups", 42, (0, 2), DeleteGroupsRequest, DeleteGroupsResponse)
OFFSET_DELETE: Final = _api("OffsetDelete", 47, (0, 0), OffsetDeleteRequest, OffsetDeleteResponse)

APIS: Final[tuple[Api, ...]] = (
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    WRITE_TXN_MARKERS,
    TXN_OFFSET_COMMIT,
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    OFFSET_DELETE,
)
"""Every API, by key."""

BY_NAME: Final = {api.name: api for api in APIS}
BY_KEY: Final = {api.key: api for api in APIS}
BY_PATH: Final = {api.path: api for api in APIS}
BY_REQUEST: Final[dict[type[Request], Api]] = {api.request: api for api in APIS}
