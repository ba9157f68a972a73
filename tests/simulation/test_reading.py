"""A scenario file that is wrong is reported with its line, its key, and what was expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from rejoin.client.workload.processing_time import EXAMPLES
from rejoin.journal.events.base import Event
from rejoin.journal.events.simulation import ScenarioAction
from rejoin.simulation.kernel import Actor, Millis, SelectiveListener
from rejoin.simulation.run import play
from rejoin.simulation.scenario.actions import KINDS, ScheduledAction
from rejoin.simulation.scenario.durations import parse_duration
from rejoin.simulation.scenario.model import CoordinatorSpec, GroupSpec, NetworkSpec, Scenario, TopicSpec
from rejoin.simulation.scenario.reading import BadScenario, read_scenario, scenario_from
from tests import paths

GOOD = """\
horizon: 10m
topics:
  orders: {partitions: 6}
groups:
  app:
    topics: orders
    consumers: 3
events:
  - {at: 1m, crash: {who: app-1, down: 10s}}
"""


def test_a_good_one_is_read() -> None:
    scenario = scenario_from(GOOD)
    assert scenario.horizon == 600_000
    assert scenario.groups["app"].topics == ("orders",)
    assert scenario.events[0].kind == "crash"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("consumers: 3", "consumer: 3", ":7: groups.app.consumer: there is no such key; is it consumers?"),
        ("consumers: 3", "consumers: many", ":7: groups.app.consumers: expected a whole number, not 'many'"),
        ("    consumers: 3\n", "", ":5: groups.app.consumers: is missing"),
        ("horizon: 10m", "horizon: 10", ":1: horizon: expected a length of time with its unit"),
        ("topics: orders", "topics: clicks", ":6: group app reads topic 'clicks', which is not under topics"),
        ("crash:", "crush:", ":9: events.0.crush: there is no such key; is it crash?"),
        ("crash:", "twin:", ":9: events.0.twin: this key is called duplicate now"),
        ("{who:", "{consumer:", ":9: events.0.crash.consumer: this key is called who now"),
        ("down: 10s", "restart: 10s", ":9: events.0.crash.restart: this key is called down now"),
        ("at: 1m", "at: 1m, until: 2m", ":9: events.0: says 'until' without 'on_average_every'"),
        ("app-1,", "any-of-web,", ":9: events[0]: there is no group 'web'; there are app"),
        ("horizon: 10m", f"horizon: 10m\nseed: {'9' * 100_000}", ":2: a number of 100000 characters"),
        ("horizon: 10m", f"horizon: 10m\nseed: {2**63}", ":2: seed: expected less than"),
        ("horizon: 10m", "horizon: 2001-99-99", "not YAML: month must be in 1..12"),
        ("app-1,", "web-1,", ":9: events[0]: there is no consumer 'web-1'"),
        (
            "at: 1m, crash: {who: app-1, down: 10s}",
            "at: 1m",
            ":9: events.0: says nothing; expected exactly",
        ),
        ("partitions: 6", "partitions: 0", ":3: topics.orders.partitions: expected at least 1, not 0"),
        ("groups:", "topics:", ":4: topics is given twice, first in line 2"),
        ("horizon: 10m", "horizon: [10m", ":2: not YAML"),
        ("consumers: 3", "consumers: 3\n    assignor: rnage", ":8: groups.app.assignor: unknown assignor 'rnage'"),
        (
            "consumers: 3",
            "consumers: 3\n    processing: 5 ms",
            ":8: groups.app.processing: '5 ms': expected a time",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    session_timeout: 1s",
            ":8: groups.app.session_timeout is 1s, and heartbeat_interval is 3s; expected a session_timeout of",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    heartbeat_interval: 20s\n    session_timeout: 10s",
            ":9: groups.app.session_timeout is 10s, and heartbeat_interval is 20s; expected",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    heartbeat_interval: 45s",
            ":8: groups.app.heartbeat_interval is 45s, and session_timeout is 45s; expected a heartbeat_interval",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    heartbeat_interval: 0s",
            ":8: groups.app.heartbeat_interval: expected a length of time of at least 1ms, not '0s'",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    max_poll_interval: 0s",
            ":8: groups.app.max_poll_interval: expected a length of time of at least 1ms, not '0s'",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace(old, new, 1), "my.yaml")
    assert str(problem.value).startswith("my.yaml")
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("time", "with_unit"),
    [
        ("5", "5ms"),
        ("0.5/poll", "0.5ms/poll"),
        ("exp(5)", "exp(5ms)"),
        ("uniform(0,9)", "uniform(0,9ms)"),
        ("normal(5ms,1)", "normal(5ms,1ms)"),
        ("pareto(2,3)", "pareto(2ms,3)"),
    ],
)
def test_times_of_distributions_need_their_unit(time: str, with_unit: str) -> None:
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace("consumers: 3", f"consumers: 3\n    processing: {time}"), "my.yaml")
    assert str(problem.value) == (
        f"my.yaml:8: groups.app.processing: '{time}': expected a time with its unit, as in {with_unit}"
    )
    good = scenario_from(GOOD.replace("consumers: 3", f"consumers: 3\n    processing: {with_unit}"))
    assert good.groups["app"].processing == with_unit


@pytest.mark.parametrize("time", ["5ms", "1s/poll", *EXAMPLES.values()])
def test_times_that_errors_suggest_are_accepted(time: str) -> None:
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace("consumers: 3", "consumers: 3\n    processing: x"))
    assert time in str(problem.value)
    good = scenario_from(GOOD.replace("consumers: 3", f"consumers: 3\n    processing: {time}"))
    assert good.groups["app"].processing == time


def test_what_was_given_is_said_once() -> None:
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace("consumers: 3", "consumers: 3\n    assignor: rang"), "my.yaml")
    assert str(problem.value).startswith("my.yaml:8: groups.app.assignor: unknown assignor 'rang'; is it range?")
    assert str(problem.value).count("'rang'") == 1


EVENT = "crash: {who: app-1, down: 10s}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("app-1,", "app-9,", ":9: events[0]: there is never a consumer 'app-9'; app has at most 3"),
        ("app-1,", "app-01,", ":9: events[0]: there is never a consumer 'app-01'"),
        (EVENT, "pause: {who: [app-1, app-4], for: 1s}", ":9: events[0]: there is never a consumer 'app-4'"),
        ("at: 1m", "at: 11m", ":9: events[0]: 11m is after the end of the run; expected at most the horizon, 10m"),
        (EVENT, "grow: {topic: orders, to: 1}", "orders has 6 partitions by then; expected more, not 1"),
        (EVENT, "grow: {topic: orders, to: 6}", ":9: events[0]: topic orders has 6 partitions by then"),
        ("app:", '"":', ":5: groups: a name is empty"),
        ("app:", '"a b": {static: true, topics: orders, consumers: 3}\n  app:', ":5: group 'a b' begins"),
        ("  orders:", '  "":', ":3: topics: a name is empty"),
        ("horizon: 10m", "horizon: 9999999999h", ":1: horizon: expected a length of time of at most ten years"),
        ("horizon: 10m", f"horizon: {'9' * 400}h", ":1: horizon: expected a length of time of at most ten years"),
        ("horizon: 10m", "horizon: 0s", ":1: horizon: expected a length of time of at least 1ms, not '0s'"),
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
        "[{at: 1m, scale: {group: app, to: 9}}, {at: 2m, crash: {who: app-9}}]",
        "[{at: 1m, crash: {who: app-9}}, {at: 2m, scale: {group: app, to: 9}}]",
        "[{at: 1m, autoscaler: {group: app, max: 9, lag_per_consumer: 5}}, {at: 2m, reset: {who: app-9}}]",
        "[{at: 1m, scale: {group: app, to: 0}}, {at: 2m, crash: {who: app-3, down: 1s}}]",
        "[{at: 10m, crash: {who: app-1}}]",
        "[{at: 2m, grow: {topic: orders, to: 12}}, {at: 1m, grow: {topic: orders, to: 7}}]",
        "[{at: 2m, delete_topic: {topic: orders}}, {at: 1m, grow: {topic: orders, to: 7}}]",
        "[{at: 2m, pause: {who: [node-1, node-of-app, app-3], for: 1s}}]",
    ],
)
def test_what_can_happen_is_taken(events: str) -> None:
    text = GOOD.partition("events:")[0] + f"events: {events}\n"
    assert scenario_from(text).events


@pytest.mark.parametrize(
    ("group", "events", "message"),
    [
        (
            "protocol: modern",
            "",
            "app.protocol: expected one of classic, consumer, share or streams, not 'modern'",
        ),
        ("protocol: consumer, assignor: range", "", ":6: group app uses the consumer protocol: the coordinator"),
        ("protocol: consumer, session_timeout: 9s", "", "say consumer.session.timeout.ms in its settings"),
        ("protocol: consumer, heartbeat_interval: 1s", "", "say consumer.heartbeat.interval.ms in its settings"),
        ("settings: {consumer.session.timeout.ms: 50000}", "", "uses the classic protocol, which has no settings"),
        (
            "protocol: consumer, settings: {session.timeout.ms: 9000}",
            "",
            ":6: group app: 'session.timeout.ms' is not",
        ),
        (
            "protocol: consumer, settings: {consumer.heartbeat.interval.ms: 9000}",
            "configure: {group: app, settings: {consumer.heartbeat.interval.ms: 99}}",
            ":8: group app: consumer.heartbeat.interval.ms=99: expected at least 5000",
        ),
        ("remote_assignor: uniform", "", "group app uses the classic protocol, which has no remote_assignor"),
        ("protocol: consumer, remote_assignor: sticky", "", "has no assignor 'sticky'; it has uniform, range"),
        ("protocol: consumer, regex: 'o.*'", "", ":6: group app has both topics and regex"),
        ("regex: 'o.*'", "", ":6: group app has both topics and regex"),
        ("protocol: consumer", "deploy: {group: app, every: 1s, down: 1s, protocol: x}", ":8: events.0.deploy."),
        ("static: true", "subscribe: {who: app-1, regex: 'o.*'}", "app-1 may use the classic protocol"),
        ("protocol: consumer", "subscribe: {who: app-1, regex: '('}", "'(' is no regular expression"),
        ("protocol: consumer", "subscribe: {who: app-1}", "expected either topics or regex"),
    ],
)
def test_a_mistake_about_protocols_is_reported_with_its_line(group: str, events: str, message: str) -> None:
    text = "horizon: 10m\ntopics:\n  orders: {partitions: 6}\ngroups:\n"
    text += f"  app:\n    {{topics: orders, consumers: 3, {group}}}\n"
    if events:
        text += f"events:\n  - {{at: 1m, {events}}}\n"
    with pytest.raises(BadScenario) as problem:
        scenario_from(text, "my.yaml")
    assert message in str(problem.value)


def test_a_regular_expression_needs_the_consumer_protocol_all_the_time() -> None:
    group = "groups: {app: {regex: 'o.*', consumers: 1, protocol: consumer}}"
    text = f"horizon: 10m\ntopics: {{orders: {{partitions: 6}}}}\n{group}\n"
    assert scenario_from(text).topics_of("app") == ("orders",)
    deploy = "events: [{at: 1m, deploy: {group: app, every: 1s, down: 1s, protocol: classic}}]\n"
    with pytest.raises(BadScenario, match="line 3: group app has members that use the classic protocol"):
        scenario_from(text + deploy)
    with pytest.raises(BadScenario, match=r"line 3: group app: '\(' is no regular expression in the syntax of RE2"):
        scenario_from(text.replace("o.*", "("))


def test_a_topic_grows_only_from_what_it_has_by_then() -> None:
    events = "[{at: 2m, grow: {topic: orders, to: 7}}, {at: 1m, grow: {topic: orders, to: 12}}]"
    with pytest.raises(BadScenario, match=r"events\[0\]: topic orders has 12 partitions by then"):
        scenario_from(GOOD.partition("events:")[0] + f"events: {events}\n")


@pytest.mark.parametrize("later", ["delete_topic: {topic: orders}", "grow: {topic: orders, to: 12}"])
def test_nothing_happens_to_a_topic_that_is_gone(later: str) -> None:
    events = f"[{{at: 2m, {later}}}, {{at: 1m, delete_topic: {{topic: orders}}}}]"
    with pytest.raises(BadScenario, match=r"events\[0\]: topic orders is deleted by then"):
        scenario_from(GOOD.partition("events:")[0] + f"events: {events}\n")


def test_a_topic_that_is_not_listed_is_reported_with_its_own_line() -> None:
    text = GOOD.replace("topics: orders", "topics:\n      - orders\n      - clicks")
    with pytest.raises(BadScenario, match=":8: group app reads topic 'clicks', which is not under topics"):
        scenario_from(text, "my.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (EVENT, "crash: app-1", ":9: events.0.crash: expected keys such as who, down, not 'app-1'"),
        (
            "  - {at: 1m",
            "  - x\n  - {at: 1m",
            ":9: events.0: expected keys such as at, until, on_average_every, not 'x'",
        ),
        (f"\n  - {{at: 1m, {EVENT}}}", " 5", ":8: events: expected a list, not 5"),
        ("{partitions: 6}", "6", ":3: topics.orders: expected keys such as partitions, records_per_second, until"),
        (
            "who: app-1",
            "who: 1",
            ":9: events.0.crash.who: expected a name, or a list of names, not 1",
        ),
        ("who: app-1", "who: []", ":9: events.0.crash.who: expected at least one"),
        ("topics: orders", "topics: [1]", ":6: groups.app.topics.0: expected text; put a number in quotes, not 1"),
        ("orders: {", "1: {", ":3: topics.1: expected text for a name; put it in quotes, not 1"),
        ("consumers: 3", "consumers: 1.5", ":7: groups.app.consumers: expected a whole number, not 1.5"),
        ("consumers: 3", "consumers: 3\n    static: 3", ":8: groups.app.static: expected true or false, not 3"),
        (
            "consumers: 3",
            "consumers: 3\n    assignor: 3",
            ":8: groups.app.assignor: expected the name of an assignor",
        ),
        (
            "consumers: 3",
            "consumers: 3\n    commit: never",
            ":8: groups.app.commit: expected one of auto, after, after-async, before, none or transaction, not",
        ),
        (
            "horizon: 10m",
            "horizon: 10m\nnetwork: {lost_requests: 2}",
            "network.lost_requests: expected at most 1, not 2",
        ),
        (
            "horizon: 10m",
            "horizon: 10m\ncoordinator: 1",
            ":2: coordinator: expected keys such as nodes, settings, log",
        ),
        ("horizon: 10m", "horizon: 10m\ncoordinator: {settings: 1}", "settings: expected a name for each, with keys"),
        (
            "horizon: 10m",
            "horizon: 10m\ncoordinator: {settings: {group.max.sise: 3}}",
            ":2: coordinator.settings.group.max.sise: there is no such key; is it group.max.size?",
        ),
        (
            "topics:\n  orders: {partitions: 6}",
            "topics:",
            ":2: topics: expected a name for each, with keys below it",
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


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB + GOOD, ":5: holds more than 100,000 values once its aliases are written out"),
        ("a: &a [*a]\n" + GOOD, ":1: an alias stands for a part that contains it"),
        (f"a: {'[' * 5_000}", ":1: is nested too deeply; expected at most 40 levels"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(100)), ":41: is nested too deeply"),
    ],
    ids=["aliases", "recursive alias", "brackets", "indentation"],
)
def test_what_unfolds_without_end_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(BadScenario) as problem:
        scenario_from(text, "my.yaml")
    assert message in str(problem.value)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadScenario, match=r"large\.yaml: is too large; expected at most 4 MB"):
        read_scenario(tmp_path / "large.yaml")


PAGE = (paths.ROOT / "docs" / "scenarios.md").read_text()


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_what_the_page_shows_can_be_read(text: str) -> None:
    assert scenario_from(text).groups


@pytest.mark.parametrize("part", [Scenario, TopicSpec, GroupSpec, NetworkSpec, CoordinatorSpec])
def test_the_page_names_every_key(part: type[BaseModel]) -> None:
    for name in part.model_fields:
        assert f"`{name}`" in PAGE, f"docs/scenarios.md does not explain {name}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_every_key_of_an_action(kind: str) -> None:
    action = get_args(ScheduledAction.model_fields[kind].annotation)[0]
    row = next(line for line in PAGE.partition("## Events")[2].splitlines() if line.startswith(f"| `{kind}` |"))
    for name, field in action.model_fields.items():
        assert f"`{field.alias or name}`" in row, f"{kind}: {field.alias or name}"


def test_random_events_come_at_their_rate_and_concern_any_consumer() -> None:
    text = GOOD.replace("10m", "10h").partition("events:")[0]
    text += "events: [{at: 1h, until: 9h, on_average_every: 10m, pause: {who: any, for: 5s}}]"
    announced: list[tuple[int, str]] = []

    def on_action(_: Actor, event: Event, now: Millis) -> None:
        assert isinstance(event, ScenarioAction)
        announced.append((now, event.action))

    play(scenario_from(text), 7, listeners=[SelectiveListener(on_action, [ScenarioAction])])
    assert 30 <= len(announced) <= 70, "48 on average"
    assert {action for _, action in announced} == {f"app-{number} is paused for 5s" for number in (1, 2, 3)}
    assert all(3_600_000 <= at <= 9 * 3_600_000 for at, _ in announced)
