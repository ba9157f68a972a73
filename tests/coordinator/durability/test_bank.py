"""Transfers between accounts, consumed, booked and committed in transactions, while processes and brokers are killed.

On one node with ``--data``, and on two nodes on one PostgreSQL. ``REJOIN_BANK_ROUNDS`` says how often something is
killed, ``REJOIN_KILL_SEED`` draws what.

Every step waits for bookings, and for no time: a slow machine makes the test longer. Clients that stand still are
replaced.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.coordinator.durability.auditor import Auditor
from tests.coordinator.durability.bank import CALM, ORDERS, PARTITIONS, partition_of
from tests.coordinator.durability.producers import COMING_BACK, servers
from tests.coordinator.durability.service import PATIENCE, Service, stop_all

ROUNDS = int(os.environ.get("REJOIN_BANK_ROUNDS", "2"))
SEED = int(os.environ.get("REJOIN_KILL_SEED", "1"))
CLERKS, ACCOUNTS = 4, 10
ORDERS_A_ROUND = 20
AUDITED_ROUNDS = 3
"""In one round of so many an audit must end before something is killed."""
OFFSETS_PARTITIONS = 4
STANDSTILL = 20.0
"""Seconds without a booking after which clients are replaced. It only bounds how long a client that hangs costs."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": "4",
    "num.partitions": str(PARTITIONS),
    "broker.session.timeout.ms": "1000",
}


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

    def said(self) -> str:
        return "\n".join(f"clerk {number}: {self._service.said(f'clerk-{number}')}" for number in range(CLERKS))

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.coordinator.durability.bank", self._ports, str(number)]
        return self._service.spawn(f"clerk-{number}", command)


class Bank:
    """Orders, those who book them, and who looks after them."""

    def __init__(self, services: list[Service], dice: random.Random) -> None:
        self.services = services
        ports = [service.kafka_port for service in services]
        self.orders = 0
        self._dice = dice
        settings = {**servers(*ports), **COMING_BACK, **CALM, "enable.idempotence": True, "max.in.flight": 1}
        self._producer = Producer(settings)
        self.auditor = Auditor(ports)
        self.clerks = Clerks(services[0], ports)

    def order(self) -> None:
        """Order the transfers of a round."""
        for name in range(self.orders, self.orders + ORDERS_A_ROUND):
            source, target = self._accounts_of_two_partitions()
            value = f"{name} {source} {target} {self._dice.randint(1, 100)}"
            self._producer.produce(ORDERS, value, partition=name % PARTITIONS)
        self.orders += ORDERS_A_ROUND
        self._producer.poll(0)

    def _accounts_of_two_partitions(self) -> tuple[str, str]:
        while True:
            source, target = map(str, self._dice.sample(range(ACCOUNTS), 2))
            if partition_of(source) != partition_of(target):
                return source, target

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE) == 0, f"orders are not stored\n{self}"

    def wait_for(self, bookings: int) -> None:
        """Wait until so many bookings are committed."""
        seen, since = -1, time.monotonic()
        replaced = 0
        while (booked := self.auditor.booked.total()) < bookings and not self.auditor.problems:
            standstill = time.monotonic() - since
            if booked > seen:
                seen, since, replaced = booked, time.monotonic(), 0
            elif standstill > (replaced + 1) * STANDSTILL:
                assert standstill < PATIENCE, f"{bookings - booked} bookings are missing\n{self}"
                replaced += 1
                self.auditor.replace_its_consumer()
                for number in range(CLERKS):
                    self.clerks.kill(number)
            self.clerks.replace_those_that_ended()
            self._producer.poll(0.05)

    def wait_for_audit(self, bookings: int) -> None:
        """Wait until an audit has ended that began with so many bookings, or more."""
        deadline = time.monotonic() + PATIENCE
        while self.auditor.audited < bookings and not self.auditor.problems:
            assert time.monotonic() < deadline, f"an audit does not end\n{self}"
            time.sleep(0.02)

    def close(self) -> None:
        self.auditor.stop()
        if self.auditor.is_alive():
            self.auditor.join(PATIENCE)
        for process in self.clerks.processes:
            process.kill()
            process.wait()
        stop_all([each.process for each in self.services if each.process is not None])

    def __str__(self) -> str:
        said = "\n".join(service.said("coordinator") for service in self.services)
        booked = f"{self.auditor.booked.total()} bookings, {self.auditor}"
        return f"{self.orders} orders, {booked}\n{said}\n{self.clerks.said()}"


def services_of(nodes: int, folder: Path, request: pytest.FixtureRequest) -> list[Service]:
    """One node with files of its own, or several on one PostgreSQL."""
    services = []
    for node_id in range(1, nodes + 1):
        own = folder / str(node_id)
        own.mkdir()
        store = ["--data", str(own / "data")] if nodes == 1 else ["--store", request.getfixturevalue("postgres")]
        services.append(Service(own, store, {**SETTINGS, "broker.id": str(node_id)}, f"{ORDERS}:{PARTITIONS}"))
    for service in services:
        service.start()
    return services


def kill(killed: Service, others: list[Service]) -> None:
    """kill -9. Where there is another node, it must lead everything before the one that was killed is started again."""
    # A node that has just started gets its part from the others.
    led = led_by(killed, bool) if others else {}
    killed.kill()
    for other in others:
        taken = led_by(other, lambda found: len(found) == OFFSETS_PARTITIONS)
        assert all(taken[partition] > epoch for partition, epoch in led.items()), (
            f"taken in an old epoch: {taken}, {led}"
        )
    killed.start()


def led_by(service: Service, is_enough: Callable[[dict[int, int]], object]) -> dict[int, int]:
    """Wait until a node leads enough, and has loaded it: epochs by offsets partition. Data partitions go with these."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = service.look("/cluster") or {"partitions": []}
        found = {each["partition"]: each["epoch"] for each in shown["partitions"] if each["state"] == "active"}
        if is_enough(found):
            return found
        assert time.monotonic() < deadline, f"it leads only {found}\n{service.said('coordinator')}"
        time.sleep(0.05)


@pytest.mark.parametrize("nodes", [1, 2], ids=["sqlite", "postgres"])
def test_every_transfer_is_booked_once_and_whole(nodes: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    dice = random.Random(SEED)
    services = services_of(nodes, tmp_path, request)
    bank = Bank(services, dice)
    try:
        bank.auditor.start()
        for done in range(ROUNDS):
            bank.order()
            # Kills come in the midst of the bookings of a round; there are two for each order.
            bank.wait_for(2 * ORDERS_A_ROUND * done + dice.randrange(1, ORDERS_A_ROUND))
            if done % AUDITED_ROUNDS == 0:
                # So that the sum was looked at between kills, and not only at the end.
                bank.wait_for_audit(2 * ORDERS_A_ROUND * done + 1)
            if done % 2:
                killed = dice.choice(services)
                kill(killed, [each for each in services if each is not killed])
            else:
                bank.clerks.kill(dice.randrange(CLERKS))
        bank.flush()
        bank.wait_for(2 * bank.orders)
        bank.wait_for_audit(bank.auditor.booked.total())
    finally:
        bank.close()
    expected = Counter({(str(name), side): 1 for name in range(bank.orders) for side in (False, True)})
    assert bank.auditor.problems == [], bank
    assert bank.auditor.booked == expected, bank
    assert bank.auditor.audits > (ROUNDS - 1) // AUDITED_ROUNDS
    assert all(service.said("coordinator") == "" for service in services), "nothing failed inside"
