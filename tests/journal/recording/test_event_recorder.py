"""What is drawn of a group's events, beside what the cores themselves knew in the same run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rejoin.journal.events.coordinator import Cause, MemberJoined, MemberRejoined, MemberRemoved, RebalanceStarted
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from tests.journal.few_records import of_the_gallery

Rows = dict[str, list[list[Any]]]
NAMES = [
    "cooperative_scale_out",
    "coordinator_failover_in_mid_rebalance",
    "static_restart_between_cooperative_rebalances",
    "regex_begins_to_match",
]


@cache
def of_the_cores(name: str) -> Rows:
    """The rows of a run that asks the cores."""
    rows: Rows = {}
    for piece in LaboratoryRun(of_the_gallery(name)).play():
        for kind, values in piece.items():
            if isinstance(values, list):
                rows.setdefault(kind, []).extend(values)
    return rows


JOURNALS: dict[str, Rows] = {}
"""Rows of the journals of the gallery's runs, by the names of these."""


def of_its_journal(name: str, folder: Path) -> Rows:
    """The rows of a journal of a run of the gallery, which is played once."""
    if name not in JOURNALS:
        scenario = of_the_gallery(name)
        (group_id,) = scenario.groups
        JOURNALS[name] = of_the_journal(scenario, folder, group_id)
    return JOURNALS[name]


def of_the_journal(scenario: Scenario, folder: Path, group_id: str) -> Rows:
    """The rows of a journal of the same run."""
    play(scenario, journal=folder / "run.jsonl")
    return JournalRecording(folder / "run.jsonl").piece(group_id)


@pytest.mark.xdist_group("runs of the gallery as rows")
@pytest.mark.parametrize("name", NAMES)
def test_a_journal_is_drawn_like_the_run(name: str, tmp_path: Path) -> None:
    cores, journal = of_the_cores(name), of_its_journal(name, tmp_path)
    for kind in ("rebalances", "owners", "lines"):
        assert sorted(map(repr, journal[kind])) == sorted(map(repr, cores[kind])), kind
    assert int(str(journal["until"])) == of_the_gallery(name).horizon
    last = {name: generation for _, name, state, generation in journal["members"] if state == "STABLE"}
    known = {name: generation for _, name, state, generation in cores["members"] if state == "STABLE"}
    assert last == known


@pytest.mark.xdist_group("runs of the gallery as rows")
def test_each_parked_join_is_one_of_the_requests_that_waited(tmp_path: Path) -> None:
    number, client, api, arrived, answered = 0, 1, 3, 5, 6
    sent = {row[number]: row for row in of_the_cores("cooperative_scale_out")["requests"]}
    waited = {
        (row[client], row[arrived], row[answered])
        for row in sent.values()
        if row[api] == "JoinGroup" and row[answered] > row[arrived]
    }
    drawn = {row[number]: row for row in of_its_journal("cooperative_scale_out", tmp_path)["requests"]}
    parked = {
        (row[client], row[arrived], row[answered])
        for row in drawn.values()
        if row[api] == "JoinGroup" and row[answered] > row[arrived]
    }
    assert parked == waited


def joined(member_id: str, client_id: str, **fields: Any) -> MemberJoined:
    return MemberJoined(
        group_id="app",
        member_id=member_id,
        group_instance_id=None,
        client_id=client_id,
        client_host="/127.0.0.1",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        protocols=["range"],
        topics=["orders"],
        state="Empty",
        client_reason=None,
        **fields,
    )


def test_members_with_one_client_id_have_lanes_of_their_own() -> None:
    recorder = EventRecorder()
    recorder.on_event("1", joined("rdkafka-aaaaaa", "rdkafka"), 0)
    recorder.on_event("1", joined("rdkafka-bbbbbb", "rdkafka"), 5)
    removed = MemberRemoved(
        group_id="app", member_id="rdkafka-aaaaaa", group_instance_id=None, client_id="rdkafka", client_host="",
        cause="session-expiry", state="Stable", client_reason=None,
    )  # fmt: skip
    recorder.on_event("1", removed, 9)
    recorder.on_event("1", joined("rdkafka-cccccc", "rdkafka"), 12)
    rows = recorder.take()
    assert [row[0] for row in rows["actors"]] == ["1", "rdkafka", "rdkafka bbbbbb", "rdkafka"]
    assert [(at, name, state) for at, name, state, _ in rows["members"]] == [
        (0, "rdkafka", "PREPARING_REBALANCE"),
        (5, "rdkafka bbbbbb", "PREPARING_REBALANCE"),
        (9, "rdkafka", "UNJOINED"),
        (12, "rdkafka", "PREPARING_REBALANCE"),
    ]


def test_a_member_has_the_name_of_its_lane_in_the_lines_too() -> None:
    recorder = EventRecorder()
    recorder.on_event("1", joined("a-1-00000000-0000-0000-0000-000000000001", "a-1"), 0)
    second = "a-1-00000000-0000-0000-0000-000000000002"
    recorder.on_event("1", joined(second, "a-1"), 5)
    cause = Cause(cause="join-new", member_id=second, group_instance_id=None, client_reason=None)
    started = RebalanceStarted(
        group_id="app", generation=1, previous_state="Stable", cause=cause, initial=False, join_timeout_ms=300_000,
        members=["a-1-00000000-0000-0000-0000-000000000001"],
    )  # fmt: skip
    recorder.on_event("1", started, 5)
    rows = recorder.take()
    assert [row[0] for row in rows["actors"]] == ["1", "a-1", "a-1 000002"]
    assert [text for _, text, _ in rows["lines"]] == ["app  rebalance: a-1 000002 joined"]
    assert rows["rebalances"][0][5] == "a-1 000002 joined"


CRASH = """
horizon: 60s
topics:
  orders: {partitions: 6}
groups:
  app: {topics: orders, consumers: 3, session_timeout: 10s}
events:
  - {at: 20s, crash: {who: app-3, down: 3s}}
"""


def test_a_process_that_crashes_and_comes_back_has_one_lane(tmp_path: Path) -> None:
    rows = of_the_journal(scenario_from(CRASH), tmp_path, "app")
    lanes = dict.fromkeys(name for name, kind, *_ in rows["actors"] if kind == "consumer")
    assert list(lanes) == ["app-1", "app-2", "app-3"]
    assert {client for _, client, *_ in rows["requests"]} <= lanes.keys()


def test_who_lags_behind_keeps_its_generation_until_it_joins_again() -> None:
    recorder = EventRecorder()
    recorder.on_event("1", joined("a", "a"), 0)
    recorder.take()
    cause = Cause(cause="join-new", member_id="b", group_instance_id=None, client_reason=None)
    started = RebalanceStarted(
        group_id="app", generation=3, previous_state="Stable", cause=cause, initial=False, join_timeout_ms=300_000,
        members=["a"],
    )  # fmt: skip
    recorder.on_event("1", started, 100)
    assert "members" not in recorder.take()
    again = MemberRejoined(
        group_id="app", member_id="a", group_instance_id=None, protocols=["range"], topics=["orders"],
        state="PreparingRebalance", changed=False, client_reason=None,
    )  # fmt: skip
    recorder.on_event("1", again, 3_000)
    assert recorder.take()["members"] == [[3_000, "a", "PREPARING_REBALANCE", -1]]
