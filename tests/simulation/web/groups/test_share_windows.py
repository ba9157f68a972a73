"""Share-partitions on the page: records by offset and time, and the window of an instant, from a journal's events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.journal import JournalRecording
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.looked_at import complaints
from tests.simulation.web.opened import DONE, Opened
from tests.simulation.web.shared_records import GROUP, long_window, slow_handler, write

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="looks at the page in Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

RECORDS = (
    "laboratory.recording.shares.stateAt('{}', {}).flatMap(each => each.records.map(run =>"
    " [run.firstOffset, run.lastOffset, run.state, run.deliveryCount, run.holder, run.lockMs]))"
)
STROKES = """(() => {
  let strokes = 0;
  const canvas = CanvasRenderingContext2D.prototype, fill = canvas.fillRect;
  canvas.fillRect = function (...box) { strokes++; return fill.apply(this, box); };
  laboratory.above.drawOptional('shares');
  canvas.fillRect = fill;
  return strokes;
})()"""


@pytest.fixture
def shown(opened: Opened, tmp_path: Path) -> Iterator[Opened]:
    """The page with the journal of a handler that is too slow for its locks."""
    write(tmp_path / "run.jsonl", slow_handler())
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "run.jsonl"), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(f"{address}#at=35000"))
        opened.wait_for(f"{DONE} === '35000'")
        yield opened
        assert opened.page.problems == []
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())


def records(shown: Opened, at: int) -> list[Any]:
    """The runs of records in an instant: first and last offset, state, delivery count, holder, ms left of the lock."""
    return list(shown.value(RECORDS.format(GROUP, at)))


def test_the_records_of_an_instant_follow_from_the_events(shown: Opened) -> None:
    assert records(shown, 500) == []
    assert records(shown, 5_000) == [
        [0, 9, "ACQUIRED", 1, "jobs-1", 26_000],
        [10, 19, "ACQUIRED", 1, "jobs-2", 27_000],
    ]
    assert records(shown, 21_000) == [
        [0, 9, "ACQUIRED", 1, "jobs-1", 10_000],
        [10, 14, "ACKNOWLEDGED", 1, "", None],
        [15, 15, "AVAILABLE", 1, "", None],
        [16, 16, "ARCHIVED", 1, "", None],
        [17, 19, "ACQUIRED", 1, "jobs-2", 29_000],
    ]
    assert records(shown, 31_500)[0] == [0, 9, "AVAILABLE", 1, "", None]
    # Below the start of the window nothing is in flight.
    assert records(shown, 41_000)[0] == [4, 9, "ACQUIRED", 2, "jobs-1", 21_000]


def test_a_record_is_chosen_by_keys_and_described_in_words(shown: Opened) -> None:
    shown.value("document.getElementById('window-strips').focus()")
    words = "document.querySelector('#windows .chosen').textContent"
    assert shown.value(words) == "Record 0: held by jobs-2, delivery 2; its lock runs out in 27 s, at 0:01:02.000."
    shown.press("PageDown")
    assert shown.value(words) == "Record 4: held by jobs-1, delivery 2; its lock runs out in 27 s, at 0:01:02.000."
    shown.press("End")
    shown.press("ArrowLeft")
    assert shown.value("document.getElementById('window-strips').getAttribute('aria-valuenow')") == "18"
    assert shown.at == 35_000
    assert "13 held, 1 given back, 5 accepted, 1 archived" in shown.value(
        "document.getElementById('windows').innerText"
    )


def test_one_steps_from_event_to_event_of_a_share_partition(shown: Opened) -> None:
    last, following = (f"document.querySelectorAll('#windows .row button')[{index}].click()" for index in (0, 1))
    shown.value(following)
    assert shown.at == 40_000
    shown.value(last)
    assert shown.at == 32_000
    shown.value(last)
    assert shown.at == 31_000


def test_the_drawing_is_saved_with_the_others(shown: Opened) -> None:
    assert "records by offset (up) and time" in shown.value("laboratory.drawing()")


def test_a_page_with_share_partitions_is_whole_in_every_window(opened: Opened, tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", slow_handler())
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "run.jsonl"), GALLERY)))
    try:
        assert opened.run(complaints(opened.page, f"{address}#at=35000", DONE)) == []
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())


def test_a_window_of_2000_records_one_by_one_is_drawn_in_bounded_strokes(opened: Opened, tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", long_window(2_000, rounds=10))
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(JournalRecording(tmp_path / "run.jsonl"), GALLERY)))
    try:
        opened.run(opened.page.resize(1_024, 900))
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        assert opened.value("laboratory.recording.shares.all[0].runs.length") == 20_000
        strokes = opened.value(STROKES)
        assert 0 < strokes < 5_000
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())


SCENARIO = """\
horizon: 30s
topics:
  orders: {partitions: 1, records_per_second: 2}
groups:
  workers: {topics: orders, consumers: 2, protocol: share, processing: 4s, share: {acknowledge: explicit}}
"""
FIRST_HELD = "laboratory.recording.shares.all[0]?.runs.find(each => each.state === 'ACQUIRED')"


def test_in_a_run_a_lock_runs_out_by_a_button_and_the_run_is_played_again(opened: Opened) -> None:
    stack = AsyncExitStack()
    address = opened.run(stack.enter_async_context(running(FirstScenario("shares", SCENARIO, None), GALLERY)))
    try:
        opened.run(opened.page.open("about:blank"))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        at = int(opened.value(f"{FIRST_HELD}.from")) + 1_000
        opened.go(at)
        button = "[...document.querySelectorAll('#windows button')].find(each => each.textContent.includes('lock'))"
        opened.value(f"{button}.click()")
        opened.wait_for(f"{FIRST_HELD}?.ended === 'expired' && document.body.dataset.done === 'yes'")
        assert opened.value(f"{FIRST_HELD}.to") == at + 1
        assert "expire_lock: {group: workers, topic: orders" in opened.value("document.getElementById('yaml').value")
        assert opened.page.problems == []
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(stack.aclose())
