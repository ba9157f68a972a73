"""`rejoin assign --streams`: tasks of a streams group, step by step, and the errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rejoin.client.commands.assign import app

TOPOLOGY = """
standbys: 1
subtopologies:
  "0": {tasks: 2}
  "1": {tasks: 2, stateful: true}
"""


@pytest.fixture
def topology(tmp_path: Path) -> str:
    path = tmp_path / "topology.yaml"
    path.write_text(TOPOLOGY)
    return str(path)


def run(*words: str) -> object:
    return app(list(words), result_action="return_value")


def test_a_standby_takes_over(topology: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--streams", topology, "--members", "a@one,b@two", "--then", "leave:a", "--json") == 0
    start, left = json.loads(capsys.readouterr().out)["steps"]
    assert start["assignment"] == {
        "a": {"process": "one", "active": {"0": [1], "1": [1]}, "standby": {"1": [0]}},
        "b": {"process": "two", "active": {"0": [0], "1": [0]}, "standby": {"1": [1]}},
    }
    assert left["assignment"]["b"] == {"process": "two", "active": {"0": [0, 1], "1": [0, 1]}, "standby": {}}
    assert (len(left["moved"]), left["promoted"], left["stayed"]) == (2, 1, 2)


def test_steps_are_tables(topology: str, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ("--then", "join:b", "--then", "standbys:0", "--then", "grow:0:4")
    assert run("--streams", topology, "--members", "a", *steps) == 0
    printed = capsys.readouterr().out
    assert "0  start  sticky" in printed
    assert "4 active each" in printed
    assert "2 active each · 2 moved" in printed
    assert "3 active each · 0 moved" in printed


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--then", "leave:x"), "x is not a member"),
        (("--then", "grow:0:1"), "can only grow"),
        (("--then", "grow:0:99999999999999999999"), "is not a number"),
        (("--then", "jump"), "unknown step"),
        (("--compare",), "either --topics or --streams"),
        (("--topics", "t:1"), "either --topics or --streams"),
    ],
)
def test_mistakes_are_named(
    topology: str, words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--streams", topology, "--members", "a", *words) != 0
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "7",
        "subtopologies: {a: {tasks: -1}}",
        "subtopologies: {a: {tasks: 100000}, b: {tasks: 1}}",
        "a: &a [1]\nb: *a",
        "[" * 5_000,
    ],
)
def test_files_that_are_no_topologies_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert run("--streams", str(path), "--members", "a") != 0
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert "Traceback" not in printed
