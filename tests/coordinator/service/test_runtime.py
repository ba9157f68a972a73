"""The runtime around the core: order, alarms, leadership, what it does when the journal or the core fails."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.journal.events.coordinator import JournalRowsLost
from rejoin.journal.reader import read_journal
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import START, Harness, join


def partition_of(group: str) -> TopicPartition:
    return offsets_partition(partition_for(group, 50))


async def events(node: Harness, group: str) -> list[str]:
    return [row["event"] for row in (await node.get(f"/events?group={group}"))["events"]]


async def test_a_node_leads_every_partition_and_says_where_it_is(node: Harness) -> None:
    answer = await node.call("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["a", "b"]})
    where = {(each["nodeId"], each["host"], each["port"]) for each in answer["coordinators"]}
    assert where == {(1, "127.0.0.1", node.port)}


async def test_another_address_can_be_advertised(serve: Serve) -> None:
    node = await serve({"advertised_host": "coordinator.example"})
    answer = await node.call("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["a"]})
    assert answer["coordinators"][0]["host"] == "coordinator.example"


async def test_timers_fire_at_their_very_instant(node: Harness) -> None:
    await node.stable("g")
    node.clock.advance(44_999)
    assert "member_removed" not in await events(node, "g")
    node.clock.advance(1)
    rows = (await node.get("/events?group=g"))["events"]
    removed = next(row for row in rows if row["event"] == "member_removed")
    assert (removed["cause"], removed["at_ms"]) == ("session-expiry", START + 3_000 + 45_000)


async def test_one_alarm_is_set_whatever_happens(node: Harness) -> None:
    member_id = await node.stable("g")
    for _ in range(50):
        node.clock.advance(100)
        await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": member_id})
    assert node.clock.pending <= 2
    node.clock.advance(44_999)
    assert "member_removed" not in await events(node, "g")
    node.clock.advance(1)
    assert "member_removed" in await events(node, "g")


async def test_a_commit_that_is_stored_at_once_leaves_no_timer_behind(node: Harness) -> None:
    await node.stable("g")
    await node.topic("t", 1)
    partitions = [{"partitionIndex": 0, "committedOffset": 5, "committedLeaderEpoch": -1, "committedMetadata": ""}]
    commit = {"groupId": "h", "memberId": "", "topics": [{"name": "t", "partitions": partitions}]}
    core = node.app.runtime.node
    due = core.next_deadline()
    for _ in range(3):
        answer = await node.call("OffsetCommit", commit, version=8)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == 0
        assert core.next_deadline() == due, "the append has ended, and nothing waits for its time-out"
        # The alarm may still be that of the append: it rings for nothing, and is set again.
        node.clock.advance(6_000)
        assert core.next_deadline() == due
    assert node.clock.pending <= 2
    node.clock.advance(45_000 - 3 * 6_000)
    assert "member_removed" in await events(node, "g")


async def test_a_group_comes_back_from_the_log_when_its_partition_is_elected_again(node: Harness) -> None:
    member_id = await node.stable("g")
    node.app.runtime.resign(partition_of("g"))
    assert (await node.request("GET", "/groups/g")).status == 404
    node.app.runtime.elect(partition_of("g"))
    group = await node.get("/groups/g")
    assert (group["state"], group["generation"], group["members"][0]["memberId"]) == ("Stable", 1, member_id)
    answer = await node.call("Heartbeat", {"groupId": "g", "generationId": 1, "memberId": member_id})
    assert answer["errorCode"] == 0


async def test_an_append_of_an_older_epoch_changes_nothing(node: Harness) -> None:
    await node.topic("orders", 1)
    node.log.hold_appends = True
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": None}
    commit = {"groupId": "g", "memberId": "", "topics": [{"name": "orders", "partitions": [partition]}]}
    committing = await node.parked("OffsetCommit", commit)
    node.app.runtime.resign(partition_of("g"))
    assert (await committing)["topics"][0]["partitions"][0]["errorCode"] == 16
    node.app.runtime.elect(partition_of("g"))
    node.log.release()
    assert (await node.request("GET", "/groups/g")).status == 404


async def test_a_full_disk_stops_no_client_and_loses_no_event(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await serve({"journal": tmp_path})
    real = os.write

    def full(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        await node.member_id("g")
        node.app.publisher.flush()
        assert node.app.metrics.journal_failures >= 1
        assert await events(node, "g") == ["group_created", "member_id_handed_out"]
    assert os.write is real
    await node.app.stop()
    rows = list(read_journal(tmp_path, journal_schema()))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert any(row.event.name == "member_id_handed_out" for row in rows)


async def test_events_that_no_memory_is_left_for_are_counted_and_said(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that stays full does not fill the memory; the journal says what it lacks once it can be written."""
    node = await serve({"journal": tmp_path})

    def full(file: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    publisher = node.app.publisher
    assert publisher.journal is not None
    publisher.flush()
    with monkeypatch.context() as patched:
        patched.setattr(publisher.journal, "_most_waiting_bytes", 1_000)
        patched.setattr(os, "write", full)
        for _ in range(20):
            await node.member_id("g")
        publisher.flush()
        assert publisher.journal.unflushed_bytes < 3_000
    publisher.flush()
    lost = node.app.metrics.journal_rows_lost
    assert lost > 0
    await node.app.stop()
    rows = list(read_journal(tmp_path, journal_schema()))
    assert [row.event for row in rows if isinstance(row.event, JournalRowsLost)] == [JournalRowsLost(rows_lost=lost)]
    assert rows[-1].seq == len(rows) + lost


async def test_events_reach_the_disk_soon_by_themselves(serve: Serve, tmp_path: Path) -> None:
    node = await serve({"journal": tmp_path})
    await node.member_id("g")
    head = node.app.publisher.feed.head
    async with asyncio.timeout(60):
        while len(list(read_journal(tmp_path, journal_schema()))) < head:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_core_that_breaks_on_its_own_goes_on(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    joining = await node.parked("JoinGroup", join("g", await node.member_id("g")))
    core = node.app.runtime.node
    step = core.step

    def breaks_once(what: object, now: int, **late: bool) -> Any:
        monkeypatch.setattr(core, "step", step)
        raise RuntimeError("a bug")

    monkeypatch.setattr(core, "step", breaks_once)
    node.clock.advance(3_000)
    assert node.app.runtime.core_failures == 1
    node.clock.advance(10)
    assert (await joining)["errorCode"] == 0


async def test_stopping_waits_three_seconds_at_the_most(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timers that stopping waits for are added up; how busy the machine is makes no difference."""
    node = await serve()
    parked = await node.parked("JoinGroup", join("g", await node.member_id("g")))
    idle = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(3)]
    idle[0][1].write(b"POST /v1/heart")
    idle[1][1].write(b"POST /v1/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    loop = asyncio.get_running_loop()
    call_at = loop.call_at
    waited: list[float] = []

    def counting(when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.TimerHandle:
        seconds = when - loop.time()

        def call() -> None:
            waited.append(seconds)
            callback(*args)

        return call_at(when, call, context=context)

    monkeypatch.setattr(loop, "call_at", counting)
    await node.app.stop()
    monkeypatch.undo()
    assert sum(waited) < 3
    assert (await parked)["errorCode"] == 16
    for _, writer in idle:
        writer.close()
