"""The CPU that ``make test`` prints is that of all processes."""

from __future__ import annotations

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
