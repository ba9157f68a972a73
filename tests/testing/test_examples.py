"""The examples run: the same test in Python, with curl and with Node.js, each against a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.test_command_line import Process, running

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "testing"
PYTHON = [sys.executable, str(EXAMPLES / "lost_session.py")]
COMMANDS = {
    "python": PYTHON,
    "curl": ["sh", str(EXAMPLES / "lost_session.sh")],
    "node": ["node", str(EXAMPLES / "lost_session.mjs")],
}
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


@pytest.mark.parametrize("language", COMMANDS)
def test_a_consumer_loses_its_session_and_comes_back(
    node: Process, language: str, capsys: pytest.CaptureFixture[str], record_property: pytest.RecordProperty
) -> None:
    command = COMMANDS[language]
    if language != "python" and shutil.which(language) is None:
        # Python and make are all that is needed here; the steps are the same, and somebody should know.
        command = PYTHON
        record_property("ran_instead", f"{language} is not on this machine: the same steps ran in Python")
        with capsys.disabled():
            print(
                f"\n{language} is not on this machine: {COMMANDS[language][-1]} was not run, its steps in Python were"
            )
    url = f"http://127.0.0.1:{node.port}"
    ended = subprocess.run([*command, url], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == SEEN


def test_an_example_that_does_not_see_what_it_should_says_so(node: Process) -> None:
    url = f"http://127.0.0.1:{node.port}"
    for command in COMMANDS.values():
        if shutil.which(command[0]) is not None:
            node.call("/control/reset", {})
            node.call("/control/faults", {"keys": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"})
            ended = subprocess.run([*command, url], capture_output=True, text=True, timeout=60, check=False)
            assert ended.returncode != 0
            assert "heartbeat in time: expected 0, got 27" in ended.stderr


def test_with_pytest_and_a_real_consumer() -> None:
    command = [sys.executable, "-m", "pytest", str(EXAMPLES / "test_lost_session.py"), "-p", "no:cacheprovider"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout
