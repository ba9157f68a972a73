"""`rejoin groups`: what it prints, to the column, and what it does."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import rejoin.client.admin.asking
from rejoin.client import Consumer
from rejoin.client.admin.admin import Admin, GroupDescription, MemberDescription
from rejoin.client.commands.groups import actions, tables
from rejoin.client.commands.groups.actions import run_action
from rejoin.client.commands.groups.options import checked, parser
from rejoin.client.commands.groups.parsing import instant, read_plan, topic_partitions
from rejoin.client.commands.tools.arguments import UsageError
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import SharedTransport, TransportError
from rejoin.client.transports.http import HttpTransport
from rejoin.commands import build
from rejoin.coordinator.service.app import App
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseBroker
from rejoin.protocol.messages.groups.list_groups import ListedGroup
from rejoin.protocol.types import TopicPartition
from tests.client.conftest import Serve

NODE = Endpoint(1, "127.0.0.1", 9095)


def member(name: str, *partitions: int, instance: str | None = None, topic: str = "t") -> MemberDescription:
    assigned = tuple(TopicPartition(topic, partition) for partition in partitions)
    return MemberDescription(f"{name}-id", instance, name, "/127.0.0.1", assigned)


def group(*members: MemberDescription, state: str = "Stable") -> GroupDescription:
    return GroupDescription("g", state, "range", NODE, members)


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


# -- tables


def test_offsets() -> None:
    a = member("a", 0, 1)
    rows = [
        tables.OffsetRow("g", TopicPartition("t", 0), 5, 12, a),
        tables.OffsetRow("g", TopicPartition("t", 1), None, 9, a),
        tables.OffsetRow("g", TopicPartition("gone", 0), 3, None, None),
    ]
    assert trimmed(tables.offsets(rows)) == [
        "",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
        "HOST            CLIENT-ID",
        "g               t               0          5               12              7               a-id            "
        "/127.0.0.1      a",
        "g               t               1          -               9               -               a-id            "
        "/127.0.0.1      a",
        "g               gone            0          3               -               -               -               "
        "-               -",
    ]


def test_members() -> None:
    dynamic = tables.members(group(member("a", 0, 1), member("b")), verbose=False)
    assert trimmed(dynamic) == [
        "",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS",
        "g               a-id            /127.0.0.1      a               2",
        "g               b-id            /127.0.0.1      b               0",
    ]
    static = tables.members(group(member("a", 0, instance="i"), member("b")), verbose=True)
    assert trimmed(static) == [
        "",
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT",
        "g               a-id            i                 /127.0.0.1      a               1               (0)",
        "g               b-id                              /127.0.0.1      b               0               -",
    ]


def test_assignments_are_shown_as_kafka_shows_them() -> None:
    partitions = [TopicPartition("t", 10), TopicPartition("t", 2), TopicPartition("u", 0)]
    assert tables.assignment(partitions) == "(0), (10,2)"


def test_state() -> None:
    assert trimmed(tables.state(group(member("a")))) == [
        "",
        "GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS",
        "g                         127.0.0.1:9095  (1)       range                Stable          1",
    ]


def test_listing() -> None:
    listed = [ListedGroup(group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic")]
    assert trimmed(tables.listing(listed, types=True, states=True)) == [
        "GROUP                     TYPE                 STATE",
        "g                         Classic              Stable",
    ]
    assert trimmed(tables.listing(listed, types=False, states=True)) == [
        "GROUP                     STATE",
        "g                         Stable",
    ]


def test_resets() -> None:
    plans = {"g": {TopicPartition("t", 0): 7}}
    assert trimmed(tables.reset_plan(plans)) == [
        "",
        "GROUP                          TOPIC                          PARTITION  NEW-OFFSET",
        "g                              t                              0          7",
    ]
    assert tables.reset_csv(plans, one_group=True) == "t,0,7\n"
    assert tables.reset_csv(plans, one_group=False) == "g,t,0,7\n"


def test_deletions() -> None:
    assert tables.deleted_groups({"a": ErrorCode.NONE, "b": ErrorCode.NONE}) == (
        "Deletion of requested consumer groups ('a, b') was successful.\n"
    )
    assert tables.deleted_groups({"a": ErrorCode.NONE, "b": ErrorCode.NON_EMPTY_GROUP}) == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'b' could not be deleted due to: java.util.concurrent.ExecutionException: "
        "org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.\n"
        "\nThese consumer groups were deleted successfully: 'a', '\n"
    )
    results = {TopicPartition("t", 0): ErrorCode.NONE, TopicPartition("x", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert trimmed(tables.deleted_offsets(results)) == [
        "",
        "TOPIC                          PARTITION       STATUS",
        "t                              0               Successful",
        "x                              Not Provided    Error: :org.apache.kafka.common.errors."
        "UnknownTopicOrPartitionException: This server does not host this topic-partition.",
    ]


@pytest.mark.parametrize(
    ("state", "out", "warning", "rows"),
    [
        ("Dead", "\nError: Consumer group 'g' does not exist.", None, False),
        ("Empty", None, "\nConsumer group 'g' has no active members.", True),
        ("PreparingRebalance", None, "\nWarning: Consumer group 'g' is rebalancing.", True),
        ("CompletingRebalance", None, "\nWarning: Consumer group 'g' is rebalancing.", True),
        ("Stable", None, None, True),
    ],
)
def test_what_is_said_about_a_state(state: str, out: str | None, warning: str | None, rows: bool) -> None:
    assert tables.member_state(group(state=state)) == (out, warning, rows)


# -- the command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--list --describe --group g", "exactly one action"),
        ("--group g", "exactly one action"),
        ("--describe", "takes one of these options: --group, --all-groups"),
        ("--describe --group g --members --state", "at most one of these options"),
        ("--describe --group g --state stable", "does not take a value for --state"),
        ("--describe --group g --all-groups", "can't be used with"),
        ("--delete", "takes one of these options"),
        ("--delete --group g --topic t", "does not support topic-specific offset deletion"),
        ("--delete-offsets --group g", "takes the following options: --group, --topic"),
        ("--reset-offsets", "takes one of these options"),
        ("--reset-offsets --group g --dry-run --execute", "only accepts one of --execute and --dry-run"),
        ("--list --members", "for --describe"),
        ("--nothing", "there is no option --nothing"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(arguments: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked(parser().parse_args(arguments.split()))


def test_times_durations_partitions_and_plans(tmp_path: Any) -> None:
    assert instant("1970-01-01T00:00:01.500") == instant("1970-01-01T01:00:01.500+01:00") == 1_500
    assert topic_partitions("t:0,2") == [("t", 0), ("t", 2)]
    plan = tmp_path / "plan.csv"
    plan.write_text('"t",0,7\nt,1,8\n')
    assert read_plan(str(plan), ["g"]) == {"g": {("t", 0): 7, ("t", 1): 8}}
    plan.write_text("h,t,0,7\n")
    assert read_plan(str(plan), ["g", "h"]) == {"h": {("t", 0): 7}}
    with pytest.raises(UsageError):
        instant("yesterday")
    with pytest.raises(UsageError, match="Invalid partition"):
        topic_partitions("t:x")
    plan.write_text("t\n")
    with pytest.raises(UsageError, match=":1"):
        read_plan(str(plan), ["g"])


def test_subcommands_are_listed_without_importing_them() -> None:
    app = build()
    assert {"consume", "groups", "account"} <= {name for name in app if not name.startswith("-")}


# -- against a node


async def run(app: App, arguments: str) -> None:
    options = parser().parse_args([*arguments.split(), "--bootstrap-server", app.url])
    action = checked(options)
    assert action is not None
    assert await run_action(action, options) == 0


async def committed_group(app: App, **offsets: int) -> None:
    """A group ``g`` that is Empty, with offsets of ``orders``."""
    async with Consumer("orders", bootstrap_servers=app.url, group_id="g", enable_auto_commit=False) as reader:
        while not reader.assignment():
            await reader.poll(100)
        await reader.commit({TopicPartition("orders", int(name[1:])): offset for name, offset in offsets.items()})


async def test_a_group_with_members(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    app = await serve({"orders": 2}, rate=0.0)
    async with Consumer("orders", bootstrap_servers=app.url, group_id="g", client_id="c") as reader:
        while not reader.assignment():
            await reader.poll(100)
        await reader.commit({TopicPartition("orders", 0): 0})
        await run(app, "--list")
        assert capsys.readouterr().out == "g\n"
        await run(app, "--describe --group g")
        lines = trimmed(capsys.readouterr().out)
        assert [line.split()[:6] for line in lines[2:4]] == [
            ["g", "orders", "0", "0", "0", "0"],
            ["g", "orders", "1", "-", "0", "-"],
        ]
        await run(app, "--describe g --members --verbose")
        assert capsys.readouterr().out.rstrip().endswith("(0,1)")
        await run(app, "--describe --state --all-groups")
        assert "range                Stable          1" in capsys.readouterr().out
        await run(app, "--delete --group g")
        assert "The group is not empty." in capsys.readouterr().out
        await run(app, "--delete-offsets --group g --topic orders:0")
        assert "actively subscribed to it" in capsys.readouterr().out
        await run(app, "--reset-offsets --group g --topic orders --to-earliest --execute")
        assert "but the current state is Stable." in capsys.readouterr().out


async def test_a_group_to_which_the_coordinator_assigns(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    app = await serve({"orders": 2}, rate=0.0)
    settings: dict[str, Any] = {"group_id": "g", "client_id": "c", "group_protocol": "consumer"}
    async with Consumer("orders", bootstrap_servers=app.url, **settings) as reader:
        while not reader.assignment():
            await reader.poll(100)
        await reader.commit({TopicPartition("orders", 0): 0})
        await run(app, "--describe --group g")
        lines = trimmed(capsys.readouterr().out)
        assert [line.split()[:6] for line in lines[2:4]] == [
            ["g", "orders", "0", "0", "0", "0"],
            ["g", "orders", "1", "-", "0", "-"],
        ]
        await run(app, "--describe --group g --verbose")
        lines = trimmed(capsys.readouterr().out)
        assert [line.split()[2:7] for line in lines[1:3]] == [
            ["PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"],
            ["0", "-", "0", "0", "0"],
        ]
        await run(app, "--describe --group g --members --verbose")
        header, row = trimmed(capsys.readouterr().out)[1:]
        assert header.split()[4:] == [
            "#PARTITIONS", "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"
        ]  # fmt: skip
        assert re.search(r" c +2 +\d+ +orders:0,1 +\d+ +orders:0,1$", row)
        await run(app, "--describe --state --group g")
        assert re.search(r"uniform +\w+ +1", capsys.readouterr().out)
        await run(app, "--describe --state --group g --verbose")
        assert re.search(r"uniform +\w+ +\d+ +\d+ +1", capsys.readouterr().out)
        await run(app, "--list --type")
        assert capsys.readouterr().out.split()[-2:] == ["g", "Consumer"]
    await run(app, "--describe --group g")
    assert capsys.readouterr().err == "\nConsumer group 'g' has no active members.\n"


async def test_a_group_without_members(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    app = await serve({"orders": 2})
    await committed_group(app, p0=3, p1=4)
    await asyncio.sleep(0.05)
    await run(app, "--describe --group g")
    captured = capsys.readouterr()
    assert captured.err == "\nConsumer group 'g' has no active members.\n"
    assert [line.split()[:4] for line in trimmed(captured.out)[2:4]] == [
        ["g", "orders", "0", "3"],
        ["g", "orders", "1", "4"],
    ]
    await run(app, "--reset-offsets --group g --topic orders:0 --shift-by -1 --dry-run")
    assert capsys.readouterr().out.split()[-4:] == ["g", "orders", "0", "2"]
    await run(app, "--reset-offsets --group g --topic orders --to-offset 1 --execute")
    assert capsys.readouterr().out.split()[-1] == "1"
    await run(app, "--reset-offsets --group g --all-topics --to-current --export --dry-run")
    assert capsys.readouterr().out == "orders,0,1\norders,1,1\n\n"
    await run(app, "--reset-offsets --group g --topic orders:1 --to-offset 99999999 --dry-run")
    assert "is higher than latest offset" in capsys.readouterr().err
    await run(app, "--delete-offsets --group g --topic orders:0 --topic nothing")
    out = capsys.readouterr().out
    assert "Encounter some partition level error" in out
    assert "Successful" in out
    await run(app, "--delete --group g")
    assert capsys.readouterr().out == "Deletion of requested consumer groups ('g') was successful.\n"
    await run(app, "--describe --group g")
    assert capsys.readouterr().out == "\nError: Consumer group 'g' does not exist.\n"
    await run(app, "--list --state")
    assert trimmed(capsys.readouterr().out) == ["GROUP                     STATE"]


async def test_a_reset_says_so_when_it_does_nothing(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    app = await serve({"orders": 1}, rate=0.0)
    await committed_group(app, p0=0)
    await run(app, "--reset-offsets --group g --topic orders --to-latest")
    assert capsys.readouterr().err.startswith("WARN: No action will be performed as the --execute option is missing.")
    with pytest.raises(UsageError, match="one of the following scenarios"):
        await run(app, "--reset-offsets --group g --topic orders --dry-run")
    with pytest.raises(UsageError, match="One of the reset scopes"):
        await run(app, "--reset-offsets --group g --to-latest --dry-run")


async def test_a_node_that_is_not_there_is_reported(unused_tcp_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args(["--list", "--bootstrap-server", f"127.0.0.1:{unused_tcp_port}", "--timeout", "300"])
    assert await run_action("--list", options) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)


class FirstHangs(SharedTransport):
    """A cluster whose first node takes requests and never answers."""

    def __init__(self, node: HttpTransport) -> None:
        self.node = node
        self.given_ms: list[int] = []

    async def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Response:
        if to is None:
            self.given_ms.append(timeout_ms)
            if len(self.given_ms) == 1:
                raise TransportError(Failure.TIMEOUT, "no answer")
        return await self.node.send(to, request, version, timeout_ms=timeout_ms, client_id=client_id)

    async def close(self) -> None:
        await self.node.close()


async def test_a_first_node_that_hangs_leaves_time_to_ask_another(serve: Serve) -> None:
    app = await serve()
    async with HttpTransport([app.url]) as node:
        transport = FirstHangs(node)
        assert await Admin(transport, 60_000).list_groups() == []
    first, second, *_ = transport.given_ms
    assert first <= 30_000
    assert second > 20_000


class NamedNodeHangs(SharedTransport):
    """A cluster of two nodes, of which the first takes requests and never answers. Its clock runs only meanwhile."""

    def __init__(self, node: HttpTransport) -> None:
        self.node = node
        self.now = 0.0

    async def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Response:
        if to is not None and to.node_id == 0:
            self.now += timeout_ms / 1_000
            raise TransportError(Failure.TIMEOUT, f"{to.host}:{to.port}: no answer within {timeout_ms} ms")
        response = await self.node.send(to, request, version, timeout_ms=timeout_ms, client_id=client_id)
        if isinstance(response, MetadataResponse):
            hung = MetadataResponseBroker(node_id=0, host="127.0.0.1", port=9, rack=None)
            return response.model_copy(update={"brokers": (hung, *response.brokers)})
        return response

    async def close(self) -> None:
        await self.node.close()


async def test_groups_are_listed_though_a_node_of_the_cluster_hangs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = await serve()
    await committed_group(app, p0=3)
    async with HttpTransport([app.url]) as node:
        transport = NamedNodeHangs(node)
        monkeypatch.setattr(rejoin.client.admin.asking, "monotonic", lambda: transport.now)
        listing = await Admin(transport, 60_000).list_reachable_groups()
        assert [group.group_id for group in listing.groups] == ["g"]
        assert listing.unanswered == ("ListGroups: 127.0.0.1:9: no answer within 30000 ms",)
        with pytest.raises(KafkaTimeoutError, match="no answer within 30000 ms"):
            await Admin(transport, 60_000).list_groups()
        options = parser().parse_args(["--list", "--timeout", "60000"])
        with pytest.raises(KafkaError, match="groups of nodes that do not answer are left out"):
            await actions.list_groups(Admin(transport, 60_000), options)
        assert capsys.readouterr().out == "g\n"
        options = parser().parse_args(["--describe", "--all-groups", "--state"])
        with pytest.raises(KafkaError, match=r"127\.0\.0\.1:9: no answer within 30000 ms; groups of nodes"):
            await actions.describe(Admin(transport, 60_000), options)
        assert re.search(r"^g .* Empty +0$", capsys.readouterr().out, re.MULTILINE)
        options = parser().parse_args(["--delete", "--all-groups"])
        with pytest.raises(KafkaError, match="are left out"):
            await actions.delete(Admin(transport, 60_000), options)
    assert capsys.readouterr().out == "Deletion of requested consumer groups ('g') was successful.\n"
