"""The page that steps through a report's groups: its events, and what a browser makes of it without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoin.pipeline.drawn.events import events_of
from rejoin.pipeline.drawn.page import recorded, render
from rejoin.pipeline.reading.inputs import InputFile
from rejoin.pipeline.report.events import read_events
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from tests.journal.few_records import of_the_gallery
from tests.simulation.web.browser import CHROMIUM, browser
from tests.simulation.web.opened import GROUP, SCENARIO

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium")
RUN = "simulation-1"


@pytest.mark.parametrize("name", ["coordinator_failover_in_mid_rebalance", "regex_begins_to_match"])
def test_rows_of_the_table_are_drawn_like_the_journal_they_came_from(name: str, tmp_path: Path) -> None:
    scenario = of_the_gallery(name)
    journal = tmp_path / "run.jsonl"
    play(scenario, journal=journal, run_id=RUN)
    table, rest = read_events([InputFile(str(journal), journal.stat().st_size, "journal")], "UTC")
    assert rest.num_rows == 0
    (group_id,) = scenario.groups
    events = events_of(table, {(RUN, group_id)}, 100_000)
    drawn, expected = recorded(events[RUN, group_id], scenario.horizon), JournalRecording(journal).piece(group_id)
    assert drawn.pop("origin") == 0
    assert drawn.keys() == expected.keys()
    for kind, rows in expected.items():
        assert drawn[kind] == rows if kind == "until" else sorted(map(repr, drawn[kind])) == sorted(map(repr, rows)), (
            kind
        )
    assert events_of(table, {(RUN, group_id)}, 10) == {}


@needs_browser
async def test_the_page_needs_no_server(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    play(scenario_from(SCENARIO), journal=journal, run_id=RUN)
    table, _ = read_events([InputFile(str(journal), journal.stat().st_size, "journal")], "UTC")
    events = events_of(table, {(RUN, GROUP)}, 100_000)[RUN, GROUP]
    file = tmp_path / "laboratory.html"
    file.write_text(render("Why?", {GROUP: recorded(events, 60_000)}), encoding="utf-8")
    async with browser(tmp_path) as page:
        await page.open(f"{file.as_uri()}#at=16000")
        await page.wait_for("document.body?.dataset.done === 'yes' && document.body.dataset.at === '16000'")
        words = await page.evaluate("document.getElementById('words').innerText")
        assert f"{GROUP} is PreparingRebalance in generation 1, 3 members." in words
        assert page.problems == []
        assert all(address.startswith(("file:", "data:", "about:")) for address in page.addresses)
        assert await page.evaluate("document.title") == "Rejoin: laboratory"
