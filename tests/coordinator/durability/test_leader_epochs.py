"""Leader epochs of a node that keeps its data: each restart raises them, and new topics begin with the node's."""

from __future__ import annotations

from pathlib import Path

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.messages.cluster.metadata import MetadataRequest, MetadataResponse


async def epochs(app: App) -> dict[str, int]:
    answer = await app.runtime.submit(MetadataRequest(topics=None), Context(api_version=9)).answer()
    assert isinstance(answer, MetadataResponse)
    return {topic.name or "": topic.partitions[0].leader_epoch for topic in answer.topics}


async def test_a_restart_raises_all_leader_epochs_by_one(tmp_path: Path) -> None:
    found = []
    for count in (1, 2, 3):
        topics = tuple(InitialTopic(f"orders-{number}", 1) for number in range(count))
        async with App(Options(data=tmp_path, topics=topics, listen=False)) as app:
            found.append(await epochs(app))
    first, second, third = found
    assert set(second.values()) == {first["orders-0"] + 1}
    assert set(third.values()) == {first["orders-0"] + 2}
