"""Transactional producers of real clients: commits, aborts, offsets, and readers of committed records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.structs import OffsetAndMetadata

from rejoin.coordinator.testing import running_in_thread

SETTINGS = {"group.initial.rebalance.delay.ms": 0}
ROUNDS = 3
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def bootstrap_servers() -> Iterator[str]:
    topics = {"confluent": 1, "aiokafka": 1, "kafka-python": 1}
    with running_in_thread(topics=topics, settings=SETTINGS) as coordinator:
        yield coordinator.bootstrap_servers


def value(number: int, *, commits: bool) -> bytes:
    return f"{number} {'committed' if commits else 'aborted'}".encode()


def confluent(bootstrap_servers: str) -> None:
    """Each round a transaction that commits a record and an offset, and one that aborts both."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "confluent"})
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "confluent"})
    producer.init_transactions(PATIENCE_S)
    for number in range(ROUNDS):
        for commits in (True, False):
            producer.begin_transaction()
            producer.produce("confluent", value(number, commits=commits), partition=0)
            offset = TopicPartition("confluent", 0, number if commits else 1_000)
            producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), PATIENCE_S)
            producer.flush(PATIENCE_S)
            end = producer.commit_transaction if commits else producer.abort_transaction
            end(PATIENCE_S)
    consumer.close()


def kafka_python(bootstrap_servers: str) -> None:
    """As with confluent, but with the group's id instead of its metadata."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id="kafka-python")
    producer.init_transactions()
    for number in range(ROUNDS):
        for commits in (True, False):
            producer.begin_transaction()
            producer.send("kafka-python", value(number, commits=commits)).get(PATIENCE_S)
            offset = OffsetAndMetadata(number if commits else 1_000, "", -1)
            producer.send_offsets_to_transaction({KafkaTopicPartition("kafka-python", 0): offset}, "kafka-python")
            end = producer.commit_transaction if commits else producer.abort_transaction
            end()
    producer.close()


@pytest.mark.parametrize(
    ("topic", "produce"), [("confluent", confluent), ("kafka-python", kafka_python)], ids=["confluent", "kafka-python"]
)
def test_records_and_offsets_count_when_their_transaction_does(
    bootstrap_servers: str, topic: str, produce: Callable[[str], None]
) -> None:
    produce(bootstrap_servers)
    assert read(bootstrap_servers, topic) == [value(number, commits=True) for number in range(ROUNDS)]
    assert committed(bootstrap_servers, topic) == ROUNDS - 1


async def test_aiokafka(bootstrap_servers: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id="aiokafka")
    await producer.start()
    try:
        for number in range(ROUNDS):
            async with producer.transaction():
                await producer.send_and_wait("aiokafka", value(number, commits=True))
                offsets = {AioTopicPartition("aiokafka", 0): number}
                await producer.send_offsets_to_transaction(offsets, "aiokafka")
            await producer.begin_transaction()
            await producer.send_and_wait("aiokafka", value(number, commits=False))
            await producer.abort_transaction()
    finally:
        await producer.stop()
    assert read(bootstrap_servers, "aiokafka") == [value(number, commits=True) for number in range(ROUNDS)]
    assert committed(bootstrap_servers, "aiokafka") == ROUNDS - 1


def read(bootstrap_servers: str, topic: str) -> list[bytes]:
    """The committed records of a topic, as many as there must be."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": f"{topic}-reader",
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() or b"" for message in consumer.consume(ROUNDS, PATIENCE_S)]
    consumer.close()
    return found


def committed(bootstrap_servers: str, group: str) -> int:
    """The committed offset of a group, whose topic has its name."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    (partition,) = consumer.committed([TopicPartition(group, 0)], PATIENCE_S)
    consumer.close()
    return int(partition.offset)
