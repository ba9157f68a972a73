"""Every message on rebalances and members that a coordinator is known to log, in the form of each version."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.lines import BrokenLine, Lines, Record
from rejoin.pipeline.reading.broker_logs.messages import of_a_coordinator, split_prefix
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from tests import paths
from tests.pipeline.reading.broker_logs.messages import check_message

GOLDEN = paths.RECORDED
META = (
    "MemberMetadata(memberId=m-1, groupInstanceId=Some(i-1), clientId=c, clientHost=/10.0.0.1, sessionTimeoutMs=45000, "
    "rebalanceTimeoutMs=300000, supportedProtocols=List(range, cooperative-sticky))"
)
META_OLD = META.replace("sticky))", "sticky), )")

MESSAGES: list[tuple[str, str, str | None, dict[str, Any]]] = [
    # --- a rebalance begins
    (
        "Preparing to rebalance group g with old generation 3 (__consumer_offsets-7)",
        "preparing",
        "g",
        {"generation": "3"},
    ),
    (
        "Preparing to rebalance group a b [c].d in state PreparingRebalance with old generation 3 "
        "(__consumer_offsets-7) "
        "(reason: removing member x-(1) on heartbeat expiration)",
        "preparing",
        "a b [c].d",
        {"generation": "3", "partition": "7", "reason": "removing member x-(1) on heartbeat expiration"},
    ),
    (
        "Preparing to rebalance group g in state PreparingRebalance with old generation 0 (reason: Adding new member m "
        "with group instance id null; client reason: not provided).",
        "preparing",
        "g",
        {"reason": "Adding new member m with group instance id null; client reason: not provided"},
    ),
    # --- the join phase ends
    ("Stabilized group g generation 4 (__consumer_offsets-7)", "stabilized", "g", {"generation": "4"}),
    ("Stabilized group g generation 4 (__consumer_offsets-7) with 3 members", "stabilized", "g", {"members": "3"}),
    ("Stabilized group g generation 4 with 3 members.", "stabilized", "g", {"generation": "4", "members": "3"}),
    # --- the assignment comes
    ("Assignment received from leader for group g for generation 4", "assigned", "g", {"generation": "4"}),
    (
        "Assignment received from leader for group g for generation 4. The group has 3 members, 1 of which are static.",
        "assigned",
        "g",
        {"members": "3", "static_members": "1"},
    ),
    (
        "Assignment received from leader m-1 for group g for generation 4. The group has 3 members, 0 of which are "
        "static.",
        "assigned",
        "g",
        {"leader": "m-1", "members": "3"},
    ),
    (
        "Setting empty assignments for members Set(m-1, m-2) of g for generation 4",
        "without_assignment",
        "g",
        {"set": "Set(m-1, m-2)"},
    ),
    ("Setting empty assignments for members [m-1] of g for generation 4.", "without_assignment", "g", {"set": "[m-1]"}),
    ("Sending empty assignment to member m of g for generation 4 with no errors", "remark", "g", {}),
    # --- no member is left
    ("Group g with generation 5 is now empty (__consumer_offsets-7)", "emptied", "g", {"generation": "5"}),
    ("Group g with generation 5 is now empty.", "emptied", "g", {"generation": "5"}),
    ("Group g transitioned to Dead in generation 5", "dead", "g", {"generation": "5"}),
    ("Group g is dead, skipping rebalance stage", "remark", "g", {}),
    ("Group g is dead, skipping rebalance stage.", "remark", "g", {}),
    # --- members go
    ("Member m-1 in group g has failed, removing it from the group", "failed", "g", {"member": "m-1"}),
    (
        "Member nonode@nohost/<0.1083.0>-abc in group g has failed, removing it from the group.",
        "failed",
        "g",
        {"member": "nonode@nohost/<0.1083.0>-abc"},
    ),
    (
        "Pending member m in group g has been removed after session timeout expiration.",
        "pending_expired",
        "g",
        {"member": "m"},
    ),
    (
        "Received notification of heartbeat expiration for member m after group g had already been unloaded or "
        "deleted.",
        "remark",
        "g",
        {},
    ),
    ("Member id m was not found in g during heartbeat expiration.", "remark", "g", {}),
    ("Member id m was not found in g during heartbeat completion check", "remark", "g", {}),
    ("Member m in group g has left, removing it from the group", "left", "g", {"member": "m"}),
    (
        "Member[group.instance.id Some(i), member.id m] in group g has left, removing it from the group",
        "left",
        "g",
        {"member": "m", "instance": "Some(i)"},
    ),
    (
        "Member[group.instance.id None, member.id m] in group g has left, removing it from the group",
        "left",
        "g",
        {"instance": "None"},
    ),
    (
        f"Member {META_OLD} has left group g through explicit `LeaveGroup` request",
        "left",
        "g",
        {"member": "m-1", "client_id": "c", "client_host": "/10.0.0.1", "session_timeout_ms": "45000"},
    ),
    (
        f"Member {META} has left group g through explicit `LeaveGroup`; client reason: the consumer is being closed",
        "left",
        "g",
        {"client_reason": "the consumer is being closed", "protocols": "range, cooperative-sticky"},
    ),
    (
        "[Group g] Member m has left group through explicit `LeaveGroup` request; client reason: not provided",
        "left",
        "g",
        {"member": "m", "client_reason": "not provided"},
    ),
    (
        "[Group g] Dynamic Member m has left group through explicit `LeaveGroup` request; client reason: x",
        "left",
        "g",
        {"member": "m"},
    ),
    (
        "[Group g] Static Member m with instance id i has left group through explicit `LeaveGroup` request; client "
        "reason: x",
        "left",
        "g",
        {"member": "m", "instance": "i"},
    ),
    ("Pending member m is leaving group g.", "pending_left", "g", {"member": "m"}),
    (
        "Pending member with memberId=m has left group g through explicit `LeaveGroup` request",
        "pending_left",
        "g",
        {"member": "m"},
    ),
    (
        "[Group g] Pending member m has left group through explicit `LeaveGroup` request; client reason: x",
        "pending_left",
        "g",
        {"member": "m", "client_reason": "x"},
    ),
    # --- dynamic members come
    (
        "Dynamic Member with unknown member id joins group g in Empty state. Created a new member id m for this "
        "member and "
        "add to the group.",
        "id_created",
        "g",
        {"member": "m", "state": "Empty"},
    ),
    (
        "Dynamic member with unknown member id joins group g in Stable state. Created a new member id m and request "
        "the "
        "member to rejoin with this id.",
        "id_handed_out",
        "g",
        {"member": "m", "state": "Stable"},
    ),
    (
        "Dynamic member with unknown member id joins group g in Stable state. Created a new member id m and "
        "requesting the "
        "member to rejoin with this id.",
        "id_handed_out",
        "g",
        {"member": "m"},
    ),
    (
        "Dynamic member with unknown member id joins group g in state Empty. Created a new member id m and added the "
        "member "
        "to the group.",
        "joined",
        "g",
        {"member": "m", "state": "Empty"},
    ),
    (
        "Pending dynamic member with id m joins group g in Empty state. Adding to the group now.",
        "joined",
        "g",
        {"member": "m", "state": "Empty"},
    ),
    # --- static members come
    (
        "Static member Some(i) with unknown member id rejoins, assigning new member id m2, while old member m1 will be "
        "removed.",
        "replaced",
        None,
        {"instance": "Some(i)", "member": "m2", "old": "m1"},
    ),
    ("Static member joins during Stable stage will not trigger rebalance.", "no_rebalance", None, {"state": "Stable"}),
    (
        "Adding new static member Some(i) to group g with member id m.",
        "joined",
        "g",
        {"instance": "Some(i)", "member": "m"},
    ),
    (
        "Static member Some(i) of group g with unknown member id rejoins, assigning new member id m2, while old "
        "member id m1 "
        "will be removed.",
        "replaced",
        "g",
        {"instance": "Some(i)", "member": "m2", "old": "m1"},
    ),
    (
        "Static Member with unknown member id joins group g in Empty state. Created a new member id m for this "
        "member and "
        "add to the group.",
        "remark",
        "g",
        {},
    ),
    (
        "Static member with groupInstanceId=i and unknown member id joins group g in Stable state. Replacing "
        "previously "
        "mapped member m1 with this groupInstanceId.",
        "replaced",
        "g",
        {"instance": "i", "old": "m1", "state": "Stable"},
    ),
    (
        "Static member with groupInstanceId=i and unknown member id joins group g in Empty state. Created a new "
        "member id m "
        "for this member and add to the group.",
        "joined",
        "g",
        {"instance": "i", "member": "m"},
    ),
    (
        "Static member with groupInstanceId=i and unknown member id joins group g in Empty state. Created a new "
        "member id m "
        "for this member and added to the group.",
        "joined",
        "g",
        {"instance": "i", "member": "m", "state": "Empty"},
    ),
    (
        "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.",
        "no_rebalance",
        None,
        {},
    ),
    (
        "Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a "
        "rebalance.",
        "no_rebalance",
        None,
        {},
    ),
    (
        "given member.id m1 is identified as a known static member i,but not matching the expected member.id m2",
        "fenced",
        None,
        {"member": "m1", "instance": "i", "current": "m2"},
    ),
    (
        "given member.id m1 is identified as a known static member i, but not matching the expected member.id m2 "
        "during "
        "heartbeat, will respond with instance fenced error",
        "fenced",
        None,
        {"member": "m1", "current": "m2", "operation": "heartbeat"},
    ),
    (
        "Request memberId=m1 for static member with groupInstanceId=i is fenced by current memberId=m2 during "
        "operation "
        "sync-group",
        "fenced",
        None,
        {"member": "m1", "current": "m2", "operation": "sync-group"},
    ),
    (
        "Request memberId=m1 for static member with groupInstanceId=i is fenced by existing memberId=m2 during "
        "operation "
        "heartbeat",
        "fenced",
        None,
        {"instance": "i"},
    ),
    ("Failed to persist metadata for group g: The coordinator is not available.", "remark", "g", {}),
    (
        "Failed to persist metadata for group g static member m2 with group instance id i due to it timed out. "
        "Reverting to "
        "old member id m1.",
        "restored",
        "g",
        {"refused": "m2", "instance": "i", "member": "m1"},
    ),
    # --- trouble at the barrier
    ("Group g remove dynamic members who haven't joined: Set(m)", "did_not_join", "g", {"set": "Set(m)"}),
    (
        "Group g removed dynamic members who haven't joined: HashSet(m, n)",
        "did_not_join",
        "g",
        {"set": "HashSet(m, n)"},
    ),
    ("Group g removed dynamic members who haven't joined: [m]", "did_not_join", "g", {"set": "[m]"}),
    ("Group g could not complete rebalance because no members rejoined", "nobody_joined", "g", {}),
    ("Group g could not complete rebalance because no members rejoined.", "nobody_joined", "g", {}),
    (
        "Group leader [member.id: m1, group.instance.id: Some(i)] failed to join before rebalance timeout, while new "
        "leader "
        f"{META} was elected.",
        "leader_replaced",
        None,
        {"old": "m1", "member": "m-1"},
    ),
    (
        "Group leader [member.id: m1, group.instance.id: None] failed to join before rebalance timeout, and the group "
        "couldn't proceed to next generationbecause no member joined.",
        "remark",
        None,
        {},
    ),
    (
        "Group leader [memberId: m1, groupInstanceId: i] failed to join before the rebalance timeout. Member "
        "ClassicGroupMember(memberId='m2', groupInstanceId=Optional[j]) was elected as the new leader.",
        "leader_replaced",
        None,
        {"old": "m1", "member": "m2"},
    ),
    (
        "Group leader [memberId: m1, groupInstanceId: null] failed to join before the rebalance timeout and the group "
        "couldn't proceed to the next generation because no member joined.",
        "remark",
        None,
        {},
    ),
    ("Attempt to add rejoining member m of group g in unexpected group state Dead", "remark", "g", {}),
    (
        "Received unexpected notification of sync expiration for g with an old generation 3 while the group has 4.",
        "remark",
        "g",
        {},
    ),
    (
        "Received unexpected notification of sync expiration after group g already transitioned to the Dead state.",
        "remark",
        "g",
        {},
    ),
    (
        "Received unexpected notification of sync expiration after group g already transitioned to Dead state.",
        "remark",
        "g",
        {},
    ),
]


@pytest.mark.parametrize(("text", "kind", "group", "values"), MESSAGES, ids=[text[:60] for text, *_ in MESSAGES])
def test_each_message_of_each_version_is_read(text: str, kind: str, group: str | None, values: dict[str, Any]) -> None:
    check_message(text, kind, group, values)


@pytest.mark.parametrize(
    ("message", "node", "partition", "rest"),
    [
        ("[GroupCoordinator 1]: Starting up.", "1", None, "Starting up."),
        ("[GroupMetadataManager brokerId=12] Removed 0 ...", "12", None, "Removed 0 ..."),
        ("[GroupCoordinator id=3 topic=__consumer_offsets partition=7] Group g", "3", 7, "Group g"),
        ("[GroupCoordinator id=3] Startup complete.", "3", None, "Startup complete."),
        ("given member.id m", None, None, "given member.id m"),
    ],
)
def test_the_prefix_names_broker_and_partition(
    message: str, node: str | None, partition: int | None, rest: str
) -> None:
    assert split_prefix(message) == (node, partition, rest)


def test_only_group_coordinators_are_listened_to() -> None:
    assert of_a_coordinator("kafka.coordinator.group.GroupMetadata", "anything")
    assert of_a_coordinator(None, "[GroupCoordinator 1]: Starting up.")
    assert not of_a_coordinator(
        "kafka.coordinator.transaction.TransactionCoordinator", "[TransactionCoordinator id=1] x"
    )
    assert not of_a_coordinator(
        "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime", "[ShareCoordinator id=1] Finished loading"
    )
    assert not of_a_coordinator(None, "Preparing to cook")


@pytest.mark.parametrize("name", sorted(path.parent.name for path in GOLDEN.glob("*/group-coordinator.log")))
def test_every_line_that_a_real_kafka_4_logged_is_known(name: str) -> None:
    log = LogFile(name, "1")
    with (GOLDEN / name / "group-coordinator.log").open("rb") as file:
        found = list(log.statements(file))
    assert [each for each in found if isinstance(each, BrokenLine)] == []
    assert log.counts.unknown == 0
    read, counts = log.read, log.counts
    assert counts.statements + counts.other + read.continuations + read.blank == read.lines
    causes = Counter(each.values["cause"] for each in found if isinstance(each, Statement) and each.kind == "preparing")
    assert "unknown" not in causes


def test_what_is_left_out_of_real_logs_is_of_others() -> None:
    other = []
    for path in sorted(GOLDEN.glob("*/group-coordinator.log")):
        with path.open("rb") as file:
            records = [each for each in Lines().records(file) if isinstance(each, Record)]
        other += [each.message for each in records if not of_a_coordinator(each.logger, each.message)]
    assert all("share-coordinator" in text or text.startswith("Loaded metadata from") for text in other)
