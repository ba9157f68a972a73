"""The table of APIs: one entry for each, from which routes, clients, logs, faults and tests are made.

A new API is a file of messages, an entry here, and a handler in the coordinator. An API without a handler is defined
and not registered: its messages can be read and written, but no client is offered them.
"""

from __future__ import annotations

from collections.abc import ValuesView
from dataclasses import dataclass
from typing import Final

from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rejoin.protocol.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from rejoin.protocol.messages.cluster.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
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
from rejoin.protocol.messages.records.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from rejoin.protocol.messages.records.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from rejoin.protocol.messages.records.fetch import FetchRequest, FetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from rejoin.protocol.messages.records.produce import ProduceRequest, ProduceResponse
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rejoin.protocol.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
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


DEFINED: Final[dict[int, Api]] = {}
"""Every API whose messages are known, by key: those that are offered, and those that are not yet."""

BY_KEY: Final[dict[int, Api]] = {}
BY_NAME: Final[dict[str, Api]] = {}
BY_PATH: Final[dict[str, Api]] = {}
BY_REQUEST: Final[dict[type[Request], Api]] = {}

APIS: Final[ValuesView[Api]] = BY_KEY.values()
"""Every API that is offered, by key."""


def define(
    key: int, versions: tuple[int, int], flexible_from: int | None, request: type[Request], response: type[Response]
) -> Api:
    """Add the messages of an API. Its name and its path follow from the name of its request."""
    name = request.__name__.removesuffix("Request")
    dashed = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    api = DEFINED[key] = Api(name, key, *versions, flexible_from, request, response, f"/v1/{dashed}")
    return api


def register(
    key: int, versions: tuple[int, int], flexible_from: int | None, request: type[Request], response: type[Response]
) -> Api:
    """Add an API that nodes serve."""
    api = define(key, versions, flexible_from, request, response)
    BY_KEY[key] = BY_NAME[api.name] = BY_PATH[api.path] = BY_REQUEST[request] = api
    return api


PRODUCE: Final = register(0, (3, 13), 9, ProduceRequest, ProduceResponse)
FETCH: Final = register(1, (4, 18), 12, FetchRequest, FetchResponse)
LIST_OFFSETS: Final = register(2, (0, 11), 6, ListOffsetsRequest, ListOffsetsResponse)
METADATA: Final = register(3, (0, 13), 9, MetadataRequest, MetadataResponse)
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
DELETE_RECORDS: Final = register(21, (0, 2), 2, DeleteRecordsRequest, DeleteRecordsResponse)
INIT_PRODUCER_ID: Final = register(22, (0, 5), 2, InitProducerIdRequest, InitProducerIdResponse)
OFFSET_FOR_LEADER_EPOCH: Final = register(23, (2, 4), 4, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse)
WRITE_TXN_MARKERS: Final = register(27, (0, 1), 1, WriteTxnMarkersRequest, WriteTxnMarkersResponse)
TXN_OFFSET_COMMIT: Final = register(28, (0, 5), 3, TxnOffsetCommitRequest, TxnOffsetCommitResponse)
DESCRIBE_CONFIGS: Final = register(32, (1, 4), 4, DescribeConfigsRequest, DescribeConfigsResponse)
ALTER_CONFIGS: Final = register(33, (0, 2), 2, AlterConfigsRequest, AlterConfigsResponse)
DESCRIBE_LOG_DIRS: Final = register(35, (1, 5), 2, DescribeLogDirsRequest, DescribeLogDirsResponse)
CREATE_PARTITIONS: Final = register(37, (0, 3), 2, CreatePartitionsRequest, CreatePartitionsResponse)
DELETE_GROUPS: Final = register(42, (0, 2), 2, DeleteGroupsRequest, DeleteGroupsResponse)
INCREMENTAL_ALTER_CONFIGS: Final = register(
    44, (0, 1), 1, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
)
OFFSET_DELETE: Final = register(47, (0, 0), None, OffsetDeleteRequest, OffsetDeleteResponse)
DESCRIBE_CLUSTER: Final = register(60, (0, 2), 0, DescribeClusterRequest, DescribeClusterResponse)
DESCRIBE_PRODUCERS: Final = register(61, (0, 0), 0, DescribeProducersRequest, DescribeProducersResponse)
DESCRIBE_TOPIC_PARTITIONS: Final = register(
    75, (0, 0), 0, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
)
