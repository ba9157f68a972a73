"""A consumer that was skipped, or played in short, ends in the state of one that was played."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import pytest

from rejoin.client.core import poll
from rejoin.client.core.quiescence import NOT_RESTORED, POLL_STEPS
from rejoin.simulation.run import play
from rejoin.simulation.scenario.model import Scenario
from tests.simulation.test_same import steady

HORIZONS = ("61s", "73217ms")


def plain(value: Any) -> Any:
    """A value as lists, dicts and texts, with all of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return [[plain(key), plain(each)] for key, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if value is None or isinstance(value, (int, float, str, bytes, Enum)):
        return repr(value)
    if isinstance(value, Iterator) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    if hasattr(value, "__iter__"):
        return [plain(each) for each in value]
    names = getattr(type(value), "__slots__", None) or list(vars(value))
    return {name: plain(getattr(value, name)) for name in names if hasattr(value, name)}


def unlike(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Paths of the fields that differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name, value in one.items():
            yield from unlike(value, other[name], f"{path}.{name}".removeprefix("."))
    elif one != other:
        yield path


def outermost(path: str) -> str:
    return next((name for name in NOT_RESTORED if path == name or path.startswith(f"{name}.")), path)


def states(commit: str, protocol: str, horizon: str, *, skip: bool) -> dict[str, Any]:
    data = steady(commit)
    data["groups"]["app"]["protocol"] = protocol
    data["horizon"] = horizon
    simulation, _ = play(Scenario.model_validate(data), skip=skip)
    if skip:
        assert simulation.idle is not None
        assert simulation.idle.record_loops > 0
    return {name: plain(consumer.core._state) for name, consumer in simulation.consumers.items() if consumer.core}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("commit", ["after", "after-async", "auto", "before", "none"])
def test_a_consumer_that_was_left_out_is_in_the_state_of_one_that_was_played(commit: str, protocol: str) -> None:
    for horizon in HORIZONS:
        skipped, played = (states(commit, protocol, horizon, skip=skip) for skip in (True, False))
        assert len(played) == 3
        assert {outermost(path) for path in unlike(skipped, played) for path in [path.partition(".")[2]]} <= set(
            NOT_RESTORED
        )


def test_the_comparison_sees_a_field_that_is_added() -> None:
    skipped = states("after", "classic", HORIZONS[0], skip=True)
    skipped["app-1"]["heartbeat"]["added"] = "1"
    other = {**skipped, "app-1": {**skipped["app-1"], "heartbeat": {**skipped["app-1"]["heartbeat"], "added": "2"}}}
    assert list(unlike(skipped, other)) == ["app-1.heartbeat.added"]


def test_every_step_of_a_poll_is_in_the_contract() -> None:
    """A call that is added to poll, or to what it calls here, needs a reason why it may be left out."""
    tree = ast.parse(inspect.getsource(poll))
    calls = {
        f"{node.func.value.id}.{node.func.attr}"
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and function.name in {"advance", "_update_assignment", "_look_for_records"}
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        if node.func.value.id not in {"ctx", "state"}
    }
    assert calls == POLL_STEPS.keys()
