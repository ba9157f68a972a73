"""Files and folders that the user may not read: what ``rejoin why`` and ``rejoin report`` say of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

SCENARIO = """
topics:
  orders: {partitions: 4, records_per_second: 0.2}
groups:
  orders-app: {topics: orders, consumers: 2, assignor: range}
horizon: 30s
"""
RIGHTS = "-dac_override,-dac_read_search"
"""Without them root may read no more than others."""


def rejoin(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rejoin", *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a journal, a.jsonl, and one that may not be read, b.jsonl."""
    path = tmp_path / "journals"
    path.mkdir()
    play(scenario_from(SCENARIO), 1, journal=path / "a.jsonl", run_id="run")
    shutil.copy(path / "a.jsonl", path / "b.jsonl")
    (path / "b.jsonl").chmod(0)
    yield path
    path.chmod(0o700)


def refused(*arguments: str | Path) -> str:
    ended = rejoin(*arguments)
    assert ended.returncode == 2, ended
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def test_a_folder_that_may_not_be_read(folder: Path) -> None:
    folder.chmod(0)
    said = refused("why", "orders-app", folder)
    assert f"{folder} cannot be read: Permission denied; give this user the right to read it" in said
    said = refused("report", folder, "--out", folder.parent / "out")
    assert f"{folder}: cannot be read: Permission denied. Give this user the right to read it" in said


def test_a_journal_that_may_not_be_read(folder: Path) -> None:
    said = refused("why", "orders-app", folder / "b.jsonl")
    assert "b.jsonl: cannot be read: Permission denied; give this user the right to read it" in said
    said = refused("report", folder / "b.jsonl", "--out", folder.parent / "out")
    assert "b.jsonl: cannot be read: Permission denied. Give this user the right to read it" in said


def test_one_file_of_two_may_not_be_read(folder: Path) -> None:
    unread = "1 of 2 files could not be read: b.jsonl (Permission denied)"
    assert unread in rejoin("why", "orders-app", folder).stdout
    ended = rejoin("report", folder, "--out", folder.parent / "out")
    assert ended.returncode == 0, ended.stderr
    assert " rows from 1 file, " in ended.stdout
    assert unread in ended.stdout
    assert "quarantine" not in ended.stdout
    page = (folder.parent / "out" / "report.html").read_text()
    assert f"rows from 1 file; {unread}" in page
    assert "Every line of the other files could be read." in page
