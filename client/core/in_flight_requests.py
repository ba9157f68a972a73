"""Requests in flight: sent, answered, cancelled, or lost together with the coordinator.

Always true: for each request exactly one of its two handlers is called, unless it is cancelled.
"""

from __future__ import annotations

from rejoin.client.core.effects import Cancel, Endpoint, Send
from rejoin.client.core.errors import CoordinatorGivenUpError
from rejoin.client.core.state.consumer import ConsumerState, OnAnswer, OnFailure, RequestInFlight
from rejoin.client.core.state.membership import NO_GENERATION, Generation
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.message import Request
from rejoin.protocol.registry import BY_REQUEST


def send(
    state: ConsumerState,
    ctx: StepContext,
    request: Request,
    on_answer: OnAnswer,
    on_failure: OnFailure,
    *,
    to: Endpoint | None = None,
    generation: Generation = NO_GENERATION,
    timeout_ms: int | None = None,
    version: int | None = None,
) -> int:
    """Send a request to a node (``to``) or to any, and return its id."""
    api = BY_REQUEST[type(request)]
    requests = state.requests
    requests.last_id = request_id = requests.last_id + 1
    if version is None:
        version = ctx.version(api)
    requests.in_flight[request_id] = RequestInFlight(
        request_id, api, request, version, generation, ctx.now, to, on_answer, on_failure
    )
    timeout = ctx.config.request_timeout_ms if timeout_ms is None else timeout_ms
    ctx.emit(Send(request_id, to, request, version, timeout))
    return request_id


def cancel(state: ConsumerState, ctx: StepContext, request_id: int) -> None:
    """Forget a request; its handlers are not called."""
    if state.requests.in_flight.pop(request_id, None) is not None:
        ctx.emit(Cancel(request_id))


def drop_requests_to(state: ConsumerState, ctx: StepContext, to: Endpoint) -> None:
    """Give up on everything that waits for a coordinator; the handlers are called before the step ends."""
    for lost in [request for request in state.requests.in_flight.values() if request.to == to]:
        cancel(state, ctx, lost.request_id)
        state.requests.lost.append(lost)


def fail_lost_requests(state: ConsumerState, ctx: StepContext) -> bool:
    """Call the handlers of dropped requests; false when there were none."""
    if not state.requests.lost:
        return False
    lost, state.requests.lost = state.requests.lost, []
    for request in lost:
        problem = CoordinatorGivenUpError(f"{request.api.name}: the connection to the coordinator was given up")
        request.on_failure(state, ctx, request, problem)
    return True
