"""What a member of a consumer group says in the journal: joined, given, revoked, assigned, acknowledged, lost."""

from __future__ import annotations

from rejoin.journal.events.client import (
    AssignmentAcknowledged,
    Fenced,
    GroupJoined,
    MemberEvent,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    TargetAssignmentReceived,
)
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench
from tests.client.core.heartbeats import INTERVAL_MS
from tests.client.core.test_consumer_group import HEARTBEAT, LONG, joining

OF_MEMBERSHIP = (
    GroupJoined,
    TargetAssignmentReceived,
    PartitionsRevoked,
    PartitionsAssigned,
    AssignmentAcknowledged,
    Fenced,
    PartitionsLost,
)


def said(bench: Bench) -> list[tuple[str, int, dict[str, object]]]:
    """The events of the membership since the last time: name, epoch, and what is particular to each."""
    of_consumer = {*MemberEvent.model_fields}
    found = [
        (event.name, event.generation, {name: value for name, value in event if name not in of_consumer})
        for event in bench.events
        if isinstance(event, OF_MEMBERSHIP)
    ]
    bench.events.clear()
    return found


def test_each_step_of_a_membership_is_an_event() -> None:
    bench = joining()
    bench.subscribe("t")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.advance(7)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "t-1"])
    mine = {"t": [0, 1]}
    assert said(bench) == [
        ("group_joined", 2, {"waited_ms": 7}),
        ("target_assignment_received", 2, {"partitions": mine, "unknown_topics": 0}),
        ("partitions_assigned", 2, {"partitions": mine}),
        ("assignment_acknowledged", 2, {"partitions": mine, "reconciliation_ms": 0}),
    ]

    bench.answer(HEARTBEAT, epoch=2)
    bench.step_out_of_poll()
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=3, assigned=["t-1"])
    assert said(bench) == [("target_assignment_received", 3, {"partitions": {"t": [1]}, "unknown_topics": 0})]
    bench.advance(400)
    bench.poll(LONG)
    assert said(bench) == [
        ("partitions_revoked", 3, {"partitions": {"t": [0]}}),
        ("partitions_assigned", 3, {"partitions": {}}),
        ("assignment_acknowledged", 3, {"partitions": {"t": [1]}, "reconciliation_ms": 400}),
    ]

    bench.answer(HEARTBEAT, E.FENCED_MEMBER_EPOCH)
    bench.advance(3)
    bench.answer(HEARTBEAT, epoch=4, assigned=["t-1"])
    assert said(bench)[:4] == [
        ("fenced", 3, {"api": HEARTBEAT}),
        ("partitions_lost", -1, {"partitions": {"t": [1]}}),
        ("group_joined", 4, {"waited_ms": 3}),
        ("target_assignment_received", 4, {"partitions": {"t": [1]}, "unknown_topics": 0}),
    ]


def test_the_same_target_is_received_once() -> None:
    bench = joining()
    bench.subscribe("t")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0"])
    said(bench)
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0"])
    bench.advance(INTERVAL_MS)
    bench.answer(HEARTBEAT, epoch=3)
    assert said(bench) == [], "an epoch alone is no event of the client"


def test_topics_whose_names_are_not_known_yet_are_counted() -> None:
    bench = joining()
    bench.subscribe("t")
    bench.poll(LONG)
    bench.find_coordinator()
    bench.answer(HEARTBEAT, epoch=2, assigned=["t-0", "made-later-3"])
    (received,) = (event for event in bench.events if isinstance(event, TargetAssignmentReceived))
    assert (received.partitions, received.unknown_topics) == ({"t": [0]}, 1)
