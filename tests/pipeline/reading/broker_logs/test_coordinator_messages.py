"""Messages on coordinators that move, offsets, whole groups and the newer protocols, in the form of each version."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rejoin.pipeline.reading.broker_logs.messages import read_message
from tests.pipeline.reading.broker_logs.messages import check_message

META = (
    "MemberMetadata(memberId=m-1, groupInstanceId=Some(i-1), clientId=c, clientHost=/10.0.0.1, sessionTimeoutMs=45000, "
    "rebalanceTimeoutMs=300000, supportedProtocols=List(range, cooperative-sticky))"
)
META_OLD = META.replace("sticky))", "sticky), )")

MESSAGES: list[tuple[str, str, str | None, dict[str, Any]]] = [
    # --- coordinators change
    ("Loading group metadata for g with generation 4", "loading", "g", {"generation": "4"}),
    ("Unloading group metadata for g with generation 4", "unloading", "g", {"generation": "4"}),
    ("[GroupId=g] Unloading group metadata for generation 4.", "unloading", "g", {"generation": "4"}),
    ("[GroupId=g] Unloaded group metadata for group epoch 4.", "unloading_modern", "g", {"epoch": "4"}),
    ("Loaded classic group g with 2 members.", "loaded_classic", "g", {"members": "2"}),
    ("Loaded consumer group g with 2 members.", "loaded_modern", "g", {"protocol": "consumer"}),
    (f"Loaded member {META} in group g with generation 4.", "loaded_member", "g", {"member": "m-1"}),
    (
        f"Static member {META}.groupInstanceId of group g loaded with member id m-1 at generation 4.",
        "loaded_member",
        "g",
        {"member": "m-1", "generation": "4"},
    ),
    ("Elected as the group coordinator for partition 7 in epoch 2", "elected", None, {"partition": "7", "epoch": "2"}),
    (
        "Resigned as the group coordinator for partition 7 in epoch OptionalInt[2]",
        "resigned",
        None,
        {"partition": "7", "epoch": "2"},
    ),
    (
        "Scheduling loading of offsets and group metadata from __consumer_offsets-7",
        "load_begins",
        None,
        {"partition": "7"},
    ),
    (
        "Scheduling loading of offsets and group metadata from __consumer_offsets-7 for epoch 2",
        "load_begins",
        None,
        {"epoch": "2"},
    ),
    (
        "Finished loading offsets and group metadata from __consumer_offsets-7 in 12 milliseconds.",
        "load_ends",
        None,
        {"partition": "7", "load_ms": "12"},
    ),
    (
        "Finished loading offsets and group metadata from __consumer_offsets-7 in 12 milliseconds for epoch 2, of "
        "which 1 "
        "milliseconds was spent in the scheduler.",
        "load_ends",
        None,
        {"load_ms": "12", "epoch": "2"},
    ),
    ("Error loading offsets from __consumer_offsets-7", "load_failed", None, {"partition": "7"}),
    (
        "Failed to load metadata from __consumer_offsets-7 with epoch 2 due to java.lang.IllegalStateException: no.",
        "load_failed",
        None,
        {"partition": "7", "epoch": "2", "why": "java.lang.IllegalStateException: no"},
    ),
    ("Scheduling unloading of offsets and group metadata from __consumer_offsets-7", "unload_begins", None, {}),
    (
        "Finished unloading __consumer_offsets-7. Removed 1 cached offsets and 2 cached groups.",
        "unload_ends",
        None,
        {"groups": "2"},
    ),
    (
        "Finished unloading __consumer_offsets-7 for coordinator epoch OptionalInt[2]. Removed 1 cached offsets and "
        "2 cached "
        "groups.",
        "unload_ends",
        None,
        {"epoch": "2"},
    ),
    ("Scheduling loading of metadata from __consumer_offsets-7 with epoch 2", "load_begins", None, {"epoch": "2"}),
    (
        "Finished loading of metadata from __consumer_offsets-7 with epoch 2 in 14ms where 8ms was spent in the "
        "scheduler. "
        "Loaded 10 records which total to 999 bytes.",
        "load_ends",
        None,
        {"load_ms": "14", "records": "10"},
    ),
    (
        "Started unloading metadata for __consumer_offsets-7 with epoch OptionalInt[2].",
        "unload_begins",
        None,
        {"epoch": "2"},
    ),
    ("Finished unloading metadata for __consumer_offsets-7 with epoch OptionalInt[2].", "unload_ends", None, {}),
    # --- offsets and whole groups
    ("Removed 3 expired offsets in 5 milliseconds.", "remark", None, {}),
    ("Removed 3 offsets associated with deleted partitions: t-0, t-1.", "remark", None, {}),
    ("The following groups were deleted: g, h", "deleted", None, {"list": "g, h"}),
    (
        "The following groups were deleted: g, h. A total of 3 offsets were removed.",
        "deleted",
        None,
        {"list": "g, h", "offsets": "3"},
    ),
    (
        "The following offsets of the group g were deleted: t-0, t-1. A total of 2 offsets were removed.",
        "offsets_deleted",
        "g",
        {"offsets": "2"},
    ),
    ("Creating simple consumer group g via manual offset commit.", "simple", "g", {}),
    ("[GroupId g] Creating a simple consumer group via manual offset commit.", "simple", "g", {}),
    ("Generated 3 tombstone records while cleaning up group metadata in 5 milliseconds.", "remark", None, {}),
    # --- the newer protocols
    ("[GroupId g] Member m joins the consumer group.", "modern_joined", "g", {"member": "m", "protocol": "consumer"}),
    (
        "[GroupId g] Member m joins the consumer group using the classic protocol.",
        "modern_joined",
        "g",
        {"member": "m"},
    ),
    (
        "[GroupId g] Member m joins the share group using the share protocol.",
        "modern_joined",
        "g",
        {"protocol": "share"},
    ),
    (
        "[GroupId g] Static member m with instance id i joins the consumer group using the consumer protocol.",
        "modern_joined",
        "g",
        {"member": "m", "instance": "i"},
    ),
    (
        "[GroupId g] Static member with instance id i re-joins the consumer group using the consumer protocol. "
        "Created a new "
        "member m2 to replace the existing member m1.",
        "modern_replaced",
        "g",
        {"instance": "i", "member": "m2", "old": "m1"},
    ),
    ("[GroupId g] Bumped group epoch to 5.", "modern_bumped", "g", {"epoch": "5"}),
    (
        "[GroupId g] Computed a new target assignment for epoch 5 with 'uniform' assignor in 3ms.",
        "modern_assigned",
        "g",
        {"epoch": "5", "assignor": "uniform"},
    ),
    (
        "[GroupId g] Computed a new target assignment for epoch 5 with 'uniform' assignor: {m=x}.",
        "modern_assigned",
        "g",
        {"epoch": "5"},
    ),
    (
        "[GroupId g] Member m new assignment state: epoch=5, previousEpoch=4, state=STABLE, assignedPartitions=[t-0].",
        "modern_member",
        "g",
        {"member": "m", "epoch": "5", "state": "STABLE"},
    ),
    ("[GroupId g] Member m left the consumer group.", "modern_left", "g", {"member": "m"}),
    (
        "[GroupId g] Static Member m with instance id i temporarily left the consumer group.",
        "modern_away",
        "g",
        {"member": "m", "instance": "i"},
    ),
    (
        "[GroupId g] Static Member m with instance id i left the consumer group.",
        "modern_left",
        "g",
        {"member": "m", "instance": "i"},
    ),
    (
        "[GroupId g] Member m fenced from the group because the member session expired..",
        "modern_fenced",
        "g",
        {"member": "m", "why": "the member session expired"},
    ),
    (
        "[GroupId g] Member m fenced from the group because it failed to transition from epoch 4 within 60000ms.",
        "modern_stuck",
        "g",
        {"member": "m", "epoch": "4", "took_ms": "60000"},
    ),
    (
        "[GroupId g] Static member m with instance id i cannot join the group because the instance id is owned by "
        "member n.",
        "remark",
        "g",
        {},
    ),
    ("[GroupId g] Static member m with instance id i is fenced by existing member n.", "fenced", "g", {"current": "n"}),
    (
        "[GroupId g] Dynamic member with unknown member id joins the consumer group. Created a new member id m and "
        "requesting "
        "the member to rejoin with this id.",
        "modern_id",
        "g",
        {"member": "m"},
    ),
]


@pytest.mark.parametrize(("text", "kind", "group", "values"), MESSAGES, ids=[text[:60] for text, *_ in MESSAGES])
def test_each_message_of_each_version_is_read(text: str, kind: str, group: str | None, values: dict[str, Any]) -> None:
    check_message(text, kind, group, values)


def test_the_list_at_the_end_of_a_long_message_does_not_matter() -> None:
    assignment = ", ".join(f"member-{number}=[orders-{number}]" for number in range(9000))
    text = (
        f"[GroupId orders-app] Computed a new target assignment for epoch 5 with 'range' assignor in 3ms: {assignment}."
    )
    check_message(text, "modern_assigned", "orders-app", {"epoch": "5", "assignor": "range"})


@pytest.mark.parametrize(
    "text",
    [
        "[Group orders-app] Member x" + " with instance id y" * 20_000,
        "[Group orders-app] Static member with instance id a re-joins the " + "classic group using the " * 20_000,
        "Dynamic member with unknown member id joins group a in Empty state. Created a new member id " * 5_000,
    ],
)
def test_a_long_message_that_no_coordinator_prints_costs_little(text: str) -> None:
    began = time.process_time()
    read_message(text)
    assert time.process_time() - began < 5
