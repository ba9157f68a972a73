"""The page that draws the groups of a running coordinator."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupRequest
from tests.coordinator.service.helpers import Harness
from tests.simulation.web.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")


async def heartbeat(coordinator: GroupCoordinator, member_id: str, epoch: int, **fields: Any) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="billing", member_id=member_id, member_epoch=epoch, **fields)
    await coordinator.call(request, client_id=member_id)


async def join(coordinator: GroupCoordinator, client_id: str, member_id: str = "") -> JoinGroupResponse:
    """What a JoinGroup of a classic member is answered."""
    request = JoinGroupRequest(
        group_id="orders-app",
        session_timeout_ms=6_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    answer = await coordinator.call(request, client_id=client_id)
    assert isinstance(answer, JoinGroupResponse)
    return answer


async def test_a_group_is_told_line_by_line(node: Harness) -> None:
    await node.stable("orders-app")
    start = await node.get("/api/start")
    assert (start["groups"], start["live"], start["control"]) == (["orders-app"], True, False)
    async with node.session.get(f"{node.app.url}/api/recorded", params={"group": "orders-app"}) as response:
        piece = json.loads(await response.content.readline())
        later = json.loads(await response.content.readline())
    assert [(row[2], row[3], row[4]) for row in piece["groups"]][-1] == ("1", "Stable", 1)
    assert {row[3] for row in piece["requests"]} == {"JoinGroup", "SyncGroup"}
    assert later.keys() == {"until"}


async def test_the_page_and_its_files_need_nothing_from_elsewhere(node: Harness) -> None:
    page = await node.request("GET", "/")
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "://" not in page.body.decode()
    script = await node.request("GET", "/assets/main.js")
    assert (script.status, script.headers["Content-Type"].split(";")[0]) == (200, "text/javascript")
    for name in ("page.html", "..%2F__init__.py", "nothing.js"):
        assert (await node.request("GET", f"/assets/{name}")).status == 404


@needs_browser
@pytest.mark.group_coordinator(
    clock="virtual", topics={"orders": 4}, settings={"group.consumer.assignment.interval.ms": 0}
)
async def test_a_member_that_waits_is_seen_and_its_session_can_end(
    group_coordinator: GroupCoordinator, tmp_path: Path
) -> None:
    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
    await heartbeat(group_coordinator, "gives-up", 0, **joins)
    await heartbeat(group_coordinator, "waits", 0, **joins)
    await heartbeat(group_coordinator, "gives-up", 2)
    async with browser(tmp_path) as page:
        await page.open(group_coordinator.url)
        await page.wait_for("document.body?.innerText.includes('billing is Reconciling in epoch 3, 2 members.')")
        await page.wait_for("document.querySelectorAll('#actions select option').length === 2")
        await page.wait_for("[...document.querySelectorAll('.timer')].some(each => each.innerText.includes('session'))")
        await page.evaluate(
            "(() => { const select = document.querySelector('#actions select');"
            " select.value = [...select.options].find(each => each.text.includes('gives-up')).value;"
            " document.querySelector('#actions button').click(); })()"
        )
        await page.wait_for("document.getElementById('action-result').textContent === 'Session runs out: done.'")
        await page.wait_for("document.body.innerText.includes('billing gives-up removed')")
        assert page.problems == []
        assert all(address.startswith((group_coordinator.url, "about:", "data:")) for address in page.addresses)


@needs_browser
@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 4})
async def test_a_client_that_is_killed_and_restarted_is_one_member_with_one_name(
    group_coordinator: GroupCoordinator, tmp_path: Path
) -> None:
    ids: list[str] = []
    for generation in (1, 2):
        ids.append((await join(group_coordinator, "a-1")).member_id)
        joining = asyncio.create_task(join(group_coordinator, "a-1", ids[-1]))
        # The first member joins within the initial delay. The second waits until the session of the first is over.
        await group_coordinator.wait_for_group("orders-app", state="PreparingRebalance")
        await group_coordinator.advance(6_000)
        assert (await joining).generation_id == generation
        request = SyncGroupRequest(
            group_id="orders-app",
            generation_id=generation,
            member_id=ids[-1],
            protocol_type="consumer",
            protocol_name="range",
            assignments=(),
        )
        await group_coordinator.call(request, client_id="a-1")
    name = f"a-1 {ids[1][-6:]}"
    async with browser(tmp_path) as page:
        await page.open(group_coordinator.url)
        await page.wait_for("document.body?.innerText.includes('orders-app is Stable in generation 2, 1 member.')")
        await page.wait_for("document.querySelector('#now .members .timer')?.innerText.includes('session')")
        members = "[...document.querySelectorAll('#now .members > li strong')].map(each => each.innerText)"
        assert await page.evaluate(members) == [name]
        happened = await page.evaluate("laboratory.recording.lines.map(each => each.text)")
        assert "orders-app  a-1 removed (no heartbeat in time)" in happened
        assert f"orders-app  rebalance: {name} joined" in happened
        assert page.problems == []
