"""A browser that has the laboratory's page open, and the scenario that it shows."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tests.simulation.web.browser import Page

DONE: Final = "document.body && document.body.dataset.done === 'yes' && document.body.dataset.at"
"""Whether the run is played, and its state shown."""
GROUP: Final = "<img src=x onerror=document.title='broken'>"
SCENARIO: Final = f"""\
question: What does <b>this</b> do?
horizon: 60s
topics:
  orders: {{partitions: 4, records_per_second: 1}}
groups:
  "{GROUP}": {{topics: orders, consumers: 2, session_timeout: 10s, max_poll_interval: 20s}}
events:
  - {{at: 10s, stuck: {{who: "{GROUP}-2", for: 40s}}}}
  - {{at: 15s, scale: {{group: "{GROUP}", to: 3}}}}
"""


class Opened:
    """The browser with the page, and the loop in which both run."""

    def __init__(self, runner: asyncio.Runner, page: Page, address: str) -> None:
        self._runner = runner
        self.page = page
        self.address = address

    def run(self, what: Any) -> Any:
        return self._runner.run(what)

    def value(self, expression: str) -> Any:
        return self.run(self.page.evaluate(expression))

    def wait_for(self, condition: str) -> None:
        self.run(self.page.wait_for(condition))

    def open(self, fragment: str = "") -> None:
        self.run(self.page.open("about:blank"))  # another fragment alone would load nothing anew
        self.run(self.page.open(self.address + fragment))
        self.wait_for(DONE)

    def choose(self, name: str) -> None:
        """Take a scenario of the gallery, and wait until it is played."""
        self.value(
            f"(() => {{ document.body.dataset.done = 'no'; const gallery = document.getElementById('gallery');"
            f" gallery.value = '{name}'; gallery.dispatchEvent(new Event('change')); }})()"
        )
        self.wait_for(DONE)

    def press(self, key: str) -> None:
        self.run(self.page.press(key))

    def go(self, at: int) -> None:
        self.value(f"laboratory.player.go({at})")
        self.wait_for(f"document.body.dataset.at === '{at}'")

    @property
    def at(self) -> int:
        return int(self.value("laboratory.player.at"))
