"""Members of a share group over restarts and failover: what they are done with stays done."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicIdPartition
from tests.coordinator.core.share.several_nodes import ACCEPT, RELEASE
from tests.coordinator.durability.members import SETTINGS
from tests.coordinator.durability.share.requests import acknowledge, fetch, find, initialize, produce, topic_id
from tests.coordinator.leadership.nodes import Nodes, until

TOPIC: Final = "jobs"
ONE_STATE_PARTITION: Final[dict[str, Any]] = {"share_coordinator_state_topic_num_partitions": 1}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_acknowledgements_and_delivery_counts_outlive_a_restart(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store: dict[str, Any] = {"data": tmp_path / "data"}
    if kind == "postgres":
        store = {"store": request.getfixturevalue("postgres")}
    settings = SETTINGS.model_copy(update=ONE_STATE_PARTITION)
    options = Options(settings=settings, topics=(InitialTopic(TOPIC, 1),), listen=False, **store)
    async with App(options) as app:
        await find(app, TOPIC)
        await initialize(app, TOPIC)
        await produce(app, TOPIC, "a", "b", "c")
        assert await fetch(app, TOPIC) == [(0, 2, 1)]
        assert await acknowledge(app, TOPIC, 1, [(0, ACCEPT), (1, RELEASE)]) is ErrorCode.NONE
    async with App(options) as app:
        assert await fetch(app, TOPIC) == [(1, 1, 2), (2, 2, 1)]


async def test_locks_outlive_the_coordinator_of_their_state_and_end_with_their_leader(
    postgres: str,
) -> None:
    nodes = Nodes(postgres)
    names = [f"jobs-{number}" for number in range(6)]
    try:
        topics = tuple(InitialTopic(name, 1) for name in names)
        first = await nodes.start(1, topics=topics, **ONE_STATE_PARTITION)
        await nodes.start(2, topics=topics, **ONE_STATE_PARTITION)
        await nodes.until_balanced()
        coordinator = await find(first, names[0])
        known = [app.runtime.node._topics.by_name for app in nodes.apps.values()]
        await until(lambda: all(set(names) <= set(each) for each in known), "a topic did not reach every node")
        topic = next(name for name in names if leader(nodes, name) != coordinator)
        leading = nodes.apps[leader(nodes, topic)]
        await initialize(nodes.apps[coordinator], topic)
        await produce(leading, topic, "a", "b", "c", "d")
        assert await fetch(leading, topic) == [(0, 3, 1)]
        assert await acknowledge(leading, topic, 1, [(0, ACCEPT)]) is ErrorCode.NONE
        await nodes.stop(coordinator)
        assert await acknowledge(leading, topic, 2, [(1, ACCEPT), (2, RELEASE)]) is ErrorCode.NONE
        await nodes.start(coordinator, **ONE_STATE_PARTITION)
        await nodes.stop(leader(nodes, topic))
        [left] = nodes.apps.values()
        assert await fetch(left, topic) == [(2, 2, 2), (3, 3, 1)]
    finally:
        await nodes.close()


def leader(nodes: Nodes, topic: str) -> int:
    """The node that leads the records of a topic."""
    node = next(iter(nodes.apps.values())).runtime.node
    found = TopicIdPartition(topic_id(next(iter(nodes.apps.values())), topic), 0, topic)
    return nodes.leading()[node._partitions.leased_by(found)]
