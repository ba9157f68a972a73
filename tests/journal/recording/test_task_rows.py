"""Rows of streams groups, from the events of a coordinator alone and from those of threads."""

from __future__ import annotations

from typing import Any

from rejoin.journal.events.coordinator import MemberJoined, MemberRemoved
from rejoin.journal.events.streams_groups import (
    StreamsInternalTopicsCreated,
    StreamsMemberAssigned,
    StreamsShutdownRequested,
    StreamsTopologyConfigured,
)
from rejoin.journal.events.streams_members import StreamsTaskRestored, StreamsTasksAssigned, StreamsTasksGivenUp
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.journal.recording.recorder import Recorder

GROUP = "counts"


def joined(client: str) -> MemberJoined:
    return MemberJoined.model_construct(
        group_id=GROUP, member_id=f"id-of-{client}", group_instance_id=None, client_id=client, client_host="/10.0.0.1",
        session_timeout_ms=45_000, rebalance_timeout_ms=300_000, protocols=[], topics=None, state="Assigning",
        client_reason=None, member_type="streams",
    )  # fmt: skip


def assigned(client: str, state: str = "STABLE", **tasks: dict[str, list[int]]) -> StreamsMemberAssigned:
    none: dict[str, Any] = {each: {} for each in ("active", "standby", "revoking_active", "revoking_standby")}
    return StreamsMemberAssigned(
        group_id=GROUP, member_id=f"id-of-{client}", group_instance_id=None, process_id=f"process-{client[0]}",
        member_epoch=3, member_state=state, **(none | tasks),
    )  # fmt: skip


def test_a_coordinator_says_which_tasks_a_member_has_until_it_gives_them_up() -> None:
    recorder = EventRecorder()
    revoking = assigned("a-1", "UNREVOKED_TASKS", active={"0": [0]}, revoking_active={"0": [1]}, standby={"1": [0]})
    removed = MemberRemoved.model_construct(
        group_id=GROUP,
        member_id="id-of-a-1",
        client_id="a-1",
        group_instance_id=None,
        cause="left",
        client_reason=None,
        client_host="/10.0.0.1",
        state="Stable",
    )
    events = [
        joined("a-1"),
        assigned("a-1", active={"0": [0, 1]}),
        revoking,
        assigned("a-1", active={"0": [0]}),
        removed,
    ]
    for at, event in enumerate(events):
        recorder.on_event("node-1", event, at)
    rows = recorder.take()
    assert rows["kinds"] == [[GROUP, "streams"]]
    assert rows["tasks"] == [
        [1, GROUP, "a-1", "process-a", ["0_0", "0_1"], [], [], 0],
        [2, GROUP, "a-1", "process-a", ["0_0", "0_1"], ["1_0"], [], 0],
        [3, GROUP, "a-1", "process-a", ["0_0"], [], [], 0],
        [4, GROUP, "a-1", "process-a", [], [], [], 0],
    ]
    states = [[at, state, epoch] for at, name, state, epoch in rows["members"] if name == "a-1"]
    assert states[1:] == [[1, "STABLE", 3], [2, "RECONCILING", 3], [3, "STABLE", 3], [4, "UNJOINED", -1]]


def test_threads_say_themselves_what_they_have_and_when_it_runs() -> None:
    recorder = Recorder()
    who: dict[str, Any] = {
        "client_id": "a-1", "group_id": GROUP, "group_instance_id": None, "member_id": "id-of-a-1", "generation": 3,
    }  # fmt: skip
    took = StreamsTasksAssigned(**who, active={"0": [1]}, standby={"0": [0]}, warmup={"1": [2]})
    runs = StreamsTaskRestored(
        **who, subtopology_id="0", partition=1, state_from="changelog", restored_records=70, restore_ms=9
    )
    gave = StreamsTasksGivenUp(**who, reason="revoked", active={"0": [1]}, standby={})
    for at, event in enumerate([joined("a-1"), assigned("a-1", active={"0": [7]}), took, runs, gave]):
        recorder.on_event("node-1", event, at)
    rows = recorder.take()
    assert rows["tasks"] == [
        [2, GROUP, "a-1", "process-a", ["0_1"], ["0_0"], ["1_2"], 1],
        [4, GROUP, "a-1", "process-a", [], ["0_0"], ["1_2"], 1],
    ]
    assert rows["restores"] == [[3, GROUP, "a-1", "0_1", "changelog", 70]]


def test_what_keeps_a_group_from_running_is_said_in_words() -> None:
    recorder = EventRecorder()
    recorder.on_event("node-1", joined("a-1"), 0)
    of: dict[str, Any] = {"group_id": GROUP, "member_id": "id-of-a-1"}
    missing = {"status": "MISSING_SOURCE_TOPICS", "reason": "Source topics are missing: lines."}
    for event in (
        StreamsTopologyConfigured(**of, topology_epoch=0, **missing),
        StreamsInternalTopicsCreated(
            group_id=GROUP, topics=["counts-changelog"], error="POLICY", reason="Not allowed."
        ),
        StreamsInternalTopicsCreated(group_id=GROUP, topics=["counts-changelog"], error=None, reason=None),
        StreamsTopologyConfigured(**of, topology_epoch=0, status=None, reason=None),
        StreamsShutdownRequested(**of, group_instance_id=None),
    ):
        recorder.on_event("node-1", event, 1)
    assert [row[2:] for row in recorder.take()["readiness"]] == [
        ["not ready", "Source topics are missing: lines."],
        ["no topics", "counts-changelog: Not allowed."],
        ["topics", "counts-changelog"],
        ["ready", ""],
        ["shutdown", "shutdown requested by a-1"],
    ]
