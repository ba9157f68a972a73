"""Answers to heartbeats: the member's epoch and tasks, statuses of the group, partitions behind endpoints.

Kafka: GroupMetadataManager.streamsGroupHeartbeat, EndpointToPartitionsManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rejoin.coordinator.core.groups.modern.epochs import JOIN_EPOCH
from rejoin.coordinator.core.groups.modern.member_order import timeline_order
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.streams.group_settings import StreamsSettings
from rejoin.coordinator.core.groups.streams.members.updating import MemberUpdate
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup, source_topics
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.groups.streams.model.memory import GroupMemory
from rejoin.coordinator.core.groups.streams.model.tasks import HeldTasks
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    EndpointPartitions,
    EndpointTopicPartitions,
    StreamsGroupHeartbeatResponse,
    StreamsGroupStatus,
    StreamsStatus,
)
from rejoin.protocol.streams.tasks import TaskIds

FIRST_WITH_CLIENT_TAGS: Final = 1


class StreamsResponses:
    """Makes the answers to heartbeats."""

    def __init__(self, topics: TopicsMetadata, settings: StreamsSettings) -> None:
        self._topics = topics
        self._settings = settings

    def accepted(
        self, group: StreamsGroup, member: StreamsMember, update: MemberUpdate, version: int
    ) -> StreamsGroupHeartbeatResponse | ErrorCode:
        """The answer to a member; an error where the partitions behind endpoints cannot be found."""
        request, before, assigned = update.request, update.before, member.current.assigned
        group_id, memory = group.group_id, update.memory
        is_assigned_anew = assigned != before.current.assigned
        endpoint = member.metadata.endpoint
        if before.metadata.endpoint != endpoint or (is_assigned_anew and endpoint is not None):
            memory.endpoint_epoch += 1
        endpoints: tuple[EndpointPartitions, ...] | None = None
        if request.endpoint_information_epoch != memory.endpoint_epoch:
            found = self._endpoints(group, member, update)
            if isinstance(found, ErrorCode):
                return found
            endpoints = found
        # Kafka: named only in the reply that changes them. A member that loses it has its epoch without these tasks.
        tasks = assigned if is_assigned_anew or request.member_epoch == JOIN_EPOCH else None
        return StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group_id),
            task_offset_interval_ms=self._settings.task_offset_interval_ms(group_id),
            acceptable_recovery_lag=self._settings.recovery_lag(group_id),
            status=tuple(self._statuses(group, member, update, version)),
            active_tasks=None if tasks is None else _task_ids(tasks.active),
            standby_tasks=None if tasks is None else _task_ids(tasks.standby),
            warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
            # Kafka: a group that is made by this request has another memory, which begins with 0.
            endpoint_information_epoch=group.memory.endpoint_epoch,
            partitions_by_user_endpoint=endpoints,
        )

    def unchanged(self, group: StreamsGroup, member: StreamsMember) -> StreamsGroupHeartbeatResponse:
        """The answer to a member about which nothing is new, and whose group is ready and has no status."""
        group_id = group.group_id
        return StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.current.epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group_id),
            task_offset_interval_ms=self._settings.task_offset_interval_ms(group_id),
            acceptable_recovery_lag=self._settings.recovery_lag(group_id),
            endpoint_information_epoch=group.memory.endpoint_epoch,
        )

    # --- statuses

    def _statuses(
        self, group: StreamsGroup, member: StreamsMember, update: MemberUpdate, version: int
    ) -> Iterator[StreamsGroupStatus]:
        """Statuses of the group, in Kafka's order."""
        topology, configured = group.topology, update.memory.configured
        if update.is_stale and topology is not None:
            detail = f"The member has topology epoch {member.metadata.topology_epoch}, the group {topology.epoch}."
            yield _status(StreamsStatus.STALE_TOPOLOGY, detail)
        if update.delay is not None:
            yield _status(StreamsStatus.ASSIGNMENT_DELAYED, f"No assignment yet: {update.delay.value}.")
        if configured is not None and configured.status is not None:
            yield _status(configured.status, configured.detail)
        shutdown_by = update.memory.shutdown_requested_by
        if shutdown_by is not None:
            yield _status(StreamsStatus.SHUTDOWN_APPLICATION, f"Member {shutdown_by} asked for a shutdown.")
        missing = self.missing_tags(group.group_id, member)
        if missing and version >= FIRST_WITH_CLIENT_TAGS:
            yield _status(StreamsStatus.MISSING_CLIENT_TAGS, f"The member lacks tags: {', '.join(missing)}.")

    def missing_tags(self, group_id: str, member: StreamsMember) -> list[str]:
        """The tags that members of the group should have, and this one lacks."""
        given = {key for key, _ in member.metadata.tags}
        return [each for each in self._settings.rack_tags(group_id) if each not in given]

    # --- endpoints

    def _endpoints(
        self, group: StreamsGroup, member: StreamsMember, update: MemberUpdate
    ) -> tuple[EndpointPartitions, ...] | ErrorCode:
        """The partitions behind each endpoint, with the member of the request last."""
        others = [each for each in group.members.values() if each.member_id != member.member_id]
        ordered = [*(group.members[each] for each in timeline_order(others, update.known)), member]
        found = []
        for each in ordered:
            endpoint = each.metadata.endpoint
            if endpoint is None:
                continue
            active = self._partitions(group, update.memory, each.current.assigned, is_active=True)
            standby = self._partitions(group, update.memory, each.current.assigned, is_active=False)
            if active is None or standby is None:
                # Kafka: topics that are missing are not thought of here, and members do not survive it.
                return ErrorCode.UNKNOWN_SERVER_ERROR
            found.append(
                EndpointPartitions(user_endpoint=endpoint, active_partitions=active, standby_partitions=standby)
            )
        return tuple(found)

    def _partitions(
        self, group: StreamsGroup, memory: GroupMemory, held: HeldTasks, *, is_active: bool
    ) -> tuple[EndpointTopicPartitions, ...] | None:
        """The partitions of source topics that tasks read; none where that is not known."""
        if memory.configured is None or memory.configured.tasks is None or group.topology is None:
            return None
        subtopologies = {each.subtopology_id: each for each in group.topology.subtopologies}
        found = []
        for kind in (held.active,) if is_active else (held.standby, held.warmup):
            for subtopology_id, tasks in kind.items():
                for topic in source_topics(subtopologies[subtopology_id]):
                    count = self._topics.partition_count(topic)
                    if not count:
                        return None
                    partitions = tuple(sorted(each for each in tasks if each < count))
                    if partitions:
                        found.append(EndpointTopicPartitions(topic=topic, partitions=partitions))
        return tuple(found)


def _status(code: StreamsStatus, detail: str) -> StreamsGroupStatus:
    return StreamsGroupStatus(status_code=code.value, status_detail=detail)


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology, partitions=tuple(sorted(partitions)))
        for subtopology, partitions in tasks.items()
    )
