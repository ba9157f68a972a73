"""The laboratory's page in a real browser."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.simulation.web.browser import CHROMIUM
from tests.simulation.web.opened import DONE, GROUP, SCENARIO, Opened

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.xdist_group("laboratory-page"),
]


def test_the_page_says_why_the_group_stands_still(opened: Opened) -> None:
    opened.open()
    assert opened.at == 10_000
    opened.go(20_000)
    words = opened.value("document.getElementById('words').innerText")
    assert "2 of 3 wait at this barrier" in words
    assert f"Missing is {GROUP}-2: its handler hangs until 0:00:50.000" in words
    assert f"then max.poll.interval.ms of {GROUP}-2 ends, and it leaves by itself." in words
    now = opened.value("document.getElementById('now').innerText")
    assert "PreparingRebalance" in opened.value("document.querySelector('.diagram .now').textContent")
    assert now.count("JoinGroup parked") == 2
    assert opened.page.problems == []
    assert [each for each in opened.page.addresses if not each.startswith((opened.address, "about:", "data:"))] == []


def test_after_a_rebalance_the_page_says_how_long_it_was_and_who_does_not_know_of_it(opened: Opened) -> None:
    opened.open()
    opened.go(45_000)
    words = opened.value("document.getElementById('words').innerText")
    assert "The last rebalance went from 0:00:1" in words
    assert "2 of 4 partitions went without an owner at some point." in words
    assert f"{GROUP}-2 has left the group, and its application does not know: its handler hangs" in words
    assert "its application does not know yet" in opened.value("document.getElementById('now').innerText")


def test_a_ghost_is_among_the_members(opened: Opened) -> None:
    opened.open()
    opened.choose("flapping_consumer")
    opened.go(126_000)
    assert opened.value("[...document.querySelectorAll('.members li')].map(each => each.innerText)[5]").startswith(
        "orders-app-3"
    )
    assert "ghost" in opened.value("document.querySelector('.members').innerText")
    assert "Missing is the former member of orders-app-3" in opened.value("document.getElementById('words').innerText")


def test_at_the_end_the_findings_say_what_to_change(opened: Opened) -> None:
    opened.open()
    opened.press("End")
    opened.wait_for("document.querySelector('.findings')")
    found = opened.value("document.querySelector('.findings').innerText")
    assert "max.poll.interval.ms" in found
    opened.press("Home")
    opened.wait_for("!document.querySelector('.findings')")
    assert opened.page.problems == []


def test_names_that_contain_markup_stay_text(opened: Opened) -> None:
    opened.open()
    assert opened.value("document.querySelectorAll('main img, #intro b').length") == 0
    assert opened.value("document.getElementById('question').textContent") == "What does <b>this</b> do?"
    assert opened.value("document.title") == "Rejoin: laboratory"


def test_the_keyboard_moves_through_time(opened: Opened) -> None:
    opened.open()
    opened.press("n")
    assert opened.at >= 15_000
    rebalance = opened.at
    opened.press("ArrowRight")
    assert opened.at > rebalance
    opened.press("ArrowLeft")
    assert opened.at == rebalance
    opened.press("End")
    assert opened.at == 60_000
    opened.wait_for("document.querySelector('#words .summary')")
    opened.press("Home")
    assert opened.at == 0
    opened.press("0")
    assert opened.value("[laboratory.view.from, laboratory.view.to]") == [0, 60_000]
    opened.press("+")
    assert opened.value("laboratory.view.to - laboratory.view.from") == 30_000
    # Slow enough that the run does not end before the second key.
    opened.value("laboratory.player.speed = 1")
    opened.press(" ")
    opened.wait_for("laboratory.player.at > 0")
    opened.press(" ")
    assert opened.value("laboratory.player.playing") is False


def test_every_control_has_a_name(opened: Opened) -> None:
    opened.open()
    named = (
        "each.labels && each.labels.length && each.labels[0].textContent.trim() || each.ariaLabel || each.textContent"
    )
    script = (
        f"[...document.querySelectorAll('button, input, select, textarea')].filter(each => !({named}).trim()).length"
    )
    assert opened.value(script) == 0


def test_an_action_is_a_line_of_the_scenario_and_keeps_the_instant(opened: Opened) -> None:
    opened.open()
    opened.go(12_000)
    before = opened.value("laboratory.recording.lines.filter(each => each.at < 12000)")
    button = "[...document.querySelectorAll('#actions button')].find(each => each.textContent.startsWith('Kill -9'))"
    opened.value(f"{button}.click()")
    opened.wait_for("document.getElementById('action-result').textContent && document.body.dataset.done === 'yes'")
    assert "- {at: 12s, crash: {who: " in opened.value("document.getElementById('yaml').value")
    assert opened.at == 12_000
    assert opened.value("laboratory.recording.lines.filter(each => each.at < 12000)") == before
    assert "is killed" in opened.value("laboratory.recording.lines.find(each => each.at === 12000).text")


def test_a_lesson_hides_what_comes_until_it_is_answered(opened: Opened) -> None:
    opened.open()
    opened.value("document.getElementById('lessons-open').click()")
    pick = "[...document.querySelectorAll('#lessons-index button')].find(each => each.textContent === 'A group begins')"
    opened.value(f"{pick}.click()")
    opened.wait_for("document.body.dataset.done === 'yes' && laboratory.player.at === 12")
    later = "[...document.querySelectorAll('#lines .later')].filter(each => each.offsetParent !== null).length"
    veil = "document.getElementById('veil').getBoundingClientRect().width"
    assert opened.value(later) == 0
    assert opened.value(veil) > 500
    assert opened.value("document.getElementById('lesson-answer').textContent") == ""
    opened.value("document.getElementById('lesson-next').click()")
    opened.wait_for("document.getElementById('lesson-answer').textContent")
    assert opened.at == 12_015
    assert opened.value(veil) == 0
    assert "rebalances\t1" in opened.value("document.getElementById('lesson-numbers').innerText")
    opened.value("document.getElementById('lesson-end').click()")
    assert opened.value("document.getElementById('lesson').hidden")


def test_a_lesson_waits_for_its_run(opened: Opened) -> None:
    opened.open()
    following = opened.value(
        "(async () => { document.body.dataset.done = 'no';"
        " const begun = laboratory.lessons.begin(0), next = document.getElementById('lesson-next');"
        " const early = [next.disabled, next.textContent]; await begun;"
        " return [...early, next.disabled, next.textContent]; })()"
    )
    assert following == [True, "The run is being played…", False, "What happens next?"]
    opened.value("document.getElementById('lesson-end').click()")


def test_a_frame_that_began_before_the_click_moves_no_time_back(opened: Opened) -> None:
    opened.open()
    opened.press("Home")
    opened.value("laboratory.player.playing = true, laboratory.player.last = performance.now() + 50")
    opened.value("laboratory.player.frame(performance.now() - 20)")
    assert opened.at >= 0
    opened.value("laboratory.player.toggle(false)")
    opened.wait_for("document.body.dataset.at === String(laboratory.player.at)")
    assert opened.value("document.getElementById('problem').hidden")


def test_a_problem_goes_away_with_the_next_success(opened: Opened) -> None:
    opened.open()
    opened.value("laboratory.player.onMove(-464)")
    opened.wait_for("!document.getElementById('problem').hidden")
    assert opened.value("document.getElementById('problem').textContent") == "at: expected a whole number, 0 or more"
    opened.go(12_000)
    opened.wait_for("document.getElementById('problem').hidden")


HELD = """(() => {
  const asked = window.fetch;
  window.fetch = async (path, options) => {
    const response = await asked(path, options);
    if (path !== "api/runs") return response;
    const text = await response.text(), head = text.indexOf("\\n") + 1, bytes = new TextEncoder();
    return new Response(new ReadableStream({ start(out) {
      out.enqueue(bytes.encode(text.slice(0, head)));
      window.release = () => { out.enqueue(bytes.encode(text.slice(head))); out.close(); };
    } }));
  };
  document.body.dataset.done = "no";
  document.getElementById("again").click();
})()"""
"""Play again, and hold all but the head of the run back until it is released."""


@pytest.mark.parametrize("how", ["button", "key"])
def test_the_end_of_a_run_that_is_being_played_is_its_end(opened: Opened, how: str) -> None:
    opened.open()
    opened.value(HELD)
    opened.wait_for("window.release && laboratory.recording.until === 0")
    assert opened.at == 10_000
    if how == "button":
        opened.value("document.getElementById('last').click()")
    else:
        opened.press("End")
    assert "then the end is shown" in opened.value("document.getElementById('status').textContent")
    opened.value("window.release()")
    opened.wait_for(DONE)
    assert opened.at == 60_000
    opened.press("Home")
    assert opened.at == 0
    opened.value("document.getElementById('last').click()")
    assert opened.at == 60_000


def test_a_mistake_in_the_yaml_is_shown_with_its_line(opened: Opened) -> None:
    opened.open()
    opened.value("document.getElementById('yaml').value += '  - {at: 5s, crsh: {who: x}}\\n'")
    opened.value("document.getElementById('again').click()")
    opened.wait_for("!document.getElementById('problem').hidden")
    assert "line 10" in opened.value("document.getElementById('problem').textContent")
    assert "is it crash?" in opened.value("document.getElementById('problem').textContent")
    area = "document.getElementById('yaml')"
    assert "crsh" in opened.value(f"{area}.value.slice({area}.selectionStart, {area}.selectionEnd)")


def test_the_address_has_scenario_and_instant(opened: Opened) -> None:
    opened.open()
    opened.go(17_000)
    opened.value("document.getElementById('share').click()")
    opened.wait_for("location.hash.startsWith('#s=') && document.getElementById('shared').textContent")
    assert opened.value("document.getElementById('shared').getBoundingClientRect().bottom < innerHeight")
    fragment = opened.value("location.hash")
    opened.open(fragment)
    assert opened.at == 17_000
    assert opened.value("document.getElementById('yaml').value") == SCENARIO
    assert opened.value("document.getElementById('gallery').selectedOptions[0].text") == "a shared run"


def test_the_drawing_is_saved_as_svg(opened: Opened) -> None:
    opened.open()
    opened.wait_for("document.getElementById('lanes').height > 100")
    drawing = ElementTree.fromstring(opened.value("laboratory.drawing()"))
    texts = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"{GROUP}-1", "node-1", "orders-0"} <= texts


def test_in_the_animated_drawing_what_comes_later_is_hidden_less_and_less(opened: Opened) -> None:
    opened.open()
    opened.wait_for("document.getElementById('lanes').height > 100")
    opened.value("laboratory.view.fit(), laboratory.player.speed = 5")
    drawing = ElementTree.fromstring(opened.value("laboratory.drawing(true)"))
    moves = {each.get("attributeName"): each.attrib for each in drawing.iter("{http://www.w3.org/2000/svg}animate")}
    assert moves["width"]["to"] == "0"
    assert float(moves["width"]["from"]) > 500
    assert {each["dur"] for each in moves.values()} == {"12s"}  # a minute, five times as fast


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1_920, 1_080)], ids=["phone", "wide"])
def test_nothing_is_cut_off(opened: Opened, width: int, height: int) -> None:
    opened.run(opened.page.resize(width, height, dark=width < 1_000))
    opened.open()
    opened.wait_for("document.getElementById('lanes').height > 100")
    assert opened.value("document.documentElement.scrollWidth") <= width
    drawn = opened.value(
        "(() => { const c = document.getElementById('lanes'); const data = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let i = 0; i < data.length;"
        " i += 400) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); return seen.size; })()"
    )
    assert drawn > 5
    assert json.loads(opened.value("JSON.stringify(laboratory.recording.done)"))
