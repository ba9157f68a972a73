"""Questions of a page to the laboratory, over any transport: scenarios, runs of them, and any instant of a run.

It knows no HTTP. Of one run only one thread at a time may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from rejoin.simulation.laboratory.exports import NotExported, pytest_of, transcript_of
from rejoin.simulation.laboratory.lag import lag_between
from rejoin.simulation.laboratory.lessons import read_lessons
from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.laboratory.settings import controls_of
from rejoin.simulation.laboratory.state import state_at
from rejoin.simulation.laboratory.words import sentences
from rejoin.simulation.run import check_path, play
from rejoin.simulation.scenario.reading import read_scenario, scenario_from

Explain = Callable[[str, str], list[dict[str, str]]]
"""Findings of a journal (JSON lines) about a group: severity, title, setting, advice."""
KEPT_RUNS: Final = 6
"""Number of runs that are kept; those that were not looked at for longest are forgotten."""


class UnknownName(LookupError):
    """There is no such scenario, run or group; the text says so."""

    def __str__(self) -> str:
        return str(self.args[0])


class FirstScenario(NamedTuple):
    """The scenario that the page opens with."""

    name: str
    text: str
    seed: int | None


class PlayedRun:
    """A run that a page looks at."""

    def __init__(self, name: str, run: LaboratoryRun, text: str) -> None:
        self.name = name
        self._run = run
        self._text = text
        self._pieces = run.play()

    def head(self) -> dict[str, Any]:
        """Head of a run, which the page needs before the first piece."""
        run, scenario = self._run, self._run.scenario
        return {
            "run": self.name,
            "seed": run.simulation.seed,
            "horizon": scenario.horizon,
            "question": scenario.question,
            "answer": scenario.answer,
            "title": f"{', '.join(scenario.groups)}: {len(scenario.events)} events",
            "groups": list(scenario.groups),
            "topics": {topic: each.partitions for topic, each in scenario.topics.items()},
            "controls": controls_of(scenario),
        }

    def next_piece(self) -> dict[str, Any] | None:
        """Play on a bit; none at the end."""
        return next(self._pieces, None)

    def state(self, at: int) -> dict[str, Any]:
        """The state of all cores in an instant (ms), and the sentences for it."""
        run = self._run
        state = state_at(run, at)
        return {**state, "words": {group_id: sentences(run, group_id, state) for group_id in run.scenario.groups}}

    def lag(self, group_id: str, first: int, last: int, points: int) -> dict[str, Any]:
        """The lag of a group in so many instants, and its commits, between two instants (ms)."""
        run = self._run
        return lag_between(run.simulation, run.commits, run.shared, self.group(group_id), first, last, points)

    def export(self, kind: str, group_id: str) -> str:
        """The run as a ``transcript``, a ``pytest`` test or a ``journal``. Raises :class:`NotExported`."""
        run = self._run
        match kind:
            case "transcript":
                return transcript_of(run.scenario, run.simulation.seed, self.group(group_id))
            case "pytest":
                return pytest_of(run, self._text)
            case "journal":
                return journal_of(self._text, run.simulation.seed)
        raise NotExported(f"there is no export called {kind}")

    def findings(self, explain: Explain, group_id: str) -> list[dict[str, str]]:
        """Findings of the run, by the rules of reports."""
        return explain(journal_of(self._text, self._run.simulation.seed), self.group(group_id))

    def group(self, group_id: str) -> str:
        """A group of the scenario. Raises :class:`UnknownName`."""
        if group_id not in self._run.scenario.groups:
            raise UnknownName("group: there is no such group")
        return group_id


class LaboratorySession:
    """The gallery, and the runs that were played."""

    def __init__(self, first: FirstScenario, gallery: Path) -> None:
        self.first = first
        self._gallery = gallery
        self._runs: dict[str, PlayedRun] = {}
        self._count = 0

    def gallery(self) -> list[dict[str, str]]:
        """Each scenario of the gallery with its question."""
        found = [(path.stem, read_scenario(path)) for path in sorted(self._gallery.glob("*.yaml"))]
        return [{"name": name, "title": name.replace("_", " "), "question": each.question} for name, each in found]

    def gallery_text(self, name: str) -> dict[str, str]:
        """The YAML of a scenario of the gallery. Raises :class:`UnknownName`."""
        if name not in {path.stem for path in self._gallery.glob("*.yaml")}:
            raise UnknownName("the gallery has no such scenario")
        return {"name": name, "text": (self._gallery / f"{name}.yaml").read_text("utf-8")}

    def lessons(self) -> list[dict[str, Any]]:
        """The chapters of lessons."""
        return [each.model_dump() for each in read_lessons()]

    def new_run(self, text: str, run: LaboratoryRun) -> PlayedRun:
        """Keep a run of a scenario's text, which is not played yet."""
        self._count += 1
        name = f"{self._count}"
        played = self._runs[name] = PlayedRun(name, run, text)
        for old in list(self._runs)[:-KEPT_RUNS]:
            del self._runs[old]
        return played

    def run(self, name: str) -> PlayedRun:
        """A run that was not forgotten; it is now the one that was looked at last. Raises :class:`UnknownName`."""
        played = self._runs.pop(name, None)
        if played is None:
            raise UnknownName("this run is forgotten; run the scenario again")
        self._runs[name] = played
        return played


def run_of(text: str, seed: int | None) -> LaboratoryRun:
    """A run of a scenario's text, which is not played yet. Raises :class:`BadScenario`."""
    scenario = scenario_from(text)
    check_path(scenario)
    return LaboratoryRun(scenario, seed)


def journal_of(text: str, seed: int) -> str:
    """The events of a scenario as the JSON lines that ``rejoin simulate --journal FILE.jsonl`` writes."""
    with TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.jsonl"
        play(scenario_from(text), seed, journal=journal)
        return journal.read_text("utf-8")
