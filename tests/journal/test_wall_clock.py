"""Stamps follow the machine's clock, whatever is done to that, and never go back."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import given

from rejoin.journal.wall_clock import LOOK_EVERY_NS, ClockStep, WallClock

SECOND = 1_000_000_000
MS = 1_000_000


@dataclass
class Machine:
    """A machine whose two clocks a test turns."""

    wall: int = 1_700_000_000 * SECOND
    steady: int = 0

    def passes(self, ns: int) -> None:
        self.wall += ns
        self.steady += ns

    def clock(self) -> WallClock:
        return WallClock(lambda: self.wall, lambda: self.steady)

    @property
    def wall_ms(self) -> int:
        return self.wall // MS


def test_a_clock_that_nobody_turns_is_the_machines() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(100):
        machine.passes(LOOK_EVERY_NS)
        assert clock.follow() is None
        assert clock.now() == machine.wall_ms


def test_after_a_sleep_time_steps_forward_and_says_by_how_much() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += 4_600 * MS
    machine.passes(SECOND)
    assert clock.follow() == ClockStep(4_600)
    assert clock.now() == machine.wall_ms
    machine.passes(SECOND)
    assert clock.follow() is None


def test_a_small_difference_is_slewed_away_at_two_percent() -> None:
    machine = Machine()
    clock = machine.clock()
    for difference_ms in (300, -300):
        machine.wall += difference_ms * MS
        assert clock.follow() is None
        before = clock.now()
        machine.passes(SECOND)
        assert clock.now() - before == 1_000 + (20 if difference_ms > 0 else -20)
        for _ in range(20):
            clock.follow()
            machine.passes(SECOND)
        assert abs(clock.now() - machine.wall_ms) <= 1


def test_a_clock_that_was_set_back_is_named_once_and_waited_for() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall -= 10 * SECOND
    before = clock.now()
    assert clock.follow() == ClockStep(-10_000)
    for second in range(100):
        machine.passes(SECOND)
        assert clock.follow() is None
        assert clock.now() == before + 980 * (second + 1)
    # 100 s at 2 % are 2 s; 450 more are the rest, but for the last second, which is slewed more and more slowly.
    for _ in range(450):
        machine.passes(SECOND)
        clock.follow()
    assert abs(clock.now() - machine.wall_ms) <= 1


def test_a_stamp_looks_at_the_machine_once_a_second() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += 5 * SECOND
    machine.passes(SECOND // 2)
    assert clock.stamp() == machine.wall_ms - 5_000
    machine.passes(SECOND // 2)
    assert clock.stamp() == machine.wall_ms


@given(
    st.lists(
        st.tuples(st.sampled_from(["passes", "set", "look", "read"]), st.integers(-5 * SECOND, 20 * SECOND)),
        max_size=60,
    )
)
def test_instants_never_go_back(turns: list[tuple[str, int]]) -> None:
    machine = Machine()
    clock = machine.clock()
    newest = clock.now()
    for what, ns in turns:
        if what == "passes":
            machine.passes(abs(ns))
        elif what == "set":
            machine.wall += ns
        elif what == "look":
            clock.follow()
        now = clock.now()
        assert now >= newest
        newest = now
