"""The table of APIs: one entry for each, from which routes, clients, logs, faults and tests are made.

A new API is a file of messages, an entry here, and a handler in the coordinator.
"""

from __future__ import annotations

from collections.abc import ValuesView
from dataclasses import dataclass
from typing import Final

from rejoin.protocol.message import Request, Response
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


@dataclass(frozen=True, slots=True)
class Api:
    """One of Kafka's requests: ``key`` is its number, versions are inclusive, ``path`` is where HTTP serves it.

    Versions from ``flexible_from`` on have compact lengths and tagged fields on the wire; none: no version has.
    """

    name: str
    key: int
    min_version: int
    max_version: int
    flexible_from: int | None
    request: type[Request]
    response: type[Response]
    path: str

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


BY_KEY: Final[dict[int, Api]] = {}
BY_NAME: Final[dict[str, Api]] = {}
BY_PATH: Final[dict[str, Api]] = {}
BY_REQUEST: Final[dict[type[Request], Api]] = {}

APIS: Final[ValuesView[Api]] = BY_KEY.values()
"""Every API, by key."""


def register(
    key: int, versions: tuple[int, int], flexible_from: int | None, request: type[Request], response: type[Response]
) -> Api:
    """Add an API. Its name and its path follow from the name of its request."""
    name = request.__name__.removesuffix("Request")
    dashed = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    api = Api(name, key, *versions, flexible_from, request, response, f"/v1/{dashed}")
    BY_KEY[key] = BY_NAME[name] = BY_PATH[api.path] = BY_REQUEST[request] = api
    return api


LIST_OFFSETS: Final = register(2, (0, 10), 6, ListOffsetsRequest, ListOffsetsResponse)
METADATA: Final = register(3, (0, 12), 9, MetadataRequest, MetadataResponse)
OFFSET_COMMIT: Final = register(8, (0, 9), 8, OffsetCommitRequest, OffsetCommitResponse)
OFFSET_FETCH: Final = register(9, (0, 9), 6, OffsetFetchRequest, OffsetFetchResponse)
FIND_COORDINATOR: Final = register(10, (0, 6), 3, FindCoordinatorRequest, FindCoordinatorResponse)
JOIN_GROUP: Final = register(11, (0, 9), 6, JoinGroupRequest, JoinGroupResponse)
HEARTBEAT: Final = register(12, (0, 4), 4, HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP: Final = register(13, (0, 5), 4, LeaveGroupRequest, LeaveGroupResponse)
SYNC_GROUP: Final = register(14, (0, 5), 4, SyncGroupRequest, SyncGroupResponse)
DESCRIBE_GROUPS: Final = register(15, (0, 6), 5, DescribeGroupsRequest, DescribeGroupsResponse)
LIST_GROUPS: Final = register(16, (0, 5), 3, ListGroupsRequest, ListGroupsResponse)
API_VERSIONS: Final = register(18, (0, 4), 3, ApiVersionsRequest, ApiVersionsResponse)
CREATE_TOPICS: Final = register(19, (0, 7), 5, CreateTopicsRequest, CreateTopicsResponse)
DELETE_TOPICS: Final = register(20, (0, 6), 4, DeleteTopicsRequest, DeleteTopicsResponse)
WRITE_TXN_MARKERS: Final = register(27, (0, 1), 1, WriteTxnMarkersRequest, WriteTxnMarkersResponse)
TXN_OFFSET_COMMIT: Final = register(28, (0, 5), 3, TxnOffsetCommitRequest, TxnOffsetCommitResponse)
CREATE_PARTITIONS: Final = register(37, (0, 3), 2, CreatePartitionsRequest, CreatePartitionsResponse)
DELETE_GROUPS: Final = register(42, (0, 2), 2, DeleteGroupsRequest, DeleteGroupsResponse)
OFFSET_DELETE: Final = register(47, (0, 0), None, OffsetDeleteRequest, OffsetDeleteResponse)
