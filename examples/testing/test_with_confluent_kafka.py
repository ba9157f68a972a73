"""A consumer loses its session and comes back: nothing is lost, and uncommitted records come twice."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from confluent_kafka import Consumer

from rejoin.coordinator.testing import BlockingGroupCoordinator


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 2}, settings={"group.initial.rebalance.delay.ms": 0})
def test_a_consumer_loses_its_session_and_comes_back(group_coordinator: BlockingGroupCoordinator) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": group_coordinator.bootstrap_servers,
            "group.id": "orders-app",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 45_000,
            "heartbeat.interval.ms": 50,
        }
    )
    consumer.subscribe(["orders"])
    seen: list[str] = []
    group_coordinator.produce("orders", None, [(f"customer-{n}", f"order-{n}") for n in range(6)])
    read(consumer, seen, 6)
    consumer.commit(asynchronous=False)
    group_coordinator.produce("orders", 0, ["order-6", "order-7"])
    read(consumer, seen, 8)

    silence = group_coordinator.add_fault(keys="Heartbeat", pause=True, count=-1)
    silence.wait()
    group_coordinator.advance(45_000)
    group_coordinator.wait_for_group("orders-app", state="Empty")
    silence.remove()

    read(consumer, seen, 10)
    group_coordinator.produce("orders", 1, ["order-8"])
    read(consumer, seen, 11)
    consumer.close()
    assert set(seen) == {f"order-{n}" for n in range(9)}, "nothing is lost"
    assert {order: times for order, times in Counter(seen).items() if times > 1} == {"order-6": 2, "order-7": 2}


def read(consumer: Consumer, seen: list[str], count: int) -> None:
    """Poll until so many records have been seen."""
    end = time.monotonic() + 30
    while len(seen) < count:
        assert time.monotonic() < end, f"{len(seen)} records came, expected {count}: {seen}"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append((message.value() or b"").decode())
