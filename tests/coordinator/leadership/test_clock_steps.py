"""A machine that slept: timestamps go on with the time of day, and members keep the time that they had left."""

from __future__ import annotations

import asyncio
import io
import json

from rejoin.coordinator.core.inputs import Context, Received
from rejoin.coordinator.core.runtime.delayed import DelayedTimer
from rejoin.coordinator.core.runtime.timers import Deadlines, TimerKey
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.clock import SystemClock
from rejoin.journal.events.coordinator import MemberRemoved
from tests.coordinator.core.driver import PARTITION, DrivenNode, join
from tests.journal.test_wall_clock import SECOND, Machine

SLEPT_MS = 3 * 3_600_000


def test_timers_keep_the_time_that_they_had_left() -> None:
    driven = DrivenNode(group_initial_rebalance_delay_ms=0)
    driven.joins(join(session_timeout_ms=10_000), 9)
    driven.elapse(4_000)
    due = driven.next_deadline()
    driven.node.postpone_timers(SLEPT_MS)
    driven.now += SLEPT_MS
    assert due is not None
    assert driven.next_deadline() == due + SLEPT_MS
    driven.effects_of(Received("any", join(group_id="other"), Context(9)))
    assert not driven.emitted(MemberRemoved)
    assert driven.group is not None
    driven.elapse(60_000)
    assert driven.emitted(MemberRemoved)


def test_a_cancelled_timer_stays_cancelled() -> None:
    deadlines = Deadlines()
    kept, cancelled = (TimerKey(DelayedTimer.PRODUCE_TIMEOUT, PARTITION, name=name) for name in ("kept", "cancelled"))
    deadlines.set(kept, 10)
    deadlines.set(cancelled, 5)
    deadlines.cancel(cancelled)
    deadlines.postpone(1_000)
    assert deadlines.pop_due(1_009) is None
    assert deadlines.pop_due(1_010) == kept
    assert deadlines.next() is None


async def test_a_step_is_logged_and_reported_before_anything_else_happens() -> None:
    machine = Machine()
    clock = SystemClock(asyncio.get_running_loop(), machine.clock())
    steps: list[int] = []
    logs.configure("warning", out := io.StringIO())
    try:
        clock.follow(steps.append)
        machine.wall += SLEPT_MS * 1_000_000
        machine.passes(SECOND)
        before = clock.now()
        clock.follow(steps.append)
        machine.wall -= 2 * SECOND
        clock.follow(steps.append)
    finally:
        logs.configure("critical")
        clock.stop()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert steps == [SLEPT_MS]
    assert clock.now() - before == SLEPT_MS
    said = [(line["event"], line["by_ms"]) for line in lines]
    assert said == [("clock_stepped", SLEPT_MS), ("clock_set_back", 2_000)]
