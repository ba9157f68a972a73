"""What follows from the lines about a group: its rebalances, why they began, how long they took, and who took part."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from tests.pipeline.reading.broker_logs.reconstructed import reconstruct

SCALA = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"
RANDOM = "0a1b2c3d-0000-4000-8000-00000000000"


def scala(second: float, text: str, node: int = 1) -> str:
    return f"[{stamp(second)}] INFO [GroupCoordinator {node}]: {text} ({SCALA})"


def java(second: float, text: str, node: int = 1) -> str:
    return f"[{stamp(second)}] INFO [GroupCoordinator id={node} topic=__consumer_offsets partition=7] {text} ({JAVA})"


def stamp(second: float) -> str:
    return f"2024-01-01 12:{int(second) // 60:02d}:{int(second) % 60:02d},{round(second * 1000) % 1000:03d}"


def events_of(*files: list[str]) -> list[EventRow]:
    """The events of the lines of some files."""
    statements: list[Statement] = []
    for number, lines in enumerate(files, 1):
        found = LogFile(f"{number}.log", str(number)).statements(io.BytesIO("\n".join(lines).encode() + b"\n"))
        statements += [each for each in found if isinstance(each, Statement)]
    return list(
        reconstruct(sorted(statements, key=lambda statement: (statement.order_ms, statement.file, statement.line)))
    )


def of(events: list[EventRow], name: str) -> list[EventRow]:
    return [event for event in events if event["event"] == name]


def some(event: EventRow, *names: str) -> list[Any]:
    return [event.get(name) for name in names]


def prepare(generation: int, reason: str) -> str:
    return (
        f"Preparing to rebalance group g in state PreparingRebalance with old generation {generation} "
        f"(__consumer_offsets-7) (reason: {reason})"
    )


LIFE_3_9 = [
    scala(
        0,
        f"Dynamic member with unknown member id joins group g in Empty state. Created a new member id a-{RANDOM}1 and "
        f"request "
        "the member to rejoin with this id.",
    ),
    scala(0.01, prepare(0, f"Adding new member a-{RANDOM}1 with group instance id None; client reason: not provided")),
    scala(
        1,
        "Dynamic member with unknown member id joins group g in PreparingRebalance state. Created a new member id "
        f"b-{RANDOM}2 and request the member to rejoin with this id.",
    ),
    scala(3.01, "Stabilized group g generation 1 (__consumer_offsets-7) with 2 members"),
    scala(
        3.02,
        f"Assignment received from leader a-{RANDOM}1 for group g for generation 1. The group has 2 members, 0 of "
        f"which are "
        "static.",
    ),
    scala(60, f"Member b-{RANDOM}2 in group g has failed, removing it from the group"),
    scala(60, prepare(1, f"removing member b-{RANDOM}2 on heartbeat expiration")),
    scala(62, "Stabilized group g generation 2 (__consumer_offsets-7) with 1 members"),
    scala(
        62.05,
        f"Assignment received from leader a-{RANDOM}1 for group g for generation 2. The group has 1 members, 0 of "
        f"which are "
        "static.",
    ),
]


def test_the_history_of_a_group_is_the_one_of_its_journal() -> None:
    events = events_of(LIFE_3_9)
    first, second = of(events, "rebalance_started")
    assert some(first, "cause", "cause_member_id", "previous_state", "initial", "confidence") == [
        "join-new",
        f"a-{RANDOM}1",
        "Empty",
        True,
        "exact",
    ]
    assert some(second, "cause", "cause_member_id", "previous_state", "generation") == [
        "session-expiry",
        f"b-{RANDOM}2",
        "Stable",
        1,
    ]
    done, again = of(events, "rebalance_completed")
    assert some(done, "generation", "rebalance_ms", "join_ms", "sync_ms", "leader", "members_before", "confidence") == [
        1,
        3_010,
        3_000,
        10,
        f"a-{RANDOM}1",
        [],
        "inferred",
    ]
    assert done["members"] == [f"a-{RANDOM}1", f"b-{RANDOM}2"]
    assert some(again, "members", "members_before", "previous_leader", "rebalance_ms") == [
        [f"a-{RANDOM}1"],
        done["members"],
        f"a-{RANDOM}1",
        2_050,
    ]
    joined = {event["client_id"]: event["confidence"] for event in of(events, "member_joined")}
    assert joined == {"a": "inferred", "b": "inferred"}
    (removed,) = of(events, "member_removed")
    assert some(removed, "member_id", "cause", "state", "client_id") == [
        f"b-{RANDOM}2",
        "session-expiry",
        "Stable",
        "b",
    ]
    assert [event["order_ms"] for event in events] == sorted(event["order_ms"] for event in events)


def test_states_follow_one_another() -> None:
    changes = of(events_of(LIFE_3_9), "group_state_changed")
    assert [event["state"] for event in changes] == ["PreparingRebalance", "CompletingRebalance", "Stable"] * 2
    assert all(after["previous_state"] == before["state"] for before, after in pairwise(changes))


def test_a_repeated_line_counts_once() -> None:
    twice = [line for line in LIFE_3_9 for _ in range(2)]
    assert len(events_of(twice)) == len(events_of(LIFE_3_9))
    assert len(events_of(LIFE_3_9, LIFE_3_9)) == len(events_of(LIFE_3_9))


def test_what_a_client_says_when_it_leaves_is_in_the_line_before() -> None:
    events = events_of(
        [
            java(
                0,
                f"[Group g] Member a-{RANDOM}1 has left group through explicit `LeaveGroup` request; client reason: "
                f"enough",
            ),
            java(
                0,
                "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (reason: explicit "
                f"`LeaveGroup` request for (a-{RANDOM}1) members.).",
            ),
        ]
    )
    (started,) = of(events, "rebalance_started")
    assert some(started, "cause", "cause_member_id", "client_reason") == ["leave", f"a-{RANDOM}1", "enough"]


def test_before_2_2_no_reason_is_printed_and_some_are_concluded() -> None:
    def old(second: float, generation: int) -> str:
        return scala(second, f"Preparing to rebalance group g with old generation {generation} (__consumer_offsets-7)")

    def stable(second: float, generation: int) -> list[str]:
        return [
            scala(second, f"Stabilized group g generation {generation} (__consumer_offsets-7)"),
            scala(second + 0.1, f"Assignment received from leader for group g for generation {generation}"),
        ]

    events = events_of(
        [
            old(0, 0),
            *stable(3, 1),
            scala(50, "Member m in group g has failed, removing it from the group"),
            old(50, 1),
            *stable(51, 2),
            old(60, 2),
        ]
    )
    causes = [some(event, "cause", "cause_member_id", "confidence") for event in of(events, "rebalance_started")]
    assert causes == [
        ["join-new", None, "inferred"],
        ["session-expiry", "m", "inferred"],
        ["unknown", None, "inferred"],
    ]
    assert [event["rebalance_ms"] for event in of(events, "rebalance_completed")] == [3_100, 1_100]


def test_before_2_8_a_leader_that_rejoins_is_known_by_its_id() -> None:
    lines = [
        scala(0, prepare(0, f"Adding new member a-{RANDOM}1 with group instance id None")),
        scala(3, "Stabilized group g generation 1 (__consumer_offsets-7)"),
        scala(3, "Assignment received from leader for group g for generation 1"),
    ]
    for member, cause in ((f"a-{RANDOM}1", "rejoin-leader"), (f"b-{RANDOM}2", "rejoin-metadata")):
        events = events_of([*lines, scala(9, prepare(1, f"Updating metadata for member {member}"))])
        assert some(of(events, "rebalance_started")[1], "cause", "confidence") == [cause, "inferred"]


@pytest.mark.parametrize(
    ("reason", "completed"),
    [
        ("Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: a)", 0),
        ("Updating metadata for member a during CompletingRebalance; client reason: not provided", 0),
        ("Updating metadata for static member a with instance id Some(i); client reason: not provided", 0),
        ("Updating metadata for member a during Stable; client reason: not provided", 1),
        ("Leader a re-joining group during Stable; client reason: not provided", 1),
        ("removing member a on heartbeat expiration", 1),
    ],
)
def test_whether_an_assignment_was_stored_shows_in_what_follows(reason: str, completed: int) -> None:
    events = events_of([*LIFE_3_9[:5], scala(4, prepare(1, reason))])
    assert len(of(events, "rebalance_completed")) == completed
    assert of(events, "rebalance_started")[1]["previous_state"] == ("Stable" if completed else "CompletingRebalance")


def test_attempts_are_one_rebalance() -> None:
    events = events_of(
        [
            *LIFE_3_9[:4],
            scala(5, prepare(1, "Removing Set(b) on pending sync request expiration")),
            scala(6, "Stabilized group g generation 2 (__consumer_offsets-7) with 1 members"),
            scala(
                6.5,
                "Assignment received from leader a for group g for generation 2. The group has 1 members, 0 of which "
                "are static.",
            ),
        ]
    )
    (done,) = of(events, "rebalance_completed")
    assert some(done, "attempts", "rebalance_ms", "cause") == [2, 6_490, "join-new"]
    assert of(events, "member_removed")[0]["cause"] == "sync-expiry"


def test_a_static_member_returns_without_a_rebalance() -> None:
    events = events_of(
        [
            java(
                0,
                f"Static member with groupInstanceId=i and unknown member id joins group g in Stable state. Replacing "
                f"previously mapped member i-{RANDOM}1 with this groupInstanceId.",
            ),
            java(
                0,
                "Static member which joins during Stable stage and doesn't affect the selected protocol will not "
                "trigger a "
                "rebalance.",
            ),
            java(
                1,
                f"Request memberId=i-{RANDOM}1 for static member with groupInstanceId=i is fenced by existing "
                f"memberId=i-{RANDOM}2 during operation heartbeat",
            ),
            java(90, f"Member i-{RANDOM}2 in group g has failed, removing it from the group."),
        ]
    )
    (returned,) = of(events, "static_member_replaced")
    assert some(returned, "group_instance_id", "other_member_id", "member_id", "rebalance") == [
        "i",
        f"i-{RANDOM}1",
        f"i-{RANDOM}2",
        False,
    ]
    (fenced,) = of(events, "member_fenced")
    assert some(fenced, "group_id", "other_member_id", "api") == ["g", f"i-{RANDOM}2", "heartbeat"]
    assert of(events, "member_removed")[0]["group_instance_id"] == "i"


def test_lines_of_2_4_that_name_no_group_are_read_from_their_neighbours() -> None:
    events = events_of(
        [
            scala(0, prepare(0, f"Adding new member i-{RANDOM}1 with group instanceid Some(i)")),
            scala(3, "Stabilized group g generation 1 (__consumer_offsets-7)"),
            scala(3, "Assignment received from leader for group g for generation 1"),
            scala(
                9,
                f"Static member Some(i) with unknown member id rejoins, assigning new member id i-{RANDOM}2, while "
                f"old member "
                f"i-{RANDOM}1 will be removed.",
            ),
            scala(9, "Static member joins during Stable stage will not trigger rebalance."),
        ]
    )
    (returned,) = of(events, "static_member_replaced")
    assert some(returned, "group_id", "member_id", "rebalance") == ["g", f"i-{RANDOM}2", False]


def test_a_line_about_unknown_members_has_no_group() -> None:
    (event,) = events_of(
        [
            java(
                0,
                "Request memberId=x for static member with groupInstanceId=i is fenced by existing memberId=y during "
                "operation heartbeat",
            )
        ]
    )
    assert some(event, "event", "group_id", "confidence") == ["member_fenced", None, "unknown"]


def test_a_group_goes_on_at_another_broker() -> None:
    ends = scala(10, "Unloading group metadata for g with generation 1")
    loads = scala(10.01, "Loading group metadata for g with generation 1", node=2)
    later = scala(12, prepare(1, f"removing member a-{RANDOM}1 on LeaveGroup"), node=2)
    resigned = [
        scala(10, "Resigned as the group coordinator for partition 7 in epoch OptionalInt[3]"),
        f"[{stamp(10)}] INFO [GroupMetadataManager brokerId=1] Scheduling unloading of offsets and group metadata from "
        "__consumer_offsets-7 (kafka.coordinator.group.GroupMetadataManager)",
    ]
    elected = [
        scala(10, "Elected as the group coordinator for partition 7 in epoch 4", node=2),
        f"[{stamp(10)}] INFO [GroupMetadataManager brokerId=2] Scheduling loading of offsets and group metadata from "
        "__consumer_offsets-7 for epoch 4 (kafka.coordinator.group.GroupMetadataManager)",
        f"[{stamp(10.02)}] INFO [GroupMetadataManager brokerId=2] Finished loading offsets and group metadata from "
        "__consumer_offsets-7 in 12 milliseconds for epoch 4, of which 1 milliseconds was spent in the scheduler. "
        "(kafka.coordinator.group.GroupMetadataManager)",
    ]
    events = events_of([*LIFE_3_9[:5], *resigned, ends], [*elected, loads, later])
    (loaded,) = of(events, "group_loaded")
    assert some(loaded, "node", "generation", "state", "members") == [
        "2",
        1,
        "Stable",
        [f"a-{RANDOM}1", f"b-{RANDOM}2"],
    ]
    started = of(events, "rebalance_started")[1]
    assert some(started, "node", "previous_state", "cause", "members") == ["2", "Stable", "leave", [f"b-{RANDOM}2"]]
    of_partitions = [some(event, "event", "node", "partition", "epoch") for event in events if "group_id" not in event]
    assert of_partitions == [
        ["partition_resigned", "1", 7, 3],
        ["partition_elected", "2", 7, 4],
        ["partition_loaded", "2", 7, 4],
    ]


def test_logs_may_begin_in_the_midst() -> None:
    events = events_of(LIFE_3_9[3:])
    assert [event["event"] for event in events[:3]] == [
        "group_state_changed",
        "join_phase_ended",
        "assignment_received",
    ]
    assert of(events, "rebalance_completed")[1]["rebalance_ms"] == 2_050
    assert of(events_of(LIFE_3_9[4:5]), "rebalance_completed")[0].get("rebalance_ms") is None


def test_an_empty_group_and_its_end() -> None:
    events = events_of(
        [
            *LIFE_3_9,
            scala(70, "Member[group.instance.id None, member.id a] in group g has left, removing it from the group"),
            scala(70, prepare(2, "removing member a on LeaveGroup")),
            scala(70, "Group g with generation 3 is now empty (__consumer_offsets-7)"),
            scala(80, "The following groups were deleted: g, h. A total of 3 offsets were removed."),
        ]
    )
    (emptied,) = of(events, "group_emptied")
    assert some(emptied, "generation", "cause", "rebalance_ms") == [3, "leave", 0]
    assert [some(event, "group_id", "reason", "confidence") for event in of(events, "group_deleted")] == [
        ["g", "requested", "exact"],
        ["h", "requested", "exact"],
    ]
    dead = events_of(
        [f"[{stamp(1)}] INFO [GroupMetadataManager brokerId=1] Group g transitioned to Dead in generation 3 (x.y)"]
    )
    assert some(dead[0], "event", "reason", "confidence") == ["group_deleted", "expired", "inferred"]


def test_causes_of_rebalances_of_the_newer_protocol_are_inferred() -> None:
    events = events_of(
        [
            java(0, "[GroupId g] Member m joins the consumer group using the consumer protocol."),
            java(0, "[GroupId g] Bumped group epoch to 5."),
            java(0, "[GroupId g] Computed a new target assignment for epoch 5 with 'uniform' assignor in 3ms."),
            java(45, "[GroupId g] Member m fenced from the group because the member session expired.."),
            java(90, "[GroupId g] Bumped group epoch to 6."),
        ]
    )
    started = of(events, "rebalance_started")
    assert [some(event, "cause", "generation", "confidence") for event in started] == [
        ["join-new", 4, "inferred"],
        ["session-expiry", 5, "inferred"],
    ]
    assert of(events, "member_removed")[0]["cause"] == "session-expiry"
    assert [some(event, "protocol", "confidence") for event in of(events, "rebalance_completed")] == [
        ["uniform", "unknown"]
    ]


def test_instants_after_a_clock_step_still_make_lengths() -> None:
    set_back = [line.replace("2024-01-01 12:", "2024-01-01 11:") for line in LIFE_3_9[6:]]
    events = events_of([*LIFE_3_9[:6], *set_back])
    assert of(events, "rebalance_completed")[1]["rebalance_ms"] == 2_050
