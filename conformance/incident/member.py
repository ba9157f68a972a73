"""One consumer as a process: ``python -m conformance.incident.member LIBRARY TOPICS NAME=VALUE ...``.

Settings have Kafka's names, whatever the library calls them. It polls until SIGTERM and then closes; a line on standard
input makes its handler slow (``sleep 20``) or changes its topics (``subscribe a,b``).
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

asked: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
stopping = threading.Event()


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


def rdkafka(topics: list[str], settings: dict[str, str]) -> None:
    kafka: Any = importlib.import_module("confluent_kafka")
    consumer = kafka.Consumer(settings)
    consumer.subscribe(topics)
    while not stopping.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is not None and message.error().fatal():
            sys.exit(f"fatal: {message.error()}")
        _obey(consumer.subscribe)
    consumer.close()


def _python_settings(settings: dict[str, str], assignors: Callable[[str], object]) -> dict[str, Any]:
    """Settings as Python's libraries call them: underscores, numbers as numbers."""
    made: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "partition.assignment.strategy":
            made["partition_assignment_strategy"] = [assignors(each) for each in value.split(",")]
        else:
            made[name.replace(".", "_")] = int(value) if value.isdigit() else value
    return made


def kafka_python(topics: list[str], settings: dict[str, str]) -> None:
    kafka: Any = importlib.import_module("kafka")

    def assignor(name: str) -> object:
        module: Any = importlib.import_module(f"kafka.coordinator.assignors.{name}")
        return {
            "range": lambda: module.RangePartitionAssignor,
            "roundrobin": lambda: module.RoundRobinPartitionAssignor,
        }[name]()

    consumer = kafka.KafkaConsumer(*topics, **_python_settings(settings, assignor))
    while not stopping.is_set():
        consumer.poll(timeout_ms=200)
        _obey(lambda names: consumer.subscribe(topics=names))
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
        consumer = kafka.AIOKafkaConsumer(*topics, **_python_settings(settings, assignor))
        await consumer.start()
        try:
            while not stopping.is_set():
                await consumer.getmany(timeout_ms=200)
                _obey(lambda names: consumer.subscribe(topics=names))
        finally:
            await consumer.stop()

    asyncio.run(consume())


LIBRARIES: Final = {"rdkafka": rdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}


def main() -> None:
    library, topics, *pairs = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_read_input, daemon=True).start()
    LIBRARIES[library](topics.split(","), dict(pair.split("=", 1) for pair in pairs))


if __name__ == "__main__":
    main()
