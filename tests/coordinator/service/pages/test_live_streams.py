"""A streams group on the live page: tasks by process, what moves, a missing topic, and a shutdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoin.coordinator.testing import GroupCoordinator
from tests.coordinator.core.groups.streams.word_count import LINES
from tests.coordinator.testing.streams_member import APPLICATION, AT_ONCE, TOPICS, StreamsThread, running_threads
from tests.simulation.web.browser import CHROMIUM, browser

STANDBYS = AT_ONCE | {"group.streams.num.standby.replicas": 1}


@pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")
@pytest.mark.group_coordinator(clock="virtual", topics=TOPICS, settings=STANDBYS)
async def test_tasks_are_shown_by_process_and_what_prevents_them_in_words(
    group_coordinator: GroupCoordinator, tmp_path: Path
) -> None:
    coordinator = group_coordinator
    [a] = await running_threads(coordinator, "thread-a")
    await StreamsThread(coordinator, "thread-b").join()
    await a.beat(active_tasks=None, standby_tasks=None, warmup_tasks=None)
    async with browser(tmp_path) as page:
        await page.resize(1_280, 900)
        await page.open(f"{coordinator.url}/list")
        await page.wait_for("document.querySelectorAll('.part .task').length === 4")
        titles = await page.evaluate("[...document.querySelectorAll('.part .task')].map(each => each.title)")
        assert "0_1: client-thread-a thread, moves to client-thread-b thread" in titles
        rows = await page.evaluate("[...document.querySelectorAll('tr')].map(row => row.innerText)")
        assert [row.split("\t")[0] for row in rows] == ["process-thread-a", "process-thread-b"]
        assert "epoch 3, has tasks to give up" in rows[0]
        assert await page.evaluate("document.querySelectorAll('tr .task.revoking').length") == 2
        text = await page.evaluate("document.body.innerText")
        assert "Subtopology 1: reads app-words-repartition; state in app-counts-changelog; 2 tasks" in text
        assert "app-words-repartition (repartition, 2 partitions)" in text
        await coordinator.shut_down_application(APPLICATION)
        await coordinator.delete_topic(LINES)
        await a.beat()
        await page.wait_for("document.querySelectorAll('.problem').length === 2")
        problems = await page.evaluate("[...document.querySelectorAll('.problem')].map(each => each.innerText)")
        assert problems == ["Not ready: Source topics are missing: lines.", "A shutdown was asked for by test"]
        await page.resize(390, 844)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.problems == []
