"""Grids: what the names of parameters stand for, and what is said of a grid that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoin.pipeline.sweep.grid import grid_from, read_grid
from rejoin.simulation.scenario.reading import BadScenario
from tests import paths
from tests.pipeline.sweep.sweeps import SCENARIO, grid

GROWTH = "scenario: topic_growth\nparameters:\n"
EXAMPLES = paths.ROOT / "examples" / "sweeps"


def of(parameters: str, seeds: str = "1") -> list[dict[str, Any]]:
    """The scenarios of a grid, as its groups and events have them."""
    read = grid_from(f"{SCENARIO}\nseeds: {seeds}\nparameters:\n{parameters}")
    return [point.scenario.model_dump() for point in read.points]


@pytest.mark.parametrize("name", ["static", "app.static", "groups.app.static"])
def test_a_key_of_a_group_has_a_long_and_two_short_names(name: str) -> None:
    values = [scenario["groups"]["app"]["static"] for scenario in of(f"  {name}: [false, true]")]
    assert values == [False, True]


@pytest.mark.parametrize("name", ["events.0.deploy.down", "events[0].deploy.down", "deploy.down", "events.deploy.down"])
def test_a_key_of_an_event_can_be_named_by_number_and_by_kind(name: str) -> None:
    values = [scenario["events"][0]["deploy"]["down"] for scenario in of(f"  {name}: [5s, 1m]")]
    assert values == ["5s", "1m"]


def test_kafkas_settings_have_dots_in_their_names() -> None:
    name = "coordinator.settings.group.initial.rebalance.delay.ms"
    values = [scenario["coordinator"]["settings"] for scenario in of(f"  {name}: [0, 3000]")]
    assert values == [{"group.initial.rebalance.delay.ms": 0}, {"group.initial.rebalance.delay.ms": 3000}]


def test_any_other_path_of_the_scenario_will_do() -> None:
    scenarios = of(
        "  topics.orders.partitions: [3, 9]\n  horizon: [2m, 5m]\n  start.every: [1s]".replace("start", "app.start")
    )
    assert [(each["topics"]["orders"]["partitions"], each["horizon"]) for each in scenarios] == [
        (3, "2m"),
        (3, "5m"),
        (9, "2m"),
        (9, "5m"),
    ]


def test_several_assignors_are_one_value() -> None:
    values = [each["groups"]["app"]["assignor"] for each in of("  assignor: [range, [range, cooperative-sticky]]")]
    assert values == [("range",), ("range", "cooperative-sticky")]


@pytest.mark.parametrize(("text", "seeds"), [("3", (1, 2, 3)), ("5:8", (5, 6, 7)), ("[4, 2, 4]", (4, 2))])
def test_seeds_are_a_count_a_range_or_a_list(text: str, seeds: tuple[int, ...]) -> None:
    read = grid_from(f"{SCENARIO}\nseeds: {text}")
    assert read.seeds == seeds
    assert [run.seed for run in read.runs()] == list(seeds)


def test_a_run_is_known_by_what_its_result_depends_on() -> None:
    keys = [run.key for run in grid().runs()]
    said_otherwise = grid(f"question: another\n{SCENARIO}".replace("horizon: 4m", "horizon: 240s"))
    assert len(set(keys)) == 16
    more = grid_from(f"{SCENARIO}\nparameters:\n  deploy.down: [12s, 5s, 20s]\n  static: [false, true]\nseeds: 5")
    assert set(keys) < {run.key for run in more.runs()}
    plain = grid_from(f"{SCENARIO}\nparameters:\n  deploy.down: [8s]")
    assert next(said_otherwise.runs()).key == next(plain.runs()).key
    later = grid_from(SCENARIO.replace("count_from: 1m", "count_from: 2m"))
    assert next(later.runs()).key != next(plain.runs()).key


def test_a_scenario_comes_from_the_gallery_from_a_file_or_from_the_grid(tmp_path: Path) -> None:
    named = grid_from("scenario: dynamic_rolling_deploy")
    assert named.points[0].scenario.groups["orders-app"].consumers == 6
    assert "rolling deploy" in named.question
    body = SCENARIO.partition("scenario:")[2].partition("count_from")[0]
    (tmp_path / "mine.yaml").write_text("\n".join(line.removeprefix("  ") for line in body.splitlines()))
    (tmp_path / "grid.yaml").write_text("scenario: mine.yaml\ncount_from: 1m\n")
    assert read_grid(tmp_path / "grid.yaml").points == grid_from(SCENARIO).points


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_good(path: Path) -> None:
    assert len(list(read_grid(path).runs())) > 1


def test_a_value_with_which_an_event_comes_to_nothing_is_tried_all_the_same() -> None:
    """Where people write a scenario it is a mistake; in a grid it may be what the others are compared with."""
    assert [point.scenario.events[0].action.to for point in grid_from(f"{GROWTH}  grow.to: [6, 12]").points] == [6, 12]
    assert len(grid_from(f"{GROWTH}  horizon: [3m, 10m]").points) == 2


BAD = {
    "": "grid.yaml: is empty; expected scenario, parameters and seeds",
    "- 1": "grid.yaml:1: expected keys such as scenario, parameters and seeds",
    "scenario: [": "grid.yaml:1: not YAML",
    "seeds: 3": "grid.yaml:1: scenario: is missing",
    "scenario: [1]": "grid.yaml:1: scenario: expected a scenario's file, its name in the gallery, or its keys",
    "scenario: topic_growht": ":1: scenario: neither topic_growht nor the gallery has it; is it topic_growth?",
    "scenario:\n  horizon: 1m\n  topics: {t: {partitons: 3}}\n  groups: {}": (
        "grid.yaml:3: scenario.topics.t.partitons: there is no such key; is it partitions?"
    ),
    "scenario:\n  horizon: 1m\n  topics: {}\n  groups:\n    g:\n      topics: t\n      consumers: 1": (
        "grid.yaml:6: scenario: group g reads topic 't', which is not under topics"
    ),
    "scenario: topic_growth\nparams: {}": "grid.yaml:2: params: there is no such key; is it parameters?",
    "scenario: topic_growth\nseeds: 0": "grid.yaml:2: seeds: expected between 1 and 1,000,000 seeds, not 0",
    "scenario: topic_growth\nseeds: 3:x": ":2: seeds: expected a number of seeds, a range A:B or a list of numbers",
    "scenario: topic_growth\nseeds: [1, x]": "grid.yaml:2: seeds.1: expected a whole number, not 'x'",
    "scenario: topic_growth\ncount_from: 1h": ":2: count_from: expected less than the scenario's horizon",
    "scenario: topic_growth\ncount_from: 10": ":2: count_from: expected a length of time with its unit",
    "scenario: topic_growth\nrank_by: [rebalance]": "2: rank_by: there is no measure 'rebalance'; is it rebalances?",
    "scenario: topic_growth\nparameters:\n  static: true": "3: parameters.static: expected a list of values to try",
    "scenario: topic_growth\nparameters:\n  static: []": "3: parameters.static: expected at least one value",
    "scenario: topic_growth\nparameters:\n  statc: [true]": "3: parameters.statc: there is no key 'statc'; is it sta",
    "scenario: topic_growth\nparameters:\n  static: [true]\n  static: [false]": ":4: static is given twice",
    "scenario: topic_growth\nparameters:\n  seed: [1]": ":3: parameters.seed: seeds have a key of their own",
    "scenario: topic_growth\nparameters:\n  static:\n    - true\n    - 3": (
        ":5: parameters.static: expected true or false, not 3"
    ),
    "scenario: topic_growth\nparameters:\n  session_timeout: [10s,\n    10]": (
        ":4: parameters.session_timeout: expected a length of time with its unit"
    ),
    "scenario: topic_growth\nparameters:\n  orders-app.heartbeat: [1s]": (
        ":3: parameters.orders-app.heartbeat: there is no key 'heartbeat'; is it"
    ),
    "scenario: topic_growth\nparameters:\n  events.7.at: [1s]": (
        ":3: parameters.events.7.at: the scenario has 1 events, counted from 0"
    ),
    "scenario: topic_growth\nparameters:\n  deploy.down: [1s]": (
        ":3: parameters.deploy.down: there is no kind of event with a key 'deploy'; known are grow"
    ),
    "scenario: topic_growth\nparameters:\n  grow.too: [9]": "3: parameters.grow.too: there is no key 'too'; is it to?",
    "scenario: topic_growth\nparameters:\n  topics.orders.partitions.x: [1]": (
        ":3: parameters.topics.orders.partitions.x: topics.orders.partitions has no keys"
    ),
    "scenario: topic_growth\nparameters:\n  coordinator.settings.group.max.size: [x]": (
        ":3: parameters.coordinator.settings.group.max.size: expected a whole number, not 'x'"
    ),
    "scenario: static_id_used_twice\nparameters:\n  static: [true, false]": (
        ":2: parameters: with static=false: events[0]: orders-app-2 has no group.instance.id"
    ),
    "scenario: topic_growth\nparameters:\n  consumers: [1, 2]\nseeds: 900000": ":2: these are 1,800,000 runs",
    "scenario: topic_growth\nparameters:\n  consumers: [3, 4]\n  static: [false, false]": (
        ":4: parameters.static: false is there twice"
    ),
    "scenario: topic_growth\nparameters:\n  assignor:\n    - [range, sticky]\n    - range\n    - [range, sticky]": (
        ":6: parameters.assignor: range+sticky is there twice"
    ),
    "scenario: topic_growth\nparameters:\n  horizon: [9999999999h]": (
        ":3: parameters.horizon: expected a length of time of at most ten years, not '9999999999h'"
    ),
}

SAID_ONCE = {
    "processing: [5]": "processing: '5': expected a time with its unit, as in 5ms",
    "topics: [nope]": "topics: group orders-app reads topic 'nope', which is not under topics",
    "session_timeout: [1s]": (
        "session_timeout: groups.orders-app.session_timeout is 1s, and heartbeat_interval is 3s; "
        "expected a session_timeout of more than 3s"
    ),
    "start: [{evry: 1s}]": "start: there is no key 'evry'",
}
"""Whole messages: none repeats the value that it already names."""


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_errors_are_reported_with_line_and_key(text: str) -> None:
    with pytest.raises(BadScenario) as problem:
        grid_from(text, "grid.yaml")
    assert BAD[text] in str(problem.value)


@pytest.mark.parametrize("parameter", SAID_ONCE)
def test_errors_name_the_value_once(parameter: str) -> None:
    with pytest.raises(BadScenario) as problem:
        grid_from(f"scenario: topic_growth\nparameters:\n  {parameter}", "grid.yaml")
    assert str(problem.value) == f"grid.yaml:3: parameters.{SAID_ONCE[parameter]}"


def test_a_file_that_is_not_there_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="cannot be read: No such file"):
        read_grid(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadScenario, match="is not UTF-8 text"):
        read_grid(tmp_path / "bytes.yaml")
