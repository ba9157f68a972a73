"""`rejoin topics` against a node, over both of its listeners."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rejoin.client.commands.groups.command import main as groups
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.commands.topics.command import main
from rejoin.client.commands.topics.options import checked, parser
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.coordinator.ports import free_port

Run = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def node() -> AsyncIterator[GroupCoordinator]:
    async with running(topics={"orders": 2}) as coordinator:
        yield coordinator


@pytest.fixture(params=["kafka", "http"])
def run(request: pytest.FixtureRequest, node: GroupCoordinator, capsys: pytest.CaptureFixture[str]) -> Run:
    server = node.bootstrap_servers if request.param == "kafka" else node.url

    async def run(*arguments: str) -> tuple[int, str]:
        code = await asyncio.to_thread(main, ["--bootstrap-server", server, *arguments])
        return code, capsys.readouterr().out

    return run


async def test_the_life_of_a_topic(run: Run) -> None:
    settings = ("--partitions", "2", "--config", "retention.ms=60000")
    assert await run("--create", "--topic", "clicks", *settings) == (0, "Created topic clicks.\n")
    assert await run("--list", "--exclude-internal") == (0, "clicks\norders\n")
    code, out = await run("--describe", "--topic", "clicks")
    first, *partitions = out.splitlines()
    assert code == 0
    assert first.startswith("Topic: clicks\tTopicId: ")
    assert first.endswith(
        "\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=60000"
    )
    tail = "\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: N/A\tLastKnownElr: N/A"
    assert partitions == [f"\tTopic: clicks\tPartition: {number}{tail}" for number in (0, 1)]
    assert await run("--alter", "--topic", "clicks", "--partitions", "3") == (0, "")
    assert (await run("--describe", "--topic", "clicks"))[1].count("Partition: ") == 3
    assert await run("--delete", "--topic", "clicks,nothing") == (0, "")
    assert await run("--list", "--topic", ".*") == (0, "orders\n")


async def test_what_the_cluster_refuses_is_said_and_ends_with_1(run: Run) -> None:
    code, out = await run("--create", "--topic", "orders")
    assert (code, out) == (1, "Error while executing topic command : topic 'orders' exists\n")
    assert await run("--create", "--topic", "orders", "--if-not-exists") == (0, "")
    missing = "Error while executing topic command : Topic 'gone' does not exist as expected\n"
    assert await run("--describe", "--topic", "gone") == (1, missing)
    assert await run("--describe", "--topic", "gone", "--if-exists") == (0, "")


async def test_an_address_of_the_other_protocol_is_named(
    node: GroupCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    async def printed(tool: Callable[[list[str]], int], server: str, expected: str) -> str:
        """What is printed of a server: with more time where a busy machine had no answer within the time."""
        for timeout_ms in (300, 3_000, 30_000):
            asked = ["--bootstrap-server", server, "--list", "--timeout", str(timeout_ms)]
            assert await asyncio.to_thread(tool, asked) == 1
            out = capsys.readouterr().err
            if expected in out:
                break
        return out

    for tool in (main, groups):
        for server, expected in (
            (node.url.removeprefix("http://"), f"; write {node.url}"),
            (f"http://{node.bootstrap_servers}", f"; write {node.bootstrap_servers}"),
        ):
            assert expected in await printed(tool, server, expected)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--list --create --topic t", "exactly one action"),
        ("--topic t", "exactly one action"),
        ("--create", 'Missing required argument "\\[topic\\]"'),
        ("--alter --topic t", 'Missing required argument "\\[partitions\\]"'),
        ("--list --partitions 3", "--partitions can't be used with option --list"),
        ("--create --topic t --partitions 0", "must be greater than 0"),
        ("--create --topic t --replication-factor 0", "between 1 and 32767"),
        ("--create --topic t --config nonsense", "key=val"),
    ],
)
def test_options_that_do_not_go_together(arguments: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        checked(parser().parse_args(arguments.split()))


@pytest.mark.parametrize("command", [main, groups])
def test_where_nothing_answers_it_says_what_to_do(
    command: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    server = f"127.0.0.1:{free_port()}"
    assert command(["--bootstrap-server", server, "--list", "--timeout", "200"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        rf"rejoin: no coordinator at {server} \(.*\); rejoin serve starts one, --bootstrap-server names another "
        r"address, --timeout gives it more time\n",
        printed.err,
    )
