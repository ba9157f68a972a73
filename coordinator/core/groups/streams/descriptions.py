"""StreamsGroupDescribe: groups as their log has them. Kafka: KafkaApis.handleStreamsGroupDescribe.

Descriptions of topologies for people (KIP-1331) need a plugin of the broker, which there is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rejoin.coordinator.core.groups.modern.descriptions import GroupDescriptions
from rejoin.coordinator.core.groups.modern.member_order import Known, timeline_order
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.groups.streams.model.memory import TaskOffsets
from rejoin.coordinator.core.groups.streams.model.records import key_values
from rejoin.coordinator.core.groups.streams.model.state import STREAMS
from rejoin.coordinator.core.groups.streams.model.tasks import HeldTasks, Tasks
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import utf16_key, utf16_sorted
from rejoin.protocol.messages.streams.streams_group_describe import (
    DescribedStreamsGroup,
    DescribedStreamsGroupMember,
    DescribedSubtopology,
    DescribedTasks,
    DescribedTopology,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from rejoin.protocol.streams.tasks import TaskIds, TaskOffset
from rejoin.protocol.streams.topology import StreamsTopicInfo, Subtopology

NOT_STORED: Final = 1
"""The status of a description that is asked for, and that no plugin has."""


class StreamsGroupDescriptions(GroupDescriptions[DescribedStreamsGroup]):
    """Describes streams groups."""

    kind = STREAMS

    def describe(self, token: Token, request: StreamsGroupDescribeRequest, context: Context) -> None:
        groups = self._describe_all(request.group_ids, request, context)
        if request.include_topology_description:
            groups = tuple(
                each
                if each.error_code is not ErrorCode.NONE
                else each.model_copy(update={"topology_description_status": NOT_STORED})
                for each in groups
            )
        self._ctx.reply(token, StreamsGroupDescribeResponse(groups=groups))

    def _refused(self, group_id: str, error: ErrorCode, message: str | None = None) -> DescribedStreamsGroup:
        return DescribedStreamsGroup(group_id=group_id, error_code=error, error_message=message)

    def _read(self, shard: GroupsShard, group_id: str) -> DescribedStreamsGroup:
        kind = shard.kinds.streams
        group = kind.group(group_id)
        assert group is not None, "the group is of this kind"
        ordered = timeline_order(group.members.values(), Known(group.member_order.capacity))
        return DescribedStreamsGroup(
            group_id=group_id,
            group_state=group.state,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=_topology(group),
            members=tuple(_member(group, group.members[each]) for each in ordered),
            assignor_name=kind.settings.assignor(group_id),
        )

    def _topics_in(self, described: DescribedStreamsGroup) -> Iterable[str]:
        topology = described.topology
        return () if topology is None else _topics_of(topology.subtopologies or ())


def _topics_of(subtopologies: Iterable[DescribedSubtopology]) -> Iterator[str]:
    for each in subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for info in (*each.state_changelog_topics, *each.repartition_source_topics):
            yield info.name


def _topology(group: StreamsGroup) -> DescribedTopology | None:
    """The topology of a group; with the numbers of partitions of internal topics where it is ready."""
    topology, configured = group.topology, group.memory.configured
    if topology is None:
        return None
    counts = configured.partitions if configured is not None and configured.is_ready else {}
    by_id = {each.subtopology_id: each for each in topology.subtopologies}
    subtopologies = tuple(_subtopology(by_id[each], counts) for each in utf16_sorted(by_id))
    return DescribedTopology(epoch=topology.epoch, subtopologies=subtopologies)


def _subtopology(subtopology: Subtopology, counts: Mapping[str, int]) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=tuple(utf16_sorted(subtopology.source_topics)),
        repartition_sink_topics=tuple(utf16_sorted(subtopology.repartition_sink_topics)),
        state_changelog_topics=_infos(subtopology.state_changelog_topics, counts),
        repartition_source_topics=_infos(subtopology.repartition_source_topics, counts),
    )


def _infos(infos: Iterable[StreamsTopicInfo], counts: Mapping[str, int]) -> tuple[StreamsTopicInfo, ...]:
    ordered = sorted(infos, key=lambda info: utf16_key(info.name))
    return tuple(info.model_copy(update={"partitions": counts.get(info.name, info.partitions)}) for info in ordered)


def _member(group: StreamsGroup, member: StreamsMember) -> DescribedStreamsGroupMember:
    metadata, member_id, memory = member.metadata, member.member_id, group.memory
    return DescribedStreamsGroupMember(
        member_id=member_id,
        member_epoch=member.current.epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=metadata.endpoint,
        client_tags=key_values(metadata.tags),
        task_offsets=_offsets(memory.offsets.get(member_id, {})),
        task_end_offsets=_offsets(memory.end_offsets.get(member_id, {})),
        assignment=_tasks(member.current.assigned),
        target_assignment=_tasks(group.target_of(member_id)),
    )


def _offsets(offsets: TaskOffsets) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offset)
        for subtopology, of_tasks in offsets.items()
        for partition, offset in of_tasks.items()
    )


def _tasks(tasks: Tasks | HeldTasks) -> DescribedTasks:
    return DescribedTasks(
        active_tasks=_ids(tasks.active), standby_tasks=_ids(tasks.standby), warmup_tasks=_ids(tasks.warmup)
    )


def _ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=each, partitions=tuple(sorted(partitions))) for each, partitions in tasks.items()
    )
