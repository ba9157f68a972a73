"""The cost of heartbeats, and of joins in consumer groups, in calls and bytes: no busy machine changes it."""

from __future__ import annotations

import tracemalloc

from benchmarks.heartbeats.consumer import AIM, STREAMS_AIM, Groups, large_group
from rejoin.coordinator.core.inputs import Context, Received
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from tests.benchmarks.calls import calls_of


def calls_of_heartbeats(groups: int) -> tuple[int, int, int]:
    """Calls of a heartbeat without change of a consumer, a classic and a streams group, of which there are so many."""
    node = Groups()
    node.create_topic("t", 4)
    for number in range(groups):
        epoch = node.join(f"modern-{number}", "m").member_epoch
        member_id = node.join_classic(f"classic-{number}")
        streams = node.join_streams(f"streams-{number}")
    last = groups - 1
    modern = ConsumerGroupHeartbeatRequest(group_id=f"modern-{last}", member_id="m", member_epoch=epoch)
    classic = HeartbeatRequest(group_id=f"classic-{last}", generation_id=1, member_id=member_id)
    step, now = node.driver.node.step, node.driver.now
    found = []
    for request, version in ((modern, 1), (classic, 4), (streams, 1)):
        beat = Received(None, request, Context(version, "c"))
        for _ in range(2):
            # Of a streams group the first one configures its topology, and the second finds nothing to do.
            step(beat, now)
        found.append(calls_of(lambda beat=beat: step(beat, now)))  # type: ignore[misc]
    return found[0], found[1], found[2]


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


def test_heartbeats_without_change_cost_little_more_than_classic_ones_in_any_number_of_groups() -> None:
    few, many = calls_of_heartbeats(1), calls_of_heartbeats(2_000)
    assert few == many
    assert few[0] <= AIM * few[1]
    assert few[2] <= STREAMS_AIM * few[0]


def test_a_join_copies_nothing_that_has_an_entry_for_each_member() -> None:
    """Copies in C are no calls: even a tuple of all members would take eight bytes for each.

    ``tests/coordinator/core/groups/consumer/test_incremental.py`` counts the lines that a join runs.
    """
    small, large = bytes_of_join(400), bytes_of_join(1_000)
    # Half of that: what earlier tests left in the process makes some hundred bytes of difference.
    assert large - small < 4 * (1_000 - 400), f"{small} bytes in a group of 400, {large} in one of 1,000"
