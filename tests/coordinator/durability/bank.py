"""One process of the bank: it books each transfer that is ordered on two accounts, in a transaction with its offset.

    python -m tests.coordinator.durability.bank PORTS NUMBER

An order's value is ``id from to amount``. A booking's value is ``id account delta``; each account has its partition,
and the two accounts of an order are of different ones, which different nodes may lead.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer

from tests.coordinator.durability.producers import COMING_BACK, servers

ORDERS: Final = "orders"
BOOKINGS: Final = "bookings"
PARTITIONS: Final = 4
CALM: Final = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 300}
"""Six clients try again while brokers are away; this bounds what it costs."""
_AT_ONCE: Final = 5
_SECONDS: Final = 30.0
_STUCK_SECONDS: Final = 10
"""A transaction that takes longer ends the process, which prints what it waited for."""


def book(ports: list[int], number: int) -> None:
    """Book until the process is ended, or until an error asks for a new one."""
    consumer = Consumer(
        {
            **servers(*ports),
            **COMING_BACK,
            **CALM,
            "group.id": "bank",
            "group.instance.id": f"clerk-{number}",
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    settings = {**servers(*ports), **COMING_BACK, **CALM, "transaction.timeout.ms": 10_000}
    producer = Producer({**settings, "transactional.id": f"clerk-{number}"})
    producer.init_transactions(_SECONDS)
    consumer.subscribe([ORDERS])
    while True:
        orders: list[Any] = [each for each in consumer.consume(_AT_ONCE, 0.1) if each.error() is None]
        if orders:
            signal.alarm(_STUCK_SECONDS)
            _book_together(consumer, producer, orders)
            signal.alarm(0)


def partition_of(account: str) -> int:
    """Where the bookings of an account are."""
    return int(account) % PARTITIONS


def _book_together(consumer: Consumer, producer: Producer, orders: list[Any]) -> None:
    producer.begin_transaction()
    for order in orders:
        name, source, target, amount = order.value().decode().split()
        for account, delta in ((source, -int(amount)), (target, int(amount))):
            producer.produce(BOOKINGS, f"{name} {account} {delta}", key=account, partition=partition_of(account))
    offsets = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _SECONDS)
    producer.commit_transaction(_SECONDS)


if __name__ == "__main__":
    faulthandler.register(signal.SIGALRM, chain=True)
    try:
        book([int(port) for port in sys.argv[1].split(",")], int(sys.argv[2]))
    except KafkaException as problem:
        # A new process begins where the last transaction that was committed ends.
        sys.exit(f"{problem.args[0]}")
