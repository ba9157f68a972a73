"""An exploration on Spark, one round a depth: executors play paths, and digests distinguish states.

A path and 128 bits travel for each step. The states that were seen lie in partitions by digest, which Spark
spills to disk; an executor that is lost is computed again, since a path says all that its state needs. Of several paths
to a state the first in order is kept, as one process does, so the counts are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel

from rejoin.simulation.explore.expanding import Edge, expanded
from rejoin.simulation.explore.explorer import Counterexample, Exploration, Reached
from rejoin.simulation.explore.paths import labels_of
from rejoin.simulation.explore.run import ExploredRun
from rejoin.simulation.explore.world import exploring_of
from rejoin.simulation.scenario.model import Scenario

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

TASKS_A_CORE: Final = 3
"""Paths are shared out into so many tasks for each core: some are longer than others."""


def explore_on_spark(
    spark: SparkSession,
    scenario: Scenario,
    *,
    depth: int | None = None,
    most_states: int | None = None,
    on_progress: Callable[[Reached], None] | None = None,
) -> Exploration:
    """Explore a world to a depth, or until a rule is broken or ``most_states`` have been met.

    A way to settle is not looked for.
    """
    context = spark.sparkContext
    tasks = TASKS_A_CORE * context.defaultParallelism
    data = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    found = Exploration(states=1, by_depth=[1])
    began = time.monotonic()
    seen: RDD[tuple[bytes, bytes]] = context.parallelize([(ExploredRun(scenario).digest(), b"")], 1).partitionBy(
        tasks, _partition
    )
    new = seen
    for level in range(1, (depth or exploring_of(scenario).depth) + 1):
        paths = new.values().sortBy(_itself, numPartitions=min(tasks, found.by_depth[-1]))
        steps = paths.mapPartitions(_Expand(data)).persist(StorageLevel.MEMORY_AND_DISK)
        found.edges += steps.count()
        broken = steps.filter(_breaks).collect()
        if broken:
            found.counterexample = _counterexample(scenario, min(broken, key=lambda step: step.path))
            return found
        met = steps.map(_by_digest).reduceByKey(min, tasks, _partition).subtractByKey(seen, tasks)
        met = met.partitionBy(tasks, _partition).persist(StorageLevel.MEMORY_AND_DISK)
        count = met.count()
        steps.unpersist()
        if not count:
            found.is_complete = True
            return found
        found.states += count
        found.by_depth.append(count)
        seen, new = seen.union(met).partitionBy(tasks, _partition).persist(StorageLevel.MEMORY_AND_DISK), met
        if on_progress is not None:
            on_progress(Reached(level, found.states, found.edges, count, time.monotonic() - began))
        if most_states is not None and found.states >= most_states:
            return found
    return found


class _Expand:
    """The work of a task: a scenario, and its paths."""

    def __init__(self, data: dict[str, object]) -> None:
        self.data = data

    def __call__(self, paths: Iterable[bytes]) -> Iterator[Edge]:
        ordered = list(paths)
        if ordered:
            yield from expanded(Scenario.model_validate(self.data), ordered)


def _itself(path: bytes) -> bytes:
    return path


def _partition(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "big")


def _breaks(step: Edge) -> bool:
    return not step.digest


def _by_digest(step: Edge) -> tuple[bytes, bytes]:
    return step.digest, step.path


def _counterexample(scenario: Scenario, step: Edge) -> Counterexample:
    path = tuple(step.path)
    return Counterexample(path, tuple(labels_of(scenario, path)), step.check, step.text)
