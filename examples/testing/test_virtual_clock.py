"""``max.poll.interval.ms`` and retention with confluent-kafka, on a clock that the test drives."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer

from rejoin.coordinator.testing import BlockingGroupCoordinator

SETTINGS = {"group.initial.rebalance.delay.ms": 0}


def consumer(coordinator: BlockingGroupCoordinator, client_id: str) -> Consumer:
    """A consumer that joins the group."""
    made = Consumer(
        {
            "bootstrap.servers": coordinator.bootstrap_servers,
            "client.id": client_id,
            "group.id": "orders-app",
            "session.timeout.ms": 45_000,
            "heartbeat.interval.ms": 50,
            "max.poll.interval.ms": 60_000,
        }
    )
    made.subscribe(["orders"])
    return made


def wait_for_heartbeat(coordinator: BlockingGroupCoordinator, client_id: str) -> None:
    """Wait for the next heartbeat of a client."""
    seen, end = len(coordinator.requests("Heartbeat", client_id)), time.monotonic() + 30
    while len(coordinator.requests("Heartbeat", client_id)) == seen:
        assert time.monotonic() < end, f"{client_id} sends no heartbeat"
        time.sleep(0.01)


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 2}, settings=SETTINGS)
def test_a_consumer_that_does_not_poll_is_left_behind(group_coordinator: BlockingGroupCoordinator) -> None:
    slow = consumer(group_coordinator, "slow")
    while not slow.assignment():
        slow.poll(0.1)
    new = consumer(group_coordinator, "new")
    group_coordinator.wait_for_group("orders-app", waiting=1)
    fired = []
    for _ in range(2):
        wait_for_heartbeat(group_coordinator, "slow")
        fired += group_coordinator.advance(30_000).fired
    assert "join" in [each.timer for each in fired]
    group = group_coordinator.wait_for_group("orders-app", state="Stable", assigned=2)
    assert group is not None
    assert [member.client_id for member in group.members] == ["new"]
    while not new.assignment():
        new.poll(0.1)
    slow.close()
    new.close()


@pytest.mark.group_coordinator(clock="virtual", topics={"orders": 1})
def test_records_are_deleted_after_a_week(group_coordinator: BlockingGroupCoordinator) -> None:
    producer = Producer({"bootstrap.servers": group_coordinator.bootstrap_servers})
    producer.produce("orders", b"old")
    assert producer.flush(30) == 0
    group_coordinator.advance(8 * 86_400_000)
    assert group_coordinator.records("orders") == [], "retention.ms is a week"
    producer.produce("orders", b"new", timestamp=group_coordinator.now_ms)
    producer.flush(30)
    (record,) = group_coordinator.records("orders")
    assert (record.offset, record.value) == (1, b"new")
