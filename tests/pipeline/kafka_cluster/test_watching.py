"""Following a cluster: what is shown, what is kept, and that it goes on where it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rejoin.client import Consumer
from rejoin.coordinator.testing import running
from rejoin.pipeline.commands.parser import watch, why
from rejoin.pipeline.kafka_cluster.broker_logs import LogTails
from rejoin.pipeline.kafka_cluster.polling import ClusterSnapshot, polling
from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup
from rejoin.pipeline.kafka_cluster.store import KEPT_EVERY_MS, ClusterStore, WatchFolderProblem, read_snapshots
from rejoin.pipeline.kafka_cluster.watching import ClusterWatch
from rejoin.pipeline.why.sources import open_source
from tests.pipeline.kafka_cluster.snapshots import START, member, snapshot

SERVER_LOG = """\
[2026-03-01 00:00:01,000] INFO [GroupCoordinator 1]: Preparing to rebalance group orders-app in state Stable with old \
generation 7 (__consumer_offsets-3) (reason: Removing member b-1-2f8ba0a1-9f3f-4d0c-9f5f-111111111111 on LeaveGroup; \
client reason: the consumer is being closed) (kafka.coordinator.group.GroupCoordinator)
[2026-03-01 00:00:04,000] INFO [GroupCoordinator 1]: Stabilized group orders-app generation 8 (__consumer_offsets-3) \
with 1 members (kafka.coordinator.group.GroupCoordinator)
[2026-03-01 00:00:04,010] INFO [GroupCoordinator 1]: Assignment received from leader \
a-1-2f8ba0a1-9f3f-4d0c-9f5f-222222222222 for group orders-app for generation 8. The group has 1 members, 0 of which \
are static. (kafka.coordinator.group.GroupCoordinator)
"""


class Poller:
    """Gives snapshots that a test has written down."""

    is_restricted = False

    def __init__(self, snapshots: Sequence[ClusterGroup]) -> None:
        self.snapshots = list(snapshots)

    async def poll(self) -> ClusterSnapshot:
        one = self.snapshots.pop(0)
        return ClusterSnapshot(one.at_ms, {one.group_id: one}, [])


async def watched(snapshots: Sequence[ClusterGroup], store: ClusterStore | None = None, **options: Any) -> ClusterWatch:
    poller: Any = Poller(snapshots)
    found = ClusterWatch(poller, store, **options)
    for _ in snapshots:
        await found.poll()
    return found


SNAPSHOTS = [
    snapshot(0, member("a", 0), member("b", 1), offsets={0: (1, 5), 1: (2, 6)}),
    snapshot(5, member("a"), member("b"), offsets={0: (2, 6), 1: (2, 7)}, state="PreparingRebalance"),
    snapshot(10, member("a", 0, 1), offsets={0: (3, 7), 1: (3, 8)}),
    snapshot(15, member("a", 0, 1), offsets={0: (4, 8), 1: (4, 9)}),
]


async def test_what_is_kept_leads_to_the_same_conclusions(tmp_path: Path) -> None:
    live = await watched(SNAPSHOTS, ClusterStore(tmp_path))
    again = ClusterStore(tmp_path).observed()["orders-app"]
    before = live.groups["orders-app"]
    assert [row["outcome"] for row in again.rebalances] == ["completed"]
    wanted = ("prepared_at_ms", "ended_at_ms", "cause", "moved", "left")
    assert [{name: row[name] for name in wanted} for row in again.rebalances] == [
        {name: row[name] for name in wanted} for row in before.rebalances
    ]


async def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    await watched(SNAPSHOTS[:2], ClusterStore(tmp_path))
    resumed = await watched(SNAPSHOTS[2:], ClusterStore(tmp_path))
    (row,) = resumed.groups["orders-app"].rebalances
    assert (row["prepared_at_ms"], row["ended_at_ms"]) == (START + 5_000, START + 10_000)


async def test_files_are_read_that_an_earlier_version_named_otherwise(tmp_path: Path) -> None:
    await watched(SNAPSHOTS[:2], ClusterStore(tmp_path))
    file = tmp_path / "snapshots-2026-03-01.jsonl"
    file.rename(tmp_path / "looks-2026-03-01.jsonl")
    await watched(SNAPSHOTS[2:], ClusterStore(tmp_path))
    assert file.is_file()
    assert [each.at_ms for each in read_snapshots(tmp_path)] == [each.at_ms for each in SNAPSHOTS[:3]]


async def test_a_rebalance_during_a_pause_of_the_watch_has_no_length(tmp_path: Path) -> None:
    await watched(SNAPSHOTS[:1], ClusterStore(tmp_path))
    resumed = await watched([snapshot(3_600, member("a", 0, 1))], ClusterStore(tmp_path))
    (row,) = resumed.groups["orders-app"].rebalances
    assert row["prepared_at_ms"] == row["ended_at_ms"] == START + 3_600_000


async def test_a_quiet_group_is_kept_once_in_a_while(tmp_path: Path) -> None:
    await watched([snapshot(s, member("a", 0), offsets={0: (s, s)}) for s in range(0, 601, 5)], ClusterStore(tmp_path))
    assert len(list(read_snapshots(tmp_path))) == 600_000 // KEPT_EVERY_MS + 1


async def test_a_line_that_a_kill_cut_short_costs_that_line_alone(tmp_path: Path) -> None:
    await watched(SNAPSHOTS[:2], ClusterStore(tmp_path))
    file = tmp_path / "snapshots-2026-03-01.jsonl"
    whole = file.read_text()
    file.write_text(whole[:-20])
    store = ClusterStore(tmp_path)
    assert len(store.observed()) == 1
    store.keep([SNAPSHOTS[2]])
    assert [each.at_ms for each in read_snapshots(tmp_path)][-1] == SNAPSHOTS[2].at_ms
    assert all(json.loads(line) for line in file.read_text().splitlines()[-1:])


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    with pytest.raises(WatchFolderProblem, match="holds something else"), ClusterStore(tmp_path).locked("h:1"):
        pass


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with (
        ClusterStore(tmp_path / "w").locked("h:1"),
        pytest.raises(WatchFolderProblem, match="being written by another process"),
        ClusterStore(tmp_path / "w").locked("h:1"),
    ):
        pass


async def test_a_finding_is_new_once(tmp_path: Path) -> None:
    snapshots = [snapshot(s, member("a", 0), offsets={0: (5, 50 + s)}) for s in range(0, 200, 5)]
    poller: Any = Poller(snapshots)
    follower = ClusterWatch(poller)
    new = [row["finding"] for _ in snapshots for row in (await follower.poll()).new_findings]
    assert new == ["owned-not-moving"]


async def test_logs_say_why_and_who(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    first, rest = SERVER_LOG.split("\n", 1)
    log.write_text(first + "\n" + rest[:50])
    tails = LogTails([log])
    snapshots = [snapshot(s, member("a", 0), offsets={0: (5, 50)}) for s in (5, 10, 15)]
    poller: Any = Poller(snapshots)
    follower = ClusterWatch(poller, logs=tails)
    assert (await follower.poll()).rebalances == []
    log.write_text(SERVER_LOG)
    (row,) = (await follower.poll()).rebalances
    assert (row["cause"], row["generation_to"], row["outcome"]) == ("leave", 8, "completed")
    assert row["client_reason"] == "the consumer is being closed"
    assert (await follower.poll()).rebalances == []
    assert [each["cause"] for each in follower.story("orders-app").rebalances] == ["leave"]


def test_a_log_is_read_to_its_end_when_it_is_rotated(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    lines = SERVER_LOG.splitlines(keepends=True)
    log.write_text(lines[0])
    tails = LogTails([log])
    assert tails.read_on() == []
    with log.open("a") as file:
        file.writelines(lines[1:3])
    log.rename(tmp_path / "server.log.1")
    log.write_text("".join(lines[3:]))
    assert tails.read_on() == []
    whole = tmp_path / "whole.log"
    whole.write_text(SERVER_LOG)
    once = LogTails([whole])
    once.read_on()
    assert [row["kind"] for row in tails.events("orders-app")] == [row["kind"] for row in once.events("orders-app")]


def test_a_log_is_read_to_its_end_at_once_however_long_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "server.log"
    log.write_text(SERVER_LOG)
    whole = LogTails([log])
    whole.read_on()
    longest = max(map(len, SERVER_LOG.splitlines(keepends=True)))
    monkeypatch.setattr("rejoin.pipeline.kafka_cluster.broker_logs.AT_ONCE_BYTES", longest)
    in_pieces = LogTails([log])
    assert in_pieces.read_on() == []
    found, expected = (
        [(row["at_ms"], row["event"]) for row in each.events("orders-app")] for each in (in_pieces, whole)
    )
    assert found == expected
    assert len(found) > 2


def test_a_log_that_is_not_there_for_a_while(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert LogTails([log]).read_on() == [f"{log}: No such file or directory; it is read again"]


async def test_the_folder_explains_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ClusterStore(tmp_path)
    with store.locked("h:1"):
        await watched(SNAPSHOTS, store)
    assert why("orders-app", tmp_path) == 0
    text = capsys.readouterr().out
    assert "orders-app: Stable since 2026-03-01 00:00:10" in text
    assert "last     2026-03-01 00:00:05 b left; took 5 s (completed, 1 moved)" in text
    assert why("orders", tmp_path) == 2
    assert "is it 'orders-app'?" in capsys.readouterr().err
    assert [each.group_id for each in open_source(tmp_path).groups()] == ["orders-app"]


async def test_our_own_listener_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with (
        asyncio.timeout(120),
        running(topics={"orders": 4}, settings={"group.initial.rebalance.delay.ms": 0}) as kafka,
    ):
        settings: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "orders-app"}
        async with polling(kafka.bootstrap_servers) as poller:
            follower = ClusterWatch(poller, ClusterStore(tmp_path / "out"))
            with ClusterStore(tmp_path / "out").locked(kafka.bootstrap_servers):
                async with Consumer("orders", client_id="one", **settings) as one:
                    await until_stable(follower, 1, one)
                    async with Consumer("orders", client_id="two", **settings) as two:
                        await until_stable(follower, 2, one, two)
                    await until_stable(follower, 1, one)
        causes = {row["cause"] for row in follower.groups["orders-app"].rebalances}
        assert {"join-new", "leave"} <= causes
        done = await asyncio.to_thread(watch, bootstrap_server=kafka.bootstrap_servers, out=tmp_path / "out", once=True)
        assert done == 0
        shown = capsys.readouterr().out
        assert "orders-app" in shown
        assert "assignor" in shown


async def until_stable(follower: ClusterWatch, members: int, *consumers: Consumer) -> None:
    while True:
        await asyncio.gather(*(consumer.poll(20) for consumer in consumers))
        await follower.poll()
        last = follower.groups["orders-app"].last if "orders-app" in follower.groups else None
        if last is not None and last.state == "Stable" and len(last.members) == members and len(last.owners) == 4:
            return


# -- the command line


def test_a_cluster_that_is_not_there(unused_tcp_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rejoin.pipeline.kafka_cluster.polling.TIMEOUT_MS", 50)
        assert watch(bootstrap_server=f"127.0.0.1:{unused_tcp_port}") == 2
    assert "is a cluster there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bootstrap_server": "h:1", "every": 0.0}, "--every 0.0: expected a number of seconds above 0"),
        ({"bootstrap_server": "h:1", "log": (Path("nowhere"),)}, "--log nowhere: no such file"),
        (
            {"bootstrap_server": "h:1", "log": (Path(__file__),), "timezone": "Mars"},
            "--timezone Mars: there is no such zone",
        ),
        ({"bootstrap_server": "h:1", "timezone": "UTC"}, "--timezone is for brokers' logs: give --log"),
        ({"bootstrap_server": "h:1", "lost": "skip"}, "--lost is for coordinators: give --from"),
        ({"bootstrap_server": "h:1", "master": "local[2]"}, "--master is for Spark, and --bootstrap-server needs none"),
        ({"bootstrap_server": "h:1", "from_": ("http://h:1",)}, "--bootstrap-server is for clusters"),
        ({"from_": ("http://h:1",), "group": ("g",)}, "--group is for clusters"),
        ({"from_": ("http://h:1",), "timezone": "UTC"}, "--timezone is for clusters"),
        ({"journal": (Path(),), "lost": "fail"}, "--lost is for coordinators: give --from"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert watch(**options) == 2
    assert said in capsys.readouterr().err


async def test_a_named_group_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    async with running() as kafka:
        servers = kafka.bootstrap_servers
        done = await asyncio.to_thread(watch, bootstrap_server=servers, group=("nosuch",), once=True)
    assert done == 2
    assert f"{servers}: there is no group 'nosuch'; rejoin groups --list lists" in capsys.readouterr().err
