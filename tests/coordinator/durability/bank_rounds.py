"""Transfers between accounts, consumed, booked and committed in transactions, while processes and brokers are killed.

Run by ``make bank``: on one node with ``--data``, and on two nodes on one PostgreSQL. ``REJOIN_BANK_ROUNDS`` says how
often, ``REJOIN_KILL_SEED`` draws other moments.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.coordinator.durability.bank import BOOKINGS, ORDERS
from tests.coordinator.durability.producers import servers
from tests.coordinator.durability.service import PATIENCE, Service, stop_all

ROUNDS = int(os.environ.get("REJOIN_BANK_ROUNDS", "10"))
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
CLERKS, PARTITIONS, ACCOUNTS = 4, 4, 10
ORDERS_A_ROUND = 40
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "num.partitions": str(PARTITIONS),
    "broker.session.timeout.ms": "1000",
}


class Auditor(threading.Thread):
    """Reads what is committed of the bookings; wherever it comes to a partition's end, the sum must be 0."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(name="auditor", daemon=True)
        self.booked: Counter[tuple[str, bool]] = Counter()
        """How often each order was booked, as credit or not."""
        self.audits = 0
        self.problems: list[str] = []
        self._settings = {
            **servers(*ports),
            "group.id": "audit",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.assign([TopicPartition(BOOKINGS, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        sums: Counter[int] = Counter()
        while not self._stopped.is_set():
            message: Any = consumer.poll(0.05)
            if message is None:
                continue
            if message.error() is None:
                name, _, delta = message.value().decode().split()
                sums[message.partition()] += int(delta)
                self.booked[name, int(delta) > 0] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self.audits += 1
                if sums[message.partition()]:
                    self.problems.append(f"partition {message.partition()}: the sum is {sums[message.partition()]}")
        consumer.close()


class Clerks:
    """The processes that book. One that was killed, or gave up, is started again."""

    def __init__(self, service: Service, ports: list[int]) -> None:
        self._service = service
        self._ports = ",".join(map(str, ports))
        self.processes = [self._start(number) for number in range(CLERKS)]

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = self._start(number)

    def replace_those_that_ended(self) -> None:
        for number, process in enumerate(self.processes):
            if process.poll() is not None:
                self.processes[number] = self._start(number)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.coordinator.durability.bank", self._ports, str(number)]
        return self._service.spawn(f"clerk-{number}", command)


def order(producer: Producer, dice: random.Random, first: int) -> None:
    for name in range(first, first + ORDERS_A_ROUND):
        source, target = dice.sample(range(ACCOUNTS), 2)
        producer.produce(ORDERS, f"{name} {source} {target} {dice.randint(1, 100)}", partition=name % PARTITIONS)


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_transfer_is_booked_once_and_whole(nodes: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    dice = random.Random(SEED)
    services = []
    for node_id in range(1, nodes + 1):
        folder = tmp_path / str(node_id)
        folder.mkdir()
        store = ["--data", str(folder / "data")]
        if nodes > 1:
            store = ["--store", request.getfixturevalue("postgres")]
        services.append(Service(folder, store, {**SETTINGS, "broker.id": str(node_id)}, f"{ORDERS}:{PARTITIONS}"))
    for service in services:
        service.start()
    ports = [service.kafka_port for service in services]
    producer = Producer({**servers(*ports), "enable.idempotence": True, "max.in.flight": 1})
    auditor = Auditor(ports)
    clerks = Clerks(services[0], ports)
    try:
        auditor.start()
        for done in range(ROUNDS):
            order(producer, dice, done * ORDERS_A_ROUND)
            producer.poll(0)
            time.sleep(dice.uniform(0.1, 0.5))
            clerks.kill(dice.randrange(CLERKS))
            time.sleep(dice.uniform(0, 0.3))
            killed = services[done % nodes]
            killed.kill()
            killed.start()
            clerks.replace_those_that_ended()
        assert producer.flush(PATIENCE) == 0
        expected = Counter({(str(name), side): 1 for name in range(ROUNDS * ORDERS_A_ROUND) for side in (False, True)})
        deadline = time.monotonic() + PATIENCE
        while auditor.booked != expected and not auditor.problems and max(auditor.booked.values(), default=0) < 2:
            assert time.monotonic() < deadline, f"{(expected - auditor.booked).total()} bookings are missing"
            clerks.replace_those_that_ended()
            time.sleep(0.05)
    finally:
        auditor.stop()
        if auditor.is_alive():
            auditor.join(PATIENCE)
        stop_all([*clerks.processes, *(each.process for each in services if each.process is not None)])
    assert auditor.problems == []
    assert auditor.booked == expected
    assert auditor.audits > 0
    assert all(service.said("coordinator") == "" for service in services), "nothing failed inside"
