"""The controls of a scenario's settings, and what becomes of its text when one of them is moved."""

from __future__ import annotations

import pytest

from rejoin.simulation.laboratory.scenario_edits import with_value
from rejoin.simulation.laboratory.settings import controls_of
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.scenario.reading import BadScenario, scenario_from

SCENARIO = """\
question: q
horizon: 60s
topics:
  orders: {partitions: 4, records_per_second: 1}
groups:
  app: {topics: orders, consumers: 2, session_timeout: 10s}
  other: &other
    topics: [orders]
    # a comment
    consumers: 2
  third: {<<: *other, consumers: 3}
events:
  - {at: 5s, crash: {who: app-1, down: 5s}}
"""


@pytest.mark.parametrize(
    ("path", "value", "line", "expected"),
    [
        ("groups app session_timeout", "20s", 6, "  app: {topics: orders, consumers: 2, session_timeout: 20s}"),
        ("groups app poll", "1s", 6, "  app: {topics: orders, consumers: 2, session_timeout: 10s, poll: 1s}"),
        ("groups other poll", "1s", 11, "    poll: 1s"),
        ("groups third poll", "1s", 11, "  third: {<<: *other, consumers: 3, poll: 1s}"),
        ("coordinator settings group.max.size", "7", 14, "coordinator: {settings: {group.max.size: 7}}"),
    ],
)
def test_one_value_is_changed_and_all_else_stays(path: str, value: str, line: int, expected: str) -> None:
    changed = with_value(SCENARIO, path.split(), value).splitlines()

    assert changed[line - 1] == expected
    others = [each for each in SCENARIO.splitlines() if each not in changed]
    assert len(others) <= 1
    assert len(changed) - len(SCENARIO.splitlines()) == (not others)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("groups app session_timeout", "soon", "scenario:6: groups.app.session_timeout"),
        ("groups app sesion_timeout", "20s", "sesion_timeout"),
        ("horizon seconds", "20", "scenario:2: horizon.seconds: there are no keys in 60s"),
        ("groups app poll", "1s}\nevents: [", "scenario:7: not YAML"),
    ],
)
def test_what_would_be_no_scenario_is_refused_with_its_line(path: str, value: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=problem):
        with_value(SCENARIO, path.split(), value)


@pytest.mark.parametrize("name", sorted(path.stem for path in GALLERY.glob("*.yaml")))
def test_each_control_of_the_gallery_shows_the_value_that_the_scenario_has(name: str) -> None:
    text = (GALLERY / f"{name}.yaml").read_text()
    scenario = scenario_from(text)

    for control in (each for controls in controls_of(scenario).values() for each in controls):
        value = f"{control['value']}".lower() + ("ms" if control.get("unit") == "duration" else "")
        changed = scenario_from(with_value(text, control["path"], value))
        assert changed.groups == scenario.groups
        assert changed.events == scenario.events


def test_members_of_the_consumer_protocol_have_no_session_of_their_own() -> None:
    scenario = scenario_from(SCENARIO.replace("session_timeout: 10s", "protocol: consumer"))

    labels = {control["label"]: control for control in controls_of(scenario)["app"]}

    assert "session.timeout.ms" not in labels
    assert labels["group.consumer.session.timeout.ms"]["path"] == [
        "coordinator", "settings", "group.consumer.session.timeout.ms"
    ]  # fmt: skip
