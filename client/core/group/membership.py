"""This consumer's membership: asking for a rejoin, forgetting the generation, leaving the group.

Always true: resetting the generation also asks for a rejoin.

Source: Kafka's AbstractCoordinator.
"""

from __future__ import annotations

from typing import Any

from rejoin.client.core import requests
from rejoin.client.core.errors import FencedInstanceIdError, KafkaError
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.inputs import Processed
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.membership import NO_GENERATION, Generation, MemberState
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.client import GroupLeft, MembershipReset, Range, RecordsProcessed, RejoinRequested
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.registry import LEAVE_GROUP

POLL_TIMEOUT_REASON = "consumer poll timeout has expired."
CLOSED_REASON = "the consumer is being closed"
UNSUBSCRIBED_REASON = "the consumer unsubscribed from all topics"
LEAVING_REASON = "consumer pro-actively leaving the group"


def identity(state: ConsumerState, ctx: StepContext) -> dict[str, Any]:
    """The member's identity, as events carry it."""
    generation = state.generation
    return {**ctx.identity, "member_id": generation.member_id, "generation": generation.generation_id}


def emit_processed(state: ConsumerState, ctx: StepContext, what: Processed) -> None:
    """Emit an event that the user is done with records."""
    if what.ranges:
        ranges = [
            Range(topic=topic, partition=partition, start=start, end=end)
            for topic, partition, start, end in what.ranges
        ]
        ctx.emit(RecordsProcessed(ranges=ranges, **identity(state, ctx)))


def fetcher(state: ConsumerState) -> Generation:
    """Who asks for committed offsets: a member of a consumer group says so, others do not."""
    # Kafka: CommitRequestManager.OffsetFetchRequestState.
    generation = state.stable_generation
    return NO_GENERATION if state.membership is None or generation is None else generation


def fenced_error(ctx: StepContext) -> FencedInstanceIdError:
    return FencedInstanceIdError(f"another consumer joined as group.instance.id {ctx.config.group_instance_id}")


# -- asking for a rejoin, and forgetting


def request_rejoin(state: ConsumerState, ctx: StepContext, reason: str) -> None:
    """Join again at the next poll, and give the coordinator this reason."""
    state.rejoin_needed = True
    state.rejoin_reason = reason
    ctx.emit(RejoinRequested(reason=reason, **identity(state, ctx)))


def request_rejoin_unless_asked(state: ConsumerState, ctx: StepContext, reason: str) -> None:
    if not state.rejoin_needed:
        request_rejoin(state, ctx, reason)


def reset(state: ConsumerState, ctx: StepContext, reason: str, *, keep_member_id: bool = False) -> None:
    """Forget the generation, and the member id unless it may still be good; rejoin at the next poll."""
    before = identity(state, ctx)
    state.member_state = MemberState.UNJOINED
    member_id = state.generation.member_id if keep_member_id else ""
    state.generation = Generation(-1, member_id, None)
    ctx.emit(MembershipReset(reason=reason, member_id_kept=keep_member_id, **before))
    request_rejoin(state, ctx, reason)
    state.needs_prepare = True


def reset_on_error(state: ConsumerState, ctx: StepContext, api: str, error: ErrorCode) -> None:
    """Reset because of an answer; an illegal generation keeps the member id, which may still be good."""
    # Kafka: resetStateOnResponseError.
    reason = f"encountered {error.name} from {api} response"
    reset(state, ctx, reason, keep_member_id=error is ErrorCode.ILLEGAL_GENERATION)


# -- leaving


def leave(state: ConsumerState, ctx: StepContext, reason: str) -> None:
    """Give up the membership. A static member leaves silently: the coordinator keeps it until the session ends."""
    # Kafka: maybeLeaveGroup. Sent once, never repeated.
    generation = state.generation
    sends = (
        not ctx.config.is_static
        and state.coordinator is not None
        and state.member_state is not MemberState.UNJOINED
        and bool(generation.member_id)
    )
    if generation.member_id:
        ctx.emit(GroupLeft(reason=reason, notified=sends, **identity(state, ctx)))
    if sends:
        request = requests.leave_group(ctx.group_id, generation.member_id, reason, ctx.version(LEAVE_GROUP))
        send(state, ctx, request, _left, _leave_failed, to=state.coordinator, generation=generation)
    reset(state, ctx, LEAVING_REASON)


def _left(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    """Nothing follows from the answer: the membership ended when the request was sent."""


def _leave_failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    """Nothing follows from a failure: the coordinator will end the session in time."""
