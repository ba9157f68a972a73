"""A scenario as something to keep: a transcript of its group, or a test that plays it."""

from __future__ import annotations

from typing import Final

from rejoin.simulation.laboratory.run import LaboratoryRun
from rejoin.simulation.output.transcript import GroupTranscript
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.protocols import protocols_of
from rejoin.simulation.simulation import Simulation
from rejoin.transcript.player import play

_UNNAMED: Final = "A run of the laboratory."
_TEST: Final = '''\
"""{question}"""

from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

SCENARIO = """\\
{text}"""


def test_{name}() -> None:
    _, summary = play(scenario_from(SCENARIO), seed={seed})
{asserts}
'''


class NotExported(Exception):
    """This cannot be exported; the text says why."""


def transcript_of(scenario: Scenario, seed: int, group_id: str) -> str:
    """The requests of a group and what came of them, as a transcript. Raises :class:`NotExported`."""
    if "consumer" in protocols_of(scenario, group_id):
        raise NotExported(f"{group_id} uses the consumer protocol; transcripts are made of classic groups")
    simulation = Simulation(scenario, seed, skip=False)
    transcript = GroupTranscript(simulation, group_id)
    simulation.run()
    claim = " ".join(scenario.question.split()) or _UNNAMED
    return play(transcript.text(None).replace("# Nothing was found.", f"# {claim}", 1)).text


def pytest_of(run: LaboratoryRun, text: str) -> str:
    """A test for pytest that plays the scenario and expects what this run gave. Raises :class:`NotExported`."""
    if run.summary is None:
        raise NotExported("the run is not over yet")
    asserts = [
        f"    assert summary.groups[{group_id!r}].{field} == {getattr(group, field)!r}"
        for group_id, group in run.summary.groups.items()
        for field in ("rebalances", "removed", "fenced", "twice", "lost")
    ]
    return _TEST.format(
        question=" ".join(run.scenario.question.split()).replace("\\", "").replace('"', "'") or _UNNAMED,
        text=text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').rstrip() + "\n",
        name="the_scenario",
        seed=run.simulation.seed,
        asserts="\n".join(asserts),
    )
