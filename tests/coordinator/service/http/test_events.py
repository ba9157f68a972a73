"""The service's events: by number, of one group, and live."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.commands.journal_schema import journal_schema
from rejoin.coordinator.service.feed import Feed, FeedRow, RowsNotRetained
from rejoin.coordinator.service.http.streaming import streams
from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.coordinator import GroupCreated
from rejoin.journal.reader import read_journal
from tests.coordinator.service.helpers import Harness, HttpAnswer


async def test_events_come_in_ranges_that_are_repeatable(node: Harness) -> None:
    await node.stable("g")
    whole = await node.get("/events?limit=10000")
    assert [row["seq"] for row in whole["events"]] == list(range(1, whole["head"] + 1))
    assert (whole["next"], whole["first"]) == (whole["head"], 1)
    part = await node.get("/events?after=3&limit=5")
    assert [row["seq"] for row in part["events"]] == [4, 5, 6, 7, 8]
    assert part["next"] == 8
    assert part == await node.get("/events?after=3&limit=5")
    assert (await node.get(f"/events?after={whole['head']}"))["events"] == []


async def test_events_of_one_group_can_be_asked_for(node: Harness) -> None:
    await node.member_id("a")
    await node.member_id("b")
    answer = await node.get("/events?group=b")
    assert [row["event"] for row in answer["events"]] == ["group_created", "member_id_handed_out"]
    assert answer["next"] == answer["head"]
    first = await node.get("/events?group=b&limit=1")
    rest = await node.get(f"/events?group=b&after={first['next']}")
    assert first["events"] + rest["events"] == answer["events"]


async def test_events_that_are_not_kept_any_more_are_gone(node: Harness) -> None:
    feed = node.app.publisher.feed
    feed._retained_rows = 10
    await node.topic("orders", 1)
    answered = await node.request("GET", f"/events?after={feed.first - 2}")
    assert (answered.status, answered.json["type"]) == (410, "urn:rejoin:problem:events-gone")
    assert str(feed.first) in answered.json["detail"]
    assert len((await node.get(f"/events?after={feed.first - 1}"))["events"]) == 10


async def test_an_empty_answer_has_the_position_of_the_stream(serve: Any, tmp_path: Path) -> None:
    node = await serve()
    await node.topic("orders", 1)
    node.app.publisher.feed._retained_rows = 1
    await node.topic("orders-2", 1)
    answer = await node.get("/events?limit=0&after=99999999")
    (newest,) = (await node.get(f"/events?after={answer['head'] - 1}"))["events"]
    assert (answer["events"], answer["first"]) == ([], answer["head"])
    assert answer["stream"] == {
        "source": "coordinator",
        "node": "1",
        "run_id": newest["run_id"],
        "journal": False,
    }
    kept = await serve({"journal": tmp_path})
    assert (await kept.get("/events?limit=0"))["stream"]["journal"] is True


async def test_what_was_shown_is_in_the_journal_already(serve: Any, tmp_path: Path) -> None:
    node = await serve({"journal": tmp_path})
    await node.topic("orders", 1)
    shown = await node.get("/events?limit=10000")
    assert len(list(read_journal(tmp_path, journal_schema()))) == shown["head"]


async def test_with_a_journal_nothing_is_gone_not_even_after_a_restart(serve: Any, tmp_path: Path) -> None:
    first = await serve({"journal": tmp_path})
    await first.stable("g")
    before = (await first.get("/events?limit=10000"))["events"]
    await first.app.stop()
    second = await serve({"journal": tmp_path})
    after = await second.get("/events?limit=10000")
    assert after["events"][: len(before)] == before
    assert after["first"] == 1
    assert len({row["run_id"] for row in after["events"]}) == 2
    mine = await second.get("/events?group=g&limit=2")
    assert [row["event"] for row in mine["events"]] == ["group_created", "member_id_handed_out"]
    rest = await second.get(f"/events?after={len(before) - 1}&limit=2")
    assert [row["seq"] for row in rest["events"]] == [len(before), len(before) + 1]


async def test_the_journal_holds_what_was_served(serve: Any, tmp_path: Path) -> None:
    node = await serve({"journal": tmp_path})
    await node.stable("g")
    served = (await node.get("/events?limit=10000"))["events"]
    await node.app.stop()
    rows = list(read_journal(tmp_path, journal_schema(), limit=len(served)))
    assert [(row.seq, row.envelope.event) for row in rows] == [(row["seq"], row["event"]) for row in served]
    assert {row.envelope.node for row in rows} == {"1"}


class Stream:
    """Server-sent events, read one at a time."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, str]:
        event: dict[str, str] = {}
        async with asyncio.timeout(60):
            while True:
                line = (await self.response.content.readuntil(b"\n")).decode().rstrip("\n")
                if not line and "id" in event:
                    return event
                name, _, value = line.partition(": ")
                if name and line:
                    event[name] = value

    async def upto(self, name: str) -> list[dict[str, str]]:
        events = [await self.next()]
        while events[-1]["event"] != name:
            events.append(await self.next())
        return events


def stream(node: Harness, query: str = "", **headers: str) -> Any:
    named = {"Accept": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return node.session.get(f"{node.app.url}/events{query}", headers=named)


async def test_events_come_live_with_their_rows(node: Harness) -> None:
    async with stream(node) as response:
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        await node.topic("orders", 1)
        event = await Stream(response).next()
        assert event["event"] == "topic_created"
        row = json.loads(event["data"])
        assert (row["seq"], row["event"]) == (int(event["id"]), "topic_created")
        assert row == (await node.get(f"/events?after={row['seq'] - 1}"))["events"][0]


async def test_a_listener_that_comes_back_misses_nothing(node: Harness) -> None:
    async with stream(node, "?after=0") as response:
        seen = await Stream(response).next()
    await node.member_id("g")
    async with stream(node, Last_Event_ID=seen["id"]) as response:
        events = await Stream(response).upto("member_id_handed_out")
    assert [int(event["id"]) for event in events] == list(range(2, node.app.publisher.feed.head + 1))


async def test_a_listener_may_choose_a_group(node: Harness) -> None:
    async with stream(node, "?group=b") as response:
        await node.member_id("a")
        await node.member_id("b")
        events = await Stream(response).upto("member_id_handed_out")
    assert {json.loads(event["data"])["group_id"] for event in events} == {"b"}


async def test_a_listener_that_goes_away_leaves_nothing(node: Harness) -> None:
    feed = node.app.publisher.feed
    async with stream(node) as response:
        await _until(lambda: feed.listeners == 1)
        response.close()
    await _until(lambda: feed.listeners == 0)


async def test_a_listener_that_asks_for_what_is_gone_is_answered_so(node: Harness) -> None:
    node.app.publisher.feed._retained_rows = 5
    await node.topic("orders", 1)
    async with stream(node, "?after=0") as response:
        assert response.status == 410
    async with stream(node, Last_Event_ID="x") as response:
        assert HttpAnswer(response, await response.read()).json["errors"][0]["field"] == "Last-Event-ID"


async def test_a_listener_that_does_not_read_is_cut_off(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoin.coordinator.service.http.streaming.event_views._STALLED_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port, limit=1_024)
    writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    connections = node.app.service._server.connections
    (served,) = [each for each in connections if each.peername == writer.get_extra_info("sockname")]
    big = GroupCreated(group_id="g" * 100_000, offsets_partition=1, simple=False)
    for _ in range(200):
        node.app.publisher.publish(big, 1)
    await _until(lambda: served.transport is None)
    writer.close()


async def test_stopping_ends_the_streams(serve: Any) -> None:
    node = await serve()
    async with stream(node) as response:
        await node.app.service.stop()
        async with asyncio.timeout(60):
            assert b"retry" in await response.content.read()


async def _until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


# --- the feed by itself


def _feed(rows: int, **limits: int) -> Feed:
    feed = Feed(**limits)
    encoder = RowEncoder("run", "coordinator", "1")
    for number in range(1, rows + 1):
        event = GroupCreated(group_id=f"g{number % 3}", offsets_partition=0, simple=False)
        feed.add(encoder.encode(number, number, event), event)
    return feed


def test_a_feed_keeps_the_newest_rows() -> None:
    feed = _feed(5_000, retained_rows=100)
    assert (feed.first, feed.head) == (4_901, 5_000)
    assert [entry.seq for entry in feed.range(4_900, 1_000).entries] == list(range(4_901, 5_001))
    assert [entry.seq for entry in feed.range(4_990, 3).entries] == [4_991, 4_992, 4_993]
    with pytest.raises(RowsNotRetained):
        feed.range(4_899, 1)


def test_a_feed_keeps_so_many_bytes_and_at_least_one_row() -> None:
    assert _feed(50, retained_bytes=1_000).first > 40
    assert _feed(50, retained_bytes=1).first == 50


def test_a_feed_that_is_empty_or_read_to_its_end_gives_nothing() -> None:
    assert Feed(after=7).range(7, 10) == ([], 7)
    assert Feed(after=7).first == 8
    assert _feed(3).range(3, 10) == ([], 3)
    assert _feed(3).range(99, 10) == ([], 99)


async def test_listeners_wait_without_a_queue() -> None:
    feed = _feed(3)
    waiting = asyncio.ensure_future(feed.wait(3))
    await asyncio.sleep(0)
    assert feed.listeners == 1
    feed.close()
    await waiting
    await feed.wait(99)


async def test_a_range_ahead_of_the_newest_event_belongs_to_another_run(node: Harness) -> None:
    answered = await node.request("GET", "/events?after=99999999")
    assert answered.status == 410
    assert "another run" in answered.json["detail"]


async def test_streams_share_what_is_rendered_and_are_bounded(node: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = 0

    def counted(row: FeedRow) -> bytes:
        nonlocal rendered
        rendered += 1
        return as_event(row)

    as_event = streams._as_event
    monkeypatch.setattr(streams, "_as_event", counted)
    monkeypatch.setattr(streams, "MOST_STREAMS", 20)
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(stream(node)) for _ in range(20)]
        refused = await node.request("GET", "/events", Accept="text/event-stream")
        assert (refused.status, refused.json["type"]) == (503, "urn:rejoin:problem:too-many-streams")
        assert "20 streams of events are open" in refused.json["detail"]
        await node.member_id("a")
        for response in opened:
            async with asyncio.timeout(10):
                await response.content.readuntil(b"event: group_created\n")
    # 20 streams; how many rows come in one piece is the loop's affair.
    assert rendered < 20
    async with asyncio.timeout(10):
        while node.app.publisher.feed.streams:
            await node.get("/healthz")
    async with stream(node) as response:
        assert response.status == 200


def test_deferred_rows_are_made_once_and_when_they_are_read() -> None:
    feed, made = _feed(2), []

    def rows() -> list[FeedRow]:
        made.append(1)
        return [FeedRow(seq, "e", "g1", b"row") for seq in range(3, 8)]

    feed.add_deferred(5, "g1", rows)
    assert (feed.head, made) == (7, [])
    assert [row.seq for row in feed.range(0, 2).entries] == [1, 2]
    assert feed.range(0, 10, "g2") == ([row for row in feed.range(0, 2).entries if row.group_id == "g2"], 7)
    assert made == [], "rows of another group are not made"
    assert [row.seq for row in feed.range(4, 2).entries] == [5, 6]
    assert [row.seq for row in feed.range(0, 4, "g1").entries] == [1, 3, 4, 5]
    assert [row.seq for row in feed.range(0, 100).entries] == list(range(1, 8))
    assert made == [1]


def test_deferred_rows_are_let_go_one_by_one() -> None:
    feed = Feed(retained_rows=4)
    for first in (1, 4):
        numbers = range(first, first + 3)
        feed.add_deferred(3, "g", lambda numbers=numbers: [FeedRow(seq, "e", "g", b"row") for seq in numbers])  # type: ignore[misc]
    assert feed.first == 3
    assert [row.seq for row in feed.range(2, 10).entries] == [3, 4, 5, 6]
