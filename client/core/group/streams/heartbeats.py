"""StreamsGroupHeartbeat: the fields of a request, and the consequences of a response.

When it is sent, and what errors lead to, is the same for members of consumer groups.

Source: Kafka's StreamsGroupHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.client.core.group import membership
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.state import TAKES_ASSIGNMENTS, MembershipState
from rejoin.client.core.group.streams import statuses
from rejoin.client.core.group.streams.state import LocalTasks, SentTasks, StreamsMembership
from rejoin.client.core.group.streams.tasks import (
    NO_TASKS,
    StreamsTasks,
    TaskId,
    by_subtopology,
    ids_of,
    offsets_of,
    tasks_of,
)
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.streams_members import StreamsTargetReceived
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from rejoin.protocol.streams.tasks import TaskOffset
from rejoin.protocol.streams.topology import StreamsKeyValue


def request(ctx: StepContext, member: StreamsMembership) -> StreamsGroupHeartbeatRequest:
    """Topology and process when it joins; tasks and offsets where they differ from what was last sent."""
    config, application = ctx.config, member.application
    joins = member.state is MembershipState.JOINING
    tasks, offsets, end_offsets = _news(ctx, member, joins=joins)
    return StreamsGroupHeartbeatRequest(
        group_id=ctx.group_id,
        member_id=member.member_id,
        member_epoch=member.epoch,
        endpoint_information_epoch=member.endpoint_epoch,
        instance_id=config.group_instance_id,
        rack_id=config.client_rack or None if joins else None,
        rebalance_timeout_ms=config.max_poll_interval_ms if joins else -1,
        topology=application.topology if joins else None,
        active_tasks=None if tasks is None else ids_of(tasks.active),
        standby_tasks=None if tasks is None else ids_of(tasks.standby),
        warmup_tasks=None if tasks is None else ids_of(tasks.warmup),
        process_id=application.process_id if joins else None,
        user_endpoint=application.endpoint if joins else None,
        client_tags=_tags(application.tags) if joins else None,
        task_offsets=offsets,
        task_end_offsets=end_offsets,
        shutdown_application=member.wants_shutdown,
    )


def _tags(tags: Mapping[str, str]) -> tuple[StreamsKeyValue, ...]:
    return tuple(StreamsKeyValue(key=key, value=value) for key, value in tags.items())


def _news(ctx: StepContext, member: StreamsMembership, *, joins: bool) -> SentTasks:
    """Tasks and offsets that the coordinator does not know yet. They count as sent from now on.

    A leave has none. The first heartbeat after a join names the tasks, even if there are none.
    """
    if member.state is MembershipState.LEAVING:
        return SentTasks()
    running = NO_TASKS if joins else member.tasks_current.tasks.running()
    # A join is answered with tasks of another epoch: it does not count as having named any.
    before = SentTasks() if joins else member.sent_tasks
    names_tasks = joins or before.tasks != running
    if not (names_tasks or ctx.now >= member.offsets_due_at or member.is_warmup_near):
        return SentTasks()
    offsets, end_offsets = _reported(member, member.offsets), _reported(member, member.end_offsets)
    member.sent_tasks = SentTasks(None if joins else running, offsets, end_offsets)
    member.offsets_due_at = ctx.now + member.task_offset_interval_ms
    return SentTasks(
        running if names_tasks else None,
        offsets if offsets != before.offsets else None,
        end_offsets if end_offsets != before.end_offsets else None,
    )


def _reported(member: StreamsMembership, offsets: Mapping[TaskId, int]) -> tuple[TaskOffset, ...]:
    return offsets_of(offsets.items())


# -- responses


def take_response(
    state: ConsumerState, ctx: StepContext, member: StreamsMembership, response: StreamsGroupHeartbeatResponse
) -> None:
    """The group's conditions, and what this member should have now."""
    member.endpoint_epoch = response.endpoint_information_epoch
    if response.partitions_by_user_endpoint is not None:
        member.endpoints = response.partitions_by_user_endpoint
    member.task_offset_interval_ms = response.task_offset_interval_ms
    member.acceptable_recovery_lag = response.acceptable_recovery_lag
    member.offsets_due_at = min(member.offsets_due_at, ctx.now + response.task_offset_interval_ms)
    statuses.take(state, ctx, member, response.status or ())
    if member.state in TAKES_ASSIGNMENTS:
        _take_target(state, ctx, member, response)


def _take_target(
    state: ConsumerState, ctx: StepContext, member: StreamsMembership, response: StreamsGroupHeartbeatResponse
) -> None:
    tasks = member.tasks_target.tasks
    if response.active_tasks is not None:
        tasks = StreamsTasks(
            tasks_of(response.active_tasks),
            tasks_of(response.standby_tasks or ()),
            tasks_of(response.warmup_tasks or ()),
        )
    unknown = {task.subtopology for kind in tasks for task in kind if member.application.topics_of(task[0]) is None}
    if unknown:
        transitions.fail(state, statuses.unknown_subtopologies(unknown))
        return
    is_ready = statuses.is_group_ready(member)
    if member.tasks_target.epoch < 0 or member.tasks_target[1:] != (tasks, is_ready):
        member.tasks_target = LocalTasks(member.tasks_target.epoch + 1, tasks, is_ready)
        member.target_received_at = ctx.now
        ctx.emit(
            StreamsTargetReceived(
                active=by_subtopology(tasks.active),
                standby=by_subtopology(tasks.standby),
                warmup=by_subtopology(tasks.warmup),
                is_group_ready=is_ready,
                **membership.identity(state, ctx),
            )
        )
    transitions.follow_target(member)
