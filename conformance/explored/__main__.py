"""Walks the paths of free clients through Kafka's own coordinator: ``python -m conformance.explored [WORLD ...]``.

Prints, for each world, how many paths there are to its depth, and how many answers differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from conformance.explored.graph import PathGraph, graph_of
from conformance.kafka.broker import class_path, kafka_version
from rejoin.simulation.explore.world import exploring_of, read_world

HERE: Final = Path(__file__).parent
WORLDS: Final = HERE / "worlds"
JAVA: Final = ("java", "-Xmx1g", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR")
SECONDS: Final = 3_600


def main() -> int:
    """Walk the worlds. Returns 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", type=Path, help="files of worlds with free clients; all without any")
    parser.add_argument("--depth", type=int, help="how many steps a path has; else as each world says")
    given = parser.parse_args()
    jars = asyncio.run(class_path())
    differs = False
    for world in given.worlds or sorted(WORLDS.glob("*.yaml")):
        scenario = read_world(world)
        depth = given.depth or exploring_of(scenario).depth
        graph = graph_of(scenario, depth)
        for found in walked(graph, jars):
            if "paths" not in found:
                print(f"{world.stem}: {' > '.join(found['path'])}\n    {found['problem']}", flush=True)
                continue
            print(
                f"{world.stem}: depth {depth}, {len(graph.states):,} states, {graph.edges:,} edges, "
                f"{graph.paths():,} paths; Kafka {kafka_version()}: {found['paths']:,} paths agree, "
                f"{found['differences']:,} steps differ, {found['unanswered']:,} replaced requests without an answer, "
                f"{found['again']:,} walked again, {found['sameDeadlines']:,} equal and "
                f"{found['otherDeadlines']:,} other deadlines",
                flush=True,
            )
            differs |= bool(found["differences"])
    return int(differs)


def walked(graph: PathGraph, jars: str) -> Iterator[dict[str, Any]]:
    """The differences of a graph's paths, and at the end the counts."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        file = Path(folder) / "paths.jsonl"
        with file.open("w") as out:
            out.writelines(f"{line}\n" for line in graph.lines())
        command = (*JAVA, "-cp", jars, str(HERE / "Walk.java"), str(file))
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, text=True)
    if done.returncode:
        raise SystemExit(f"Walk.java ended with {done.returncode}: {done.stderr[-2000:]}")
    yield from map(json.loads, done.stdout.splitlines())


if __name__ == "__main__":
    sys.exit(main())
