"""Transforms in transactions: ``python -m conformance.clients.conform.transformer LIBRARY NAME=VALUE ...``.

It ends where its producer is fenced, and reads again from the committed offsets after a transaction that it aborted.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

from conformance.incident.member import python_settings

TOPIC, OUTPUT = os.environ["TOPIC"], os.environ["OUTPUT_TOPIC"]
SECONDS: Final = 10.0
stopping = threading.Event()


def rdkafka(settings: Mapping[str, str]) -> None:
    kafka: Any = importlib.import_module("confluent_kafka")
    settings, transactional_id = _split(settings)
    consumer = kafka.Consumer(settings)
    producer = kafka.Producer(
        {"bootstrap.servers": settings["bootstrap.servers"], "transactional.id": transactional_id}
    )
    producer.init_transactions(SECONDS)
    consumer.subscribe([TOPIC])
    while not stopping.is_set():
        messages = [each for each in consumer.consume(100, 0.2) if each.error() is None]
        if not messages:
            continue
        try:
            producer.begin_transaction()
            for message in messages:
                producer.produce(OUTPUT, message.value(), message.key())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)
        except kafka.KafkaException as problem:
            if problem.args[0].fatal():
                sys.exit(f"fatal: {problem}")
            producer.abort_transaction(SECONDS)
            for each in consumer.committed(consumer.assignment(), SECONDS):
                each.offset = max(each.offset, 0)
                consumer.seek(each)
    consumer.close()


def kafka_python(settings: Mapping[str, str]) -> None:
    kafka: Any = importlib.import_module("kafka")
    errors: Any = importlib.import_module("kafka.errors")
    settings, transactional_id = _split(settings)
    consumer = kafka.KafkaConsumer(TOPIC, **python_settings(settings))
    producer = kafka.KafkaProducer(bootstrap_servers=settings["bootstrap.servers"], transactional_id=transactional_id)
    producer.init_transactions()
    while not stopping.is_set():
        got = consumer.poll(timeout_ms=200)
        if not got:
            continue
        try:
            producer.begin_transaction()
            for records in got.values():
                for record in records:
                    producer.send(OUTPUT, record.value)
            ends = {each: kafka.OffsetAndMetadata(records[-1].offset + 1, "", -1) for each, records in got.items()}
            producer.send_offsets_to_transaction(ends, consumer.config["group_id"])
            producer.commit_transaction()
        except errors.ProducerFencedError as problem:
            sys.exit(f"fenced: {problem}")
        except errors.KafkaError:
            producer.abort_transaction()
            for each in consumer.assignment():
                consumer.seek(each, consumer.committed(each) or 0)
    consumer.close()


def aiokafka(settings: Mapping[str, str]) -> None:
    kafka: Any = importlib.import_module("aiokafka")
    errors: Any = importlib.import_module("aiokafka.errors")
    settings, transactional_id = _split(settings)

    async def transform() -> None:
        consumer = kafka.AIOKafkaConsumer(TOPIC, **python_settings(settings))
        producer = kafka.AIOKafkaProducer(
            bootstrap_servers=settings["bootstrap.servers"], transactional_id=transactional_id
        )
        await consumer.start()
        await producer.start()
        while not stopping.is_set():
            got = await consumer.getmany(timeout_ms=200)
            if not got:
                continue
            try:
                async with producer.transaction():
                    for records in got.values():
                        for record in records:
                            await producer.send(OUTPUT, record.value)
                    ends = {each: records[-1].offset + 1 for each, records in got.items()}
                    await producer.send_offsets_to_transaction(ends, settings["group.id"])
            except errors.ProducerFenced as problem:
                sys.exit(f"fenced: {problem}")
            except errors.KafkaError:
                for each in consumer.assignment():
                    consumer.seek(each, await consumer.committed(each) or 0)
        await producer.stop()
        await consumer.stop()

    asyncio.run(transform())


def _split(settings: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Settings of the consumer, and the transactional id."""
    of_consumer = {name: value for name, value in settings.items() if name not in ("transactional.id", "processed")}
    return of_consumer | {"enable.auto.commit": "false"}, settings["transactional.id"]


LIBRARIES: Final = {"rdkafka": rdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}


def main() -> None:
    """The command line."""
    library, *pairs = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    LIBRARIES[library](dict(pair.split("=", 1) for pair in pairs))


if __name__ == "__main__":
    main()
