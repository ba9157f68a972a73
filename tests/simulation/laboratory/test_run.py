"""A run that is looked at: the state of an instant is the cores' own, and what is done to it is one more event."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rejoin.simulation.laboratory.request_history import RequestFate
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.laboratory.scenario_edits import with_event
from rejoin.simulation.laboratory.state import state_at
from rejoin.simulation.laboratory.words import sentences
from rejoin.simulation.scenario.reading import BadScenario, scenario_from
from rejoin.simulation.simulation import Simulation

SCENARIO: Final = """\
horizon: 60s
topics:
  orders: {partitions: 4, records_per_second: 1}
groups:
  app:
    topics: orders
    consumers: 3
    assignor: range
    session_timeout: 10s
    max_poll_interval: 30s
coordinator: {nodes: 2}
events:  # what is done to it
  - {at: 10s, crash: {who: app-2}}   # for good
  - {at: 25s, failover: {group: app, down: 3s}}
  - {at: 32s, loss: {requests: 0.3, answers: 0.3, for: 10s}}
"""
CONSUMER_GROUP: Final = """\
horizon: 30s
topics:
  orders: {partitions: 4, records_per_second: 1}
groups:
  app: {topics: orders, consumers: 2, protocol: consumer}
events:
  - {at: 10s, scale: {group: app, to: 3}}
"""


def _played(text: str) -> tuple[LaboratoryRun, list[dict[str, Any]]]:
    run = LaboratoryRun(scenario_from(text))
    return run, list(run.play())


@pytest.fixture(scope="module")
def played() -> tuple[LaboratoryRun, list[dict[str, Any]]]:
    return _played(SCENARIO)


def _rows(pieces: list[dict[str, Any]], kind: str) -> list[list[Any]]:
    return [row for piece in pieces for row in piece.get(kind, ())]


@pytest.mark.parametrize("text", [SCENARIO, CONSUMER_GROUP], ids=["classic", "consumer"])
def test_the_state_of_an_instant_is_that_of_a_run_that_is_stopped_there(text: str) -> None:
    run, _ = _played(text)
    instants = [50_123, 3, 3_010, 10_020, 20_001, 25_001, 28_004, 34_567, 12_000, 12_001]
    fresh = Simulation(scenario_from(text), skip=False)
    fresh.begin()
    for instant in sorted(min(each, run.scenario.horizon) for each in instants):
        fresh.world.run(instant)
        shown = {each["node"]: each["group"] for each in state_at(run, instant)["groups"]["app"]["led"]}
        for node in fresh.cluster.nodes:
            view = None if node.core is None else node.core.describe_group("app")
            assert shown.get(node.name) == (None if view is None else view.model_dump(mode="json", by_alias=True))
        for name, process in state_at(run, instant)["processes"].items():
            core = fresh.consumers[name].core if name in fresh.consumers else None
            assert process["member"] == (None if core is None else core.describe()._asdict())


def test_the_order_in_which_instants_are_asked_for_does_not_matter(
    played: tuple[LaboratoryRun, list[dict[str, Any]]],
) -> None:
    run, _ = played
    instants = [40_000, 5_000, 5_001, 59_999, 26_000, 5_000]
    again, _ = _played(SCENARIO)
    forward = {instant: state_at(again, instant) for instant in sorted(instants)}
    assert [state_at(run, instant) for instant in instants] == [forward[instant] for instant in instants]


def test_rows_say_who_leads_who_is_up_and_what_was_lost(played: tuple[LaboratoryRun, list[dict[str, Any]]]) -> None:
    run, pieces = played
    assert {row[0] for row in _rows(pieces, "actors")} == {"node-1", "node-2", "app-1", "app-2", "app-3"}
    lives = [row[:3] for row in _rows(pieces, "lives")]
    assert [10_000, "app-2", "down"] in lives
    down, up = (next(row for row in lives if row[2] == what and row[0] >= 25_000) for what in ("down", "up"))
    assert (down[0], up[0], down[1]) == (25_000, 28_000, up[1])
    assert [10_000, "app-2", "DOWN", -1] in _rows(pieces, "members")
    assert [25_000, "app", down[1], "DOWN", -1] in _rows(pieces, "groups")
    fates = {row.fate for row in run.requests.rows}
    assert {RequestFate.ANSWERED, RequestFate.LOST_REQUEST, RequestFate.LOST_RESPONSE} <= fates
    assert all(row.answered_at == -1 for row in run.requests.rows if row.fate is RequestFate.LOST_REQUEST)
    assert all(
        row.answered_at >= row.arrived_at > 0 for row in run.requests.rows if row.fate is RequestFate.LOST_RESPONSE
    )
    assert pieces[-1]["done"]
    assert pieces[-1]["summary"]["app"][0] == ["rebalances", "2"]


def test_a_parked_join_is_in_flight_until_the_barrier_opens(
    played: tuple[LaboratoryRun, list[dict[str, Any]]],
) -> None:
    run, _ = played
    joins = [row for row in run.requests.rows if row.api == "JoinGroup" and row.answered_at - row.arrived_at > 1_000]
    assert joins
    assert all(
        any(each[0] == join.number for each in state_at(run, join.arrived_at + 1)["requests"]) for join in joins[:3]
    )


def test_the_sentences_name_who_is_missing_and_until_when() -> None:
    text = SCENARIO[: SCENARIO.index("events:")] + (
        "events:\n  - {at: 10s, stuck: {who: app-2, for: 40s}}\n  - {at: 12s, scale: {group: app, to: 4}}\n"
    )
    run, _ = _played(text)
    said = sentences(run, "app", state_at(run, 20_000))
    assert said[0].endswith("3 of 4 wait at this barrier.")
    assert said[1].startswith("Missing is app-2: its handler hangs until 0:00:50.000")
    assert said[2].startswith("That takes until 0:00:")
    assert said[2].endswith("then max.poll.interval.ms of app-2 ends, and it leaves by itself.")
    # What was said of the instant is what happens.
    until = 1_000 * float(said[2].split("0:00:")[1].split(",")[0])
    assert "PreparingRebalance" in str(state_at(run, round(until))["groups"]["app"])
    assert "PreparingRebalance" not in str(
        state_at(run, round(until) + 500)["groups"]["app"]["led"][0]["group"]["state"]
    )
    assert sentences(run, "app", state_at(run, 11_000))[1].startswith("The handler of app-2 hangs")


def test_the_sentences_follow_a_crash_and_a_failover(played: tuple[LaboratoryRun, list[dict[str, Any]]]) -> None:
    run, _ = played
    assert sentences(run, "app", state_at(run, 9_000)) == ["app is Stable in generation 1, 3 members."]
    assert sentences(run, "app", state_at(run, 11_000))[1].startswith("app-2 is down. The coordinator does not know")
    assert sentences(run, "app", state_at(run, 25_100))[0].startswith("No node leads app")


def test_the_sentences_say_that_a_ghost_holds_up_the_others() -> None:
    text = SCENARIO[: SCENARIO.index("events:")] + "events:\n  - {at: 10s, crash: {who: app-2, down: 2s}}\n"
    run, _ = _played(text)
    said = sentences(run, "app", state_at(run, 16_000))
    assert said[0].endswith("3 of 4 wait at this barrier.")
    assert said[1].startswith("Missing is the former member of app-2: its process was started again and is another")
    assert said[2].startswith("That takes until 0:00:1")
    assert said[2].endswith("then the session of the former member of app-2 ends, and the coordinator removes it.")


def test_the_sentences_name_a_member_that_does_not_know_it_is_none() -> None:
    text = SCENARIO[: SCENARIO.index("events:")] + "events:\n  - {at: 10s, pause: {who: app-2, for: 30s}}\n"
    run, _ = _played(text)
    said = sentences(run, "app", state_at(run, 30_000))
    assert said[1].startswith("app-2 is a member no more, and does not know: its process stands still until 0:00:40")
    assert said[1].endswith("until its next request is refused.")


def test_an_action_is_one_more_line_and_changes_nothing_before_it() -> None:
    changed = with_event(SCENARIO, 20_000, "pause: {who: app-1, for: 8s}")
    assert set(changed.splitlines()) - set(SCENARIO.splitlines()) == {"  - {at: 20s, pause: {who: app-1, for: 8s}}"}
    (run, before), (again, after) = _played(SCENARIO), _played(changed)
    assert [row for row in _rows(before, "lines") if row[0] < 20_000] == [
        row for row in _rows(after, "lines") if row[0] < 20_000
    ]
    assert state_at(run, 19_999) == state_at(again, 19_999)
    assert [20_000, "app-1", "paused", 28_000, ""] in _rows(after, "lives")


EVENTS_BEFORE_AND_AFTER = pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("", "events:\n  - {at: 5s, crash: {who: app-1}}\n"),
        ("events: []\n", "events: [{at: 5s, crash: {who: app-1}}]\n"),
        (
            "events: [{at: 1s, crash: {who: app-2}}]\n",
            "events: [{at: 1s, crash: {who: app-2}}, {at: 5s, crash: {who: app-1}}]\n",
        ),
        (
            "events:\n- at: 1s\n  crash:\n    who: app-2\n\n# the end\n",
            "events:\n- at: 1s\n  crash:\n    who: app-2\n- {at: 5s, crash: {who: app-1}}\n\n# the end\n",
        ),
    ],
    ids=["none", "empty", "flow", "block"],
)


@EVENTS_BEFORE_AND_AFTER
def test_an_action_leaves_other_keys_of_that_name(events: str, expected: str) -> None:
    named = SCENARIO[: SCENARIO.index("events:")].replace("topics:\n", "topics:\n  events:\n    partitions: 1\n")
    assert with_event(named + events, 5_000, "crash: {who: app-1}") == named + expected


@EVENTS_BEFORE_AND_AFTER
def test_an_action_keeps_the_style_of_the_list(events: str, expected: str) -> None:
    head = SCENARIO[: SCENARIO.index("events:")]
    assert with_event(head + events, 5_000, "crash: {who: app-1}") == head + expected


def test_an_action_that_is_no_event_is_refused_with_its_line() -> None:
    with pytest.raises(BadScenario) as refused:
        with_event(SCENARIO, 5_000, "crash: {who: app-9}")
    assert "there is never a consumer 'app-9'" in str(refused.value)
    assert refused.value.line == len(SCENARIO.splitlines()) + 1
