"""Times of requests: how long the node has worked on each one, and the throttle that follows from it.

Work is counted, waiting is not: a parked request costs what its handler took. A node runs requests on one thread, so
its client's ``request_percentage`` is a part of that thread. Nothing is measured while no entity has such a quota.

Kafka: ClientRequestQuotaManager, RequestHandlerHelper. Differs: Kafka's network threads count as well, with the time
that they read requests and write answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from rejoin.coordinator.core.effects import Reply
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.fields import has_throttle
from rejoin.protocol.message import Request
from rejoin.protocol.registry import BY_REQUEST, FETCH, PRODUCE, WRITE_TXN_MARKERS

if TYPE_CHECKING:
    from rejoin.protocol.messages.records.fetch import FetchRequest
    from rejoin.protocol.messages.records.produce import ProduceRequest

_MILLIS: Final = 1_000

_Handler: TypeAlias = Callable[[Token, Any, Context], None]


class _Work:
    """Work on one request that is not answered yet."""

    __slots__ = ("context", "took_ms")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.took_ms = 0.0


class RequestTimes:
    """Work on requests that are not answered yet. Each is counted with its answer."""

    def __init__(self, ctx: StepContext, rates: ClientRates) -> None:
        self._ctx = ctx
        self._rates = rates
        self._fixed_ms = ctx.settings.emulator_request_time_ms
        self.stopwatch: Callable[[], float] | None = None
        """Seconds of a steady clock; without one, requests take no time."""
        self.unanswered: dict[Token, _Work] = {}
        self._current: _Work | None = None
        """The request that is worked on now."""
        self._began = 0.0

    def begin(self, token: Token, request: Request, context: Context) -> None:
        """Work on a request begins."""
        if is_exempt(request):
            return
        work = self.unanswered[token] = _Work(context)
        if self._fixed_ms is not None:
            work.took_ms = self._fixed_ms
        self._resume(work)

    def resume(self, token: Token) -> None:
        """Work on a part of a request begins."""
        work = self.unanswered.get(token)
        if work is not None:
            self._resume(work)

    def pause(self) -> None:
        """Work on the request ends for now."""
        work, self._current = self._current, None
        if work is not None and self.stopwatch is not None:
            work.took_ms += (self.stopwatch() - self._began) * _MILLIS

    def forget(self, token: Token) -> None:
        """A request whose handler failed does not count."""
        self._current = None
        self.unanswered.pop(token, None)

    def stop(self) -> None:
        """There is no quota any more."""
        self._current = None
        self.unanswered.clear()

    def answered(self, token: Token) -> Millis:
        """Count a request that is answered now; its connection is muted for as long as is returned."""
        work = self.unanswered.pop(token, None)
        if work is None:
            return 0
        if work is self._current:
            self.pause()
        return self._rates.worked(token, work.context, work.took_ms)

    def settle(self) -> None:
        """Count the requests that this step has answered, and put throttle times into their answers."""
        effects = self._ctx.effects
        for index, effect in enumerate(effects):
            if type(effect) is not Reply or effect.token not in self.unanswered:
                continue
            version = self.unanswered[effect.token].context.api_version
            throttle_ms = self.answered(effect.token)
            response: Any = effect.response
            if throttle_ms and has_throttle(type(effect.response), version) and response.throttle_time_ms < throttle_ms:
                effects[index] = Reply(effect.token, response.model_copy(update={"throttle_time_ms": throttle_ms}))

    def _resume(self, work: _Work) -> None:
        if self.stopwatch is not None and self._fixed_ms is None:
            self._current = work
            self._began = self.stopwatch()


class TimedHandlers:
    """Handlers whose work is counted."""

    def __init__(self, handlers: Mapping[type[Request], _Handler], times: RequestTimes) -> None:
        self._handlers = handlers
        self._times = times

    def __getitem__(self, request: type[Request]) -> _Handler:
        return self._handle

    def _handle(self, token: Token, request: Request, context: Context) -> None:
        times = self._times
        times.begin(token, request, context)
        try:
            self._handlers[type(request)](token, request, context)
        except BaseException:
            times.forget(token)
            raise
        times.pause()
        times.settle()


def is_exempt(request: Request) -> bool:
    """True for requests that count for no client: of other brokers, and a Produce that is not answered.

    Kafka: sendResponseExemptThrottle and sendNoOpResponseExemptThrottle in KafkaApis.
    """
    api = BY_REQUEST[type(request)]
    if api is PRODUCE:
        return cast("ProduceRequest", request).acks == 0
    if api is FETCH:
        return cast("FetchRequest", request).is_from_broker
    return api is WRITE_TXN_MARKERS
