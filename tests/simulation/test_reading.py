"""A scenario file that is wrong is reported with its line, its key, and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoin.simulation.scenario.durations import parse_duration
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, scenario_from

GOOD = """\
horizon: 10m
topics:
  orders: {partitions: 6}
groups:
  app:
    topics: orders
    consumers: 3
events:
  - {at: 1m, crash: {consumer: app-1, restart: 10s}}
"""


def test_a_good_one_is_read() -> None:
    scenario = scenario_from(GOOD)
    assert scenario.horizon == 600_000
    assert scenario.groups["app"].topics == ("orders",)
    assert scenario.events[0].kind == "crash"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("consumers: 3", "consumer: 3", "line 7: groups.app.consumer: there is no such key; is it consumers?"),
        ("consumers: 3", "consumers: many", "line 7: groups.app.consumers: expected a whole number, not 'many'"),
        ("    consumers: 3\n", "", "line 5: groups.app.consumers: is missing"),
        ("horizon: 10m", "horizon: 10", "line 1: horizon: expected a length of time with its unit"),
        ("topics: orders", "topics: clicks", "line 6: group app reads topic 'clicks', which is not under topics"),
        ("crash:", "crush:", "line 9: events.0.crush: there is no such key; is it crash?"),
        ("crash:", "twin:", "line 9: events.0.twin: there is no such key; is it duplicate?"),
        ("app-1,", "web-1,", "line 9: events[0]: there is no consumer 'web-1'"),
        (
            "at: 1m, crash: {consumer: app-1, restart: 10s}",
            "at: 1m",
            "line 9: events.0: says nothing; expected exactly",
        ),
        ("partitions: 6", "partitions: 0", "line 3: topics.orders.partitions: expected at least 1, not 0"),
        ("groups:", "topics:", "line 4: topics is there twice; first in line 2"),
        ("horizon: 10m", "horizon: [10m", "line 2: not YAML"),
        ("consumers: 3", "consumers: 3\n    assignor: rnage", "line 8: groups.app.assignor: unknown assignor 'rnage'"),
        (
            "consumers: 3",
            "consumers: 3\n    processing: 5 ms",
            "line 8: groups.app.processing: '5 ms': expected a time",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace(old, new, 1), "my.yaml")
    assert str(problem.value).startswith("my.yaml")
    assert message in str(problem.value)


EVENT = "crash: {consumer: app-1, restart: 10s}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("app-1,", "app-9,", "line 9: events[0]: there is never a consumer 'app-9'; app has 3 of them at the most"),
        ("app-1,", "app-01,", "line 9: events[0]: there is never a consumer 'app-01'"),
        (EVENT, "pause: {who: [app-1, app-4], for: 1s}", "line 9: events[0]: there is never a consumer 'app-4'"),
        ("at: 1m", "at: 11m", "line 9: events[0]: at 11m the horizon is over, which is 10m"),
        (EVENT, "grow: {topic: orders, to: 1}", "orders has 6 partitions by then; expected more than that, not 1"),
        (EVENT, "grow: {topic: orders, to: 6}", "line 9: events[0]: topic orders has 6 partitions by then"),
        ("app:", '"":', "line 5: groups: a name is empty"),
        ("  orders:", '  "":', "line 3: topics: a name is empty"),
        ("horizon: 10m", "horizon: 9999999999h", "line 1: horizon: expected a length of time of at most ten years"),
        ("horizon: 10m", f"horizon: {'9' * 400}h", "line 1: horizon: expected a length of time of at most ten years"),
        ("horizon: 10m", "horizon: 0s", "line 1: horizon: expected a length of time of at least 1ms, not '0s'"),
    ],
)
def test_what_would_be_taken_silently_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace(old, new, 1), "my.yaml")
    assert message in str(problem.value)


@pytest.mark.parametrize(
    "events",
    [
        "[{at: 1m, scale: {group: app, to: 9}}, {at: 2m, crash: {consumer: app-9}}]",
        "[{at: 1m, crash: {consumer: app-9}}, {at: 2m, scale: {group: app, to: 9}}]",
        "[{at: 1m, autoscaler: {group: app, max: 9, lag_per_consumer: 5}}, {at: 2m, reset: {consumer: app-9}}]",
        "[{at: 1m, scale: {group: app, to: 0}}, {at: 2m, crash: {consumer: app-3, restart: 1s}}]",
        "[{at: 10m, crash: {consumer: app-1}}]",
        "[{at: 2m, grow: {topic: orders, to: 12}}, {at: 1m, grow: {topic: orders, to: 7}}]",
        "[{at: 2m, pause: {who: [node-1, node-of-app, app-3], for: 1s}}]",
    ],
)
def test_what_can_happen_is_taken(events: str) -> None:
    text = GOOD.partition("events:")[0] + f"events: {events}\n"
    assert scenario_from(text).events


def test_a_topic_grows_only_from_what_it_has_by_then() -> None:
    events = "[{at: 2m, grow: {topic: orders, to: 7}}, {at: 1m, grow: {topic: orders, to: 12}}]"
    with pytest.raises(BadScenario, match=r"events\[0\]: topic orders has 12 partitions by then"):
        scenario_from(GOOD.partition("events:")[0] + f"events: {events}\n")


def test_a_topic_that_is_not_listed_is_reported_with_its_own_line() -> None:
    text = GOOD.replace("topics: orders", "topics:\n      - orders\n      - clicks")
    with pytest.raises(BadScenario, match="line 8: group app reads topic 'clicks', which is not under topics"):
        scenario_from(text, "my.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (EVENT, "crash: app-1", "line 9: events.0.crash: expected keys such as consumer, restart, not 'app-1'"),
        ("  - {at: 1m", "  - x\n  - {at: 1m", "line 9: events.0: expected keys such as at, deploy, scale, not 'x'"),
        (f"\n  - {{at: 1m, {EVENT}}}", " 5", "line 8: events: expected a list, not 5"),
        ("{partitions: 6}", "6", "line 3: topics.orders: expected keys such as partitions, records_per_second, not 6"),
        (
            "consumer: app-1",
            "consumer: 1",
            "line 9: events.0.crash.consumer: expected a name, or a list of names, not 1",
        ),
        ("consumer: app-1", "consumer: []", "line 9: events.0.crash.consumer: expected at least one"),
        ("topics: orders", "topics: [1]", "line 6: groups.app.topics.0: expected text; put a number in quotes, not 1"),
        ("orders: {", "1: {", "line 3: topics.1: expected text for a name; put it in quotes, not 1"),
        ("consumers: 3", "consumers: 1.5", "line 7: groups.app.consumers: expected a whole number, not 1.5"),
        ("consumers: 3", "consumers: 3\n    static: 3", "line 8: groups.app.static: expected true or false, not 3"),
        (
            "consumers: 3",
            "consumers: 3\n    assignor: 3",
            "line 8: groups.app.assignor: expected the name of an assignor",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    commit: never",
            "line 8: groups.app.commit: expected one of auto, after, after-async, before or none, not 'never'",
        ),
        (
            "horizon: 10m",
            "horizon: 10m\nnetwork: {lost_requests: 2}",
            "network.lost_requests: expected at most 1, not 2",
        ),
        (
            "horizon: 10m",
            "horizon: 10m\ncoordinator: 1",
            "line 2: coordinator: expected keys such as nodes, settings, log",
        ),
        ("horizon: 10m", "horizon: 10m\ncoordinator: {settings: 1}", "settings: expected a name for each, with keys"),
        (
            "horizon: 10m",
            "horizon: 10m\ncoordinator: {settings: {group.max.sise: 3}}",
            "line 2: coordinator.settings.group.max.sise: there is no such key; is it group.max.size?",
        ),
        (
            "topics:\n  orders: {partitions: 6}",
            "topics:",
            "line 2: topics: expected a name for each, with keys below it",
        ),
    ],
)
def test_a_message_says_what_was_expected(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace(old, new, 1), "my.yaml")
    assert message in str(problem.value)
    for word in ("Input", "valid", "tuple", "dictionary", "instance", "integer", "None"):
        assert word not in str(problem.value)


@pytest.mark.parametrize("text", ["", "- 1\n", "just words\n", "a: &x [*x]\n", "\x00"])
def test_a_file_that_is_no_scenario_is_refused(text: str) -> None:
    with pytest.raises(BadScenario):
        scenario_from(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="cannot be read"):
        read_scenario(tmp_path / "none.yaml")


def test_lengths_of_time() -> None:
    assert parse_duration("1h30m") == 5_400_000
    assert parse_duration("250ms") == 250
    assert parse_duration("1.5s") == 1_500
    for wrong in (5, "5", "5 minutes", "m5", "", None, True):
        with pytest.raises(ValueError, match="unit"):
            parse_duration(wrong)
