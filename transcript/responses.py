"""Responses as text of a transcript, each in a few words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from rejoin.journal.formatting import owned
from rejoin.protocol.embedded.consumer_protocol import decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.alter_configs import IncrementalAlterConfigsResponse
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
)
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
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
from rejoin.protocol.messages.records.produce import ProduceResponse
from rejoin.protocol.messages.share.share_acknowledge import ShareAcknowledgeResponse
from rejoin.protocol.messages.share.share_fetch import ShareFetchResponse
from rejoin.protocol.messages.share.share_group_describe import (
    DescribedShareAssignment,
    DescribedShareGroup,
    ShareGroupDescribeResponse,
)
from rejoin.protocol.messages.share.share_group_heartbeat import ShareGroupHeartbeatResponse
from rejoin.protocol.messages.share.share_group_offsets import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
)
from rejoin.protocol.messages.streams.streams_group_describe import DescribedStreamsGroup, StreamsGroupDescribeResponse
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatResponse, StreamsStatus
from rejoin.protocol.messages.streams.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsResponse
from rejoin.protocol.messages.topics.create_topics import CreateTopicsResponse
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsResponse
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersResponse
from rejoin.protocol.registry import BY_NAME

_UNEVENTFUL: Final = re.compile(r"Heartbeat -> (NONE|epoch \d+)$")

TopicName: TypeAlias = Callable[[str], str]
"""The name of a topic by its id, or the id where the topic is not known."""


def show(response: Response, topic_name: TopicName = str) -> str:
    """An answer in short."""
    match response:
        case ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NONE):
            return show_heartbeat(response, topic_name)
        case ProduceResponse():
            return show_produce(response, topic_name)
        case IncrementalAlterConfigsResponse(responses=(result,)):
            return result.error_code.name
        case ConsumerGroupDescribeResponse():
            return ", ".join(show_described_consumers(group) for group in response.groups)
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
            return show_partitions(response.topics, topic_name)
        case OffsetFetchResponse():
            return show_fetch(response, topic_name)
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
            | ConsumerGroupHeartbeatResponse()
            | LeaveGroupResponse()
            | SyncGroupResponse()
            | ListGroupsResponse()
            | OffsetDeleteResponse()
        ):
            return response.error_code.name
    if (shown := show_of_share_group(response, topic_name) or show_of_streams_group(response)) is not None:
        return shown
    return response.to_json(BY_NAME[type(response).__name__.removesuffix("Response")].max_version).decode()


def is_uneventful(text: str) -> bool:
    """Whether an answer, with its request's name, says that nothing has changed."""
    return bool(_UNEVENTFUL.search(text))


def show_of_share_group(response: Response, topic_name: TopicName) -> str | None:
    """A response about a share group; none for others."""
    match response:
        case ShareGroupDescribeResponse():
            return ", ".join(show_described_share_group(group) for group in response.groups)
        case ShareGroupHeartbeatResponse(error_code=ErrorCode.NONE):
            return show_heartbeat(response, topic_name)
        case ShareFetchResponse(error_code=ErrorCode.NONE):
            return show_share_fetch(response, topic_name)
        case ShareAcknowledgeResponse(error_code=ErrorCode.NONE, responses=topics) if topics:
            return show_partitions(topics, topic_name)
        case DescribeShareGroupOffsetsResponse():
            return show_share_offsets(response)
        case AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE):
            return show_partitions(response.responses, topic_name)
        case DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NONE):
            return " ".join(f"{topic.topic_name} {topic.error_code.name}" for topic in response.responses) or "nothing"
        case (
            ShareGroupHeartbeatResponse()
            | ShareFetchResponse()
            | ShareAcknowledgeResponse()
            | AlterShareGroupOffsetsResponse()
            | DeleteShareGroupOffsetsResponse()
        ):
            return response.error_code.name
    return None


def show_of_streams_group(response: Response) -> str | None:
    """A response about a streams group; none for others."""
    match response:
        case StreamsGroupHeartbeatResponse(error_code=ErrorCode.NONE):
            words = [f"epoch {response.member_epoch}"]
            if response.active_tasks is not None:
                words.append(f"runs {show_tasks(response.active_tasks)}")
                words += [f"standby {show_tasks(response.standby_tasks)}"] if response.standby_tasks else []
                words += [f"warm-up {show_tasks(response.warmup_tasks)}"] if response.warmup_tasks else []
            words += [StreamsStatus(each.status_code).name for each in response.status or ()]
            words += (
                [f"endpoints of epoch {response.endpoint_information_epoch}"]
                if response.partitions_by_user_endpoint
                else []
            )
            return ", ".join(words)
        case StreamsGroupDescribeResponse():
            return ", ".join(show_described_streams(group) for group in response.groups)
        case StreamsGroupHeartbeatResponse() | StreamsGroupTopologyDescriptionUpdateResponse():
            return response.error_code.name
    return None


def show_described_streams(group: DescribedStreamsGroup) -> str:
    """A description: state, epochs, and each member with its tasks and those it is to have."""
    if group.error_code is not ErrorCode.NONE:
        return f"{group.group_id} {group.error_code.name}"
    members = "; ".join(
        f"{each.member_id} at {each.member_epoch} runs {show_tasks(each.assignment.active_tasks)}"
        f", standby {show_tasks(each.assignment.standby_tasks)}"
        f", target {show_tasks(each.target_assignment.active_tasks)}"
        f" and standby {show_tasks(each.target_assignment.standby_tasks)}"
        for each in group.members
    )
    epochs = f"epoch {group.group_epoch}, target {group.assignment_epoch}"
    return f"{group.group_id} {group.group_state} {epochs} [{members}]"


def show_tasks(tasks: Iterable[Any] | None) -> str:
    """Tasks as Kafka Streams names them: ``0_0 0_1``; - for none."""
    return " ".join(f"{each.subtopology_id}_{number}" for each in tasks or () for number in each.partitions) or "-"


def show_produce(response: ProduceResponse, topic_name: TopicName) -> str:
    """The offset of the first record in each partition, or the error."""
    return " ".join(
        f"{_topic(topic, topic_name)}:{each.index} "
        + (f"from {each.base_offset}" if each.error_code is ErrorCode.NONE else each.error_code.name)
        for topic in response.responses
        for each in topic.partition_responses
    )


def show_share_fetch(response: ShareFetchResponse, topic_name: TopicName) -> str:
    """The runs of records that the member holds now with their delivery counts, and errors."""
    shown = []
    for topic in response.responses:
        for each in topic.partitions:
            words = [each.error_code.name] if each.error_code is not ErrorCode.NONE else []
            if each.acknowledge_error_code is not ErrorCode.NONE:
                words.append(f"acknowledgement {each.acknowledge_error_code.name}")
            for run in each.acquired_records:
                one = run.first_offset == run.last_offset
                offsets = run.first_offset if one else f"{run.first_offset}-{run.last_offset}"
                words.append(f"{offsets} (delivery {run.delivery_count})")
            if words:
                shown.append(f"{topic_name(topic.topic_id)}:{each.partition_index} {', '.join(words)}")
    return "; ".join(shown) or "nothing"


def show_share_offsets(response: DescribeShareGroupOffsetsResponse) -> str:
    """The start offset and the lag of each share-partition; -1 is not known."""
    shown = []
    for group in response.groups:
        if group.error_code is not ErrorCode.NONE:
            shown.append(f"{group.group_id} {group.error_code.name}")
        for topic in group.topics:
            for each in topic.partitions:
                error = "" if each.error_code is ErrorCode.NONE else f" {each.error_code.name}"
                shown.append(f"{topic.topic_name}:{each.partition_index}={each.start_offset}, lag {each.lag}{error}")
    return "; ".join(shown) or "nothing"


def show_heartbeat(
    response: ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse, topic_name: TopicName
) -> str:
    if response.assignment is None:
        return f"epoch {response.member_epoch}"
    topics = {topic_name(each.topic_id): list(each.partitions) for each in response.assignment.topic_partitions}
    return f"epoch {response.member_epoch}, assigned {owned(topics)}"


def show_described_consumers(group: DescribedConsumerGroup) -> str:
    if group.error_code is not ErrorCode.NONE:
        return f"{group.group_id} {group.error_code.name}"
    members = "; ".join(
        f"{member.member_id} epoch {member.member_epoch}{' (classic)' if member.member_type == 0 else ''}, "
        f"{_described(member.assignment)} of {_described(member.target_assignment)}"
        for member in group.members
    )
    epochs = f"epoch {group.group_epoch}, target {group.assignment_epoch}"
    return f"{group.group_id} {group.group_state}, {epochs}, {group.assignor_name} [{members}]"


def show_described_share_group(group: DescribedShareGroup) -> str:
    """A share group with its epochs, and its members with what they are assigned."""
    if group.error_code is not ErrorCode.NONE:
        return f"{group.group_id} {group.error_code.name}"
    members = "; ".join(
        f"{member.member_id} epoch {member.member_epoch}, {_described(member.assignment)}" for member in group.members
    )
    epochs = f"epoch {group.group_epoch}, target {group.assignment_epoch}"
    return f"{group.group_id} {group.group_state}, {epochs}, {group.assignor_name} [{members}]"


def _described(assignment: DescribedAssignment | DescribedShareAssignment) -> str:
    return owned({each.topic_name: list(each.partitions) for each in assignment.topic_partitions})


def show_join(response: JoinGroupResponse) -> str:
    if response.error_code is not ErrorCode.NONE:
        refused = f"{response.error_code.name} {response.member_id}".rstrip()
        known = f" in generation {response.generation_id}, leader {response.leader}"
        return refused if response.generation_id == -1 else refused + known
    members = f", members {' '.join(member.member_id for member in response.members)}" if response.members else ""
    skip = ", skip the assignment" if response.skip_assignment else ""
    # A member of a consumer group has no leader.
    leader = f", leader {response.leader}" if response.leader else ""
    return (
        f"{response.member_id} in generation {response.generation_id}, {response.protocol_name}{leader}{members}{skip}"
    )


def show_assignment(data: bytes) -> str:
    if not data:
        return "(no bytes)"
    topics: dict[str, list[int]] = {}
    for topic, partition in decode_assignment(data).partitions:
        topics.setdefault(topic, []).append(partition)
    return owned(topics)


def show_partitions(topics: Any, topic_name: TopicName) -> str:
    """The error of each partition. Only offsets that are deleted never stand under the id of their topic."""
    return " ".join(
        f"{_topic(topic, topic_name)}:{partition.partition_index} {partition.error_code.name}"
        for topic in topics
        for partition in topic.partitions
    )


def _topic(topic: Any, topic_name: TopicName) -> str:
    """The name of a topic in a response, which has its name or its id."""
    name: str = getattr(topic, "name", "") or getattr(topic, "topic_name", "")
    return name or topic_name(topic.topic_id)


def show_fetch(response: OffsetFetchResponse, topic_name: TopicName) -> str:
    shown = []
    # Before v8 one group was asked for, and its answer stands at the top.
    asked: tuple[Any, ...] = response.groups or (response,)
    for group in asked:
        if group.error_code is not ErrorCode.NONE:
            shown.append(group.error_code.name)
        for topic in group.topics:
            for partition in topic.partitions:
                error = "" if partition.error_code is ErrorCode.NONE else f" {partition.error_code.name}"
                name = topic.name or topic_name(topic.topic_id)
                shown.append(f"{name}:{partition.partition_index}={partition.committed_offset}{error}")
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
