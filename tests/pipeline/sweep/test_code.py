"""The version of the code that plays runs: it changes with what a result depends on, and with nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rejoin.pipeline.sweep.code import code_version, modules_of
from tests.paths import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The source of everything, to be changed."""
    shutil.copytree(
        ROOT / "src" / "rejoin", tmp_path / "rejoin", ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.yaml")
    )
    return tmp_path / "rejoin"


@pytest.mark.parametrize(
    "changed",
    [
        "coordinator/leadership/leases.py",
        "coordinator/core/node.py",
        "client/assignors/cooperative_sticky.py",
        "protocol/partitioner.py",
        "journal/events/coordinator.py",
        "simulation/lab.py",
        "pipeline/sweep/tables.py",
    ],
)
def test_a_change_of_what_plays_a_run_is_another_version(copy: Path, changed: str) -> None:
    before = code_version(copy)
    assert before == code_version()
    with (copy / changed).open("a") as file:
        file.write("# changed\n")
    assert code_version(copy) != before


@pytest.mark.parametrize(
    "changed", ["coordinator/service/app.py", "pipeline/report/page.py", "client/commands/groups.py"]
)
def test_a_change_of_anything_else_is_not(copy: Path, changed: str) -> None:
    with (copy / changed).open("a") as file:
        file.write("# changed\n")
    assert code_version(copy) == code_version()


def test_the_modules_are_those_that_python_loads() -> None:
    names = {path.relative_to(ROOT / "src" / "rejoin").as_posix() for path in modules_of()}
    assert {"__init__.py", "pipeline/sweep/playing.py", "simulation/run.py", "client/assignors/range.py"} <= names
    assert not any(name.startswith(("coordinator/service/", "coordinator/storage/")) for name in names), names
