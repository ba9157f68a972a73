"""Where the modules of POSIX are missing: everything imports, most things work, and the rest says what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import paths

HIDDEN = """
import asyncio, builtins, sys

real = builtins.__import__

def hide(name, globals=None, locals=None, fromlist=(), level=0):
    ours = (globals or {}).get("__name__", "").startswith("rejoin")
    if ours and name in {"fcntl", "resource", "pwd", "grp", "termios", "pty"}:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, locals, fromlist, level)

def no_handlers(*_):
    raise NotImplementedError

builtins.__import__ = hide
asyncio.SelectorEventLoop.add_signal_handler = no_handlers
sys.modules["uvloop"] = None
"""

IMPORT_ALL = """
import importlib, pathlib, rejoin
root = pathlib.Path(rejoin.__file__).parent
for package in ("protocol", "journal", "transcript", "coordinator", "client", "simulation", "pages", "pipeline"):
    for file in sorted((root / package).resolve().rglob("*.py")):
        parts = file.relative_to((root / package).resolve()).with_suffix("").parts
        name = ".".join(("rejoin", package, *parts)).removesuffix(".__init__")
        if not name.endswith("__main__"):
            importlib.import_module(name)
"""

SERVE_AND_STOP = """
import os, signal, threading, time
from rejoin.__main__ import main

def stop():
    while not os.path.exists("port"):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop, daemon=True).start()
main(["serve", "--port", "0", "--port-file", "port"])
"""


def without_posix(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_everything_imports(tmp_path: Path) -> None:
    done = without_posix(IMPORT_ALL, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_coordinator_without_files_runs_and_stops_at_a_signal(tmp_path: Path) -> None:
    done = without_posix(SERVE_AND_STOP, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_what_locks_a_directory_says_that_it_needs_posix(tmp_path: Path) -> None:
    for option in ("--data", "--journal"):
        code = f'from rejoin.__main__ import main\nmain(["serve", "--port", "0", "{option}", "out"])'
        done = without_posix(code, tmp_path)
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[-1] == "rejoin serve: locking out needs POSIX: expected Linux, macOS or WSL"
        assert "Traceback" not in done.stderr
