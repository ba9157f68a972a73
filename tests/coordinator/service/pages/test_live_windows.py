"""Share-partitions of a running coordinator on its page: what is in flight, and a lock that runs out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.testing import GroupCoordinator
from tests.coordinator.testing.share_member import ACCEPT, GROUP, TOPICS, member_of
from tests.simulation.web.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")


async def shares_of(coordinator: GroupCoordinator, group: str) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{coordinator.url}/api/shares", params={"group": group}) as answered,
    ):
        assert answered.status == 200
        return await answered.json()


@pytest.mark.group_coordinator(clock="virtual", topics=TOPICS)
async def test_the_share_partitions_of_a_group_are_answered_as_they_are_now(
    group_coordinator: GroupCoordinator,
) -> None:
    assert await shares_of(group_coordinator, GROUP) == []
    member = await member_of(group_coordinator)
    await group_coordinator.produce("jobs", 0, 3)
    await member.fetch()
    await group_coordinator.advance(10_000)
    [state] = await shares_of(group_coordinator, GROUP)
    assert (state["topic"], state["partition"], state["startOffset"], state["endOffset"]) == ("jobs", 0, 0, 2)
    run = {"firstOffset": 0, "lastOffset": 2, "state": "ACQUIRED", "deliveryCount": 1, "memberId": "a"}
    assert state["records"] == [run | {"lockMs": 20_000}]


@needs_browser
@pytest.mark.parametrize("button", ["lock", "Release"])
@pytest.mark.group_coordinator(clock="virtual", topics=TOPICS)
async def test_a_lock_runs_out_or_a_record_is_released_by_a_button_and_the_page_shows_it(
    group_coordinator: GroupCoordinator, tmp_path: Path, button: str
) -> None:
    member = await member_of(group_coordinator, "worker")
    await group_coordinator.produce("jobs", 0, 4)
    await member.fetch()
    await group_coordinator.advance(5_000)
    await member.acknowledge(3, 3, ACCEPT)
    words = "document.querySelector('#windows .chosen')?.textContent"
    async with browser(tmp_path) as page:
        await page.open(group_coordinator.url)
        await page.wait_for(f"{words}.startsWith('Record 0: held by worker, delivery 1; its lock runs out in 25 s')")
        # What the events say, and what the coordinator holds.
        by_events = await page.evaluate(
            f"laboratory.recording.shares.stateAt('{GROUP}', laboratory.player.at)[0].records"
            ".map(each => [each.firstOffset, each.lastOffset, each.state, each.deliveryCount, each.lockMs])"
        )
        state = await group_coordinator.share_state(GROUP, "jobs", 0)
        assert state is not None
        assert by_events == [
            [each.first_offset, each.last_offset, each.state, each.delivery_count, each.lock_ms]
            for each in state.records
        ]
        await page.evaluate(
            "[...document.querySelectorAll('#windows button')]"
            f".find(each => each.textContent.includes('{button}')).click()"
        )
        await page.wait_for(
            f"{words} === 'Record 0: given back after delivery 1; the next fetch of any member may take it.'"
        )
        assert page.problems == []
