"""The suite itself: its cost is counted whole, what is dear to make is made once, and a failure can be repeated."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import paths

CPU_S = 0.3
BURNS = f"import time\nwhile time.process_time() < {CPU_S}: pass"
# As a JVM is left by pyspark: its parent ends first.
LEAVES = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURNS!r}]); sys.exit(3)"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to another process than init")
def test_a_process_that_outlives_its_parent_is_counted() -> None:
    command = [sys.executable, "-m", "tests.cpu", sys.executable, "-c", LEAVES]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, timeout=120, check=False)
    printed = re.fullmatch(r"([\d.]+) s of CPU, JVMs included, in [\d.]+ s\n", done.stdout)
    assert printed is not None, done.stdout + done.stderr
    assert float(printed[1]) >= CPU_S
    assert done.returncode == 3


@pytest.mark.xdist_group("of tests")
def test_the_scheduler_knows_the_group_of_a_test(request: pytest.FixtureRequest) -> None:
    """Tests that share a fixture are a group, and one process runs all of it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@of tests")


def test_what_is_collected_is_left_out_of_garbage_collections() -> None:
    """A collection would look through thousands of tests each time, and nothing of them is garbage."""
    assert gc.get_freeze_count() > 1_000
    assert gc.get_threshold()[0] >= 50_000


def drawn() -> list[tuple[int, str]]:
    """What Hypothesis gives one test."""
    found: list[tuple[int, str]] = []

    @settings(max_examples=200)
    @given(st.integers(), st.text())
    def collect(number: int, text: str) -> None:
        found.append((number, text))

    collect()
    return found


@pytest.mark.skipif(settings.get_current_profile_name() != "repeatable", reason="this profile draws others each time")
def test_a_module_that_is_imported_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    path = tmp_path / "numbers_and_words.py"
    path.write_text("".join(f"NAME_{number} = {number}, 'word {number}'\n" for number in range(70_000, 70_300)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    assert drawn() == before
