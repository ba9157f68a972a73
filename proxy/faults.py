"""Faults: the rules of the control API, applied to requests on their way to a real cluster and to its answers.

Rules, their words and their order are those of ``rejoin serve --control``. An answer of ours has Kafka's form in the
version of the request; what a rule holds is held on this machine's clock, since a cluster has no other.
"""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any, Final

from rejoin.coordinator.control.fault_injection.fault_rules import FaultRule
from rejoin.coordinator.control.fault_injection.faults import Fault, Faults, SomeEntries
from rejoin.coordinator.control.fault_injection.faulty_delivery import FaultyDelivery, with_wrong_value
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_KEY, FETCH
from rejoin.protocol.wire.codec import Codec
from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.control.recording import ExchangeRecorder, context_of
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.frames import LENGTH_BYTES
from rejoin.proxy.side import MOST_KEPT_BYTES
from rejoin.transcript.steps import StepRecorder

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

SECONDS: Final = 1_000
"""Milliseconds in one."""


class AppliedFault:
    """A fault that was applied to one request: for all of it, or for some of its entries."""

    __slots__ = ("entries", "fault", "latency_ms", "request")

    def __init__(self, fault: Fault, request: Request, entries: SomeEntries | None) -> None:
        self.fault = fault
        self.request = request
        # An entry alone cannot be held or lost: the request is one frame.
        self.entries = entries if fault.rule.effective_when in ("before", "after") else None
        self.latency_ms = fault.latency_ms()

    @property
    def rule(self) -> FaultRule:
        """The rule."""
        return self.fault.rule

    @property
    def holds(self) -> bool:
        """Whether there is something to wait for."""
        return self.latency_ms > 0 or (self.rule.pause and not self.fault.released)


class ProxyFaults:
    """Decides what becomes of each request that a rule chooses. Without rules nothing is looked at."""

    def __init__(self, faults: Faults, recording: ExchangeRecorder | None = None) -> None:
        """With a ``recording``, what comes is recorded, and what rules do to it."""
        self.faults = faults
        self.recording = recording
        self.recorder = StepRecorder() if recording is None else recording.recorder
        self._tasks: set[asyncio.Task[None]] = set()
        self.topic_names: dict[str, str] = {} if recording is None else recording.topic_names
        """Names of topics by their ids, as Metadata has named them."""

    def may_take(self, exchange: ProxiedRequest) -> bool:
        """Whether a rule might choose a request of which only the header is known."""
        if exchange.plan.key not in BY_KEY or exchange.plan.codec is None:
            return False
        name = exchange.plan.name
        return any(fault.rule.keys is None or name in fault.rule.keys for fault in self.faults.active)

    def takes(self, relay: Relay, exchange: ProxiedRequest, frame: bytes) -> bool:
        """Apply the first rule that chooses the request; whether the request is in its hands now."""
        if self.recording is not None:
            self.recording.arrived(relay, exchange)
        if not self.faults.active or not self.may_take(exchange):
            return False
        codec = exchange.plan.codec
        assert codec is not None, "rules choose known forms only"
        try:
            request: Any = codec.read_request(frame, exchange.body_at)
        except SchemaError:
            return False
        context = context_of(relay, exchange)
        match = self.faults.match(request, context, relay.route.node_id, self.topic_names.get)
        if match is None:
            return False
        self._apply(relay, exchange, frame, AppliedFault(match.fault, request, match.entries))
        return True

    def _apply(self, relay: Relay, exchange: ProxiedRequest, frame: bytes, applied: AppliedFault) -> None:
        rule, when = applied.rule, applied.rule.effective_when
        if when in ("after", "drop_response"):
            exchange.fault = applied
            relay.client.forward(exchange, frame)
            return
        if when == "delay" and (rule.is_delivered_faultily or rule.throttle_ms is not None):
            exchange.fault = applied
        if applied.entries is not None:
            exchange.fault = applied
            # A Fetch changes nothing, and its session is one: the broker gets all of it.
            if exchange.plan.key != FETCH.key:
                frame = self._with_rest(exchange, applied.entries.rest)
        if applied.holds:
            relay.client.held = exchange
            relay.client.read_or_not()
            self._begin(self._held_request(relay, exchange, frame, applied))
        else:
            self._go_on(relay, exchange, frame, applied)

    async def _held_request(self, relay: Relay, exchange: ProxiedRequest, frame: bytes, applied: AppliedFault) -> None:
        """Hold a request, and what its client sends after it, in front of the broker."""
        await self._hold(applied.fault, applied.latency_ms)
        client = relay.client
        if client.transport is None:
            return
        client.held = None
        self._go_on(relay, exchange, frame, applied)
        client.go_on()

    def _go_on(self, relay: Relay, exchange: ProxiedRequest, frame: bytes, applied: AppliedFault) -> None:
        """Forward a request, answer it in the broker's place, or lose it."""
        rule, when = applied.rule, applied.rule.effective_when
        if when == "delay" or applied.entries is not None:
            relay.client.forward(exchange, frame)
            return
        # Kafka: a Produce with acks of 0 that fails ends its connection.
        if when == "drop_request" or not exchange.has_answer:
            self._note(relay, exchange, applied, None)
            relay.abort()
            return
        assert rule.error is not None, "only a rule with an error answers"
        response = applied.request.error_response(exchange.plan.version, rule.error)
        if rule.throttle_ms is not None:
            response = response.model_copy(update={"throttle_time_ms": rule.throttle_ms})
        self._note(relay, exchange, applied, response)
        answer = _codec(exchange).response_frame(exchange.correlation_id, response)
        exchange.is_forwarded = False
        exchange.answer = answer[LENGTH_BYTES:]
        relay.pending.append(exchange)
        if rule.is_delivered_faultily:
            relay.when_first(exchange, lambda: self._begin(self._delivered(relay, exchange, answer, applied)))
        else:
            exchange.ready = answer
            relay.settle()

    def _with_rest(self, exchange: ProxiedRequest, rest: Request) -> bytes:
        """The request without the entries that the rule takes."""
        codec = _codec(exchange)
        return codec.request_frame(exchange.correlation_id, exchange.client_id, rest)

    # --- answers

    def deliver(self, relay: Relay, exchange: ProxiedRequest, frame: bytes) -> None:
        """Deliver the broker's answer as the rule wants that has marked its request."""
        applied = exchange.fault
        assert isinstance(applied, AppliedFault), "only rules mark requests"
        exchange.is_forwarded = False
        if applied.rule.effective_when == "drop_response":
            self._note(relay, exchange, applied, None)
            relay.abort()
            return
        answer = self._changed(relay, exchange, relay.broker.for_client(exchange, frame), applied)
        exchange.answer = answer[LENGTH_BYTES:] if len(answer) <= MOST_KEPT_BYTES else b""
        if (applied.rule.effective_when == "after" and applied.holds) or applied.rule.is_delivered_faultily:
            self._begin(self._held_answer(relay, exchange, answer, applied))
        else:
            exchange.ready = answer
            relay.settle()

    async def _held_answer(self, relay: Relay, exchange: ProxiedRequest, answer: bytes, applied: AppliedFault) -> None:
        if applied.rule.effective_when == "after" and applied.holds:
            await self._hold(applied.fault, applied.latency_ms)
        if applied.rule.is_delivered_faultily:
            await self._delivered(relay, exchange, answer, applied)
        elif relay.client.transport is not None:
            exchange.ready = answer
            relay.settle()

    async def _delivered(self, relay: Relay, exchange: ProxiedRequest, answer: bytes, applied: AppliedFault) -> None:
        """Write an answer slowly, or cut it; all in front of it are written."""
        transport = relay.client.transport
        if transport is None:
            return

        async def sleep(wait_ms: int) -> None:
            await self._hold(applied.fault, wait_ms)

        goes_on = await FaultyDelivery(applied.rule, sleep).write(answer, transport)
        if goes_on and relay.client.transport is not None:
            exchange.ready = b""
            relay.settle()

    def _changed(self, relay: Relay, exchange: ProxiedRequest, frame: bytes, applied: AppliedFault) -> bytes:
        """The broker's answer as the rule changes it."""
        rule, entries = applied.rule, applied.entries
        changes = rule.error is not None or rule.throttle_ms is not None or entries is not None
        if not changes and rule.wrong is None and rule.cut_after_bytes is None:
            return frame
        codec = _codec(exchange)
        _, of_broker = codec.read_response_frame(frame[LENGTH_BYTES:])
        response = of_broker
        if rule.wrong is not None:
            right = response if entries is None else entries.selection.only(response)
            wrong = with_wrong_value(rule.wrong, applied.request, right, self.recorder)
            response = wrong if entries is None else entries.selection.replaced(response, wrong)
        if rule.error is not None:
            response = self._failed(exchange, applied, response, rule.error)
        if rule.throttle_ms is not None:
            response = response.model_copy(update={"throttle_time_ms": rule.throttle_ms})
        self._note(relay, exchange, applied, response if changes else None, of_broker)
        return frame if response is of_broker else codec.response_frame(exchange.correlation_id, response)

    def _note(
        self,
        relay: Relay,
        exchange: ProxiedRequest,
        applied: AppliedFault,
        response: Response | None,
        of_broker: Response | None = None,
    ) -> None:
        if self.recording is not None:
            some = applied.entries is not None
            now_ms = time() * SECONDS
            self.recording.intercepted(
                exchange, relay, applied.fault, now_ms, response=response, of_some=some, of_broker=of_broker
            )

    @staticmethod
    def _failed(exchange: ProxiedRequest, applied: AppliedFault, response: Response, error: ErrorCode) -> Response:
        if applied.entries is not None:
            failed: Response = applied.entries.selection.failed(response, error)
            return failed
        return applied.request.error_response(exchange.plan.version, error)

    # --- time

    async def _hold(self, fault: Fault, latency_ms: int) -> None:
        fault.held += 1
        try:
            if fault.rule.pause and not fault.released:
                await fault.at_barrier()
            if latency_ms:
                await asyncio.sleep(latency_ms / SECONDS)
        finally:
            fault.held -= 1

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Let go of all that is held; it gets no answer."""
        self.faults.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _codec(exchange: ProxiedRequest) -> Codec:
    codec = exchange.plan.codec
    assert codec is not None, "rules choose known forms only"
    return codec
