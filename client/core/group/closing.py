"""Unsubscribing and closing: the order of commit, revocation and the request to the group.

Source: Kafka's ConsumerCoordinator.close, onLeavePrepare and ClassicKafkaConsumer.unsubscribe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rejoin.client.config import CLOSE_TIMEOUT_MS
from rejoin.client.core.effects import CallbackKind, CallDone
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.fetch import fetcher
from rejoin.client.core.group import join_loop, listener, lookup, membership
from rejoin.client.core.group.consumer import heartbeats, transitions
from rejoin.client.core.in_flight_requests import cancel
from rejoin.client.core.inputs import Closed, Token
from rejoin.client.core.offsets import commits
from rejoin.client.core.state.consumer import ClosePhase, ConsumerState
from rejoin.client.core.state.membership import NO_GENERATION
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.client import ConsumerClosed

_Then: TypeAlias = Callable[[KafkaError | None], None]

# -- unsubscribe


def unsubscribe(state: ConsumerState, ctx: StepContext, token: Token) -> None:
    """Revoke all partitions, leave the group, stop reading. Nothing is committed."""

    def left(error: KafkaError | None) -> None:
        state.subscription.unsubscribe()
        ctx.emit(CallDone(token, error))

    if state.membership is not None:
        transitions.leave(state, ctx, membership.UNSUBSCRIBED_REASON, left)
        return

    def given_up(error: KafkaError | None) -> None:
        if error is None:
            if ctx.config.group_id is not None:
                membership.leave(state, ctx, membership.UNSUBSCRIBED_REASON)
            state.subscription.unsubscribe()
        # Kafka: when the listener raises, the consumer stays in the group, without partitions.
        ctx.emit(CallDone(token, error))

    _give_up_all(state, ctx, given_up)


def _give_up_all(state: ConsumerState, ctx: StepContext, then: _Then) -> None:
    owned = state.subscription.owned()
    if not state.subscription.automatic or not owned:
        then(None)
        return
    generation = state.generation
    no_member = generation.generation_id == NO_GENERATION.generation_id or not generation.member_id
    kind: CallbackKind = "lost" if no_member or state.rebalancing else "revoked"

    def called(error: BaseException | None) -> None:
        state.subscription.assign(())
        join_loop.emit_given_up(state, ctx, kind, owned)
        if error is not None:
            join_loop.emit_listener_failed(state, ctx, kind, error)
        then(None if error is None else listener.raised_by_listener(error))

    listener.call(state, ctx, kind, owned, called)


# -- close


def close(state: ConsumerState, ctx: StepContext, asked: Closed) -> None:
    """Begin to close; :func:`advance` goes on with it."""
    timeout = CLOSE_TIMEOUT_MS if asked.timeout_ms is None else asked.timeout_ms
    closing = state.closing
    closing.token = asked.token
    closing.leave = asked.leave and ctx.config.internal_leave_group_on_close
    closing.until = ctx.now + min(timeout, ctx.config.request_timeout_ms)
    closing.phase = ClosePhase.COMMITTING

    def committed(_: KafkaError | None) -> None:
        # Kafka: as with every automatic commit, a failure is an event and is not raised.
        closing.phase = ClosePhase.AWAITING_ASYNC

    if ctx.config.group_id is None:
        closing.phase = ClosePhase.AWAITING_ANSWERS
    elif ctx.config.enable_auto_commit and asked.leave:
        commits.wait_for(state, ctx, "close", state.subscription.consumed(), closing.until - ctx.now, committed)
    else:
        committed(None)


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Go on closing as far as possible."""
    closing = state.closing
    expired = ctx.now >= closing.until
    if closing.phase is ClosePhase.AWAITING_ASYNC and not state.in_listener:
        if state.lookup.callbacks and not expired:
            ctx.wake(closing.until)
            lookup.ensure(state, ctx)
        else:
            _stop(state, ctx)
    if closing.phase is ClosePhase.AWAITING_ANSWERS:
        sent_to = [request.to for request in state.requests.in_flight.values()]
        waits = any(to is not None and to.is_coordinator for to in sent_to)
        if waits and not expired:
            ctx.wake(closing.until)
        else:
            _end(state, ctx)


def _stop(state: ConsumerState, ctx: StepContext) -> None:
    closing = state.closing
    closing.phase = ClosePhase.GIVING_UP
    state.heartbeat.enabled = False
    if state.membership is not None:

        def left(error: KafkaError | None) -> None:
            state.subscription.unsubscribe()
            closing.error = error
            closing.phase = ClosePhase.AWAITING_ANSWERS
            heartbeats.advance(state, ctx)

        transitions.leave(state, ctx, membership.CLOSED_REASON, left, stays=not closing.leave)
        return
    if not closing.leave:
        closing.phase = ClosePhase.AWAITING_ANSWERS
        return

    def given_up(error: KafkaError | None) -> None:
        closing.error = error
        if error is None:
            # Kafka: a listener that raises here also prevents the LeaveGroup.
            membership.leave(state, ctx, membership.CLOSED_REASON)
        closing.phase = ClosePhase.AWAITING_ANSWERS

    _give_up_all(state, ctx, given_up)


def _end(state: ConsumerState, ctx: StepContext) -> None:
    closing = state.closing
    closing.phase = ClosePhase.CLOSED
    try:
        commits.run_completed(state, ctx)
    except KafkaError as error:
        closing.error = closing.error or error
    fetcher.close_sessions(state, ctx)
    for request_id in list(state.requests.in_flight):
        cancel(state, ctx, request_id)
    ctx.emit(ConsumerClosed(**ctx.identity))
    ctx.emit(CallDone(closing.token, closing.error))
