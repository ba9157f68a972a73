"""A grid: one YAML file with a scenario, the values to try for some of its keys, and the seeds.

A parameter is named by its path in the scenario, ``groups.orders-app.session_timeout`` or ``events.0.deploy.down``.
Shorter names do, too: a key of a group stands for that key of every group (``assignor``) or of one
(``orders-app.assignor``), and an event's kind for every event of that kind (``deploy.down``).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rejoin.simulation.scenario.actions import KINDS
from rejoin.simulation.scenario.durations import Duration
from rejoin.simulation.scenario.gallery import GALLERY, hint
from rejoin.simulation.scenario.model import GroupSpec, Scenario
from rejoin.simulation.scenario.reading import (
    RENAMED,
    BadScenario,
    Path_,
    checked,
    given,
    keys_of,
    mistake_of,
    plain,
    read_scenario,
    text_of,
)

MOST_RUNS: Final = 1_000_000
_WORDS_ONLY: Final = ("question", "answer")
_RANGE: Final = re.compile(r"^seeds:\s*(\d+:\d+)\s*(?:#.*)?$", re.MULTILINE)
"""A range as it is written: YAML takes 5:8 for a number to the base of 60."""
_EXPECTED: Final = "scenario, parameters and seeds"

RANKED_BY: Final = {
    "rebalances": "rebalances",
    "stopped": "stopped_ms",
    "unowned": "unowned_ms",
    "longest_unowned": "worst_unowned_ms",
    "moved": "moved",
    "late": "late",
    "twice": "twice",
    "lost": "lost",
    "out_twice": "out_twice",
    "out_lost": "out_lost",
}
"""Criteria for ranking settings, each with its column. Less is better."""


def _seeds(value: object) -> object:
    """``20``: 1 to 20. ``A:B``: from A up to, and not including, B. A list: these."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_RUNS:
            raise ValueError(f"expected between 1 and {MOST_RUNS:,} seeds")
        return tuple(range(1, value + 1))
    if isinstance(value, str):
        first, colon, last = value.partition(":")
        if not (colon and first.isdecimal() and last.isdecimal()):
            raise ValueError("expected a number of seeds, a range A:B or a list of numbers")
        if not 1 <= int(last) - int(first) <= MOST_RUNS:
            raise ValueError(f"expected between 1 and {MOST_RUNS:,} seeds")
        return tuple(range(int(first), int(last)))
    return value


def _scenario_key(value: object) -> object:
    if not isinstance(value, (str, dict)):
        raise ValueError("expected a scenario's file, its name in the gallery, or its keys")
    return value


def _values(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("expected a list of values to try")
    if not value:
        raise ValueError("expected at least one value to try")
    return value


class GridFile(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = ""
    scenario: Annotated[Any, BeforeValidator(_scenario_key)]
    """A file, by its path from the grid's; a scenario of the gallery, by its name; or the scenario itself."""
    parameters: dict[str, Annotated[list[Any], BeforeValidator(_values)]] = {}
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_seeds), Field(min_length=1)] = (1,)
    count_from: Duration = 0
    """Anything before this instant is played but not counted: the start of the group, as a rule."""
    events: bool = False
    """Keep every run's journal."""
    rank_by: tuple[str, ...] = ("rebalances", "stopped")


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter: its name in the grid, the paths in the scenario that it sets, and the values to try."""

    name: str
    paths: tuple[Path_, ...]
    values: tuple[Any, ...]

    def label(self, number: int) -> str:
        """A value as people write it."""
        return label_of(self.values[number])


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values. ``chosen``: the number of each axis' value; ``text``: the whole scenario as JSON."""

    number: int
    chosen: tuple[int, ...]
    scenario: Scenario
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """A point with a seed. ``key`` is made of everything that the result depends on, but for the code."""

    point: int
    seed: int
    key: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid that was read and found good."""

    where: str
    question: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    count_from_ms: int
    events: bool
    rank_by: tuple[str, ...]

    def runs(self) -> Iterator[Run]:
        """Every run, by point and then by seed. Points that come to the same scenario have runs of the same key."""
        for point in self.points:
            begun = sha256(f"{self.count_from_ms}\n{point.text}\n".encode())
            for seed in self.seeds:
                whole = begun.copy()
                whole.update(str(seed).encode())
                yield Run(point.number, seed, whole.hexdigest()[:20])

    def hash(self) -> str:
        """Of all that is asked: two grids with the same hash have the same answer."""
        axes = [[axis.name, [axis.label(n) for n in range(len(axis.values))]] for axis in self.axes]
        points = [point.text for point in self.points]
        text = json.dumps([axes, points, self.seeds, self.count_from_ms])
        return sha256(text.encode()).hexdigest()[:20]

    def labels(self, point: Point) -> tuple[str, ...]:
        """The values of a point, in the order of the axes."""
        return tuple(axis.label(number) for axis, number in zip(self.axes, point.chosen, strict=True))


def label_of(value: Any) -> str:
    """A value as people write it in the grid."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "+".join(label_of(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value)


def read_grid(path: Path, seeds: str | None = None) -> Grid:
    """Read a grid file; ``seeds`` instead of its own. Raises :class:`BadScenario` with file, line and key."""
    return grid_from(text_of(path), str(path), path.parent, seeds)


def grid_from(text: str, where: str = "grid", folder: Path = Path(), seeds: str | None = None) -> Grid:
    """Read a grid from text; scenarios' files are looked for in ``folder``. Raises :class:`BadScenario`."""
    data, lines = keys_of(text, where, _EXPECTED)
    written = _RANGE.search(text)
    if written is not None and "seeds" in data:
        data["seeds"] = written[1]
    if seeds is not None:
        data["seeds"] = int(seeds) if seeds.isdecimal() else seeds
        lines = {path: line for path, line in lines.items() if path[:1] != ("seeds",)}
    file = checked(GridFile, data, lines, where)
    scenario = _scenario(file, lines, where, folder)
    for name in file.rank_by:
        if name not in RANKED_BY:
            raise BadScenario(where, lines.get(("rank_by",)), f"rank_by: {_no_such(name, list(RANKED_BY), 'measure')}")
    base = _plain(scenario)
    axes = tuple(
        Axis(name, _paths(base, name, where, lines.get(("parameters", name))), tuple(values))
        for name, values in file.parameters.items()
    )
    for axis in axes:
        _check_values_differ(axis, where, lines)
    count = prod(len(axis.values) for axis in axes) * len(file.seeds)
    if count > MOST_RUNS:
        raise BadScenario(
            where, lines.get(("parameters",)), f"these are {count:,} runs; expected at most {MOST_RUNS:,}"
        )
    points = tuple(_points(base, axes, where, lines))
    if file.count_from >= min(point.scenario.horizon for point in points):
        raise BadScenario(where, lines.get(("count_from",)), "count_from: expected less than the scenario's horizon")
    return Grid(
        where,
        file.question or scenario.question,
        axes,
        points,
        tuple(dict.fromkeys(file.seeds)),
        file.count_from,
        file.events,
        file.rank_by,
    )


def _scenario(file: GridFile, lines: dict[Path_, int], where: str, folder: Path) -> Scenario:
    if isinstance(file.scenario, dict):
        return checked(Scenario, file.scenario, lines, where, ("scenario",))
    named = GALLERY / f"{file.scenario}.yaml"
    path = folder / file.scenario
    if not path.is_file() and "/" not in file.scenario and named.is_file():
        return read_scenario(named)
    if not path.is_file():
        problem = f"scenario: neither {path} nor the gallery has it; {hint(file.scenario)}"
        raise BadScenario(where, lines.get(("scenario",)), problem)
    return read_scenario(path)


def _plain(scenario: Scenario) -> dict[str, Any]:
    """A scenario as JSON has it, without the words that change nothing and without its seed."""
    data = scenario.model_dump(mode="json", by_alias=True, exclude={*_WORDS_ONLY, "seed"})
    data["events"] = [{name: what for name, what in event.items() if what is not None} for event in data["events"]]
    return data


def _points(base: dict[str, Any], axes: tuple[Axis, ...], where: str, lines: dict[Path_, int]) -> Iterator[Point]:
    for number, chosen in enumerate(product(*(range(len(axis.values)) for axis in axes))):
        data = copy.deepcopy(base)
        for axis, value in zip(axes, chosen, strict=True):
            for path in axis.paths:
                _set(data, path, copy.deepcopy(axis.values[value]))
        try:
            scenario = Scenario.model_validate(data)
        except ValidationError as problem:
            raise BadScenario(where, *_blame(problem, axes, chosen, lines)) from None
        # The model's own text, not the file's: 60s and 1m are the same question.
        yield Point(number, chosen, scenario, json.dumps(_plain(scenario), separators=(",", ":")))


def _check_values_differ(axis: Axis, where: str, lines: dict[Path_, int]) -> None:
    """Raises :class:`BadScenario` for a value that is there twice: two settings of the answer would be one."""
    seen: set[str] = set()
    for number, value in enumerate(axis.values):
        text = json.dumps(value, sort_keys=True, default=str)
        if text in seen:
            line = lines.get(("parameters", axis.name, number), lines.get(("parameters", axis.name)))
            raise BadScenario(where, line, f"parameters.{axis.name}: {axis.label(number)} is there twice")
        seen.add(text)


def _blame(
    problem: ValidationError, axes: tuple[Axis, ...], chosen: tuple[int, ...], lines: dict[Path_, int]
) -> tuple[int | None, str]:
    """Which value is wrong, by the path of the error; or else the combination."""
    error = problem.errors(include_url=False)[0]
    message = plain(error)
    mistake = mistake_of(error)
    at = tuple(error["loc"]) if mistake is None else mistake.path
    if error["type"] == "extra_forbidden":
        message = f"there is no key {at[-1]!r}"
    elif mistake is None:
        message += given(error["input"], message)
    for axis, value in zip(axes, chosen, strict=True):
        if any(at[: len(path)] == path for path in axis.paths):
            line = lines.get(("parameters", axis.name, value), lines.get(("parameters", axis.name)))
            return line, f"parameters.{axis.name}: {message}"
    values = ", ".join(f"{axis.name}={axis.label(value)}" for axis, value in zip(axes, chosen, strict=True))
    where = ".".join(str(part) for part in error["loc"])
    return lines.get(("parameters",)), f"parameters: with {values}: {where}{': ' if where else ''}{message}"


def _set(data: Any, path: Path_, value: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


def _paths(base: dict[str, Any], name: str, where: str, line: int | None) -> tuple[Path_, ...]:
    """The paths that a parameter's name stands for. Raises :class:`BadScenario`."""
    if name == "seed":
        raise BadScenario(where, line, "parameters.seed: seeds have a key of their own, seeds")
    head, _, rest = name.replace("[", ".").replace("]", "").partition(".")
    if head == "events":
        return _event_paths(base, rest, name, where, line)
    if head in base and (rest or head in ("horizon", "late")):
        return (_walk(base, name, (), name, where, line),)
    if head in KINDS:
        return _event_paths(base, f"{head}.{rest}", name, where, line)
    groups = base["groups"]
    if name in GroupSpec.model_fields:
        return tuple(("groups", group, name) for group in groups)
    for group in groups:
        if name.startswith(f"{group}."):
            return (_walk(groups[group], name.removeprefix(f"{group}."), ("groups", group), name, where, line),)
    known = [
        *GroupSpec.model_fields,
        *(f"groups.{group}" for group in groups),
        *(key for key in base if key != "groups"),
    ]
    raise BadScenario(where, line, f"parameters.{name}: {_no_such(name, known, 'key')}")


def _event_paths(base: dict[str, Any], rest: str, name: str, where: str, line: int | None) -> tuple[Path_, ...]:
    """``0.deploy.down``: of one event. ``deploy.down``: of all of this kind."""
    events = base["events"]
    which, _, key = rest.partition(".")
    if which.isdecimal():
        if int(which) >= len(events):
            raise BadScenario(where, line, f"parameters.{name}: the scenario has {len(events)} events, counted from 0")
        return (_walk(events[int(which)], key, ("events", int(which)), name, where, line),)
    found = [index for index, event in enumerate(events) if which in event]
    if not found or not key:
        kinds = list(dict.fromkeys(kind for event in events for kind in event if kind in KINDS))
        raise BadScenario(where, line, f"parameters.{name}: {_no_such(which, kinds, 'kind of event with a key')}")
    return tuple(_walk(events[index], rest, ("events", index), name, where, line) for index in found)


def _walk(node: Any, rest: str, so_far: Path_, name: str, where: str, line: int | None) -> Path_:
    """Follow a name down; keys may have dots inside, so the longest that fits is taken."""
    if so_far[-1:] == ("settings",):
        return (*so_far, rest)
    if not isinstance(node, dict):
        raise BadScenario(where, line, f"parameters.{name}: {'.'.join(map(str, so_far))} has no keys")
    fitting = [key for key in node if rest == key or rest.startswith(f"{key}.")]
    if not fitting:
        raise BadScenario(where, line, f"parameters.{name}: {_no_such(rest, list(node), 'key')}")
    key = max(fitting, key=len)
    if rest == key:
        return (*so_far, key)
    return _walk(node[key], rest[len(key) + 1 :], (*so_far, key), name, where, line)


def _no_such(name: str, known: list[str], what: str) -> str:
    if RENAMED.get(name) in known:
        return f"there is no {what} {name!r}; it is called {RENAMED[name]} now"
    near = get_close_matches(name, known, n=1)
    hint = f"; is it {near[0]}?" if near else f"; known are {', '.join(known)}"
    return f"there is no {what} {name!r}{hint}"
