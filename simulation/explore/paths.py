"""A path as things to go on with: steps in words, a scenario that plays it, a transcript."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from rejoin.simulation.explore.choosing import Choice
from rejoin.simulation.explore.following import FollowingWorld
from rejoin.simulation.explore.liveness import bound_of
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.output.transcript import GroupTranscript
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.search.checked_simulation import CheckedSimulation
from rejoin.simulation.search.observations import Violation
from rejoin.simulation.simulation import Simulation

Path = tuple[int, ...]
"""Which of the choices is taken, one number for each step."""


def replayed(scenario: Scenario, path: Path) -> Iterator[tuple[ExploredRun, Choice]]:
    """The run along a path: before each step, with the choice that the path takes."""
    run = ExploredRun(scenario)
    for step, number in enumerate(path):
        choice = run.choices()[number]
        yield run, choice
        if step + 1 < len(path):  # the last one may break a rule
            run.take(choice)


def labels_of(scenario: Scenario, path: Path) -> list[str]:
    """A path in words, each step with the virtual time before it in ms."""
    return [f"{run.now:>8} ms  {run.label(choice)}" for run, choice in replayed(scenario, path)]


def along(scenario: Scenario, path: Path) -> Scenario:
    """The scenario that follows a path: ``rejoin simulate`` plays it, ``rejoin lab`` opens it."""
    explore = exploring_of(scenario).model_copy(update={"path": path})
    return scenario.model_copy(update={"explore": explore})


def text_along(scenario: Scenario, path: Path) -> str:
    """The scenario that follows a path, as YAML.

    It ends when a group would have settled after the path, in whole seconds, so that a picture shows the path.
    """
    instants = [event.at for event in scenario.events] + [run.now for run, _ in replayed(scenario, path)]
    horizon = min(scenario.horizon, -(-(max(instants, default=0) + bound_of(scenario)) // 1_000) * 1_000)
    followed = along(scenario, path).model_copy(update={"horizon": horizon})
    data = followed.model_dump(mode="json", by_alias=True, exclude_unset=True)
    data["explore"] = {**data.get("explore", {}), "path": list(path)}
    text: str = yaml.safe_dump(data, sort_keys=False, width=110, default_flow_style=None)
    return text


def transcript_along(scenario: Scenario, path: Path) -> str:
    """A transcript of the path's requests, of the first group that it says anything about."""
    simulation = Simulation(along(scenario, path))
    world = simulation.world
    assert isinstance(world, FollowingWorld), "a scenario with a path has such a kernel"
    recorders = [GroupTranscript(simulation, group_id) for group_id in scenario.groups]
    CheckedSimulation(simulation, every_ms=None, scenario=scenario)
    violation: Violation | None = None
    simulation.begin()
    try:
        world.follow_to_the_end()
    except Violation as found:
        violation = found
    text = "" if violation is None else violation.text
    named = [each for each in recorders if each.group_id in text] or recorders
    return named[0].text(violation)
