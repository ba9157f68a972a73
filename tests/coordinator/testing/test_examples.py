"""The examples run: the same test in Python, with curl and with Node.js, each against a process of its own.

The tests need neither curl nor Node.js: where one is missing its example is not collected, and the header says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import paths
from tests.coordinator.commands.test_serve import Process, running

ROOT = paths.ROOT
EXAMPLES = ROOT / "examples" / "testing"
COMMANDS = {
    "python": [sys.executable, str(EXAMPLES / "lost_session.py")],
    "curl": ["sh", str(EXAMPLES / "lost_session.sh")],
    "node": ["node", str(EXAMPLES / "lost_session.mjs")],
}
NEEDS = {"python": sys.executable, "curl": "curl", "node": "node"}
HERE = {name: command for name, command in COMMANDS.items() if shutil.which(NEEDS[name])}
SEEN = """\
generation: 1
heartbeat in time: 0
what fired: session
heartbeat too late (25 is UNKNOWN_MEMBER_ID): 25
generation: 3
heartbeat of the new member: 0
it came back
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Process]:
    with running(
        tmp_path, "--control", "--clock", "virtual", "--topic", "orders:3", "--log-level", "critical"
    ) as found:
        yield found


def test_a_consumer_loses_its_session_and_comes_back_in_one_language_after_the_other(node: Process) -> None:
    url = f"http://127.0.0.1:{node.port}"
    for command in HERE.values():
        ended = subprocess.run([*command, url], capture_output=True, text=True, timeout=300, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout == SEEN


@pytest.mark.parametrize("language", HERE)
def test_an_example_that_does_not_see_what_it_should_says_so(node: Process, language: str) -> None:
    node.call("/control/faults", {"keys": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"})
    url = f"http://127.0.0.1:{node.port}"
    ended = subprocess.run([*HERE[language], url], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode != 0
    assert "heartbeat in time: expected 0, got 27" in ended.stderr


@pytest.mark.parametrize("language", HERE)
def test_an_example_without_a_coordinator_says_so_in_one_line(language: str, unused_tcp_port: int) -> None:
    for arguments, said in (([], "sage: "), ([f"http://127.0.0.1:{unused_tcp_port}"], f"{unused_tcp_port}")):
        ended = subprocess.run([*HERE[language], *arguments], capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode != 0
        [line] = ended.stderr.splitlines()
        assert said in line


def test_with_pytest_and_real_consumers() -> None:
    examples = sorted(map(str, EXAMPLES.glob("test_*.py")))
    assert len(examples) == 8, "four clients, transactions, ACLs, the virtual clock, and a poison message"
    command = [sys.executable, "-m", "pytest", *examples, "-p", "no:cacheprovider"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout
