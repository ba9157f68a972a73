"""What heartbeats and joins of consumer groups cost, in calls and in bytes: the same however busy the machine is."""

from __future__ import annotations

import tracemalloc

from benchmarks.heartbeats.consumer import AIM, Groups, large_group
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from tests.benchmarks.calls import calls_of


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


def bytes_of_join(members: int) -> int:
    """The most memory that a join takes which computes the target: two partitions move, whatever the others have.

    The least of three joins: now and then a table or a list that grows is copied.
    """
    node = large_group(members, joins=4)
    node.join_with_target("g", "settles")
    found = []
    for number in range(3):
        tracemalloc.start()
        try:
            node.join_with_target("g", f"joins-{number}")
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(found)


def test_a_heartbeat_without_change_costs_little_more_than_a_classic_one_in_any_number_of_groups() -> None:
    few, many = calls_of_heartbeats(1), calls_of_heartbeats(2_000)
    assert few == many
    assert few[0] <= AIM * few[1]


def test_a_join_copies_nothing_that_has_an_entry_for_each_member() -> None:
    """Copies in C are no calls: even a tuple of all members would take eight bytes for each.

    ``tests/coordinator/core/groups/consumer/test_incremental.py`` counts the lines that a join runs.
    """
    small, large = bytes_of_join(400), bytes_of_join(1_000)
    # Half of that: what earlier tests left in the process makes some hundred bytes of difference.
    assert large - small < 4 * (1_000 - 400), f"{small} bytes in a group of 400, {large} in one of 1,000"
