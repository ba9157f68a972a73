"""What heartbeats and joins of consumer groups cost, in calls: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from benchmarks.heartbeats import consumer
from benchmarks.heartbeats.consumer import AIM, Groups
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest


def calls_of(work: Callable[[], object]) -> int:
    """How many functions it calls, of Python and of C."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def calls_of_heartbeats(groups: int) -> tuple[int, int]:
    """Calls of a heartbeat without change, and of a classic one, in one of so many groups of each kind."""
    node = Groups()
    node.create_topic("t", 4)
    for number in range(groups):
        epoch = node.join(f"modern-{number}", "m").member_epoch
        member_id = node.join_classic(f"classic-{number}")
    last = groups - 1
    modern = ConsumerGroupHeartbeatRequest(group_id=f"modern-{last}", member_id="m", member_epoch=epoch)
    classic = HeartbeatRequest(group_id=f"classic-{last}", generation_id=1, member_id=member_id)
    step, now = node.driver.node.step, node.driver.now
    found = []
    for beat in (Received(None, modern, Context(1, "c")), Received(None, classic, Context(4, "c"))):
        step(beat, now)
        found.append(calls_of(lambda beat=beat: step(beat, now)))  # type: ignore[misc]
    return found[0], found[1]


def calls_of_join(members: int) -> int:
    """Calls of a join that computes the target: two partitions move to the member, however many others there are."""
    node = Groups()
    node.create_topic("t", 2 * members + 8)
    for _ in range(2):
        for number in range(members):
            node.join("g", f"member-{number:05d}")
        # The first that comes now computes the target of all.
        node.driver.now += consumer._INTERVAL_MS
    node.join("g", "settles")
    node.driver.now += consumer._INTERVAL_MS
    return calls_of(lambda: node.join("g", "with-a-target"))


def test_a_heartbeat_without_change_costs_little_more_than_a_classic_one_in_any_number_of_groups() -> None:
    few, many = calls_of_heartbeats(1), calls_of_heartbeats(100)
    assert few == many
    assert few[0] <= AIM * few[1]


def test_a_join_costs_what_moves() -> None:
    small, large = calls_of_join(50), calls_of_join(400)
    assert large <= 1.1 * small, f"{small} calls in a group of 50, {large} in one of 400"
