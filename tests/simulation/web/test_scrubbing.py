"""Scrubbing through large runs in a real browser: how many frames a second, and that what is drawn follows.

``make lab-frames`` prints the rates for a run of 100,000 events, and for 200 members with 2,000 partitions.
"""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

import pytest

from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.web.server import running
from rejoin.simulation.web.session import FirstScenario
from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.opened import DONE, Opened

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]


class Size(NamedTuple):
    """How large a run is, and how many steps are scrubbed."""

    members: int
    partitions: int
    minutes: int
    steps: int


SIZES: Final = (
    {"events": Size(40, 80, 120, 300), "members": Size(200, 2_000, 10, 300)}
    if os.environ.get("REJOIN_LAB_FRAMES")
    else {"few": Size(6, 60, 5, 20)}
)
SCENARIO: Final = """\
horizon: {minutes}m
topics:
  orders: {{partitions: {partitions}, records_per_second: 0.01}}
groups:
  app: {{topics: orders, consumers: {members}, assignor: cooperative-sticky, start: {{every: 50ms}}}}
events:
  - {{at: 60s, until: {minutes}m, on_average_every: 60s, crash: {{who: any, down: 20s}}}}
"""
SCRUB: Final = """(async () => {
  const lab = laboratory, steps = %d, whole = lab.recording.until;
  %s
  const began = performance.now();
  let longest = 0, last = began;
  for (let step = 1; step <= steps; step++) {
    %s
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return { rate: steps * 1000 / (last - began), longest };
})()"""
WAYS: Final = {
    "over the whole run": ("lab.view.fit();", "lab.player.go(whole * step / steps);"),
    "zoomed in, drawn anew each time": (
        "lab.view.show(0, whole / 20);",
        "lab.player.go(whole * step / steps);"
        "const from = whole * step / steps * 0.95; lab.view.show(from, from + whole * 0.05);",
    ),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
def test_what_is_drawn_follows_the_instant(opened: Opened, size: Size) -> None:
    text = SCENARIO.format(**size._asdict())
    server = running(FirstScenario("large", text, None), GALLERY)
    address = opened.run(server.__aenter__())
    try:
        opened.run(opened.page.resize(1_400, 900))
        opened.run(opened.page.open(address))
        opened.wait_for(DONE)
        events = opened.value("laboratory.recording.requests.length + laboratory.recording.lines.length")
        print(f"\n{size.members} members, {size.partitions:,} partitions, {events:,} events")
        for how, (first, each) in WAYS.items():
            found: Any = opened.value(SCRUB % (size.steps, first, each))
            print(f"  scrubbed {how}: {found['rate']:.0f} frames a second, the longest {found['longest']:.0f} ms")
        until = opened.value("laboratory.recording.until")
        assert opened.at == until == size.minutes * 60_000
        opened.wait_for(f"document.body.dataset.at === '{until}'")
        assert opened.value("laboratory.recording.partitions.size") == size.partitions
        # Drawn is what is on the screen: a canvas of all rows, of which those below the window stay empty.
        assert opened.value("laboratory.above.canvases.partitions.height") < 5_000
        assert opened.page.problems == []
    finally:
        opened.run(server.__aexit__(None, None, None))
