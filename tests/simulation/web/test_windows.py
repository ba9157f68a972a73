"""The laboratory's page in windows of every size, light and dark: scrolled, resized, and beside a run that was kept."""

from __future__ import annotations

import pytest

from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.looked_at import SEEN, SETTLED, complaints
from tests.simulation.web.opened import DONE, Opened

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

NAME = "stuck_handler_holds_up_a_rebalance"


def test_a_scenario_is_drawn_alike_however_the_window_came_to_its_size(opened: Opened) -> None:
    first = FirstScenario(NAME, (GALLERY / f"{NAME}.yaml").read_text("utf-8"), None)
    server = running(first, GALLERY)
    address = opened.run(server.__aenter__())
    try:
        assert opened.run(complaints(opened.page, address, DONE)) == []
        opened.run(opened.page.resize(1_440, 500))
        opened.value("document.getElementById('keep').click(), scrollTo(0, 0)")
        opened.value(SETTLED)
        # What comes into sight as the window grows is drawn, and a frame more changes nothing.
        opened.run(opened.page.resize(1_440, 2_000))
        opened.value(SETTLED)
        seen = opened.value(SEEN)
        assert len(set(seen)) > 2
        opened.value("laboratory.above.strips = laboratory.below.strips = {}, dispatchEvent(new Event('resize'))")
        opened.value(SETTLED)
        assert opened.value(SEEN) == seen
    finally:
        opened.run(server.__aexit__(None, None, None))
