"""Taking over tasks: revoke active ones, assign all of the target, then acknowledge to the coordinator.

One assignment is taken over at a time, in polls. Standby and warm-up tasks are closed while the target is assigned,
without a call of their own.

Source: Kafka's StreamsMembershipManager.maybeReconcile.
"""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group import membership
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.handover import assign_partitions
from rejoin.client.core.group.consumer.state import MembershipState
from rejoin.client.core.group.streams.state import LocalTasks, StreamsMembership
from rejoin.client.core.group.streams.tasks import StreamsTasks, TaskId, by_subtopology
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.streams_members import StreamsTasksAssigned
from rejoin.protocol.types import TopicPartition


def advance(state: ConsumerState, ctx: StepContext, member: StreamsMembership) -> None:
    """Go on as far as possible."""
    if state.in_listener or state.listener_error is not None or not state.may_change_assignment:
        return
    if member.state is not MembershipState.RECONCILING or member.is_reconciled:
        return
    target, joins = member.tasks_target, member.joins
    kept = set(target.tasks.active)
    revoked = tuple(task for task in member.tasks_current.tasks.active if task not in kept)
    partitions = partitions_of(state, member, revoked)
    for each in partitions:
        if each in state.subscription.assignment:
            state.subscription.assignment[each].pending_revocation = True

    def done(error: KafkaError | None) -> None:
        if error is not None:
            state.listener_error = error
        elif _goes_on(member, joins):
            _assign(state, ctx, member, target)

    if revoked:
        transitions.give_up_some(state, ctx, "revoked", partitions, done, StreamsTasks(revoked))
    else:
        done(None)


def _goes_on(member: StreamsMembership, joins: int) -> bool:
    """False when the member has left the state it was in, or joined again meanwhile."""
    return member.state is MembershipState.RECONCILING and member.joins == joins


def _assign(state: ConsumerState, ctx: StepContext, member: StreamsMembership, target: LocalTasks) -> None:
    joins = member.joins

    def done(error: KafkaError | None) -> None:
        if error is not None:
            state.listener_error = error
        elif _goes_on(member, joins):
            member.tasks_current = target
            member.enter(MembershipState.ACKNOWLEDGING)
            ctx.emit(
                StreamsTasksAssigned(
                    active=by_subtopology(target.tasks.active),
                    standby=by_subtopology(target.tasks.standby),
                    warmup=by_subtopology(target.tasks.warmup),
                    **membership.identity(state, ctx),
                )
            )

    partitions = partitions_of(state, member, target.tasks.active)
    assign_partitions(state, ctx, partitions, done, target.tasks, is_group_ready=target.is_group_ready)


def partitions_of(state: ConsumerState, member: StreamsMembership, tasks: Iterable[TaskId]) -> list[TopicPartition]:
    """Partitions that tasks read: those of their number in each topic of their subtopology that has as many."""
    known = state.metadata.topics
    found = {
        TopicPartition(topic, task.partition)
        for task in tasks
        for topic in member.application.topics_of(task.subtopology) or ()
        if topic not in known or task.partition < known[topic].partitions
    }
    return sorted(found)
