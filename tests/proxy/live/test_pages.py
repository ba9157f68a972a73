"""The pages of a proxy: groups as the cluster has them, and events as they are concluded from what passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from rejoin.coordinator.testing import running
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from rejoin.proxy.control.http import ControlListener
from rejoin.proxy.control.running import started
from rejoin.proxy.live.lines import NewestLines
from rejoin.proxy.live.views import ProxyPages
from rejoin.proxy.service import ProxyOptions, system_ms
from rejoin.proxy.watch import RequestWatch
from tests.coordinator.service.helpers import join, sync
from tests.proxy.wire import FrameClient
from tests.simulation.web.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")
AT_ONCE = {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0}


@dataclass
class Paged:
    """A cluster with a proxy and its pages."""

    url: str
    pages: ProxyPages
    http: aiohttp.ClientSession
    client: FrameClient

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.http.get(f"{self.url}{path}") as answer:
            return answer.status, await (answer.json() if "json" in answer.content_type else answer.text())

    async def join(self) -> str:
        """A member of a classic group with three partitions, whose commits are refused afterwards."""
        request = JoinGroupRequest.parse(orjson.dumps(join("orders-app")), 9)
        handed_out = await self.client.ask(request, 9, "one")
        request = JoinGroupRequest.parse(orjson.dumps(join("orders-app", handed_out.member_id)), 9)
        joined = await self.client.ask(request, 9, "one")
        member = str(joined.member_id)
        gives = {member: {"orders": [0, 1, 2]}}
        body = orjson.dumps(sync("orders-app", member, joined.generation_id, gives))
        assert (await self.client.ask(SyncGroupRequest.parse(body, 5), 5, "one")).error_code is ErrorCode.NONE
        await self.client.ask(HeartbeatRequest(group_id="orders-app", generation_id=9, member_id=member), 4, "one")
        return member

    async def modern(self) -> None:
        """A member of a group of the consumer protocol."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="billing",
            member_id="m" * 22,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
        )
        assert (await self.client.ask(request, client_id="two")).error_code is ErrorCode.NONE


@asynccontextmanager
async def paged() -> AsyncIterator[Paged]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(running(topics={"orders": 3}, settings=AT_ONCE))
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        watch = RequestWatch(None)
        proxy, control = await started(stack, ProxyOptions(bootstrap=((host, int(port)),)), watch)
        # Ten seconds ahead, so that all events are settled.
        pages = ProxyPages(control.groups, lambda: system_ms() + 10_000)
        watch.on_line = pages.events.lines.add
        listener = ControlListener(control, "127.0.0.1", 0, None, pages)
        await listener.start()
        stack.push_async_callback(listener.stop)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)))
        client = await FrameClient.connect(proxy.port)
        stack.push_async_callback(client.close)
        yield Paged(listener.url, pages, http, client)


async def test_groups_are_those_of_the_cluster_and_null_where_nothing_is_known() -> None:
    async with paged() as stand:
        member = await stand.join()
        await stand.modern()
        _, listed = await stand.get("/groups")
        assert [each["groupId"] for each in listed["groups"]] == ["billing", "orders-app"]
        await stand.pages.events.update()
        _, group = await stand.get("/groups?id=orders-app")
        assert (group["state"], group["generation"], group["leader"]) == ("Stable", 1, member)
        assert (group["rebalanceCause"], group["partition"], group["rebalances"]) == ("join-new", None, None)
        (one,) = group["members"]
        assert (one["clientId"], one["isLeader"], one["assignment"]) == ("one", True, {"orders": [0, 1, 2]})
        assert (one["sessionTimeoutMs"], one["sessionExpiresAt"]) == (45_000, None)
        assert (await stand.get("/groups?id=none"))[0] == 404
        _, group = await stand.get("/groups?id=billing")
        assert (group["groupEpoch"] >= 1, group["members"][0]["sessionTimeoutMs"]) == (True, None)


async def test_events_are_concluded_from_what_passes() -> None:
    async with paged() as stand:
        member = await stand.join()
        await stand.pages.events.update()
        _, answer = await stand.get("/events?after=0")
        events = {each["event"]: each for each in answer["events"]}
        assert events["member_joined"]["member_id"] == member
        assert events["rebalance_completed"]["owned_after"] == {member: {"orders": [0, 1, 2]}}
        assert events["rebalance_started"]["cause"]["cause"] == "join-new"
        assert events["rebalance_started"]["join_timeout_ms"] is None
        head = answer["head"]
        await stand.modern()
        await stand.pages.events.update()
        _, answer = await stand.get(f"/events?after={head}")
        assert {each["group_id"] for each in answer["events"]} == {"billing"}, "nothing is published twice"


async def test_groups_are_drawn_with_what_can_be_done_to_a_cluster() -> None:
    async with paged() as stand:
        await stand.join()
        _, start = await stand.get("/api/start")
        assert (start["groups"], start["live"], start["control"]) == (["orders-app"], True, ["faults"])
        async with stand.http.get(f"{stand.url}/api/recorded?group=orders-app") as answer:
            piece = orjson.loads(await answer.content.readline())
        assert [row[3] for row in piece["groups"]][-1] == "Stable"
        assert (await stand.get("/"))[0] == 200
        assert (await stand.get("/assets/main.js"))[0] == 200
        status, problem = await stand.get("/nothing")
        assert (status, "its pages, / and /list" in problem["detail"]) == (404, True)


@needs_browser
async def test_the_page_shows_members_owners_and_causes(tmp_path: Path) -> None:
    async with paged() as stand:
        await stand.join()
        await stand.modern()
        async with browser(tmp_path) as page:
            await page.resize(1_000, 700)
            await page.open(f"{stand.url}/list")
            await page.wait_for("document.body?.innerText.includes('Rebalance: a member joined')")
            await page.wait_for("document.querySelectorAll('.chip').length === 6")
            text = await page.evaluate("document.body.innerText")
            for shown in ("generation 1", "last rebalance: a member joined", "2 groups, 2 members", "leader"):
                assert shown in text
            await page.open(f"{stand.url}/#group=orders-app")
            await page.wait_for("document.body?.innerText.includes('orders-app is Stable in generation 1, 1 member.')")
            labels = await page.evaluate(
                "[...document.querySelectorAll('#actions button')].map(each => each.textContent)"
            )
            assert "Lose its next request" in labels
            assert "Remove" not in labels
            assert page.problems == []


def test_lines_that_nobody_reads_take_no_memory() -> None:
    lines = NewestLines(most_bytes=100)
    for number in range(1_000):
        lines.add(f"{number:010}")
    assert lines.dropped == 990
    assert lines.take(3) == ["0000000990", "0000000991", "0000000992"]
    assert len(lines) == 7
