"""Runs whose accounts stay open."""

from __future__ import annotations

from rejoin.simulation.simulation import Simulation


def run_to_horizon(simulation: Simulation) -> None:
    """Play to the horizon and leave everything as it is then."""
    simulation.begin()
    simulation.world.run(simulation.scenario.horizon)
