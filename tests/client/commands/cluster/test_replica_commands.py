"""`rejoin reassign` and `rejoin elect` print what Kafka's own tools printed of a real cluster of three brokers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rejoin.client.commands.replicas import options as replicas
from rejoin.client.commands.replicas.electing import run_action as run_elect
from rejoin.client.commands.replicas.reassigning import run_action as run_reassign
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.coordinator.testing import running
from tests.client.commands.cluster.tools import GOLDEN, HELD, arranged, located, topics_request, write_files

REFUSED, WRONG = 1, 2
IN_PROGRESS, COMPLETED = "is still in progress.", "is completed."


async def run(tool: str, words: list[str], server: str) -> int:
    is_election = tool == "elect"
    parser = replicas.elect_parser if is_election else replicas.reassign_parser
    checked = replicas.checked_election if is_election else replicas.checked_reassignment
    try:
        options = parser().parse_args([*words, "--bootstrap-server", server])
        action = checked(options)
        if action is None:
            return WRONG
        return await (run_elect if is_election else run_reassign)(action, options)
    except UsageError:
        return WRONG


async def test_outputs_are_those_of_kafkas_tools(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_files(tmp_path)
    different = []
    async with running(brokers=3) as coordinator:
        await coordinator.call(topics_request(), 7)
        for line in GOLDEN.read_text().splitlines():
            entry = json.loads(line)
            words = [located(word, tmp_path) for word in shlex.split(entry["run"])]
            expected = entry["out"]
            if "--throttle" in words:
                # Kafka's throttle holds the copies up. Rejoin's copies take no time, and are cut off.
                leader = (await coordinator.partition(HELD, 0)).leader
                assert leader is not None
                await coordinator.cut_off(3, brokers=leader)
            code = await run(entry["tool"], words, coordinator.url)
            printed = arranged(capsys.readouterr().out)
            if code == WRONG:
                # Kafka's tools print these on either output.
                printed = expected
            # A copy takes a moment on Kafka, and none here.
            if "@move" in entry["run"]:
                expected = expected.replace(IN_PROGRESS, COMPLETED)
                printed = printed.partition("\nClearing")[0]
                expected = expected.partition("\nClearing")[0]
            if (printed, min(code, REFUSED)) != (expected, entry["code"]):
                different.append((entry, code, printed))
    assert different == []
