"""Every world of rejoin in this process and on Spark, with equal counts: ``make explore-spark``."""

from __future__ import annotations

import sys

from rejoin.pipeline.explore.rounds import explore_on_spark
from rejoin.pipeline.spark.session import spark_session
from rejoin.simulation.explore.explorer import explore
from rejoin.simulation.explore.world import WORLDS, read_world


def main(depth: int) -> int:
    """Print the counts of each world to a depth; the exit code is 1 where two differ."""
    spark = spark_session("local[2]", fast=True)
    differ = 0
    for path in sorted(WORLDS.glob("*.yaml")):
        world = read_world(path)
        here, there = explore(world, depth=depth, liveness=False), explore_on_spark(spark, world, depth=depth)
        same = (here.by_depth, here.edges) == (there.by_depth, there.edges)
        differ += not same
        equal = "equal" if same else f"on Spark {there.states:,} states and {there.edges:,} steps"
        print(f"{path.stem}: {here.states:,} states, {here.edges:,} steps to depth {depth}: {equal}", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
