"""Stands between whoever asks and the runtime, and does to requests what the rules say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.faults import Fault, Faults
from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.coordinator.service.runtime import Runtime, Ticket, Unanswered
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.transcript.recording import Interception, Recorder


@dataclass(frozen=True, slots=True)
class Passed:
    """A latency that is over."""

    fault_id: str
    at: Millis


class HeldTicket(Ticket):
    """Someone who waits for the gate rather than for the core."""

    __slots__ = ("_serve",)

    def __init__(self, serve: Callable[[], Awaitable[Response | None]]) -> None:
        super().__init__()
        self._serve = serve

    async def answer(self) -> Response | None:
        return await self._serve()


class Gate:
    """Every request comes through here. Without rules it only keeps the clock up to date."""

    def __init__(self, runtime: Runtime, clock: VirtualClock, faults: Faults, recorder: Recorder) -> None:
        self._runtime = runtime
        self._clock = clock
        self._faults = faults
        self._recorder = recorder
        self._holding: set[asyncio.Future[None]] = set()
        self._sleeping = 0
        self._stopped = False
        self.passed: list[Passed] = []
        """Latencies that ended since somebody last looked."""

    def submit(self, request: Request, who: Context) -> Ticket:
        """Hand in a request, unless a rule has other plans for it."""
        self._clock.catch_up()
        fault = self._faults.strike(request, who, self._runtime.broker.node_id)
        if fault is None:
            return self._runtime.submit(request, who)
        rule = fault.rule
        latency_ms = fault.latency_ms()
        if rule.effective_when == "before" and not latency_ms and not self._waits(fault):
            ticket = Ticket()
            ticket.response = self._refused(fault, request, who)
            return ticket
        applied = None
        if rule.effective_when in {"after", "drop_response"}:
            # At once, and whatever becomes of whoever asked: that is what an answer that is lost means.
            applied = self._runtime.submit(request, who)
        return HeldTicket(lambda: self._serve(fault, request, who, latency_ms, applied))

    def stop(self) -> None:
        """Hold nothing and nobody any more; what is held gets no answer."""
        self._stopped = True
        self.drop_held()

    def drop_held(self) -> None:
        """Leave everything that is held without an answer."""
        for future in self._holding:
            if not future.done():
                future.set_exception(Unanswered())

    @property
    def is_holding_for_a_while(self) -> bool:
        """Whether a latency has yet to pass."""
        return self._sleeping > 0

    @staticmethod
    def _waits(fault: Fault) -> bool:
        return fault.rule.pause and not fault.released

    async def _serve(
        self, fault: Fault, request: Request, who: Context, latency_ms: Millis, applied: Ticket | None
    ) -> Response | None:
        when = fault.rule.effective_when
        response = await applied.answer() if applied is not None else None
        await self._hold(fault, latency_ms)
        if when == "delay":
            self._clock.catch_up()
            return await self._runtime.submit(request, who).answer()
        if when in {"drop_request", "drop_response"}:
            self._note(fault, request, who, None)
            raise Unanswered
        if fault.rule.error is None:
            return response
        return self._refused(fault, request, who)

    def _refused(self, fault: Fault, request: Request, who: Context) -> Response:
        error = fault.rule.error
        assert error is not None, "only a rule with an error refuses"
        self._note(fault, request, who, error)
        return request.error_response(who.api_version, error)

    def _note(self, fault: Fault, request: Request, who: Context, error: ErrorCode | None) -> None:
        when = fault.rule.effective_when.replace("_", " ")
        name = error.name if error is not None else ""
        text = f"{when}, {name}" if name else when
        self._recorder.add(self._clock.now(), Interception(request, who, name, f"fault {fault.id}: {text}"), [])

    async def _hold(self, fault: Fault, latency_ms: Millis) -> None:
        if self._stopped:
            raise Unanswered
        fault.held += 1
        try:
            if self._waits(fault):
                await self._until(fault.at_barrier())
            if latency_ms:
                await self._sleep(fault, latency_ms)
        finally:
            fault.held -= 1

    async def _sleep(self, fault: Fault, latency_ms: Millis) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        when = self._clock.now() + latency_ms

        def over() -> None:
            if not future.done():
                self.passed.append(Passed(fault.id, when))
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
