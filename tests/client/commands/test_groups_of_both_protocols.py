"""`rejoin groups` on a group that moves from one protocol to the other, over HTTP and over Kafka's protocol."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from rejoin.client import Consumer
from rejoin.client.commands.groups.actions import run_action
from rejoin.client.commands.groups.options import checked, parser
from rejoin.coordinator.testing import GroupCoordinator

pytestmark = pytest.mark.group_coordinator(
    clock="virtual",
    topics={"orders": 4},
    settings={
        "group.consumer.migration.policy": "bidirectional",
        "group.consumer.min.heartbeat.interval.ms": 50,
        "group.consumer.heartbeat.interval.ms": 50,
        "group.consumer.assignment.interval.ms": 0,
        "group.initial.rebalance.delay.ms": 0,
    },
)


async def described(servers: str, arguments: str, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The lines of the command, as words."""
    options = parser().parse_args([*arguments.split(), "--bootstrap-server", servers])
    action = checked(options)
    assert action is not None
    assert await run_action(action, options) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines() if line]


async def both_stable(coordinator: GroupCoordinator, old: Consumer, new: Consumer) -> None:
    async with asyncio.timeout(60):
        while True:
            group = await coordinator.group("g")
            shares = [len(each.assignment()) for each in (old, new)]
            if group is not None and group.state == "Stable" and len(group.members) == 2 and shares == [2, 2]:
                return
            await asyncio.gather(old.poll(20), new.poll(20))


@pytest.mark.parametrize("transport", ["HTTP", "Kafka"])
async def test_it_is_shown_which_members_have_moved(
    group_coordinator: GroupCoordinator, transport: str, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = group_coordinator.url if transport == "HTTP" else group_coordinator.bootstrap_servers
    settings: dict[str, Any] = {"bootstrap_servers": servers, "group_id": "g", "heartbeat_interval_ms": 50}
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(Consumer("orders", client_id="old", **settings))
        while not old.assignment():
            await old.poll(20)
        (listed,) = (await described(servers, "--list --type", capsys))[1:]
        assert listed == ["g", "Classic"]
        del settings["heartbeat_interval_ms"]
        new = await stack.enter_async_context(
            Consumer("orders", client_id="new", group_protocol="consumer", **settings)
        )
        await both_stable(group_coordinator, old, new)

        (listed,) = (await described(servers, "--list --type", capsys))[1:]
        assert listed == ["g", "Consumer"]
        header, *rows = await described(servers, "--describe --group g --members --verbose", capsys)
        assert header[-1] == "UPGRADED"
        missing = len(header) - len(rows[0])  # neither has an instance id
        assert {row[header.index("CLIENT-ID") - missing]: row[-1] for row in rows} == {"old": "false", "new": "true"}
        by_offset = await described(servers, "--describe --group g", capsys)
        assert sorted(row[-1] for row in by_offset[1:]) == ["new", "new", "old", "old"]
        state = await described(servers, "--describe --group g --state --verbose", capsys)
        assert state[1][-5:-3] == ["uniform", "Stable"]

        await new.close()
        async with asyncio.timeout(60):
            while len(old.assignment()) < 4:
                await old.poll(20)
        header, *rows = await described(servers, "--describe --group g --members --verbose", capsys)
        assert "UPGRADED" not in header
        assert [row[-1] for row in rows] == ["(0,1,2,3)"], "a classic group again"
