"""Paths of free clients beside Kafka: those on which Rejoin once differed, and the worlds that the docs list."""

from __future__ import annotations

import json
import re

import pytest

from conformance.explored.graph import graph_of
from conformance.explored.recording import RecordedPath, difference, recorded_paths
from conformance.explored.walking import worlds
from rejoin.simulation.explore.world import exploring_of, read_world, world_from
from tests import paths

DUPLICATES = """
topics: {t: {partitions: 2}}
groups: {g: {topics: [t], consumers: 0, session_timeout: 10s, max_poll_interval: 30s}}
explore: {depth: 3, faults: 0, free: {group: g, clients: 1, letters: [join v3, again], waits: [2s]}}
"""


@pytest.mark.parametrize("path", recorded_paths(), ids=lambda path: f"{path.world}: {' > '.join(path.labels)}")
def test_a_recorded_path_is_answered_as_by_kafka(path: RecordedPath) -> None:
    assert difference(path) is None


def test_the_docs_list_every_world_with_its_depth() -> None:
    text = (paths.ROOT / "docs" / "explore.md").read_text().split("## Beside Kafka")[1].split("## ")[0]
    listed = re.findall(r"^\| ([a-z-]+) \| (\d) \|", text, re.MULTILINE)
    assert listed == [(file.stem, str(exploring_of(read_world(file)).depth)) for file in worlds()]


def test_a_graph_has_every_path() -> None:
    graph = graph_of(world_from(DUPLICATES), 3)
    labels = [[edge["label"] for edge in json.loads(line)] for line in graph.states]
    assert labels[0] == ["free-0: join v3", "2000 ms pass"]
    assert labels[1] == ["free-0: join v3", "free-0: again", "2000 ms pass", "time passes: node-1"]
    # After a wait of 2 s another would pass the end of the join phase, which lasts 3 s.
    assert labels[4] == ["free-0: join v3", "free-0: again", "time passes: node-1"]
    assert graph.paths() == sum(map(len, labels[3:])) + len(labels[3])
