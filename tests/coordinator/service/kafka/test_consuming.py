"""A real consumer reads synthetic logs and ``__consumer_offsets`` over the listener."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from tests.coordinator.service.conftest import Serve
from tests.coordinator.service.helpers import Harness, create_topics

RATE = [{"name": "emulator.records.per.second", "value": "100"}]


@asynccontextmanager
async def consumer(node: Harness, *partitions: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer with these partitions, from their beginning on."""
    (listener,) = node.app.endpoints
    consumer = AIOKafkaConsumer(bootstrap_servers=f"127.0.0.1:{listener.port}", group_id="g", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        yield consumer
    finally:
        await consumer.stop()


async def test_synthetic_records_are_consumed(serve: Serve) -> None:
    node = await serve({"kafka_port": 0})
    await node.call("CreateTopics", create_topics("orders", 1, configs=RATE))
    began = node.clock.now()
    node.clock.advance(2_500)
    async with consumer(node, TopicPartition("orders", 0)) as reading:
        records = [await reading.getone() for _ in range(250)]
    assert [record.offset for record in records] == list(range(250))
    assert [record.value for record in records[:2]] == [b"orders-0@0", b"orders-0@1"]
    assert [record.timestamp - began for record in records] == list(range(0, 2_500, 10))


async def test_commits_are_consumed_from_the_offsets_topic(serve: Serve) -> None:
    node = await serve({"kafka_port": 0}, offsets_topic_num_partitions=1)
    await node.call("CreateTopics", create_topics("orders", 1, configs=RATE))
    partition = TopicPartition(OFFSETS_TOPIC, 0)
    async with consumer(node, TopicPartition("orders", 0), partition) as reading:
        await reading.commit({TopicPartition("orders", 0): 7})
        record = await reading.getone(partition)
    assert (record.offset, record.key) == (0, b"\0\1\0\1g\0\6orders\0\0\0\0")
    assert record.value is not None
    assert record.value[:10] == b"\0\4" + (7).to_bytes(8, "big")
