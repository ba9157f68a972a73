"""`rejoin streams` prints what Kafka's own tool printed of a real broker, at each stage of a group's life."""

from __future__ import annotations

import json

import pytest

from rejoin.client.commands.streams_groups.actions import run_action
from rejoin.client.commands.streams_groups.options import checked, parser
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.client.commands.streams_tool import GOLDEN, arranged
from tests.coordinator.control.samples import parse


async def run(coordinator: GroupCoordinator, arguments: str) -> int:
    options = parser().parse_args([*arguments.split(), "--bootstrap-server", coordinator.url])
    action = checked(options)
    assert action is not None
    return await run_action(action, options)


async def test_outputs_are_those_of_kafkas_tool(capsys: pytest.CaptureFixture[str]) -> None:
    async with running() as coordinator:
        for line in GOLDEN.read_text().splitlines():
            entry = json.loads(line)
            if "ask" in entry:
                request = parse(entry["ask"], entry["body"], entry["version"])
                await coordinator.call(request, version=entry["version"], client_id="rejoin-conform")
            elif "produce" in entry:
                await coordinator.produce(entry["produce"], entry["partition"], entry["records"])
            else:
                code = await run(coordinator, entry["run"])
                assert (arranged(capsys.readouterr().out), code) == (entry["out"], entry["code"]), entry["run"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--list --describe g", "exactly one action"),
        ("--describe", "--group, --all-groups"),
        ("--describe g --members --state", "at most one"),
        ("--describe g --members --topology", "--topology is for --describe"),
        ("--delete g --input-topic t", "topic-specific"),
        ("--delete g --dry-run", "Only Option --reset-offsets"),
        ("--delete-offsets g", "--all-input-topics, --input-topic"),
        ("--delete-offsets g --group h --all-input-topics", "only one --group"),
        ("--reset-offsets g --all-input-topics --to-earliest", "--execute or --dry-run"),
        ("--reset-offsets g --dry-run --delete-all-internal-topics", "with --execute"),
        ("--describe g --delete-internal-topic t", "with --execute"),
        ("--reset-offsets g --topic t", "--topic"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(arguments: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked(parser().parse_args(arguments.split()))
