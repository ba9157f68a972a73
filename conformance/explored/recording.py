"""Recorded paths: sequences of free clients on which Rejoin once differed, with what Kafka answers.

The paths lie in ``tests/golden/explored-paths.jsonl``, one a line: the name of the world, the labels of the steps, and
for each step Kafka's answers, the group as it is described, and the time to the next timer. A new path has no answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from conformance.explored.graph import graph_of_paths
from conformance.explored.walking import HERE, WORLDS, walked
from rejoin.simulation.explore.world import read_world
from rejoin.simulation.scenario.model import Scenario

RECORDED: Final = HERE.parents[1] / "tests" / "golden" / "explored-paths.jsonl"


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """One path, with what Kafka answered at each step."""

    world: str
    labels: tuple[str, ...]
    kafka: tuple[dict[str, Any], ...]


def recorded_paths() -> list[RecordedPath]:
    """All recorded paths."""
    lines = map(json.loads, RECORDED.read_text().splitlines())
    return [RecordedPath(each["world"], tuple(each["path"]), tuple(each.get("kafka", ()))) for each in lines]


def record(jars: str) -> None:
    """Walk the recorded paths through Kafka, and write down its answers."""
    lines = []
    for world, group in groupby(sorted(recorded_paths(), key=attrgetter("world")), attrgetter("world")):
        paths = [path.labels for path in group]
        graph = graph_of_paths(_scenario(world), paths)
        for labels, kafka in zip(paths, walked(graph, jars, records=True), strict=True):
            lines.append(json.dumps({"world": world, "path": labels, "kafka": kafka}))
    RECORDED.write_text("".join(f"{line}\n" for line in lines))


def _scenario(world: str) -> Scenario:
    return read_world(WORLDS / f"{world}.yaml")


def difference(path: RecordedPath) -> str | None:
    """How Rejoin differs from Kafka on a recorded path; none if it does not."""
    graph = graph_of_paths(_scenario(path.world), [path.labels])
    for label, line, found in zip(path.labels, graph.states, path.kafka, strict=True):
        (edge,) = json.loads(line)
        answers = [[sender, index, text] for sender, index, _, text in edge["answers"]]
        required = [[sender, index, text] for sender, index, is_optional, text in edge["answers"] if not is_optional]
        if any(each not in answers for each in found["answers"]) or any(
            each not in found["answers"] for each in required
        ):
            return f"{label}: answered {answers}, Kafka {found['answers']}"
        if (edge["state"], edge["deadline"]) != (found["state"], found["deadline"]):
            return f"{label}: {edge['state']}, {edge['deadline']} ms; Kafka {found['state']}, {found['deadline']} ms"
    return None
