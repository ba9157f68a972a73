"""The page that draws the groups of a running coordinator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinator.service.helpers import Harness
from tests.simulation.web.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")


async def heartbeat(coordinator: GroupCoordinator, member_id: str, epoch: int, **fields: Any) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="billing", member_id=member_id, member_epoch=epoch, **fields)
    await coordinator.call(request, client_id=member_id)


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
