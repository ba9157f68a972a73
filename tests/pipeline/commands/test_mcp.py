"""``rejoin mcp``: the tools, asked by the protocol's own client within this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from rejoin.pipeline.commands.mcp import MOST_ROWS, server_of
from rejoin.pipeline.commands.parser import mcp
from rejoin.pipeline.why.story import GroupStatus, GroupStory, SourceProblem, unknown_group
from tests.pipeline.why.test_answer import DAY, finding, rebalance


class OneGroup:
    """A source with the group ``orders-app``."""

    def groups(self) -> list[GroupStatus]:
        return [GroupStatus("orders-app", "Stable", DAY, 7, 6)]

    def story(self, group_id: str) -> GroupStory:
        if group_id != "orders-app":
            raise unknown_group(group_id, ["orders-app"], "here")
        rows = [rebalance(number, DAY + number * 60_000) for number in range(300)]
        return GroupStory(self.groups()[0], rows, self.findings(), {"m-1": "worker-1"})

    def findings(self) -> list[dict[str, Any]]:
        return [finding("too short", group_id="orders-app", rebalances=["r1"])]


async def call(tool: str, **arguments: Any) -> Any:
    async with Client(server_of(OneGroup)) as client:
        return await client.call_tool(tool, arguments)


async def test_the_tools_only_read() -> None:
    async with Client(server_of(OneGroup)) as client:
        tools = (await client.list_tools()).tools
    assert sorted(tool.name for tool in tools) == ["findings", "groups", "rebalances", "why"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.description


async def test_groups() -> None:
    answer = await call("groups")
    assert answer.structured_content == {
        "groups": [{"group_id": "orders-app", "state": "Stable", "since_ms": DAY, "generation": 7, "members": 6}]
    }


async def test_why_is_the_answer_of_the_command() -> None:
    text = (await call("why", group="orders-app")).content[0].text
    assert text.startswith("group    orders-app: Stable")
    assert "why      high: too short" in text
    assert len(text.splitlines()) <= 10


async def test_why_at_an_instant() -> None:
    text = (await call("why", group="orders-app", at="2026-03-01T00:01:01Z")).content[0].text
    assert "then     2026-03-01 00:01:00 worker-1's session expired" in text


async def test_rebalances_are_the_newest_and_not_too_many() -> None:
    few = (await call("rebalances", group="orders-app", limit=2)).structured_content
    assert few["total"] == 300
    assert [row["rebalance_id"] for row in few["rebalances"]] == ["r299", "r298"]
    many = (await call("rebalances", group="orders-app", limit=10**9)).structured_content
    assert len(many["rebalances"]) == MOST_ROWS


@pytest.mark.parametrize("arguments", [{}, {"group": "orders-app"}])
async def test_findings(arguments: dict[str, str]) -> None:
    found = (await call("findings", **arguments)).structured_content
    assert [(row["title"], row["setting"]) for row in found["findings"]] == [("too short", "session.timeout.ms")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"group": "orders-ap"}, "there is no group 'orders-ap'; is it 'orders-app'?"),
        ({"group": "orders-app", "at": "soon"}, "--at soon: no instant"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_in_words(arguments: dict[str, str], said: str) -> None:
    answer = await call("why", **arguments)
    assert answer.is_error
    assert said in answer.content[0].text


def test_a_source_that_is_not_there_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mcp(tmp_path) == 2
    assert "no report in there" in capsys.readouterr().err

    def nothing() -> OneGroup:
        raise SourceProblem("no")

    with pytest.raises(SourceProblem):
        server_of(nothing)
