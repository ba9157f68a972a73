"""Driving the clock: on by so much, to the next timer, or until none is left."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from rejoin.coordinator.control.clocks import VirtualClock
from rejoin.coordinator.control.fault_injection.bodies import Body
from rejoin.coordinator.control.fault_injection.fault_injector import FaultInjector
from rejoin.coordinator.control.node_interface import ControlledRuntime
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.views import TimerView
from rejoin.journal.events.base import Event
from rejoin.journal.formatting import format_event
from rejoin.transcript.steps import StepRecorder

LONGEST_MS: Final = 10 * 365 * 86_400_000
_DAY_MS: Final = 86_400_000
_EXPIRY: Final = "expiry"
"""A look at old offsets, every ten minutes, for each offsets partition with groups."""
_CONSUMING: Final = "fetch"
"""The timer of a Fetch that waits. A consumer always has one, so it says nothing of a group."""
_RECURRING: Final = frozenset((_EXPIRY, "cleaning", "compaction", "producer_expiry", "expired_tokens"))
"""The timers that come back as long as there is anything to look at: offsets, logs, producers."""
_HIDDEN: Final = frozenset((_EXPIRY, _CONSUMING))
"""The timers that are not shown one by one."""
_LOOP_PASSES: Final = 3


class Advance(Body):
    """How far the clock shall go: ``advance_ms`` or ``until``, one of the two."""

    advance_ms: int | None = Field(default=None, ge=0, le=LONGEST_MS, description="advance by this many ms")
    until: Literal["next", "idle"] | None = Field(
        default=None,
        description="next: until a timer fires; idle: until only periodic timers are left (checks of old offsets, logs "
        "and producers). The session of a live member counts as a timer; a waiting Fetch does not",
    )
    at_most_ms: int = Field(
        default=_DAY_MS, ge=0, le=LONGEST_MS, description="with until: advance at most this many ms"
    )
    settle_ms: int = Field(
        default=0, ge=0, le=60_000, description="real ms to wait after each timer that fired, so that clients can react"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.advance_ms is None) == (self.until is None):
            raise ValueError("expected exactly one of advance_ms and until")
        return self


class ClockDriver:
    """Advances the clock, one alarm at a time."""

    def __init__(
        self, clock: VirtualClock, runtime: ControlledRuntime, injector: FaultInjector, recorder: StepRecorder
    ) -> None:
        self._clock = clock
        self._runtime = runtime
        self._injector = injector
        self._recorder = recorder
        self._one_at_a_time = asyncio.Lock()

    def shown(self) -> dict[str, Any]:
        """The clock, and when something is due."""
        now = self._clock.now()
        due = self._runtime.node.next_deadline()
        return {"clock": self._clock.kind, "now_ms": now, "next_in_ms": None if due is None else max(due - now, 0)}

    async def advance(self, how: Advance) -> dict[str, Any]:
        """Go on; returns which timers fired, and the events that came of it."""
        async with self._one_at_a_time:
            self._clock.catch_up()
            if self._injector.has_applied_rules:
                # A hit is counted before its task begins to wait.
                await self._let_tasks_run()
            return await self._advance(how)

    async def _advance(self, how: Advance) -> dict[str, Any]:
        clock = self._clock
        began, mark = clock.now(), self._recorder.mark
        end = began + (how.at_most_ms if how.advance_ms is None else how.advance_ms)
        fired: list[dict[str, Any]] = []
        reached = how.until is None
        while (when := clock.next_alarm()) is not None and when <= end:
            if how.until == "idle" and self._is_idle():
                reached = True
                break
            found = self._fire(max(when, clock.now()), began)
            fired += found
            if self._injector.ended_latencies or found:
                await self._let_others_run(how.settle_ms)
            fired += self._latencies(began)
            if how.until == "next" and fired:
                reached = True
                break
        if how.advance_ms is not None:
            clock.jump(max(end, clock.now()))
        elif how.until == "idle":
            reached = reached or self._is_idle()
        steps = self._recorder.since(max(mark, self._recorder.first))
        emitted = [
            {"at_ms": step.at, "after_ms": step.at - began, "event": event.name, "text": format_event(event)}
            for step in steps
            for event in step.effects
            if isinstance(event, Event)
        ]
        now = clock.now()
        return {"now_ms": now, "advanced_ms": now - began, "reached": reached, "fired": fired, "events": emitted}

    def _fire(self, when: Millis, began: Millis) -> list[dict[str, Any]]:
        """Make it that instant; returns the timers that fired."""
        node = self._runtime.node
        deadline = node.next_deadline()
        due = node.due(when) if deadline is not None and deadline <= when else []
        self._clock.jump(when)
        self._clock.catch_up()
        looks = [timer for timer in due if timer.timer == _EXPIRY]
        fired = [_fired(timer, began) for timer in due if timer.timer not in _HIDDEN]
        if looks:
            at = looks[0].at
            fired.append({"timer": _EXPIRY, "at_ms": at, "after_ms": at - began, "partitions": len(looks)})
        return fired

    def _latencies(self, began: Millis) -> list[dict[str, Any]]:
        ended, self._injector.ended_latencies = self._injector.ended_latencies, []
        return [
            {"timer": "latency", "at_ms": each.at, "after_ms": each.at - began, "fault": each.fault_id}
            for each in ended
        ]

    def _is_idle(self) -> bool:
        due = self._runtime.node.due(self._clock.now() + LONGEST_MS)
        is_left = any(timer.timer != _CONSUMING and timer.timer not in _RECURRING for timer in due)
        return not is_left and not self._injector.is_holding_latencies

    async def _let_others_run(self, settle_ms: int) -> None:
        if settle_ms:
            await asyncio.sleep(settle_ms / 1_000)
        elif self._injector.ended_latencies:
            # What a latency held is handed in by a task of its own; let it, at this very instant.
            await self._let_tasks_run()

    @staticmethod
    async def _let_tasks_run() -> None:
        for _ in range(_LOOP_PASSES):
            await asyncio.sleep(0)


def _fired(timer: TimerView, began: Millis) -> dict[str, Any]:
    shown: dict[str, Any] = {"timer": timer.timer, "at_ms": timer.at, "after_ms": timer.at - began}
    if timer.group_id:
        shown["group"] = timer.group_id
    if timer.member_id:
        shown["member"] = timer.member_id
    return {**shown, "partition": timer.partition}
