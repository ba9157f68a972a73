"""How answers read in a transcript: each in a few words."""

from __future__ import annotations

from typing import Any

from rejoin.journal.formatting import owned
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.groups.delete_groups import DeleteGroupsResponse
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupResponse
from rejoin.protocol.messages.groups.list_groups import ListGroupsResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitResponse
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteResponse
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchResponse
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsResponse
from rejoin.protocol.messages.topics.create_topics import CreateTopicsResponse
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsResponse
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersResponse
from rejoin.protocol.registry import BY_NAME


def show(response: Response) -> str:
    """An answer in short."""
    match response:
        case JoinGroupResponse():
            return show_join(response)
        case SyncGroupResponse(error_code=ErrorCode.NONE):
            return show_assignment(response.assignment)
        case LeaveGroupResponse(members=members) if members:
            return ", ".join(
                f"{member.member_id or member.group_instance_id or '(empty id)'} {member.error_code.name}"
                for member in members
            )
        case OffsetCommitResponse() | TxnOffsetCommitResponse() | OffsetDeleteResponse(error_code=ErrorCode.NONE):
            return " ".join(
                f"{topic.name}:{partition.partition_index} {partition.error_code.name}"
                for topic in response.topics
                for partition in topic.partitions
            )
        case OffsetFetchResponse():
            return show_fetch(response)
        case ListGroupsResponse(error_code=ErrorCode.NONE):
            return (
                ", ".join(
                    f"{group.group_id} {group.group_state} {group.protocol_type or '(no type)'}"
                    for group in response.groups
                )
                or "no groups"
            )
        case DescribeGroupsResponse():
            return show_described(response)
        case DeleteGroupsResponse():
            return ", ".join(f"{result.group_id} {result.error_code.name}" for result in response.results)
        case FindCoordinatorResponse():
            found: Any = response.coordinators or (response,)
            return ", ".join(
                f"{getattr(entry, 'key', '')} node {entry.node_id} {entry.error_code.name}".strip() for entry in found
            )
        case CreateTopicsResponse(topics=(result,)) | CreatePartitionsResponse(results=(result,)):
            return result.error_code.name
        case DeleteTopicsResponse(responses=(result,)):
            return result.error_code.name
        case WriteTxnMarkersResponse():
            return response.markers[0].topics[0].partitions[0].error_code.name
        case (
            HeartbeatResponse()
            | LeaveGroupResponse()
            | SyncGroupResponse()
            | ListGroupsResponse()
            | OffsetDeleteResponse()
        ):
            return response.error_code.name
    return response.to_json(BY_NAME[type(response).__name__.removesuffix("Response")].max_version).decode()


def show_join(response: JoinGroupResponse) -> str:
    if response.error_code is not ErrorCode.NONE:
        refused = f"{response.error_code.name} {response.member_id}".rstrip()
        known = f" in generation {response.generation_id}, leader {response.leader}"
        return refused if response.generation_id == -1 else refused + known
    members = f", members {' '.join(member.member_id for member in response.members)}" if response.members else ""
    skip = ", skip the assignment" if response.skip_assignment else ""
    return (
        f"{response.member_id} in generation {response.generation_id}, {response.protocol_name}, "
        f"leader {response.leader}{members}{skip}"
    )


def show_assignment(data: bytes) -> str:
    if not data:
        return "(no bytes)"
    topics: dict[str, list[int]] = {}
    for topic, partition in decode_assignment(data).partitions:
        topics.setdefault(topic, []).append(partition)
    return owned(topics)


def show_fetch(response: OffsetFetchResponse) -> str:
    shown = []
    # Before v8 one group was asked for, and its answer stands at the top.
    asked: tuple[Any, ...] = response.groups or (response,)
    for group in asked:
        if group.error_code is not ErrorCode.NONE:
            shown.append(group.error_code.name)
        for topic in group.topics:
            for partition in topic.partitions:
                error = "" if partition.error_code is ErrorCode.NONE else f" {partition.error_code.name}"
                shown.append(f"{topic.name}:{partition.partition_index}={partition.committed_offset}{error}")
    return " ".join(shown) or "nothing"


def show_described(response: DescribeGroupsResponse) -> str:
    shown = []
    # Before v8 one group was asked for, and its answer stands at the top.
    asked: tuple[Any, ...] = response.groups or (response,)
    for group in asked:
        if group.error_code is not ErrorCode.NONE:
            shown.append(f"{group.group_id} {group.error_code.name}")
            continue
        members = "; ".join(
            f"{member.member_id} {'with' if member.member_metadata else 'without'} metadata, "
            f"{show_assignment(member.member_assignment)}"
            for member in group.members
        )
        protocol = f" {group.protocol_data}" if group.protocol_data else ""
        shown.append(f"{group.group_id} {group.group_state}{protocol} [{members}]")
    return ", ".join(shown)
