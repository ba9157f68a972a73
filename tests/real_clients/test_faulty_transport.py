"""A real client gets over answers that are torn, reset or slow: every record once, in order."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from rejoin.coordinator.testing import BlockingGroupCoordinator

PATIENCE_SECONDS = 120
VALUES = [f"value-{number}".encode() for number in range(40)]


@pytest.mark.group_coordinator(topics={"orders": 1}, settings={"group.initial.rebalance.delay.ms": 0})
def test_a_client_survives_torn_and_slow_answers(group_coordinator: BlockingGroupCoordinator) -> None:
    servers = {"bootstrap.servers": group_coordinator.bootstrap_servers, "reconnect.backoff.ms": 1}
    torn = [
        group_coordinator.add_fault(keys="Produce", cut_after_bytes=10, count=2),
        group_coordinator.add_fault(keys="Fetch", cut_after_bytes=60, reset=True, count=2),
        group_coordinator.add_fault(keys="JoinGroup", cut_after_bytes=1),
        group_coordinator.add_fault(keys="SyncGroup", bytes_per_second=500),
    ]
    producer = Producer({**servers, "enable.idempotence": True, "retry.backoff.ms": 1, "linger.ms": 0})
    errors: list[Any] = []
    for value in VALUES:
        producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert [error for error in errors if error is not None] == []
    assert [record.value for record in group_coordinator.records("orders")] == VALUES

    consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 60_000})
    consumer.subscribe(["orders"])
    seen: list[bytes | None] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while len(seen) < len(VALUES) and time.monotonic() < end:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append(message.value())
    consumer.close()
    assert seen == VALUES
    assert [fault.hits for fault in torn] == [2, 2, 1, 1]
