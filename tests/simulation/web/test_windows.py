"""Pages of every source in windows of every size, light and dark: scrolled, resized, and beside a run that was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.looked_at import OUTSIDE, SEEN, SETTLED, complaints
from tests.simulation.web.opened import DONE, Opened
from tests.simulation.web.sources import SOURCES, report, scenario

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

READY = {"report": "typeof charts !== 'undefined' && charts.size > 0"}


@pytest.mark.parametrize("source", SOURCES)
def test_a_page_is_whole_however_its_window_came_to_its_size(opened: Opened, source: str, tmp_path: Path) -> None:
    begun = SOURCES[source](tmp_path)
    address = opened.run(begun.__aenter__())
    try:
        assert opened.run(complaints(opened.page, address, READY.get(source, DONE))) == []
        assert opened.value("document.querySelectorAll('canvas').length") > 1
    finally:
        opened.run(opened.page.open("about:blank"))
        opened.run(begun.__aexit__(None, None, None))


def test_a_run_that_was_kept_is_drawn_as_its_window_grows(opened: Opened, tmp_path: Path) -> None:
    begun = scenario(tmp_path)
    address = opened.run(begun.__aenter__())
    try:
        opened.run(opened.page.resize(1_440, 500))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        opened.value("document.getElementById('keep').click(), scrollTo(0, 0)")
        opened.value(SETTLED)
        # What comes into sight as the window grows is drawn, and a frame more changes nothing.
        opened.run(opened.page.resize(1_440, 2_000))
        opened.value(SETTLED)
        seen = opened.value(SEEN)
        assert len(set(seen)) > 2
        opened.value("laboratory.above.strips = {}, laboratory.below.strips = {}, laboratory.view.onChange()")
        opened.value(SETTLED)
        assert opened.value(SEEN) == seen
        opened.run(opened.page.resize(1_440, 500))
        opened.value(SETTLED)
        assert opened.value(OUTSIDE) == []
    finally:
        opened.run(begun.__aexit__(None, None, None))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_worst_finding_of_a_group_is_in_sight_on_a_phone(opened: Opened, dark: bool, tmp_path: Path) -> None:
    begun = report(tmp_path)
    address = opened.run(begun.__aenter__())
    try:
        opened.run(opened.page.resize(390, 844, dark=dark))
        opened.run(opened.page.open(address))
        opened.wait_for(READY["report"])
        (tmp_path / "report.png").write_bytes(opened.run(opened.page.screenshot()))
        cells = opened.value(
            "[...document.querySelectorAll('.stacks td')].filter(each => each.checkVisibility()).map(each => {"
            " const box = each.getBoundingClientRect(); return [each.textContent, box.left, box.right, box.height]; })"
        )
        assert any("did not call poll()" in text for text, *_ in cells)
        assert [text for text, left, right, _ in cells if left < 0 or right > 390] == []
        assert max(height for *_, height in cells) < 90
        # A table of numbers alone is scrolled by itself.
        assert opened.value("document.documentElement.scrollWidth") == 390
    finally:
        opened.run(begun.__aexit__(None, None, None))
