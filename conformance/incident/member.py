"""One consumer as a process: ``python -m conformance.incident.member LIBRARY TOPICS NAME=VALUE ...``.

Settings have Kafka's names, whatever the library calls them; ``logging`` is a layout of Python's. It polls until
SIGTERM and then closes; a line on standard input makes its handler slow (``sleep 20``) or changes its topics
(``subscribe a,b``). Without auto commit it commits what it got before it polls again. With ``processed=true`` it prints
each record, as ``rejoin conform-client`` reads it. With ``batch=N``, librdkafka's messages
are taken N at a time.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

prints_records = threading.Event()
asked: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
stopping = threading.Event()
LOG: Final = logging.getLogger("handler")
_TRUTHS: Final = {"true": True, "false": False}


def _read_input() -> None:
    for line in sys.stdin:
        asked.put(line.split())


def _obey(subscribe: Callable[[list[str]], object]) -> None:
    while not asked.empty():
        word, value = asked.get()
        if word == "sleep":
            time.sleep(float(value))
        else:
            subscribe(value.split(","))


def _process(topic: str, partition: int, offset: int) -> None:
    if prints_records.is_set():
        print("processed", topic, partition, offset, flush=True)


def _commits(settings: dict[str, str]) -> bool:
    return settings.get("enable.auto.commit") == "false"


def _commit(commit: Callable[[], object]) -> None:
    try:
        commit()
    except Exception:
        LOG.exception("cannot commit")


def rdkafka(topics: list[str], settings: dict[str, str]) -> None:
    kafka: Any = importlib.import_module("confluent_kafka")
    logger = {"logger": logging.getLogger("consumer")} if logging.root.handlers else {}
    batch = int(settings.pop("batch", 0))
    consumer = kafka.Consumer(settings, **logger)
    consumer.subscribe(topics)
    while batch and not stopping.is_set():
        for message in consumer.consume(batch, 3.0):
            _process(message.topic(), message.partition(), message.offset())
    while not stopping.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is not None:
            LOG.error("consumer error: %s", message.error())
            if message.error().fatal():
                sys.exit(f"fatal: {message.error()}")
        elif message is not None:
            _process(message.topic(), message.partition(), message.offset())
        _obey(consumer.subscribe)
        if message is not None and message.error() is None and _commits(settings):
            _commit(lambda: consumer.commit(asynchronous=False))
    consumer.close()


def python_settings(settings: Mapping[str, str], assignors: Callable[[str], object] = str) -> dict[str, Any]:
    """Settings as Python's libraries call them: underscores, numbers as numbers."""
    made: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "partition.assignment.strategy":
            made["partition_assignment_strategy"] = [assignors(each) for each in value.split(",")]
        else:
            made[name.replace(".", "_")] = int(value) if value.isdigit() else _TRUTHS.get(value, value)
    return made


def kafka_python(topics: list[str], settings: dict[str, str]) -> None:
    kafka: Any = importlib.import_module("kafka")

    def assignor(name: str) -> object:
        module: Any = importlib.import_module(f"kafka.coordinator.assignors.{name}")
        return {
            "range": lambda: module.RangePartitionAssignor,
            "roundrobin": lambda: module.RoundRobinPartitionAssignor,
        }[name]()

    consumer = kafka.KafkaConsumer(*topics, **python_settings(settings, assignor))
    while not stopping.is_set():
        got = consumer.poll(timeout_ms=200)
        for record in itertools.chain.from_iterable(got.values()):
            _process(record.topic, record.partition, record.offset)
        _obey(lambda names: consumer.subscribe(topics=names))
        if got and _commits(settings):
            _commit(consumer.commit)
    consumer.close()


def aiokafka(topics: list[str], settings: dict[str, str]) -> None:
    kafka: Any = importlib.import_module("aiokafka")

    def assignor(name: str) -> object:
        module: Any = importlib.import_module(f"aiokafka.coordinator.assignors.{name}")
        return {
            "range": lambda: module.RangePartitionAssignor,
            "roundrobin": lambda: module.RoundRobinPartitionAssignor,
        }[name]()

    async def consume() -> None:
        consumer = kafka.AIOKafkaConsumer(*topics, **python_settings(settings, assignor))
        await consumer.start()
        try:
            while not stopping.is_set():
                got = await consumer.getmany(timeout_ms=200)
                for record in itertools.chain.from_iterable(got.values()):
                    _process(record.topic, record.partition, record.offset)
                # On another thread: what is slow is the handler, and not the event loop with its heartbeats.
                await asyncio.to_thread(_obey, lambda names: consumer.subscribe(topics=names))
                if got and _commits(settings):
                    try:
                        await consumer.commit()
                    except Exception:
                        LOG.exception("cannot commit")
        finally:
            await consumer.stop()

    asyncio.run(consume())


def own(topics: list[str], settings: dict[str, str]) -> None:
    rejoin: Any = importlib.import_module("rejoin")

    async def consume() -> None:
        async with rejoin.Consumer(*topics, **python_settings(settings, str)) as consumer:
            while not stopping.is_set():
                for record in await consumer.poll(200):
                    _process(record.topic, record.partition, record.offset)

    asyncio.run(consume())


LIBRARIES: Final = {"rdkafka": rdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka, "rejoin": own}


def main() -> None:
    library, topics, *pairs = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_read_input, daemon=True).start()
    settings = dict(pair.split("=", 1) for pair in pairs)
    if settings.pop("processed", "") == "true":
        prints_records.set()
    if "logging" in settings:
        logging.basicConfig(level=logging.INFO, format=settings.pop("logging"))
    LIBRARIES[library](topics.split(","), settings)


if __name__ == "__main__":
    main()
