"""A page that needs no server: the laboratory's, with its scripts and with what was recorded of some groups in it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from rejoin import pages
from rejoin.journal.events.client import ConsumerEvent
from rejoin.journal.events.coordinator import GroupEvent
from rejoin.journal.recording.as_scenario import ScenarioWriter
from rejoin.journal.recording.consumer_journals import ConsumerJournals
from rejoin.journal.recording.event_recorder import EventRecorder
from rejoin.pages import Markup
from rejoin.pipeline.drawn.drawn_event import DrawnEvent
from rejoin.pipeline.findings.formatting import is_simulated

ASSETS: Final = "rejoin.pages.laboratory"
POLICY: Final = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:"
_POLICY: Final = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
_IMPORT: Final = re.compile(r'from "\./([a-z_]+)\.js"')
_START: Final = """\
const recorded = JSON.parse(document.getElementById("recorded").textContent);
export const start = async () => recorded.head;
export const recordedOf = group => recorded.groups[group];
"""
_RECORDINGS: Final = """\
import { recordedOf } from "./source.js";
export const recorded = async (group, onPiece) => onPiece(recordedOf(group));
"""


def recorded(events: Sequence[DrawnEvent], until_ms: int) -> dict[str, Any]:
    """The recording of a group for the page: the rows of its events, in order, up to an instant (ms since 1970)."""
    origin = origin_of(events)
    recorder = EventRecorder(ConsumerJournals((each.at_ms - origin, each.event) for each in events))
    group_id = next(each.event.group_id for each in events if isinstance(each.event, GroupEvent | ConsumerEvent))
    scenario = ScenarioWriter(group_id or "")
    for each in events:
        recorder.on_event(each.node, each.event, each.at_ms - origin)
        scenario.on_event(each.event, each.at_ms - origin)
    until = max(until_ms, events[-1].at_ms) - origin
    return {"origin": origin, "until": until, **recorder.take(), "scenario": scenario.text(until)}


def origin_of(events: Sequence[DrawnEvent]) -> int:
    """Where time begins on the page, in ms since 1970; 0 for a simulation, which has no other time."""
    return 0 if is_simulated(events[0].at_ms) else events[0].at_ms


def render(title: str, groups: Mapping[str, Any]) -> str:
    """The page, whole in one file."""
    head = {"recorded": True, "live": False, "title": title, "origin": 0, "groups": list(groups)}
    page = pages.render(ASSETS, "page.html")
    data = pages.script_data({"head": head, "groups": groups})
    style = files(ASSETS).joinpath("page.css").read_text("utf-8")
    replaced = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n{_POLICY}',
        '<link rel="stylesheet" href="assets/page.css">': f"<style>{style}</style>",
        '<script type="module" src="assets/main.js"></script>': (
            f'<script type="application/json" id="recorded">{data}</script>\n'
            f'<script type="importmap">{pages.script_data({"imports": _modules()})}</script>\n'
            '<script type="module">import "laboratory/main";</script>'
        ),
    }
    for old, new in replaced.items():
        assert page.count(old) == 1, old
        page = page.replace(old, str(Markup(new)))
    return page


def _modules() -> dict[str, str]:
    """The scripts of the page, each as an address that holds it whole; those that ask a server are replaced."""
    texts = {each.name: each.read_text("utf-8") for each in files(ASSETS).iterdir() if each.name.endswith(".js")}
    texts |= {"source.js": _START, "recorded_source.js": _RECORDINGS}
    return {f"laboratory/{name.removesuffix('.js')}": _address(text) for name, text in texts.items()}


def _address(text: str) -> str:
    named = _IMPORT.sub(r'from "laboratory/\1"', text)
    return f"data:text/javascript;base64,{b64encode(named.encode()).decode('ascii')}"
