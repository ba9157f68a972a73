"""Stands between the clients and the runtime, and does to requests what the rules say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from rejoin.coordinator.control.access.principals import GivenPrincipals
from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.fault_injection.faults import Fault, Faults, SomeEntries
from rejoin.coordinator.control.fault_injection.faulty_delivery import FaultyDelivery, with_wrong_value
from rejoin.coordinator.control.fault_injection.interceptions import interception
from rejoin.coordinator.control.node_interface import RequestTarget
from rejoin.coordinator.core.inputs import Context, FetchWaited, Millis
from rejoin.coordinator.pending_reply import Delivery, NoReply, OnAnswer, PendingReply
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.records.fetch import FetchRequest
from rejoin.transcript.steps import StepRecorder

AnswerGate: TypeAlias = Callable[[PendingReply, Request, Context], PendingReply]
"""Takes a reply that is pending, and returns one that comes when the gate lets it."""


@dataclass(frozen=True, slots=True)
class LatencyEnd:
    """The end of a latency."""

    fault_id: str
    at: Millis


class _Asked(NamedTuple):
    """A request that a fault applies to, at a broker; to all of it, or to some entries."""

    runtime: Any
    request: Request
    context: Context
    entries: SomeEntries | None


class HeldReply(PendingReply):
    """A reply that a fault holds up."""

    def __init__(self, serve: Callable[[], Awaitable[Response | None]], delivery: Delivery | None) -> None:
        self._serve = serve
        self._delivery = delivery

    @property
    def delivery(self) -> Delivery | None:
        return self._delivery

    async def answer(self) -> Response | None:
        return await self._serve()

    def when_answered(self, on_answer: OnAnswer) -> None:
        def served(task: asyncio.Task[Response | None]) -> None:
            # Without a reply the connection ends, whatever the reason.
            lost = task.cancelled() or isinstance(task.exception(), NoReply)
            on_answer(None if lost else task.result())

        self._task = asyncio.ensure_future(self.answer())
        self._task.add_done_callback(served)


class FaultInjector:
    """Every request passes it. Without rules it only keeps the clock up to date."""

    def __init__(
        self, clock: VirtualClock, faults: Faults, recorder: StepRecorder, principals: GivenPrincipals
    ) -> None:
        self._clock = clock
        self._faults = faults
        self._recorder = recorder
        self._principals = principals
        self._holding: set[asyncio.Future[None]] = set()
        self._sleeping = 0
        self._stopped = False
        self.ended_latencies: list[LatencyEnd] = []
        """Latencies that ended since they were last looked at and cleared."""

        self.answer_gate: AnswerGate | None = None
        """Decides when each answer goes to its client, whatever the rules did to it."""

    def submit_to(self, runtime: RequestTarget, request: Request, context: Context) -> PendingReply:
        """Hand in a request at a broker, unless a rule says otherwise."""
        pending = self._submit_by_rules(runtime, request, context)
        return pending if self.answer_gate is None else self.answer_gate(pending, request, context)

    def _submit_by_rules(self, runtime: RequestTarget, request: Request, context: Context) -> PendingReply:
        self._clock.catch_up()
        context = self._principals.applied(context)
        match = self._faults.match(request, context, runtime.broker.node_id, runtime.node.topic_named)
        if match is None:
            return self._submit(runtime, request, context)
        fault, entries = match
        rule = fault.rule
        latency_ms = fault.latency_ms()
        delivery = FaultyDelivery(rule, partial(self._pace, fault)) if rule.is_delivered_faultily else None
        if isinstance(request, FetchRequest) and entries is not None and rule.effective_when != "after":
            # A Fetch changes nothing, and its session is one: all of it is read, and with an error at once.
            entries = entries._replace(chosen=request, rest=request.model_copy(update={"max_wait_ms": 0}))
            entries = entries if rule.effective_when == "before" else None
        is_at_once = not latency_ms and not self._waits(fault) and delivery is None and rule.throttle_ms is None
        if rule.effective_when == "before" and is_at_once and entries is None:
            pending = PendingReply()
            pending.response = self._refused(fault, request, context)
            return pending
        applied = None
        if rule.effective_when in {"after", "drop_response"}:
            # At once, even if the client goes away: a lost answer means that the request was applied.
            applied = self._submit(runtime, request, context)
        elif entries is not None:
            applied = self._submit(runtime, entries.rest, context)
            applied.is_of_client = False
        asked = _Asked(runtime, request, context, entries)
        return HeldReply(lambda: self._serve(fault, asked, latency_ms, applied), delivery)

    def _submit(self, runtime: RequestTarget, request: Request, context: Context) -> PendingReply:
        """Hand in a request. Where time stands still, a Fetch waits by the machine's clock, as its client expects."""
        pending = runtime.submit(request, context)
        pending.is_of_client = True
        if isinstance(request, FetchRequest) and pending.response is None and self._clock.kind == "virtual":
            seconds = request.max_wait_ms / 1_000
            asyncio.get_running_loop().call_later(seconds, self._end_wait, runtime, pending)
        return pending

    def _end_wait(self, runtime: RequestTarget, pending: PendingReply) -> None:
        if not self._stopped and pending.response is None and not pending.failed:
            self._clock.catch_up()
            runtime.hand_in(FetchWaited(pending))

    def stop(self) -> None:
        """Hold nothing any more; what is held gets no answer."""
        self._stopped = True
        self.drop_held()

    def drop_held(self) -> None:
        """Leave everything that is held without an answer."""
        for future in self._holding:
            if not future.done():
                future.set_exception(NoReply())

    @property
    def has_applied_rules(self) -> bool:
        """Whether a rule was ever applied."""
        return any(fault.hits for fault in self._faults.all())

    @property
    def is_holding_latencies(self) -> bool:
        """Whether a latency has yet to pass."""
        return self._sleeping > 0

    @staticmethod
    def _waits(fault: Fault) -> bool:
        return fault.rule.pause and not fault.released

    async def _serve(
        self, fault: Fault, asked: _Asked, latency_ms: Millis, applied: PendingReply | None
    ) -> Response | None:
        rule, when, entries = fault.rule, fault.rule.effective_when, asked.entries
        response = await applied.answer() if applied is not None else None
        await self._hold(fault, latency_ms)
        if when == "delay":
            response = await self._delayed(asked, response)
        if when in {"drop_request", "drop_response"}:
            self._note(fault, asked, None)
            raise NoReply
        if rule.wrong is not None and response is not None:
            right = response if entries is None else entries.selection.only(response)
            changed = with_wrong_value(rule.wrong, asked.request, right, self._recorder)
            response = changed if entries is None else entries.selection.replaced(response, changed)
        if rule.error is not None and response is not None and entries is not None:
            response = entries.selection.failed(response, rule.error)
        elif rule.error is not None and (entries is None or response is not None):
            response = asked.request.error_response(asked.context.api_version, rule.error)
        if rule.throttle_ms is not None and response is not None:
            response = response.model_copy(update={"throttle_time_ms": rule.throttle_ms})
        is_changed = rule.error is not None or rule.throttle_ms is not None or entries is not None
        if is_changed or rule.wrong is not None or rule.cut_after_bytes is not None:
            self._note(fault, asked, response if is_changed else None)
        return response

    async def _delayed(self, asked: _Asked, of_others: Response | None) -> Response | None:
        """Carry out what was delayed; the answer has the other entries, too, which did not wait."""
        self._clock.catch_up()
        if asked.entries is None:
            return await self._submit(asked.runtime, asked.request, asked.context).answer()
        pending = self._submit(asked.runtime, asked.entries.chosen, asked.context)
        pending.is_of_client = False
        response = await pending.answer()
        if response is None or of_others is None:
            return response
        return asked.entries.selection.replaced(of_others, response)

    def _refused(self, fault: Fault, request: Request, context: Context) -> Response:
        error = fault.rule.error
        assert error is not None, "only a rule with an error refuses"
        response = request.error_response(context.api_version, error)
        self._note(fault, _Asked(None, request, context, None), response)
        return response

    def _note(self, fault: Fault, asked: _Asked, response: Response | None) -> None:
        of_some = asked.entries is not None
        what = interception(fault, asked.request, asked.context, response, of_some=of_some)
        self._recorder.add(self._clock.now(), what, [])

    async def _hold(self, fault: Fault, latency_ms: Millis) -> None:
        if self._stopped:
            raise NoReply
        fault.held += 1
        try:
            if self._waits(fault):
                await self._until(fault.at_barrier())
            if latency_ms:
                await self._sleep(fault, latency_ms)
        finally:
            fault.held -= 1

    async def _pace(self, fault: Fault, wait_ms: Millis) -> None:
        """Wait between two pieces of an answer."""
        if self._stopped:
            raise NoReply
        fault.held += 1
        try:
            await self._sleep(fault, wait_ms)
        finally:
            fault.held -= 1

    async def _sleep(self, fault: Fault, latency_ms: Millis) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        when = self._clock.now() + latency_ms

        def over() -> None:
            if not future.done():
                self.ended_latencies.append(LatencyEnd(fault.id, when))
                future.set_result(None)

        alarm = self._clock.call_at(when, over)
        self._sleeping += 1
        try:
            await self._until(future)
        finally:
            self._sleeping -= 1
            alarm.cancel()

    async def _until(self, future: asyncio.Future[None]) -> None:
        self._holding.add(future)
        try:
            await future
        finally:
            self._holding.discard(future)
