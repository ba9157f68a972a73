"""Requests as each version of them is written, and answers as each version is read. No decision is made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.inputs import OffsetAndMetadata
from rejoin.client.core.state.membership import NO_GENERATION, Generation
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataRequestTopic
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rejoin.protocol.types import ZERO_UUID, TopicPartition

PROTOCOL_TYPE = "consumer"

_LONGEST_REASON = 255
_LIST_OFFSETS_TIMEOUT_MS = 30_000


def _topics(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def find_coordinator(key: str, version: int, key_type: int = 0) -> FindCoordinatorRequest:
    if version < 4:
        return FindCoordinatorRequest(key=key, key_type=key_type)
    return FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)


def coordinator_found(response: FindCoordinatorResponse, group_id: str, version: int) -> Coordinator:
    """The one coordinator in an answer; an answer without it counts as an unknown server error."""
    if version < 4:
        return Coordinator(
            key=group_id,
            node_id=response.node_id,
            host=response.host,
            port=response.port,
            error_code=response.error_code,
            error_message=response.error_message,
        )
    for coordinator in response.coordinators:
        if coordinator.key == group_id:
            return coordinator
    return Coordinator(key=group_id, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


def join_group(
    config: ConsumerConfig,
    group_id: str,
    member_id: str,
    protocols: tuple[JoinGroupRequestProtocol, ...],
    reason: str,
    version: int,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms if version >= 1 else -1,
        member_id=member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason[:_LONGEST_REASON] if version >= 8 else None,
    )


def sync_group(
    config: ConsumerConfig,
    group_id: str,
    generation: Generation,
    assignments: Mapping[str, bytes],
    version: int,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE if version >= 5 else None,
        protocol_name=generation.protocol if version >= 5 else None,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ),
    )


def heartbeat(config: ConsumerConfig, group_id: str, generation: Generation) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
    )


def leave_group(group_id: str, member_id: str, reason: str, version: int) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id=group_id, member_id=member_id)
    shown = reason[:_LONGEST_REASON] if version >= 5 else None
    return LeaveGroupRequest(group_id=group_id, members=(MemberIdentity(member_id=member_id, reason=shown),))


def offset_commit(
    config: ConsumerConfig,
    group_id: str,
    generation: Generation,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    as_member: bool,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id if as_member else None,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[TopicPartition(topic, partition)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, partition)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, partition)].metadata,
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in _topics(offsets).items()
        ),
    )


def offset_fetch(
    group_id: str, partitions: Iterable[TopicPartition], version: int, member: Generation = NO_GENERATION
) -> OffsetFetchRequest:
    """Committed offsets of these partitions, without those of open transactions (``requireStable``)."""
    topics = _topics(partitions)
    if version < 8:
        return OffsetFetchRequest(
            group_id=group_id,
            topics=tuple(
                OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in topics.items()
            ),
            require_stable=version >= 7,
        )
    wanted = tuple(
        OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(numbers)) for topic, numbers in topics.items()
    )
    group = OffsetFetchRequestGroup(group_id=group_id, topics=wanted)
    if version >= 9 and member.member_id:
        group = OffsetFetchRequestGroup(
            group_id=group_id, member_id=member.member_id, member_epoch=member.generation_id, topics=wanted
        )
    return OffsetFetchRequest(groups=(group,), require_stable=True)


def offset_fetch_error(response: OffsetFetchResponse, version: int) -> ErrorCode:
    """The error of the group as a whole."""
    if version < 8:
        return response.error_code
    return response.groups[0].error_code if response.groups else ErrorCode.UNKNOWN_SERVER_ERROR


def fetched_offsets(
    response: OffsetFetchResponse, version: int
) -> Iterator[tuple[TopicPartition, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]:
    """Every partition of an OffsetFetch answer."""
    if version < 8:
        for old in response.topics:
            for partition in old.partitions:
                yield TopicPartition(old.name, partition.partition_index), partition
        return
    for group in response.groups:
        for topic in group.topics:
            for committed in topic.partitions:
                yield TopicPartition(topic.name, committed.partition_index), committed


def list_offsets(timestamps: Mapping[TopicPartition, int], isolation_level: str, version: int) -> ListOffsetsRequest:
    """Offsets by time of these partitions."""
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1 if isolation_level == "read_committed" and version >= 2 else 0,
        topics=tuple(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=partition, timestamp=timestamps[TopicPartition(topic, partition)]
                    )
                    for partition in partitions
                ),
            )
            for topic, partitions in _topics(timestamps).items()
        ),
        timeout_ms=_LIST_OFFSETS_TIMEOUT_MS if version >= 10 else 0,
    )


def listed_offsets(response: ListOffsetsResponse) -> list[tuple[TopicPartition, ErrorCode, int]]:
    """Every partition of a ListOffsets answer, with its error and offset."""
    return [
        (
            TopicPartition(topic.name, partition.partition_index),
            partition.error_code,
            partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset,
        )
        for topic in response.topics
        for partition in topic.partitions
    ]


def metadata(topics: Iterable[str] | None, *, create: bool, version: int) -> MetadataRequest:
    """Describe topics, or all of them (None)."""
    wanted: tuple[MetadataRequestTopic, ...] | None
    if topics is None:
        wanted = None if version >= 1 else ()
    else:
        wanted = tuple(MetadataRequestTopic(topic_id=ZERO_UUID, name=topic) for topic in topics)
    return MetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=create or topics is None or version < 4,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
