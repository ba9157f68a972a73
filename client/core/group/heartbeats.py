"""Heartbeats: sent in COMPLETING_REBALANCE and STABLE only, and what their answers mean.

An answer counts against the generation at the time its request was sent.

Source: Kafka's AbstractCoordinator.HeartbeatThread and HeartbeatResponseHandler.
"""

from __future__ import annotations

from rejoin.client.core import requests
from rejoin.client.core.errors import CoordinatorGivenUpError, KafkaError
from rejoin.client.core.group import heartbeat_timers, lookup, membership
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.membership import MemberState
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.client import Fenced, HeartbeatFailed, PollTimeoutExceeded
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse


def poll_heartbeat(state: ConsumerState, ctx: StepContext) -> None:
    """The user polled: raise what stopped the heartbeats, else count the poll interval anew."""
    heartbeat = state.heartbeat
    if heartbeat.failure is not None:
        # Kafka: the failed thread is dropped; joining starts another.
        failure, heartbeat.failure = heartbeat.failure, None
        heartbeat.enabled = False
        raise failure
    heartbeat_timers.polled(state, ctx)


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """One round of Kafka's heartbeat thread, once heartbeats are enabled."""
    heartbeat, now = state.heartbeat, ctx.now
    if heartbeat.failure is not None:
        return
    if state.member_state is not MemberState.STABLE and state.member_state is not MemberState.COMPLETING_REBALANCE:
        heartbeat.enabled = False
        return
    if state.poll is not None and state.listener_done is None:
        # Kafka: each round of poll's own loop restarts the poll timer.
        heartbeat_timers.polled(state, ctx)
    if lookup.ensure(state, ctx) and now >= heartbeat.session_expires_at:
        # Kafka: the session is the coordinator's to end; we only stop believing in this coordinator.
        lookup.forget(state, ctx, "session timed out without receiving a heartbeat response")
        lookup.ensure(state, ctx)
    if state.coordinator is None:
        return
    if now >= heartbeat.poll_expires_at:
        _exceed_poll_interval(state, ctx)
        return
    if now >= heartbeat.due_at:
        _send(state, ctx)
    ctx.wake(min(heartbeat.due_at, heartbeat.session_expires_at, heartbeat.poll_expires_at))


def _exceed_poll_interval(state: ConsumerState, ctx: StepContext) -> None:
    interval = ctx.config.max_poll_interval_ms
    ctx.emit(PollTimeoutExceeded(max_poll_interval_ms=interval, **membership.identity(state, ctx)))
    membership.leave(state, ctx, membership.POLL_TIMEOUT_REASON)
    state.heartbeat.enabled = False


def _send(state: ConsumerState, ctx: StepContext) -> None:
    generation, request = state.generation, state.heartbeat.request
    if (
        request is None
        or request.generation_id != generation.generation_id
        or request.member_id != generation.member_id
    ):
        request = state.heartbeat.request = requests.heartbeat(ctx.config, ctx.group_id, generation)
    heartbeat_timers.sent(state, ctx)
    send(state, ctx, request, _answered, _failed, to=state.coordinator, generation=generation)


def _answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, HeartbeatResponse)
    error = response.error_code
    if error is ErrorCode.NONE:
        heartbeat_timers.answered(state, ctx)
        return
    unchanged = sent.generation == state.generation
    match reaction("Heartbeat", error):
        case Reaction.FORGET_COORDINATOR:
            _emit_failed(state, ctx, error.name)
            lookup.forget(state, ctx, f"error response {error.name}")
            heartbeat_timers.failed(state, ctx)
        case Reaction.REJOIN:
            if state.member_state is MemberState.STABLE:
                membership.request_rejoin(state, ctx, "group is already rebalancing")
            heartbeat_timers.answered(state, ctx)
        case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION if unchanged:
            _emit_failed(state, ctx, error.name)
            membership.reset_on_error(state, ctx, "HEARTBEAT", error)
            heartbeat_timers.failed(state, ctx)
        case Reaction.FENCED if unchanged:
            ctx.emit(Fenced(api=sent.api.name, **membership.identity(state, ctx)))
            membership.reset_on_error(state, ctx, "HEARTBEAT", ErrorCode.FENCED_INSTANCE_ID)
            state.heartbeat.failure = membership.fenced_error(ctx)
        case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION | Reaction.FENCED:
            # About a membership that is over: the answer is good news about the coordinator and nothing else.
            heartbeat_timers.answered(state, ctx)
        case _:
            _emit_failed(state, ctx, error.name)
            heartbeat_timers.failed(state, ctx)


def _failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    # Several can be in flight, one an interval. That the coordinator was lost, and why, has been emitted once already.
    if not isinstance(problem, CoordinatorGivenUpError):
        _emit_failed(state, ctx, str(problem))
    heartbeat_timers.failed(state, ctx)


def _emit_failed(state: ConsumerState, ctx: StepContext, problem: str) -> None:
    ctx.emit(HeartbeatFailed(problem=problem, **membership.identity(state, ctx)))
