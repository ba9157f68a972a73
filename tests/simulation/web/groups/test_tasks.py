"""Tasks of an application on the page: by process and time, in an instant, and why its topology cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from rejoin.simulation.run import play
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.scenario.reading import scenario_from
from rejoin.simulation.web.journal import JournalRecording
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.looked_at import complaints
from tests.simulation.web.opened import DONE, Opened

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

SCENARIO = """\
horizon: 90s
topics:
  lines: {partitions: 2, records_per_second: 1, created: 8s}
groups:
  counts:
    protocol: streams
    topics: lines
    consumers: 2
    revive: 5s
    streams:
      standby_replicas: 1
      commit_interval: 10s
      subtopologies: [{stores: {totals: {restore: 1ms, records: 4000}}}]
events:
  - {at: 60s, crash: {who: counts-1}}
"""
TASKS = "laboratory.recording.tasks.stateAt('counts', {}).map(each => [each.task, each.role, each.isRestoring])"


@pytest.fixture(scope="module")
def shown(opened: Opened) -> Iterator[Opened]:
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(FirstScenario("counts", SCENARIO, None), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        yield opened
        assert opened.page.problems == []
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())


def roles(shown: Opened, at: int) -> list[Any]:
    return list(shown.value(TASKS.format(at)))


def test_tasks_have_roles_that_change_as_an_instance_dies(shown: Opened) -> None:
    assert roles(shown, 5_000) == []
    begin = int(shown.value("laboratory.recording.tasks.all[0].processes[0].slots[0][0].start"))
    assert any(restoring for _, _, restoring in roles(shown, begin + 100))
    both = [["0_0", "active", False], ["0_0", "standby", False], ["0_1", "active", False], ["0_1", "standby", False]]
    assert roles(shown, 59_000) == both
    assert sorted(role for _, role, _ in roles(shown, 61_000)) == ["active", "standby"]


def test_the_panel_says_why_a_topology_cannot_run_and_shows_its_tasks_later(shown: Opened) -> None:
    text = "document.getElementById('now').innerText"
    shown.go(4_000)
    assert "Not ready: Source topics are missing: lines." in shown.value(text)
    assert shown.value("document.querySelector('.diagram .now').textContent") == "NotReady"
    assert "counts-totals-changelog changelog, does not exist" in shown.value(text).replace("\u200b", "")
    shown.go(59_000)
    assert "group epoch" in shown.value(text)
    assert "counts-totals-changelog changelog, 2 partitions" in shown.value(text).replace("\u200b", "")
    titles = shown.value("[...document.querySelectorAll('#now .task')].map(each => each.title).sort()")
    assert [each.partition(" counts")[0] for each in titles] == [
        "0_0: runs in", "0_0: standby in", "0_1: runs in", "0_1: standby in",
    ]  # fmt: skip
    assert "tasks by process" in shown.value("laboratory.drawing()")


def test_a_coordinators_journal_is_drawn_in_every_window(opened: Opened, tmp_path: Path) -> None:
    play(scenario_from(SCENARIO), journal=tmp_path / "run.jsonl")
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "run.jsonl"), GALLERY)))
    try:
        assert opened.run(complaints(opened.page, f"{address}#at=59000", DONE)) == []
        assert len(roles(opened, 59_000)) == 4
        assert opened.value("document.querySelectorAll('.diagram .node').length") == 5
        assert opened.value("document.getElementById('tasks').hidden") is False
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())


def test_a_share_group_has_epochs_and_two_states(opened: Opened) -> None:
    text = (
        "horizon: 5s\ntopics: {jobs: {partitions: 1}}\ngroups: {workers: {topics: jobs, consumers: 1, protocol: share}}"
    )
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(FirstScenario("workers", text, None), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        opened.go(4_900)
        states = "[...document.querySelectorAll('.diagram .node')].map(each => each.textContent)"
        assert opened.value(states) == ["Empty", "Stable"]
        assert "group epoch" in opened.value("document.getElementById('now').innerText")
        assert "generation" not in opened.value("laboratory.drawing()")
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())
