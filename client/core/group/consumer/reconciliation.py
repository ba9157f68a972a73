"""Adopting an assignment: commit, revoke, assign, then acknowledge to the coordinator.

One assignment is taken over at a time. What calls the listener waits for a poll of the user's.

Source: Kafka's AbstractMembershipManager.maybeReconcile, revokeAndAssign.
"""

from __future__ import annotations

from rejoin.client.core import metadata
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.handover import assign_partitions
from rejoin.client.core.group.consumer.state import ConsumerMembership, LocalAssignment, MembershipState
from rejoin.client.core.offsets import commits
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.membership import Reconciliation
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Go on as far as possible."""
    member = transitions.member_of(state)
    if state.in_listener or state.listener_error is not None:
        return
    running = state.reconciliation
    if running is None:
        if member.state is MembershipState.RECONCILING and not member.is_reconciled:
            _begin(state, ctx, member)
        running = state.reconciliation
    if running is not None and not running.committed and _is_committed(state, ctx, running):
        running.committed = True
        _revoke(state, ctx, running)


def _begin(state: ConsumerState, ctx: StepContext, member: ConsumerMembership) -> None:
    names = transitions.topic_names(state)
    known = {topic_id: found for topic_id, found in member.target.partitions.items() if topic_id in names}
    if len(known) < len(member.target.partitions):
        _look_up_the_rest(state, ctx)
    assignment = LocalAssignment(member.target.epoch, known)
    if member.current.epoch >= 0 and known == member.current.partitions:
        # Kafka: what can be resolved is there already; it is acknowledged, and the rest follows when it is known.
        # Differs: once. Kafka acknowledges it again with each answer, until the names are known.
        if member.current != assignment:
            member.current = assignment
            member.enter(MembershipState.ACKNOWLEDGING)
        return
    if not state.may_change_assignment:
        # Differs: Kafka takes over in the background what needs neither a commit nor the listener.
        return
    partitions = sorted(TopicPartition(names[topic_id], each) for topic_id in known for each in known[topic_id])
    revoked = [each for each in state.subscription.owned() if each not in set(partitions)]
    for each in revoked:
        state.subscription.assignment[each].pending_revocation = True
    member.topic_names |= {topic_id: names[topic_id] for topic_id in known}
    until = ctx.now + ctx.config.max_poll_interval_ms
    state.reconciliation = Reconciliation(assignment, partitions, revoked, member.joins, until)


def _look_up_the_rest(state: ConsumerState, ctx: StepContext) -> None:
    if state.metadata.update_requested:
        return
    if metadata.may_refresh(state, ctx):
        metadata.request_update(state)
    elif state.metadata.refreshed_at is not None:
        ctx.wake(state.metadata.refreshed_at + ctx.config.retry_backoff_ms)


def _is_committed(state: ConsumerState, ctx: StepContext, running: Reconciliation) -> bool:
    """True when the automatic commit is over, one way or another. A failure does not stop what follows."""
    if not ctx.config.enable_auto_commit or ctx.now >= running.until:
        return True
    if running.commit is None:
        if ctx.now < running.retry_at:
            ctx.wake(running.retry_at)
            return False
        running.commit = commits.commit_for_rebalance(state, ctx)
    if not running.commit.done:
        ctx.wake(running.until)
        return False
    error = running.commit.error
    if error is not None and error.retriable:
        running.commit = None
        running.retry_at = ctx.now + ctx.config.retry_backoff_ms
        ctx.wake(running.retry_at)
        return False
    return True


def _goes_on(state: ConsumerState, running: Reconciliation) -> bool:
    """False when the member has left the state it was in, or joined again meanwhile."""
    member = transitions.member_of(state)
    if member.state is MembershipState.RECONCILING and member.joins == running.joins:
        return True
    state.reconciliation = None
    return False


def _revoke(state: ConsumerState, ctx: StepContext, running: Reconciliation) -> None:
    if not _goes_on(state, running):
        return

    def revoked(error: KafkaError | None) -> None:
        if error is not None:
            _stop(state, error)
        elif _goes_on(state, running):
            _assign(state, ctx, running)

    transitions.give_up_some(state, ctx, "revoked", running.revoked, revoked)


def _assign(state: ConsumerState, ctx: StepContext, running: Reconciliation) -> None:
    def called(problem: KafkaError | None) -> None:
        if problem is not None:
            _stop(state, problem)
        elif _goes_on(state, running):
            _done(state, ctx, running)

    assign_partitions(state, ctx, running.partitions, called)


def _stop(state: ConsumerState, error: KafkaError) -> None:
    """The listener raised: nothing is acknowledged, and the next round begins anew."""
    state.reconciliation = None
    state.listener_error = error


def _done(state: ConsumerState, ctx: StepContext, running: Reconciliation) -> None:
    member = transitions.member_of(state)
    state.reconciliation = None
    member.current = running.assignment
    commits.restart_auto_timer(state, ctx)
    member.enter(MembershipState.ACKNOWLEDGING)
