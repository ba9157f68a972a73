"""Walks the paths of free clients through Kafka's own coordinator: ``python -m conformance.explored [WORLD ...]``.

Prints the differences, and at the end a row for each world: how many paths there are to its depth, and how many steps
differ. With ``--record`` it walks the paths of ``tests/golden/explored-paths.jsonl`` and writes down Kafka's answers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Final

from conformance.explored.graph import graph_of
from conformance.explored.recording import record
from conformance.explored.walking import walked, worlds
from conformance.kafka.broker import class_path, kafka_version
from rejoin.simulation.explore.world import exploring_of, read_world

COLUMNS: Final = ("world", "depth", "states", "edges", "paths", "unanswered", "differences", "other deadlines")


def main() -> int:
    """Walk the worlds. Returns 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", type=Path, help="files of worlds with free clients; all without any")
    parser.add_argument("--depth", type=int, help="how many steps a path has; else as each world says")
    parser.add_argument("--record", action="store_true", help="record the paths that once differed")
    given = parser.parse_args()
    jars = asyncio.run(class_path())
    if given.record:
        record(jars)
        return 0
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    differs = False
    for world in given.worlds or worlds():
        row, differences = _row(world, given.depth, jars)
        rows.append(row)
        differs |= differences > 0
    print(f"Kafka {kafka_version()}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return int(differs)


def _row(world: Path, chosen_depth: int | None, jars: str) -> tuple[tuple[str, ...], int]:
    """Walk one world. Returns its row of the table, and the count of differences; progress goes to stderr."""
    began = time.monotonic()
    scenario = read_world(world)
    depth = chosen_depth or exploring_of(scenario).depth
    graph = graph_of(scenario, depth)
    print(f"{world.stem}: {graph.paths():,} paths, made in {time.monotonic() - began:.0f} s", file=sys.stderr)
    counts = {}
    for found in walked(graph, jars):
        if "paths" in found:
            counts = found
        else:
            print(f"{world.stem}: {' > '.join(found['path'])}\n    {found['problem']}", flush=True)
    print(f"{world.stem}: {counts['again']} walks again, {time.monotonic() - began:.0f} s", file=sys.stderr)
    numbers = (len(graph.states), graph.edges, graph.paths(), counts["unanswered"])
    results = (counts["differences"], counts["otherDeadlines"])
    return (world.stem, str(depth), *(f"{number:,}" for number in (*numbers, *results))), counts["differences"]


if __name__ == "__main__":
    sys.exit(main())
