"""Settings as sliders, another run beside the one that is shown, and the lag of both, in a real browser."""

from __future__ import annotations

import pytest

from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.opened import DONE, GROUP, SCENARIO, Opened

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]

SLIDER = "document.querySelector('[data-key=max_poll_interval] input')"
MOVED = f"{SLIDER}.value = 200; for (const name of ['input', 'change']) {SLIDER}.dispatchEvent(new Event(name))"
TEXT = "document.getElementById('yaml').value"


def _keep_and_slide(opened: Opened) -> None:
    opened.open()
    opened.go(20_000)
    opened.value("document.getElementById('keep').click()")
    opened.value("document.body.dataset.done = 'no'")
    opened.value(MOVED)
    opened.wait_for(f"{DONE} && {TEXT}.includes('max_poll_interval: 30m')")


def _numbers(opened: Opened) -> dict[str, list[str]]:
    rows: list[list[str]] = opened.value(
        "[...document.querySelectorAll('#numbers tbody tr')].map(row => [...row.cells].map(each => each.textContent))"
    )
    return {name: values for name, *values in rows}


def test_a_slider_is_another_value_in_the_scenario_and_keeps_the_instant(opened: Opened) -> None:
    opened.open()
    opened.go(20_000)
    assert opened.value(f"{SLIDER}.getAttribute('aria-valuetext')") == "20 s"
    opened.value("document.body.dataset.done = 'no'")
    opened.value(MOVED)
    opened.wait_for(f"{DONE} && {TEXT}.includes('max_poll_interval: 30m')")
    assert opened.at == 20_000
    assert opened.value(TEXT) == SCENARIO.replace("max_poll_interval: 20s", "max_poll_interval: 30m")
    assert opened.value(f"{SLIDER}.getAttribute('aria-valuetext')") == "30.0 min"


def test_the_run_that_was_kept_stands_beside_the_new_one_with_what_differs(opened: Opened) -> None:
    _keep_and_slide(opened)
    difference = opened.value("document.getElementById('difference').innerText")
    assert "max_poll_interval: 30m" in difference.split("here:")[0]
    assert "max_poll_interval: 20s" in difference.split("here:")[1]
    rebalances = _numbers(opened)["rebalances"]
    assert rebalances[0] != rebalances[1]
    assert opened.value("laboratory.above.recording !== laboratory.below.recording")
    assert opened.value("document.getElementById('kept-partitions').getBoundingClientRect().height") > 60


def test_swapped_the_kept_run_is_the_one_that_is_looked_at(opened: Opened) -> None:
    _keep_and_slide(opened)
    before = _numbers(opened)
    opened.value("document.getElementById('swap').click()")
    opened.wait_for(f"{TEXT}.includes('max_poll_interval: 20s')")
    assert _numbers(opened) == {name: values[::-1] for name, values in before.items()}
    opened.go(21_000)
    assert "Missing is" in opened.value("document.getElementById('words').innerText")
    opened.value("document.getElementById('drop').click()")
    assert opened.value("document.getElementById('kept').hidden")


def test_the_address_has_both_runs(opened: Opened) -> None:
    _keep_and_slide(opened)
    before = _numbers(opened)
    opened.value("document.getElementById('share').click()")
    opened.wait_for("location.hash.startsWith('#s=')")
    opened.open(opened.value("location.hash"))
    opened.wait_for(f"{DONE} && document.querySelectorAll('#numbers tbody tr').length")
    assert _numbers(opened) == before


def test_lag_and_commits_are_drawn_on_demand(opened: Opened) -> None:
    opened.open()
    assert opened.value("document.getElementById('lag-chart').hidden")
    opened.value("document.getElementById('lag').click()")
    opened.wait_for("laboratory.above.lag.data")
    opened.go(29_000)
    # Four partitions with a record a second: those of the member that hangs are not processed.
    behind = opened.value("document.getElementById('lag-now').textContent")
    assert behind.startswith(f"{GROUP}: ")
    assert int(behind.removeprefix(f"{GROUP}: ").split(" ")[0]) >= 30
    assert opened.value("laboratory.above.lag.commits('orders', 0).length") > 3
    assert not opened.value("document.getElementById('lag-chart').hidden")
    opened.value("document.getElementById('requests').click()")
    opened.wait_for("document.getElementById('lanes').hidden")
    opened.value("document.getElementById('requests').click()")
