"""A scenario file that is wrong is told with its line, its key, and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.reading import BadScenario, read_scenario, scenario_from
from simulation.scenario import parse_duration, show_duration

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
    ("old", "new", "told"),
    [
        ("consumers: 3", "consumer: 3", "line 7: groups.app.consumer: there is no such key; is it consumers?"),
        ("consumers: 3", "consumers: many", "line 7: groups.app.consumers: Input should be a valid integer"),
        ("    consumers: 3\n", "", "line 5: groups.app.consumers: is missing"),
        ("horizon: 10m", "horizon: 10", "line 1: horizon: expected a length of time with its unit"),
        ("topics: orders", "topics: clicks", "group app reads topic 'clicks', which is not under topics"),
        ("crash:", "crush:", "line 9: events.0.crush: there is no such key; is it crash?"),
        ("app-1,", "web-1,", "line 9: events[0]: there is no consumer 'web-1'"),
        (
            "at: 1m, crash: {consumer: app-1, restart: 10s}",
            "at: 1m",
            "line 9: events.0: says nothing; expected exactly",
        ),
        ("partitions: 6", "partitions: 0", "line 3: topics.orders.partitions: Input should be greater than or equal"),
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
def test_a_mistake_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(BadScenario) as problem:
        scenario_from(GOOD.replace(old, new, 1), "my.yaml")
    assert str(problem.value).startswith("my.yaml")
    assert told in str(problem.value)


@pytest.mark.parametrize("text", ["", "- 1\n", "just words\n", "a: &x [*x]\n", "\x00"])
def test_what_is_no_scenario_at_all_is_told_so(text: str) -> None:
    with pytest.raises(BadScenario):
        scenario_from(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="cannot be read"):
        read_scenario(tmp_path / "none.yaml")


def test_lengths_of_time() -> None:
    assert parse_duration("1h30m") == 5_400_000
    assert parse_duration("250ms") == 250
    assert parse_duration("1.5s") == 1_500
    assert [show_duration(ms) for ms in (250, 1_500, 90_000, 5_400_000)] == ["250ms", "1.5s", "1m30s", "1h30m"]
    for wrong in (5, "5", "5 minutes", "m5", "", None, True):
        with pytest.raises(ValueError, match="unit"):
            parse_duration(wrong)
