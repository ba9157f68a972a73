"""The laboratory without a server: a browser's worker runs this module, and a page asks it by messages.

A question is a name with arguments, an answer JSON: ``{"value": …}``, or ``{"problem": …, "line": …}`` for what a
server refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from rejoin.simulation.laboratory.exports import NotExported
from rejoin.simulation.laboratory.scenario_edits import with_event, with_value
from rejoin.simulation.scenario.gallery import GALLERY
from rejoin.simulation.scenario.reading import BadScenario
from rejoin.simulation.web.session import FirstScenario, LaboratorySession, UnknownName, run_of

FIRST: Final = "eager_scale_out"
"""The scenario that the page opens with."""


class LaboratoryWorker:
    """Answers what a page asks."""

    def __init__(self) -> None:
        text = (GALLERY / f"{FIRST}.yaml").read_text("utf-8")
        session = self._session = LaboratorySession(FirstScenario(FIRST, text, None), GALLERY)
        self._questions: dict[str, Callable[..., Any]] = {
            "start": session.first._asdict,
            "gallery": session.gallery,
            "lessons": session.lessons,
            "galleryText": session.gallery_text,
            "play": lambda text, seed: session.new_run(text, run_of(text, seed)).head(),
            "nextPiece": lambda run: session.run(run).next_piece(),
            "stateAt": lambda run, at: session.run(run).state(at),
            "lag": lambda run, *of: session.run(run).lag(*of),
            "exported": lambda run, kind, group_id: session.run(run).export(kind, group_id),
            "withEvent": lambda text, at, action: {"text": with_event(text, max(0, at), action)},
            "withValue": lambda text, path, value: {"text": with_value(text, path, value)},
        }

    def answer(self, question: str, arguments: str) -> str:
        """The answer to a question; its arguments are a list as JSON."""
        try:
            value = self._questions[question](*json.loads(arguments))
        except BadScenario as mistake:
            return json.dumps({"problem": str(mistake), "line": mistake.line})
        except (UnknownName, NotExported) as problem:
            return json.dumps({"problem": str(problem), "line": None})
        return json.dumps({"value": value}, separators=(",", ":"))
