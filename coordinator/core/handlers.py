"""Which method handles the requests of which API: the coordinator's side of the table of APIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rejoin.coordinator.core.cluster.requests import ClusterRequests
from rejoin.coordinator.core.groups.requests import GroupRequests
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.requests import OffsetRequests
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.requests import TopicRequests
from rejoin.protocol.message import Request
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorRequest
from rejoin.protocol.messages.cluster.metadata import MetadataRequest
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsRequest
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.groups.list_groups import ListGroupsRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchRequest
from rejoin.protocol.messages.records.list_offsets import ListOffsetsRequest
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsRequest
from rejoin.protocol.messages.topics.create_topics import CreateTopicsRequest
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest

Handler: TypeAlias = Callable[[Token, Any, Context], None]


@dataclass(frozen=True, slots=True)
class RequestHandlers:
    """The objects of one node that handle requests."""

    ctx: StepContext
    groups: GroupRequests
    offsets: OffsetRequests
    topics: TopicRequests
    cluster: ClusterRequests


HANDLERS: Final[dict[type[Request], Callable[[RequestHandlers], Handler]]] = {
    HeartbeatRequest: lambda of: of.groups.heartbeat,
    JoinGroupRequest: lambda of: of.groups.join,
    SyncGroupRequest: lambda of: of.groups.sync,
    LeaveGroupRequest: lambda of: of.groups.leave,
    ListGroupsRequest: lambda of: of.groups.list_groups,
    DescribeGroupsRequest: lambda of: of.groups.describe_groups,
    DeleteGroupsRequest: lambda of: of.groups.delete_groups,
    OffsetCommitRequest: lambda of: of.offsets.commit,
    TxnOffsetCommitRequest: lambda of: of.offsets.txn_commit,
    OffsetFetchRequest: lambda of: of.offsets.fetch,
    OffsetDeleteRequest: lambda of: of.offsets.delete,
    WriteTxnMarkersRequest: lambda of: of.offsets.write_markers,
    FindCoordinatorRequest: lambda of: of.cluster.find_coordinator,
    ApiVersionsRequest: lambda of: of.cluster.api_versions,
    MetadataRequest: lambda of: of.cluster.metadata,
    CreateTopicsRequest: lambda of: of.topics.create_topics,
    CreatePartitionsRequest: lambda of: of.topics.create_partitions,
    DeleteTopicsRequest: lambda of: of.topics.delete_topics,
    ListOffsetsRequest: lambda of: of.cluster.list_offsets,
}
"""One for each API, taken from the handlers of a node."""
