"""Runs a command and prints the CPU of every process below it: JVMs are counted, and what outlives its parent, too.

python -m tests.cpu python -m pytest -n 2
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

PATIENCE_S: Final = 20.0
"""How long processes may outlive the command before they are left out, and named."""

_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that their CPU is counted; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_children(command: int) -> tuple[int, bool]:
    """Wait for the command and for the orphans; the command's exit code, and whether all of them ended."""
    code, deadline = None, float("inf")
    while time.monotonic() < deadline:
        try:
            process, status = os.waitpid(-1, 0 if code is None else os.WNOHANG)
        except ChildProcessError:
            break
        if process == command:
            code, deadline = os.waitstatus_to_exitcode(status), time.monotonic() + PATIENCE_S
        elif process == 0:
            time.sleep(0.05)
    else:
        return code or 0, False
    return code or 0, True


def main(command: Sequence[str]) -> int:
    """Run the command; its exit code is ours."""
    adopt_orphans()
    began = time.monotonic()
    started = subprocess.Popen(command)
    # Ctrl-C reaches the command, too, and it is for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code, all_ended = wait_for_children(started.pid)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{used.ru_utime + used.ru_stime:.1f} s of CPU, JVMs included, in {time.monotonic() - began:.1f} s"
        + ("" if all_ended else "; some processes still run and are not counted")
    )
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
