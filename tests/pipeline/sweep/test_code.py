"""The version of the code that plays runs: it changes with what a result depends on, and with nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoin.pipeline.sweep.code import code_version, modules_of
from tests.paths import ROOT


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of everything, to be changed."""
    folder = tmp_path_factory.mktemp("copy") / "rejoin"
    shutil.copytree(ROOT / "src" / "rejoin", folder, ignore=shutil.ignore_patterns("__pycache__", "*.html", "*.yaml"))
    return folder


@pytest.fixture(scope="module")
def version() -> str:
    return code_version()


@pytest.fixture
def changed(copy: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The version after a change of one file, which is taken back afterwards."""
    path = copy / request.param
    before = path.read_bytes()
    path.write_bytes(before + b"# changed\n")
    yield code_version(copy)
    path.write_bytes(before)


def test_a_copy_has_the_same_version(copy: Path, version: str) -> None:
    assert code_version(copy) == version


@pytest.mark.parametrize("changed", ["coordinator/core/node.py"], indirect=True)
def test_a_change_of_what_plays_a_run_is_another_version(changed: str, version: str) -> None:
    assert changed != version


@pytest.mark.parametrize("changed", ["coordinator/service/app.py"], indirect=True)
def test_a_change_of_anything_else_is_not(changed: str, version: str) -> None:
    assert changed == version


def test_the_modules_are_those_that_python_loads() -> None:
    names = {path.relative_to(ROOT / "src" / "rejoin").as_posix() for path in modules_of()}
    assert names >= {
        "__init__.py",
        "client/assignors/cooperative_sticky.py",
        "client/assignors/range.py",
        "coordinator/core/node.py",
        "coordinator/leadership/leases.py",
        "journal/events/coordinator.py",
        "pipeline/sweep/tasks.py",
        "pipeline/sweep/tables.py",
        "protocol/partitioner.py",
        "simulation/simulation.py",
        "simulation/run.py",
    }
    others = ("coordinator/service/", "coordinator/storage/", "pipeline/report/", "client/commands/")
    assert not any(name.startswith(others) for name in names), names
