"""``rejoin serve -- COMMAND`` and ``--ready-file``: a node for one program, with the program's exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from rejoin.coordinator.config import unknown_variables

PATIENCE = 60
NODE = ["serve", "--port", "0", "--topic", "orders:3", "-c", "group.initial.rebalance.delay.ms=0"]

JOINS_AND_FAILS = """
import asyncio, os, sys
from rejoin import Consumer

async def main():
    async with Consumer("orders", bootstrap_servers=os.environ["BOOTSTRAP_SERVERS"], group_id="orders-app") as consumer:
        while not consumer.assignment():
            await consumer.poll(timeout_ms=50)
    sys.exit(3)

asyncio.run(main())
"""


WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("up", flush=True)
time.sleep(60)
"""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The node, which has ended at the end."""
    command = [sys.executable, "-m", "rejoin", *NODE, *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
            process.wait(PATIENCE)
        finally:
            process.kill()


def rejoin(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rejoin", *NODE, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_a_command_that_succeeds_leaves_nothing(tmp_path: Path) -> None:
    code = "import os, urllib.request as u; print(u.urlopen(os.environ['REJOIN_URL'] + '/control/clock').status)"
    ended = rejoin(tmp_path, "--", sys.executable, "-c", code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "200\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_fails_leaves_evidence_and_its_exit_code(tmp_path: Path) -> None:
    ended = rejoin(tmp_path, "--evidence", "why", "--", sys.executable, "-c", JOINS_AND_FAILS)
    assert ended.returncode == 3
    [folder] = (tmp_path / "why").iterdir()
    assert sorted(each.name for each in folder.iterdir()) == ["journal", "transcript.txt", "why.txt"]
    said = (folder / "why.txt").read_text()
    assert said.startswith("group    orders-app: Empty")
    assert said in ended.stderr
    assert "JoinGroup" in (folder / "transcript.txt").read_text()
    assert list((folder / "journal").glob("*.jsonl"))


@pytest.mark.parametrize(
    ("name", "code", "problem"),
    [("no-such-program", 127, "No such file or directory"), (".", 126, "Permission denied")],
)
def test_a_command_that_cannot_be_started_is_named(tmp_path: Path, name: str, code: int, problem: str) -> None:
    ended = rejoin(tmp_path, "--", name)
    assert ended.returncode == code
    assert ended.stderr == f"rejoin serve: {name}: {problem}; expected a program after --\n"
    assert list(tmp_path.iterdir()) == []


def test_a_command_needs_two_dashes_before_it(tmp_path: Path) -> None:
    ended = rejoin(tmp_path, "true")
    assert ended.returncode == 2
    assert "true" in ended.stderr


def test_two_dashes_need_a_command_behind_them(tmp_path: Path) -> None:
    ended = rejoin(tmp_path, "--")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "rejoin serve: expected a command after --, with its arguments\n"


def test_a_folder_of_the_user_stays_after_a_success(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert rejoin(tmp_path, "--evidence", "mine", "--", "true").returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]


def test_options_that_need_the_parser_end_before_the_command(tmp_path: Path) -> None:
    ended = rejoin(tmp_path, "--brokers=-1", "--", "true", "--brokers")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("rejoin serve: --brokers -1: expected")


def test_a_signal_reaches_the_command_and_the_node_ends_after_it(tmp_path: Path) -> None:
    with started(tmp_path, "--", sys.executable, "-c", WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 7


def test_the_end_of_a_command_by_a_signal_is_that_of_a_shell(tmp_path: Path) -> None:
    ended = rejoin(tmp_path, "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert ended.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("brokers", [1, 2])
def test_the_ready_file_and_the_output_have_the_addresses(tmp_path: Path, brokers: int) -> None:
    with started(tmp_path, "--brokers", str(brokers), "--ready-file", "ready.json") as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            assert said == json.loads((tmp_path / "ready.json").read_text())
            assert said["pid"] == process.pid
            assert [node["node_id"] for node in said["nodes"]] == list(range(1, brokers + 1))
            assert said["bootstrap_servers"] == ",".join(node["bootstrap_servers"] for node in said["nodes"])
            for node in said["nodes"]:
                assert urlopen(node["url"] + "/readyz", timeout=PATIENCE).status == 200
        finally:
            process.send_signal(signal.SIGTERM)


def test_the_address_in_the_environment_of_a_command_is_no_setting() -> None:
    assert unknown_variables({*os.environ, "REJOIN_URL"}) == unknown_variables(os.environ)
