"""Worlds: small scenarios in which what happens when is left open."""

from __future__ import annotations

from pathlib import Path

from rejoin.simulation.explore.exploring import Exploring
from rejoin.simulation.scenario.model import Scenario
from rejoin.simulation.scenario.reading import checked, keys_of, text_of

HORIZON = "1h"
"""How long a world lasts that does not say it: only runs along a path end by it."""


def read_world(path: Path) -> Scenario:
    """Read a world's file. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    return world_from(text_of(path), str(path))


def world_from(text: str, where: str = "") -> Scenario:
    """Read a world from text. Raises :class:`~rejoin.simulation.scenario.reading.BadScenario`."""
    data, lines = keys_of(text, where, "topics, groups, events and explore")
    data.setdefault("horizon", HORIZON)
    data.setdefault("explore", {})
    return checked(Scenario, data, lines, where)


def exploring_of(scenario: Scenario) -> Exploring:
    """What a world leaves open."""
    return scenario.explore or Exploring()
