"""The live page in a browser: a group of the consumer protocol in the middle of its reconciliation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoin.coordinator.testing import GroupCoordinator
from rejoin.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.simulation.web.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")


async def heartbeat(coordinator: GroupCoordinator, member_id: str, epoch: int, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id="billing", member_id=member_id, member_epoch=epoch, **fields)
    return await coordinator.call(request, client_id=member_id)


@needs_browser
@pytest.mark.group_coordinator(
    clock="virtual", topics={"orders": 4}, settings={"group.consumer.assignment.interval.ms": 0}
)
async def test_a_group_that_reconciles_shows_who_gives_up_and_who_waits(
    group_coordinator: GroupCoordinator, tmp_path: Path
) -> None:
    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
    await heartbeat(group_coordinator, "gives-up", 0, **joins)
    await heartbeat(group_coordinator, "waits", 0, **joins)
    await heartbeat(group_coordinator, "gives-up", 2)
    group = await group_coordinator.group("billing")
    assert group is not None
    assert group.state == "Reconciling"
    async with browser(tmp_path) as page:
        await page.resize(1_000, 700)
        await page.open(f"{group_coordinator.url}/list")
        await page.wait_for("document.body?.innerText.includes('waits for partitions of others')")
        text = await page.evaluate("document.body.innerText")
        rows = await page.evaluate("[...document.querySelectorAll('tr')].map(row => row.innerText)")
        assert "Reconciling" in text
        assert "group epoch 3, target of epoch 3" in text
        assert any("gives-up" in row and "epoch 2" in row and "2 to give up" in row for row in rows)
        assert any("waits" in row and "epoch 3" in row and "waits for partitions of others" in row for row in rows)
        assert page.problems == []
        assert all(address.startswith(group_coordinator.url) or "about:" in address for address in page.addresses)
