"""Compaction on command, by the methods of the testing kit and over HTTP, and by time."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from rejoin.coordinator.testing import GroupCoordinator, OperationRefused, running
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest
from rejoin.transcript.player import differences, play

TOPICS = {"prices": 2, "trades": 1}
COMPACTED = {"log.cleanup.policy": "compact", "min.insync.replicas": 1}


async def write(coordinator: GroupCoordinator, topic: str) -> None:
    """A log of three batches in each partition, whose first is replaced."""
    partitions = (await coordinator.set_topic(topic, TOPICS[topic])).partitions
    for partition in range(partitions):
        for _ in range(3):
            await coordinator.produce(topic, partition, [("key", "value")])


async def offsets(coordinator: GroupCoordinator, topic: str) -> list[int]:
    return [each.offset for each in await coordinator.records(topic)]


async def add_topic(coordinator: GroupCoordinator, name: str, **configs: str) -> None:
    given = tuple(CreatableTopicConfig(name=each.replace("_", "."), value=value) for each, value in configs.items())
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=-1, assignments=(), configs=given)
    await coordinator.call(CreateTopicsRequest(topics=(topic,)))


@pytest.mark.parametrize("brokers", [1, 3])
async def test_the_logs_of_a_topic_are_compacted_on_command(brokers: int) -> None:
    async with running(
        clock="virtual", topics=TOPICS, brokers=brokers, settings=COMPACTED, socket=False
    ) as coordinator:
        for topic in TOPICS:
            await write(coordinator, topic)
        assert await coordinator.compact("prices") == ["prices"]
        assert await offsets(coordinator, "prices") == [1, 2] * 2
        assert await offsets(coordinator, "trades") == [0, 1, 2]
        assert await coordinator.compact() == ["prices", "trades"]
        assert await offsets(coordinator, "trades") == [1, 2]


async def test_a_command_compacts_what_is_not_dirty_enough_for_the_cleaner() -> None:
    settings = {**COMPACTED, "log.cleaner.min.cleanable.ratio": 1.0}
    async with running(clock="virtual", topics=TOPICS, settings=settings, socket=False) as coordinator:
        await write(coordinator, "trades")
        await coordinator.advance(86_400_000)
        assert await offsets(coordinator, "trades") == [0, 1, 2]
        await coordinator.compact("trades")
        assert await offsets(coordinator, "trades") == [1, 2]


async def test_a_command_leaves_what_kafkas_cleaner_would_leave() -> None:
    settings = {**COMPACTED, "log.cleaner.min.compaction.lag.ms": 60_000}
    async with running(clock="virtual", topics=TOPICS, settings=settings, socket=False) as coordinator:
        await write(coordinator, "trades")
        await coordinator.compact()
        assert await offsets(coordinator, "trades") == [0, 1, 2]


async def test_a_command_does_not_postpone_what_the_cleaner_does() -> None:
    async with running(clock="virtual", topics=TOPICS, settings=COMPACTED, socket=False) as coordinator:
        await write(coordinator, "prices")
        await coordinator.advance(14_999)
        await coordinator.compact("trades")
        assert await offsets(coordinator, "prices") == [0, 1, 2] * 2
        await coordinator.advance(1)
        assert await offsets(coordinator, "prices") == [1, 2] * 2


async def test_all_compacted_topics_are_those_of_kafka_but_for_that_of_offsets() -> None:
    async with running(clock="virtual", topics={"orders": 1}, socket=False) as coordinator:
        await add_topic(coordinator, "prices", cleanup_policy="compact,delete")
        producer = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        asked = asyncio.ensure_future(coordinator.call(producer))
        await coordinator.advance(1_000)
        await asked
        assert await coordinator.compact() == ["__transaction_state", "prices"]


REFUSED = [
    ("price", 404, "there is no topic 'price'; is it 'prices'?"),
    ("prices", 409, "topic 'prices' is not compacted; set its cleanup.policy to compact first"),
    ("clicks", 409, "the logs of 'clicks' are synthetic and never compacted; expected a topic with real logs"),
    (
        "__consumer_offsets",
        409,
        "'__consumer_offsets' is compacted by the store as it grows, never on command; expected another topic",
    ),
]


async def test_what_cannot_be_compacted_is_refused_in_one_sentence() -> None:
    async with running(clock="virtual", topics={"prices": 1}) as coordinator, aiohttp.ClientSession() as session:
        await coordinator.set_topic("clicks", 1, records_per_second=1.0)
        assert await coordinator.compact() == []
        for topic, status, said in REFUSED:
            with pytest.raises(OperationRefused) as refused:
                await coordinator.compact(topic)
            assert str(refused.value) == said
            url = f"{coordinator.url}/control/topics/compact"
            async with session.post(url, json={"topic": topic}) as answered:
                assert (answered.status, (await answered.json())["detail"]) == (status, said)


async def test_a_transcript_with_compactions_plays() -> None:
    async with running(clock="virtual", topics={"trades": 1}, socket=False) as coordinator:
        await add_topic(coordinator, "prices", cleanup_policy="compact")
        for topic in ("trades", "prices"):
            await coordinator.produce(topic, 0, [("key", "old")])
            await coordinator.produce(topic, 0, [("key", "new")])
            await coordinator.produce(topic, 0, [("key", "newest")])
        await coordinator.compact("prices")
        await coordinator.produce("prices", 0, [("key", "one more")])
        await coordinator.compact()
        await coordinator.produce("prices", 0, [("key", "another"), ("key", "and another")])
        await coordinator.advance(60_000)
        text = await coordinator.transcript()
    assert [line for line in text.splitlines() if line.startswith("compact")] == ["compact prices", "compact"]
    assert list(differences(play(text))) == []
