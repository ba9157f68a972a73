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
QUIET_PARTS: Final = {
    "producers": {"metadata_max_age": "4d"},
    "readers": {"metadata_max_age": "4d", "fetch_max_wait": "4d"},
}
"""As above, of producers and readers."""


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
                _quieten(group, quiet)
                _quieten(group.get("transform"), QUIET_PARTS["producers"])
    for part, habits in QUIET_PARTS.items():
        for each in parts.values() if isinstance(parts := data.get(part), dict) else ():
            _quieten(each, habits)
    return checked(Scenario, data, lines, where)


def _quieten(part: object, habits: dict[str, str]) -> None:
    """Give a part of a world these habits, unless it says others."""
    if isinstance(part, dict):
        for key, value in habits.items():
            part.setdefault(key, value)


def exploring_of(scenario: Scenario) -> Exploring:
    """The part of a world that says how much is open."""
    return scenario.explore or Exploring()
