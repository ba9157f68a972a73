"""Streams groups as people see them: with everything that Kafka's own admin requests leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rejoin.coordinator.core.groups.modern.view import group_fields
from rejoin.coordinator.core.groups.streams.model.group import StreamsGroup
from rejoin.coordinator.core.groups.streams.model.member import StreamsMember
from rejoin.coordinator.core.groups.streams.task_views import (
    internal_topic_views,
    not_ready,
    subtopology_views,
    task_views,
)
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.runtime.timers import Deadlines
from rejoin.coordinator.core.views import StreamsGroupView, StreamsMemberView


def of_streams_group(
    group: StreamsGroup,
    assignor: str,
    session_timeout_ms: Millis,
    deadlines: Deadlines,
    partition_count: Callable[[str], int],
    *,
    in_short: bool = False,
) -> StreamsGroupView:
    """A group of tasks. ``partition_count`` is 0 for a topic that does not exist.

    In short, it has its members with their tasks, and neither the list of all tasks nor the parts of the topology.
    """
    return StreamsGroupView(
        **group_fields(group, assignor, deadlines),
        members=[_of_member(each, group, session_timeout_ms, deadlines) for each in group.members.values()],
        subscribed_topics=[] if in_short else sorted(group.required_topics()),
        rebalance_cause=None,
        rebalances=0,
        topology_epoch=None if group.topology is None else group.topology.epoch,
        not_ready=not_ready(group),
        shutdown_requested_by=group.memory.shutdown_requested_by,
        subtopologies=[] if in_short else subtopology_views(group),
        internal_topics=[] if in_short else internal_topic_views(group, partition_count),
        tasks=[] if in_short else task_views(group),
    )


def _of_member(
    member: StreamsMember, group: StreamsGroup, session_timeout_ms: Millis, deadlines: Deadlines
) -> StreamsMemberView:
    metadata, current = member.metadata, member.current
    target = group.target_of(member.member_id)
    return StreamsMemberView(
        member_id=member.member_id,
        group_instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        protocols=[],
        topics=None,
        assignment=_tasks(current.assigned.active),
        is_leader=False,
        is_new=False,
        awaiting_join=False,
        awaiting_sync=False,
        session_expires_at=deadlines.at(member.session_key),
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        member_state=current.state.name,
        process_id=metadata.process_id,
        standby_tasks=_tasks(current.assigned.standby),
        warmup_tasks=_tasks(current.assigned.warmup),
        pending_revocation=_tasks(current.pending.active),
        pending_standby_revocation=_tasks(current.pending.standby),
        target=_tasks(target.active),
        target_standby=_tasks(target.standby),
    )


def _tasks(tasks: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    return {subtopology: sorted(tasks[subtopology]) for subtopology in sorted(tasks)}
