"""A journal in the laboratory's page, in a headless Chromium."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rejoin.journal.segments import JournalError
from rejoin.simulation.run import play
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from rejoin.simulation.web.server import running
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.opened import GROUP, SCENARIO, Opened

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")
pytestmark = pytest.mark.xdist_group("laboratory-page")


@needs_browser
def test_a_journal_is_stepped_through_like_a_run(opened: Opened, tmp_path: Path) -> None:
    play(scenario_from(SCENARIO), journal=tmp_path / "journal")
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "journal"), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(f"{address}#at=16000"))
        opened.wait_for("document.body && document.body.dataset.done === 'yes' && document.body.dataset.at === '16000'")
        words = opened.value("document.getElementById('words').innerText")
        assert f"{GROUP} is PreparingRebalance in generation 1, 3 members." in words
        assert f"Not there yet: {GROUP}-2." in words
        now = opened.value("document.getElementById('now').innerText")
        assert "JoinGroup parked" in now
        assert opened.value("getComputedStyle(document.getElementById('lessons-open')).display") == "none"
        assert opened.value("document.getElementById('do').hidden")
        opened.press("Home")
        opened.press("n")
        opened.wait_for("document.body.dataset.at === String(laboratory.player.at)")
        assert opened.at == opened.value("laboratory.recording.rebalances[0].start")
        assert opened.value("document.title") == "Rejoin: laboratory"
        assert opened.page.problems == []
    finally:
        opened.run(stack.aclose())


GROWING = """
horizon: 60s
topics:
  orders: {partitions: 4}
groups:
  app: {topics: orders, consumers: 2}
events:
  - {at: 30s, grow: {topic: orders, to: 6}}
  - {at: 31s, deploy: {group: app, every: 1s, down: 5s}}
"""


@needs_browser
def test_partitions_are_counted_once_their_topic_has_them(opened: Opened, tmp_path: Path) -> None:
    play(scenario_from(GROWING), journal=tmp_path / "journal")
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "journal"), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(f"{address}#at=1000"))
        opened.wait_for("document.body && document.body.dataset.done === 'yes' && document.body.dataset.at === '1000'")
        assert "No partition has an owner." in opened.value("document.getElementById('words').innerText")
        opened.go(30_500)
        assert "2 partitions of 6 have no owner." in opened.value("document.getElementById('words').innerText")
    finally:
        opened.run(stack.aclose())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no events of groups; expected the journal of a coordinator"),
        ("hello\n", ":1: expected a row of a journal"),
        ('{"event":"group_created","at_ms":1}\n', "has no events of groups; expected the journal of a coordinator"),
        ('{"event":"group_emptied","at_ms":1}\n', r":1: group_emptied\.schema_version: missing"),
    ],
)
def test_what_is_no_journal_is_said_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "j.jsonl").write_text(text)
    with pytest.raises(JournalError, match=problem):
        JournalRecording(tmp_path / "j.jsonl")


def test_a_group_that_is_not_in_it_is_not_found(tmp_path: Path) -> None:
    play(scenario_from(SCENARIO.replace("60s", "16s")), journal=tmp_path / "j.jsonl")

    async def ask() -> list[int]:
        import aiohttp  # noqa: PLC0415

        async with (
            running(JournalRecording(tmp_path / "j.jsonl"), GALLERY) as address,
            aiohttp.ClientSession(address) as session,
        ):
            statuses = []
            for group in ("nobody", GROUP):
                async with session.get("/api/recorded", params={"group": group}) as response:
                    statuses.append(response.status)
            return statuses

    assert asyncio.run(ask()) == [404, 200]
