"""`rejoin consume --transform-to --exactly-once`, killed with kill -9 again and again: each input becomes one record.

So is the node. ``REJOIN_KILL_TRANSFORM_ROUNDS`` says how often, ``REJOIN_KILL_SEED`` draws which process is killed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.coordinator.durability.producers import COMING_BACK, servers
from tests.coordinator.durability.service import PATIENCE, Service, stop_all

ROUNDS = int(os.environ.get("REJOIN_KILL_TRANSFORM_ROUNDS", "2"))
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
PROCESSES = 2
PROGRESS = 40
"""So many records are written between two kills."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
SYNTHETIC = "clicks"
"""Grows by itself, where orders are produced."""


class Copies:
    """The records that were written, as a consumer of committed records finds them."""

    def __init__(self, port: int) -> None:
        self.sources: dict[str, list[int]] = {}
        """The offsets that were copied of each partition, in the order of their copies."""
        self.count = 0
        settings = {**servers(port), **COMING_BACK, "group.id": "reader", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition("copies", 0, OFFSET_BEGINNING)])

    def read_until(self, reached: Callable[[], bool], problem: Callable[[], str]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            assert time.monotonic() < deadline, f"{self}\n{problem()}"
            messages: list[Any] = self._consumer.consume(100, 0.1)
            for message in messages:
                if message.error() is None:
                    partition, _, offset = dict(message.headers())["source"].decode().partition("@")
                    self.sources.setdefault(partition, []).append(int(offset))
                    self.count += 1

    def of(self, partition: str) -> int:
        return len(self.sources.get(partition, ()))

    def check(self) -> None:
        """Each record that was read was written once, in order."""
        for partition, offsets in self.sources.items():
            assert offsets == list(range(len(offsets))), partition

    def close(self) -> None:
        self._consumer.close()

    def __str__(self) -> str:
        return f"{self.count} copies, up to { ({name: offsets[-1] for name, offsets in self.sources.items()}) }"


def command(service: Service, number: int) -> list[str]:
    """A process with one static member. Every other one has transactions over several polls."""
    interval = ["--commit-interval", "300ms"] if number % 2 else []
    return [
        sys.executable, "-m", "rejoin", "consume", "--bootstrap", f"127.0.0.1:{service.kafka_port}", "--group", "g",
        "--topic", f"orders,{SYNTHETIC}", "--transform-to", "copies", "--exactly-once", "--static",
        "--first", str(number), "--max-poll-records", "10", "--processing-time", "1ms", "--log-level", "error",
        "-c", "retry.backoff.max.ms=100", "-c", "linger.ms=0", "-c", "transaction.timeout.ms=600000", *interval,
    ]  # fmt: skip


def test_each_input_becomes_one_record(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    store = ["--data", str(tmp_path / "data"), "--topic", f"{SYNTHETIC}:2:20", "--topic", "copies:1"]
    service = Service(tmp_path, store, SETTINGS, "orders:2")
    service.start()
    orders = (ROUNDS + 1) * PROGRESS
    producer = Producer(servers(service.kafka_port))
    for number in range(orders):
        producer.produce("orders", str(number), partition=number % 2)
    assert producer.flush(PATIENCE) == 0
    processes: list[subprocess.Popen[bytes]] = []
    copies = Copies(service.kafka_port)

    def start(number: int) -> subprocess.Popen[bytes]:
        return service.spawn(f"consumer-{number}", command(service, number + 1))

    def said() -> str:
        return "\n".join(service.said(f"consumer-{number}") for number in range(PROCESSES))

    try:
        processes += [start(number) for number in range(PROCESSES)]
        for done in range(ROUNDS):
            goal = copies.count + PROGRESS
            copies.read_until(lambda goal=goal: copies.count >= goal, said)  # type: ignore[misc]
            if done % 4 == 1:
                service.kill()
                service.start()
                continue
            killed = dice.randrange(PROCESSES)
            processes[killed].kill()
            processes[killed].wait()
            processes[killed] = start(killed)
        copies.read_until(lambda: all(copies.of(f"orders-{p}") == orders // 2 for p in (0, 1)), said)
        copies.read_until(lambda: all(copies.of(f"{SYNTHETIC}-{p}") for p in (0, 1)), said)
        assert all(process.poll() is None for process in processes), said()
    finally:
        copies.close()
        for process in processes:
            process.kill()
            process.wait()
        assert service.process is not None
        stop_all([service.process])
    copies.check()
    assert service.said("coordinator") == "", "nothing failed inside"
