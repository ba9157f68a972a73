"""Transactional producers of real clients: commits, aborts, offsets, zombies, and readers of committed records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import InvalidProducerEpochError
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from rejoin.coordinator.testing import running_in_thread

SETTINGS = {"group.initial.rebalance.delay.ms": 0}
TOPICS_OF_TESTS = ("-zombies", "-open")
ROUNDS = 3
PATIENCE_S = 10.0


@pytest.fixture(scope="module")
def bootstrap_servers() -> Iterator[str]:
    names = ("confluent", "aiokafka", "kafka-python")
    topics = {f"{name}{suffix}": 1 for name in names for suffix in ("", *TOPICS_OF_TESTS)}
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
            await producer.send_offsets_to_transaction({AioTopicPartition("aiokafka", 0): 1_000}, "aiokafka")
            await producer.abort_transaction()
    finally:
        await producer.stop()
    assert read(bootstrap_servers, "aiokafka") == [value(number, commits=True) for number in range(ROUNDS)]
    assert committed(bootstrap_servers, "aiokafka") == ROUNDS - 1


# --- zombies


def confluent_zombie(bootstrap_servers: str, topic: str) -> None:
    """A producer writes, is replaced by another with its transactional id, and goes on."""
    settings = {"bootstrap.servers": bootstrap_servers, "transactional.id": topic, "log_level": 0}
    zombie, successor = Producer(settings), Producer(settings)
    zombie.init_transactions(PATIENCE_S)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie, before")
    zombie.flush(PATIENCE_S)
    successor.init_transactions(PATIENCE_S)
    successor.begin_transaction()
    successor.produce(topic, b"successor")
    successor.commit_transaction(PATIENCE_S)
    zombie.produce(topic, b"zombie, after")
    with pytest.raises(KafkaException) as raised:
        zombie.commit_transaction(PATIENCE_S)
    error = raised.value.args[0]
    assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)


def kafka_python_zombie(bootstrap_servers: str, topic: str) -> None:
    zombie = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=topic)
    successor = KafkaProducer(bootstrap_servers=bootstrap_servers, transactional_id=topic)
    zombie.init_transactions()
    zombie.begin_transaction()
    zombie.send(topic, b"zombie, before").get(PATIENCE_S)
    successor.init_transactions()
    successor.begin_transaction()
    successor.send(topic, b"successor").get(PATIENCE_S)
    successor.commit_transaction()
    with pytest.raises(InvalidProducerEpochError):
        zombie.send(topic, b"zombie, after").get(PATIENCE_S)
    # It asks for a new epoch by itself, and learns from the answer that it is fenced.
    deadline = time.monotonic() + PATIENCE_S
    while "ProducerFencedError" not in error_of_abort(zombie):
        assert time.monotonic() < deadline, "it does not learn that it is fenced"
        time.sleep(0.01)
    for producer in (zombie, successor):
        producer.close(timeout=1)


def error_of_abort(producer: KafkaProducer) -> str:
    with pytest.raises(KafkaPythonError) as raised:
        producer.abort_transaction()
    return str(raised.value)


def aiokafka_zombie(bootstrap_servers: str, topic: str) -> None:
    async def live() -> None:
        settings = {"bootstrap_servers": bootstrap_servers, "transactional_id": topic}
        zombie, successor = AIOKafkaProducer(**settings), AIOKafkaProducer(**settings)
        await zombie.start()
        await zombie.begin_transaction()
        await zombie.send_and_wait(topic, b"zombie, before")
        await successor.start()
        async with successor.transaction():
            await successor.send_and_wait(topic, b"successor")
        with pytest.raises(ProducerFenced):
            await zombie.send_and_wait(topic, b"zombie, after")
        with pytest.raises(ProducerFenced):
            await zombie.commit_transaction()
        await successor.stop()
        with suppress(ProducerFenced):
            await zombie.stop()

    asyncio.run(live())


@pytest.mark.parametrize(
    ("library", "live"),
    [("confluent", confluent_zombie), ("aiokafka", aiokafka_zombie), ("kafka-python", kafka_python_zombie)],
    ids=["confluent", "aiokafka", "kafka-python"],
)
def test_a_zombie_is_fenced_and_none_of_its_records_is_committed(
    bootstrap_servers: str, library: str, live: Callable[[str, str], None]
) -> None:
    topic = f"{library}-zombies"
    live(bootstrap_servers, topic)
    assert read(bootstrap_servers, topic, 1) == [b"successor"]
    # A record and a marker of each: what the zombie wrote first was aborted, and its second record was refused.
    assert ends(bootstrap_servers, topic) == (4, 4)


# --- readers


class Reader(Protocol):
    """A reader of committed records from the beginning of a topic's only partition."""

    def read(self, seconds: float) -> list[bytes]:
        """What comes within a time."""

    def end(self) -> int:
        """Where the partition ends for it."""

    def close(self) -> None:
        """End it."""


class KafkaPythonReader:
    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._partition = KafkaTopicPartition(topic, 0)
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers, isolation_level="read_committed", fetch_max_wait_ms=50
        )
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning()

    def read(self, seconds: float) -> list[bytes]:
        return [each.value for each in self._consumer.poll(int(seconds * 1_000)).get(self._partition, ())]

    def end(self) -> int:
        return int(self._consumer.end_offsets([self._partition])[self._partition])

    def close(self) -> None:
        self._consumer.close()


class AioKafkaReader:
    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._partition = AioTopicPartition(topic, 0)
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._started(bootstrap_servers))

    async def _started(self, bootstrap_servers: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers, isolation_level="read_committed", fetch_max_wait_ms=50
        )
        await consumer.start()
        consumer.assign([self._partition])
        await consumer.seek_to_beginning()
        return consumer

    def read(self, seconds: float) -> list[bytes]:
        found = self._runner.run(self._consumer.getmany(timeout_ms=int(seconds * 1_000)))
        return [each.value for each in found.get(self._partition, ())]

    def end(self) -> int:
        return int(self._runner.run(self._consumer.end_offsets([self._partition]))[self._partition])

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


@pytest.mark.parametrize(
    ("library", "reads"),
    [("aiokafka", AioKafkaReader), ("kafka-python", KafkaPythonReader)],
    ids=["aiokafka", "kafka-python"],
)
def test_a_reader_of_committed_records_stops_at_an_open_transaction(
    bootstrap_servers: str, library: str, reads: Callable[[str, str], Reader]
) -> None:
    topic = f"{library}-open"
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)

    def begin(record: bytes) -> None:
        producer.begin_transaction()
        producer.produce(topic, record)
        assert producer.flush(PATIENCE_S) == 0

    begin(b"committed")
    producer.commit_transaction(PATIENCE_S)
    begin(b"aborted")
    reader = reads(bootstrap_servers, topic)
    assert reader.read(PATIENCE_S) == [b"committed"]
    assert reader.read(0.2) == [], "a transaction is open"
    producer.abort_transaction(PATIENCE_S)
    assert reader.read(0.2) == [], "it was aborted"
    begin(b"committed, too")
    producer.commit_transaction(PATIENCE_S)
    assert reader.read(PATIENCE_S) == [b"committed, too"]
    reader.close()


def ends(bootstrap_servers: str, topic: str) -> tuple[int, int]:
    """The end of a topic's only partition, for readers of committed records and of all."""
    found = []
    for isolation in ("read_committed", "read_uncommitted"):
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": topic, "isolation.level": isolation}
        consumer = Consumer(settings)
        found.append(consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)[1])
        consumer.close()
    return found[0], found[1]


def read(bootstrap_servers: str, topic: str, count: int = ROUNDS) -> list[bytes]:
    """The committed records of a topic, as many as there must be."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": f"{topic}-reader",
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() or b"" for message in consumer.consume(count, PATIENCE_S)]
    consumer.close()
    return found


def committed(bootstrap_servers: str, group: str) -> int:
    """The committed offset of a group, whose topic has its name."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    (partition,) = consumer.committed([TopicPartition(group, 0)], PATIENCE_S)
    consumer.close()
    return int(partition.offset)
