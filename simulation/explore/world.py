"""Worlds: small scenarios in which what happens when is left open."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rejoin.simulation.explore.exploring import Exploring
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import checked, keys_of, text_of

WORLDS: Final = Path(__file__).parents[1] / "worlds"
"""The worlds that come with rejoin."""
HORIZON: Final = "1h"
"""How long a world lasts that does not say it: only runs along a path end by it."""
QUIET: Final = {"poll": "4d", "metadata_max_age": "4d", "fetch_max_wait": "4d", "commit": "none"}
"""Habits that a group of a world has only where the world says so: they would keep equal states apart."""


def read_world(path: Path) -> Scenario:
    """Read a world's file. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    return world_from(text_of(path), str(path))


def world_from(text: str, where: str = "") -> Scenario:
    """Read a world from text. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    data, lines = keys_of(text, where, "topics, groups, events and explore")
    data.setdefault("horizon", HORIZON)
    data.setdefault("explore", {})
    groups = data.get("groups")
    if isinstance(groups, dict):
        for group in groups.values():
            if isinstance(group, dict):
                quiet = {
                    key: value
                    for key, value in QUIET.items()
                    if key != "commit" or not group.keys() & {"share", "streams"}
                }
                for key, value in quiet.items():
                    group.setdefault(key, value)
    return checked(Scenario, data, lines, where)


def exploring_of(scenario: Scenario) -> Exploring:
    """The part of a world that says how much is open."""
    return scenario.explore or Exploring()
