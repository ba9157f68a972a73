"""Compaction when a test wants it, as the recipe of docs/testing.md says."""

from __future__ import annotations

from rejoin.coordinator.testing import running
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


async def test_a_compacted_topic_keeps_the_last_record_of_each_key() -> None:
    compacted = CreatableTopicConfig(name="cleanup.policy", value="compact")
    topic = CreatableTopic(name="prices", num_partitions=1, replication_factor=-1, assignments=(), configs=(compacted,))
    async with running(clock="virtual") as coordinator:
        await coordinator.call(CreateTopicsRequest(topics=(topic,)))
        await coordinator.produce("prices", 0, [("a", "1"), ("b", "2"), ("a", "3")])
        await coordinator.produce("prices", 0, [("b", "newest batch")])
        assert len(await coordinator.records("prices")) == 4
        await coordinator.advance(15_000)
        left = [(each.offset, each.key, each.value) for each in await coordinator.records("prices")]
    assert left == [(1, b"b", b"2"), (2, b"a", b"3"), (3, b"b", b"newest batch")]
