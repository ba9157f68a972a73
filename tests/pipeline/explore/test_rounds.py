"""An exploration on Spark meets the states of one in this process, by the same paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rejoin.pipeline.explore import rounds
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.world import world_from

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORLD = """
topics: {t: {partitions: 1}}
groups:
  g: {topics: [t], consumers: 2, session_timeout: 9s, max_poll_interval: 20s}
coordinator: {settings: {group.initial.rebalance.delay.ms: 0}}
explore: {depth: 3, faults: 1, lost_answers: true}
"""


def test_spark_meets_the_same_states(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # A task takes much longer than the few paths in it.
    monkeypatch.setattr(rounds, "TASKS_A_CORE", 2)
    world = world_from(WORLD)
    here, there = explore(world, liveness=False), rounds.explore_on_spark(spark, world)
    assert there.by_depth == here.by_depth
    assert (there.states, there.edges) == (here.states, here.edges)
    assert not there.is_complete
