"""The rounds of a member: in the background, and in the user's poll.

Source: Kafka's ConsumerMembershipManager.poll, onConsumerPoll.
"""

from __future__ import annotations

from rejoin.client.core.group import lookup
from rejoin.client.core.group.consumer import heartbeats, reconciliation, transitions
from rejoin.client.core.group.consumer.state import HAS_NO_GROUP, IS_LEAVING, MembershipState
from rejoin.client.core.group.streams import reconciliation as streams_reconciliation
from rejoin.client.core.group.streams import statuses
from rejoin.client.core.group.streams.state import StreamsMembership
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """The background: heartbeats and their consequences."""
    member = transitions.member_of(state)
    if not state.subscription.automatic and member.state is MembershipState.UNSUBSCRIBED:
        return
    if state.user_is_polling:
        _polled(state, ctx)
    else:
        transitions.expire_poll(state, ctx)
        if member.state not in HAS_NO_GROUP and member.state not in IS_LEAVING and state.coordinator is not None:
            ctx.wake(member.poll_expires_at)
    transitions.release_lost(state, ctx)
    if isinstance(member, StreamsMembership):
        statuses.expire(state, ctx, member)
        streams_reconciliation.advance(state, ctx, member)
    else:
        reconciliation.advance(state, ctx)
    heartbeats.advance(state, ctx)


def _polled(state: ConsumerState, ctx: StepContext) -> None:
    """The user polls: the interval counts anew, and a member that left for want of polls may come back."""
    member = transitions.member_of(state)
    member.poll_expires_at = ctx.now + ctx.config.max_poll_interval_ms
    member.is_poll_expired = False
    if member.is_subscription_new:
        member.is_subscription_new = False
        if member.state is MembershipState.UNSUBSCRIBED:
            transitions.join(state)


def is_stable(state: ConsumerState, ctx: StepContext) -> bool:
    """Whether a member has nothing to do but to send heartbeats, which say that it is there and nothing else."""
    member = transitions.member_of(state)
    return (
        member.state is MembershipState.STABLE
        and member.is_reconciled
        and member.request_id is None
        and member.attempts == member.retry_at == 0
        and member.failure is None
        and not member.is_subscription_new
        and state.reconciliation is None
        and state.listener_error is None
        and heartbeats.has_said_all(state, ctx)
    )


def raise_failure(state: ConsumerState, ctx: StepContext) -> None:
    """In a poll: raise errors of the listener or of the coordinator."""
    member = transitions.member_of(state)
    if state.listener_error is not None:
        error, state.listener_error = state.listener_error, None
        raise error
    if member.failure is not None:
        failure = member.failure
        if member.state is not MembershipState.FATAL:
            member.failure = None
        raise failure
    lookup.ensure_for_user(state, ctx)
