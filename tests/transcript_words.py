"""How answers, records, groups and timers read in a transcript."""

from __future__ import annotations

from typing import Any

from coordinator.core.views import GroupView
from coordinator.telling import owned
from protocol.apis import BY_NAME
from protocol.base import Response
from protocol.consumer_protocol import decode_assignment
from protocol.create_partitions import CreatePartitionsResponse
from protocol.create_topics import CreateTopicsResponse
from protocol.delete_groups import DeleteGroupsResponse
from protocol.delete_topics import DeleteTopicsResponse
from protocol.describe_groups import DescribeGroupsResponse
from protocol.errors import ErrorCode
from protocol.find_coordinator import FindCoordinatorResponse
from protocol.heartbeat import HeartbeatResponse
from protocol.join_group import JoinGroupResponse
from protocol.leave_group import LeaveGroupResponse
from protocol.list_groups import ListGroupsResponse
from protocol.offset_commit import OffsetCommitResponse
from protocol.offset_delete import OffsetDeleteResponse
from protocol.offset_fetch import OffsetFetchResponse
from protocol.records import GroupRecord, OffsetRecord, Record
from protocol.sync_group import SyncGroupResponse
from protocol.txn_offset_commit import TxnOffsetCommitResponse
from protocol.write_txn_markers import WriteTxnMarkersResponse


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
    for group in response.groups:
        if group.error_code is not ErrorCode.NONE:
            shown.append(group.error_code.name)
        for topic in group.topics:
            for partition in topic.partitions:
                error = "" if partition.error_code is ErrorCode.NONE else f" {partition.error_code.name}"
                shown.append(f"{topic.name}:{partition.partition_index}={partition.committed_offset}{error}")
    return " ".join(shown) or "nothing"


def show_described(response: DescribeGroupsResponse) -> str:
    shown = []
    for group in response.groups:
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


def show_record(record: Record) -> str:
    """What stands in the offsets log."""
    match record:
        case GroupRecord(key=key, value=None):
            return f"log  {key.data.group} is gone"
        case GroupRecord(key=key, value=value) if value is not None:
            group = value.data
            members = ", ".join(f"{member.member_id} {show_assignment(member.assignment)}" for member in group.members)
            if not members:
                return f"log  {key.data.group}: generation {group.generation}, no members"
            head = f"log  {key.data.group}: generation {group.generation}, {group.protocol}, leader {group.leader}"
            return f"{head}, {members}"
        case OffsetRecord(key=key, value=value):
            place = f"log  {key.data.group}  {key.data.topic}:{key.data.partition}"
            if value is None:
                return f"{place} is gone"
            held = f", held by producer {record.producer_id}" if record.producer_id != -1 else ""
            return f"{place}={value.data.offset}{held}"
    return f"log  producer {record.producer_id} {'commits' if record.committed else 'aborts'}"


def show_group(group_id: str, group: GroupView | None) -> str:
    """A group as nobody but us can see it."""
    if group is None:
        return f"{group_id}  does not exist"
    words = [f"{group_id}  {group.state}, generation {group.generation}"]
    if group.protocol:
        words.append(group.protocol)
    if group.leader:
        words.append(f"leader {group.leader}")
    if group.members:
        words.append(f"members {' '.join(member.member_id for member in group.members)}")
    if group.pending_members:
        words.append(f"may join {' '.join(group.pending_members)}")
    if group.pending_sync:
        words.append(f"must sync {' '.join(group.pending_sync)}")
    return ", ".join(words)


def show_timers(group_id: str, group: GroupView | None, now: int) -> str:
    """What is due, and in how many ms."""
    due = {} if group is None else group.deadlines
    return f"{group_id}  due: {', '.join(f'{name} in {at - now}' for name, at in due.items()) or 'nothing'}"
