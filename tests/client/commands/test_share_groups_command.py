"""`rejoin share-groups`: what it prints, to the column, and what it does."""

from __future__ import annotations

import asyncio
import re

import pytest

from rejoin.client import ShareConsumer
from rejoin.client.admin.admin import GroupDescription, MemberDescription
from rejoin.client.admin.share_groups import StartOffset
from rejoin.client.commands.share_groups import tables
from rejoin.client.commands.share_groups.actions import run_action
from rejoin.client.commands.share_groups.options import checked, parser
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.core.effects import Endpoint
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition
from tests.coordinator.testing.share_member import GROUP, configure

NODE = Endpoint(1, "127.0.0.1", 9095)
MEMBER = MemberDescription(
    "m", None, "c", "/127.0.0.1", (TopicPartition("jobs", 0), TopicPartition("jobs", 1)), member_epoch=3
)


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_tables_have_the_columns_of_kafkas_tool() -> None:
    found = {TopicPartition("jobs", 0): StartOffset(5, 0, 7), TopicPartition("jobs", 1): StartOffset(None, None, None)}
    assert trimmed(tables.offsets("g", found, verbose=False)) == [
        "",
        "GROUP           TOPIC           PARTITION  START-OFFSET  LAG",
        "g               jobs            0          5             7",
        "g               jobs            1          -             -",
    ]
    assert trimmed(tables.offsets("g", found, verbose=True))[1:3] == [
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG",
        "g               jobs            0          0             5             7",
    ]
    assert tables.offsets("g", {}, verbose=False) == "\nShare group 'g' has no offset information.\n"
    group = GroupDescription("g", "Stable", "simple", NODE, (MEMBER,), 4, 3)
    assert trimmed(tables.members(group, verbose=True)) == [
        "",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT",
        "g               m               /127.0.0.1      c               2            3             jobs:0,1",
    ]
    assert trimmed(tables.state(group, verbose=True)) == [
        "",
        "GROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH  ASSIGNMENT-EPOCH  #MEMBERS",
        "g               127.0.0.1:9095  (1)       Stable          4            3                 1",
    ]
    assert trimmed(tables.deleted_offsets({"jobs": ErrorCode.NONE, "x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})) == [
        "",
        "TOPIC           STATUS",
        "jobs            Successful",
        "x               Error: This server does not host this topic-partition.",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--list --describe g", "exactly one action"),
        ("--describe", "--group, --all-groups"),
        ("--describe g --members --offsets", "at most one"),
        ("--delete g --topic t", "does not take the option"),
        ("--delete-offsets g", "--group, --topic"),
        ("--reset-offsets g --to-earliest", "--execute or --dry-run"),
        ("--reset-offsets g --group h --to-earliest --execute", "once"),
        ("--reset-offsets g --shift-by 1", "shift-by"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(arguments: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked(parser().parse_args(arguments.split()))


async def run(coordinator: GroupCoordinator, arguments: str, code: int = 0) -> None:
    options = parser().parse_args([*arguments.split(), "--bootstrap-server", coordinator.url])
    action = checked(options)
    assert action is not None
    assert await run_action(action, options) == code


async def test_a_group_through_its_life(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"group_share_assignment_interval_ms": 0}
    async with running(topics={"jobs": 1}, settings=settings) as coordinator:
        await configure(coordinator)
        await coordinator.produce("jobs", 0, 5)
        async with ShareConsumer("jobs", bootstrap_servers=coordinator.url, group_id=GROUP, client_id="c") as consumer:
            async with asyncio.timeout(30):
                while not await consumer.poll(100):
                    pass
            await consumer.commit()
            await run(coordinator, "--list")
            assert capsys.readouterr().out == f"{GROUP}\n"
            await run(coordinator, f"--describe {GROUP} --members")
            assert trimmed(capsys.readouterr().out)[-1].split()[-3:] == ["c", "1", "jobs:0"]
            await run(coordinator, f"--describe {GROUP} --state")
            assert trimmed(capsys.readouterr().out)[-1].split()[-2:] == ["Stable", "1"]
            await run(coordinator, f"--reset-offsets {GROUP} --to-earliest --execute", code=1)
            assert f"Share group '{GROUP}' is not empty." in capsys.readouterr().err
            await run(coordinator, f"--delete {GROUP}")
            assert f"Share group '{GROUP}' is not EMPTY." in capsys.readouterr().out
        await run(coordinator, "--list --state empty")
        assert trimmed(capsys.readouterr().out)[-1].split() == [GROUP, "Empty"]
        await run(coordinator, f"--describe {GROUP}")
        # Kafka: the last acknowledgements move the start in memory alone; the lag knows of them.
        assert trimmed(capsys.readouterr().out)[-1].split() == [GROUP, "jobs", "0", "0", "0"]
        await run(coordinator, f"--reset-offsets {GROUP} --topic jobs --to-offset 2 --execute")
        assert trimmed(capsys.readouterr().out)[-1].split() == [GROUP, "jobs", "0", "2"]
        await run(coordinator, f"--describe {GROUP} --offsets")
        assert trimmed(capsys.readouterr().out)[-1].split() == [GROUP, "jobs", "0", "2", "3"]
        await run(coordinator, f"--reset-offsets {GROUP} --to-latest --dry-run --export")
        assert capsys.readouterr().out == "jobs,0,5\n\n"
        await run(coordinator, f"--delete-offsets {GROUP} --topic jobs")
        assert re.search(r"jobs +Successful", capsys.readouterr().out)
        await run(coordinator, f"--delete {GROUP}")
        assert capsys.readouterr().out == f"Deletion of requested share groups ('{GROUP}') was successful.\n"
        await run(coordinator, f"--delete {GROUP}")
        assert f"Group '{GROUP}' is not a share group." in capsys.readouterr().out
        await run(coordinator, f"--describe {GROUP}", code=1)
        assert "The group id does not exist." in capsys.readouterr().out
