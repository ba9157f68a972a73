"""The group's coordinator: looked up when a request needs it, forgotten when it has moved.

Source: Kafka's AbstractCoordinator.ensureCoordinatorReady, FindCoordinatorResponseHandler, markCoordinatorUnknown.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoin.client.core import requests
from rejoin.client.core.effects import Disconnect, Endpoint
from rejoin.client.core.errors import (
    CodedError,
    CoordinatorNotAvailableError,
    DisconnectError,
    GroupAuthorizationError,
    KafkaError,
    UnexpectedError,
)
from rejoin.client.core.group import heartbeat_timers
from rejoin.client.core.in_flight_requests import drop_requests_to, send
from rejoin.client.core.inputs import Answered, Failed
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.client import CoordinatorFound, CoordinatorLost, CoordinatorNotFound
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.registry import FIND_COORDINATOR


def ensure(state: ConsumerState, ctx: StepContext) -> bool:
    """True when the coordinator is known; otherwise it is being looked up, or will be after a backoff."""
    if state.coordinator is not None:
        return True
    lookup = state.lookup
    if lookup.request_id is None:
        if ctx.now < lookup.retry_at:
            ctx.wake(lookup.retry_at)
        else:
            request = requests.find_coordinator(ctx.group_id, ctx.version(FIND_COORDINATOR))
            lookup.request_id = send(state, ctx, request, _answered, _failed)
    return False


def ensure_for_user(state: ConsumerState, ctx: StepContext) -> bool:
    """As :func:`ensure`, in a call of the user's: raises what made the last attempt fail for good."""
    lookup = state.lookup
    if state.coordinator is None and lookup.fatal_error is not None:
        fatal, lookup.fatal_error = lookup.fatal_error, None
        raise fatal
    return ensure(state, ctx)


def when_known(state: ConsumerState, ctx: StepContext, then: Callable[[KafkaError | None], None]) -> None:
    """Look the coordinator up once and say how that ended: no second attempt is made for this caller."""
    state.lookup.callbacks.append(then)
    ensure(state, ctx)


def forget(state: ConsumerState, ctx: StepContext, cause: str) -> None:
    """The coordinator has moved, or is gone: drop what waits for it."""
    if state.coordinator is None:
        return
    lost, state.coordinator = state.coordinator, None
    state.lookup.attempts = 0
    state.lookup.retry_at = 0
    ctx.emit(CoordinatorLost(cause=cause, **ctx.identity))
    # Kafka: markCoordinatorUnknown disconnects, which fails whatever is in flight on that connection.
    drop_requests_to(state, ctx, lost)
    ctx.emit(Disconnect(lost))


def take_response(state: ConsumerState, ctx: StepContext, what: Answered | Failed) -> None:
    """Call the handler of the request that was answered or failed. A lost connection also loses the coordinator."""
    sent = state.requests.in_flight.pop(what.request_id, None)
    if sent is None:
        return  # Cancelled.
    if isinstance(what, Answered):
        sent.on_answer(state, ctx, sent, what.response)
        return
    if sent.to is not None and sent.to == state.coordinator:
        # Kafka: CoordinatorResponseHandler.onFailure. A timeout disconnects as well.
        forget(state, ctx, what.failure.value)
    sent.on_failure(state, ctx, sent, DisconnectError(f"{sent.api.name}: {what.detail or what.failure.value}"))


def not_available() -> CoordinatorNotAvailableError:
    """The error of a request while the coordinator is unknown."""
    return CoordinatorNotAvailableError("the coordinator is not known")


def _answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, FindCoordinatorResponse)
    found = requests.coordinator_found(response, ctx.group_id, sent.version)
    if found.error_code is not ErrorCode.NONE:
        _failed(state, ctx, sent, _problem(ctx, found.error_code))
        return
    lookup = state.lookup
    lookup.request_id = None
    lookup.attempts = 0
    lookup.fatal_error = None
    state.coordinator = Endpoint(found.node_id, found.host, found.port, is_coordinator=True)
    heartbeat_timers.restart_session(state, ctx)
    ctx.emit(CoordinatorFound(node_id=found.node_id, host=found.host, port=found.port, **ctx.identity))
    _ended(state, None)


def _problem(ctx: StepContext, error: ErrorCode) -> KafkaError:
    if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return GroupAuthorizationError(f"not authorized for group {ctx.group_id}")
    match reaction("FindCoordinator", error):
        case Reaction.BACK_OFF | Reaction.RAISE:
            return CodedError(error)
        case _:
            return UnexpectedError("FindCoordinator", error)


def _failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    lookup = state.lookup
    lookup.request_id = None
    if not problem.retriable:
        # Kafka: fatalFindCoordinatorException, so that the user's thread raises it whichever thread asked.
        lookup.fatal_error = problem
    lookup.retry_at = ctx.now + ctx.backoff(lookup.attempts)
    lookup.attempts += 1
    if lookup.attempts & (lookup.attempts - 1) == 0:
        ctx.emit(CoordinatorNotFound(attempts=lookup.attempts, problem=str(problem), **ctx.identity))
    _ended(state, problem)


def _ended(state: ConsumerState, problem: KafkaError | None) -> None:
    callbacks, state.lookup.callbacks = state.lookup.callbacks, []
    for then in callbacks:
        then(problem)
