"""What ``make test`` costs: it is counted whole, and what is dear to make is made once."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

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
