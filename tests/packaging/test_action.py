"""The GitHub Action: its files are valid, and its script does what they say, as a runner would call it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.paths import ROOT

SCRIPT: Final = ROOT / "action/rejoin.sh"
FILES: Final = (ROOT / "action.yml", ROOT / "action/explain/action.yml")
CONSUMER: Final = """
import os, time
from kafka import KafkaConsumer
consumer = KafkaConsumer("orders", bootstrap_servers=os.environ["BOOTSTRAP_SERVERS"], group_id="billing")
while not consumer.assignment():
    consumer.poll(timeout_ms=100)
consumer.close()
"""


class Runner:
    """A runner of jobs: its variables, and what steps wrote for later ones. Rejoin is installed already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "rejoin"
        self.home.mkdir()
        (self.home / "venv").symlink_to(sys.prefix)
        self._files = {name: folder / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def written(self, name: str) -> str:
        return self._files[name].read_text(encoding="utf-8")

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a later step."""
        return dict(line.split("=", 1) for line in self.written("GITHUB_ENV").splitlines())

    def step(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = {f"INPUT_{key.upper()}": value for key, value in inputs.items()}
        files = {name: str(path) for name, path in self._files.items()}
        return subprocess.run(
            [SCRIPT, name],
            env={**os.environ, "RUNNER_TEMP": str(self.folder), **files, **given},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_action_is_valid(file: Path) -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]
    said = subprocess.run([*checker, file], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_script_gets_what_the_steps_give(file: Path) -> None:
    steps: list[dict[str, Any]] = yaml.safe_load(file.read_text())["runs"]["steps"]
    given = {name for step in steps for name in step.get("env", {})}
    assert given == set(re.findall(r"INPUT_[A-Z]+", SCRIPT.read_text())) & given, "the script reads each"
    for step in steps:
        if "run" in step:
            path, name = re.fullmatch(r'"\$GITHUB_ACTION_PATH/(.+)" (\w+)', step["run"]).groups()  # type: ignore[union-attr]
            assert (file.parent / path).resolve() == SCRIPT
            assert f"\n{name}() {{" in SCRIPT.read_text()


def test_a_failed_job_says_why_its_groups_rebalanced(runner: Runner) -> None:
    started = runner.step("start", topics="orders:3", options='-c "group.initial.rebalance.delay.ms=0"')
    assert started.returncode == 0, started.stdout + started.stderr
    servers = runner.variables["BOOTSTRAP_SERVERS"]
    assert f"bootstrap-servers={servers}\nurl={runner.variables['REJOIN_URL']}\n" == runner.written("GITHUB_OUTPUT")
    subprocess.run([sys.executable, "-c", CONSUMER], env=os.environ | runner.variables, check=True, timeout=120)
    explained = runner.step("explain")
    assert explained.returncode == 0, explained.stdout + explained.stderr
    assert "\ngroup    billing: Empty since" in runner.written("GITHUB_STEP_SUMMARY")
    [evidence] = (runner.home / "evidence").glob("2*")
    assert "JoinGroup" in (evidence / "transcript.txt").read_text(encoding="utf-8")
    assert "billing" in (runner.home / "evidence/report.html").read_text(encoding="utf-8")
    assert runner.step("explain").stdout.startswith("::error title=Rejoin::the broker has ended: ")


def test_a_command_ends_with_its_own_exit_code(runner: Runner) -> None:
    done = runner.step("run", run="test -n $BOOTSTRAP_SERVERS && exit 7", options="--log-level error")
    assert done.returncode == 7
    assert "There was no consumer group." in runner.written("GITHUB_STEP_SUMMARY")


@pytest.mark.parametrize(
    ("step", "inputs", "said"),
    [
        ("start", {"topics": "orders:0"}, "the broker did not start: rejoin serve: --topic orders:0: expected "),
        ("start", {"options": "-c 'a"}, "options: a quote is not closed in: -c 'a"),
        ("explain", {}, "there is no broker: the step that starts Rejoin comes first"),
        ("stop", {}, "expected install, start, run or explain, not 'stop'"),
    ],
)
def test_a_step_that_cannot_do_its_work_says_why(runner: Runner, step: str, inputs: dict[str, str], said: str) -> None:
    done = runner.step(step, **inputs)
    assert done.returncode
    assert done.stdout.startswith(f"::error title=Rejoin::{said}"), done.stdout + done.stderr
