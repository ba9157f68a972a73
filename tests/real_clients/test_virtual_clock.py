"""A real client on a clock that the test drives: sessions, retention and ``max.poll.interval.ms`` in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from rejoin.coordinator.testing import BlockingGroupCoordinator

GROUP = "orders-app"
INITIAL_DELAY_MS = 3_000
SESSION_MS = 45_000
MAX_POLL_MS = 60_000
DAY_MS = 86_400_000

pytestmark = pytest.mark.group_coordinator(clock="virtual", topics={"orders": 2})


class Member:
    """A confluent-kafka consumer that remembers what it was given."""

    def __init__(self, coordinator: BlockingGroupCoordinator, client_id: str) -> None:
        self.values: list[str] = []
        self.lost = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": coordinator.bootstrap_servers,
                "client.id": client_id,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 50,
                "max.poll.interval.ms": MAX_POLL_MS,
            }
        )
        self._consumer.subscribe(["orders"], on_lost=self._on_lost)

    def _on_lost(self, *_: Any) -> None:
        self.lost += 1

    def poll(self) -> None:
        for message in self._consumer.consume(100, 0.02):
            error = message.error()
            if error is None:
                self.values.append((message.value() or b"").decode())
            else:
                assert error.retriable() or error.code() == KafkaError._MAX_POLL_EXCEEDED, error

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def members(coordinator: BlockingGroupCoordinator, *client_ids: str) -> Iterator[list[Member]]:
    """Members of the group. Time goes on at their end, as their leaving is a rebalance for others."""
    found = [Member(coordinator, client_id) for client_id in client_ids]
    try:
        yield found
    finally:
        for member in found:
            member.close()


def poll_until(condition: Callable[[], Any], *polled: Member) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
        for member in polled:
            member.poll()


def waiting(coordinator: BlockingGroupCoordinator, count: int) -> bool:
    """Whether so many members wait for the rebalance."""
    group = coordinator.group(GROUP)
    return group is not None and sum(each.awaiting_join for each in group.members) == count


def let_it_beat(coordinator: BlockingGroupCoordinator, client_id: str) -> None:
    """Wait for the next heartbeat of a client, which its library sends by the machine's clock."""
    seen = len(coordinator.requests("Heartbeat", client_id))
    poll_until(lambda: len(coordinator.requests("Heartbeat", client_id)) > seen)


def is_stable(coordinator: BlockingGroupCoordinator, count: int) -> bool:
    """Whether the group of so many members has all partitions."""
    group = coordinator.group(GROUP)
    if group is None or group.state != "Stable" or len(group.members) != count:
        return False
    return sum(len(each) for member in group.members for each in (member.assignment or {}).values()) == 2


def test_a_consumer_loses_its_session_and_comes_back_to_where_it_was(
    group_coordinator: BlockingGroupCoordinator,
) -> None:
    group_coordinator.produce("orders", None, [(f"key-{n}", f"first-{n}") for n in range(4)])
    with members(group_coordinator, "one") as (one,):
        poll_until(lambda: waiting(group_coordinator, 1), one)
        group_coordinator.advance(INITIAL_DELAY_MS)
        poll_until(lambda: len(one.values) == 4, one)
        one.commit()

        silence = group_coordinator.add_fault(keys="Heartbeat", pause=True, count=-1)
        silence.wait()
        assert "session" in [fired.timer for fired in group_coordinator.advance(SESSION_MS).fired]
        group_coordinator.wait_for_group(GROUP, members=0)
        group_coordinator.produce("orders", None, [("key", "second")])

        silence.remove()
        poll_until(lambda: waiting(group_coordinator, 1), one)
        assert one.lost == 1
        group_coordinator.advance(INITIAL_DELAY_MS)
        poll_until(lambda: "second" in one.values, one)
        assert sorted(one.values) == [*(f"first-{n}" for n in range(4)), "second"], "nothing is lost, nothing twice"


def test_a_consumer_that_does_not_poll_is_left_behind_by_the_rebalance(
    group_coordinator: BlockingGroupCoordinator,
) -> None:
    with members(group_coordinator, "slow", "new") as (slow, new):
        poll_until(lambda: waiting(group_coordinator, 2), slow, new)
        group_coordinator.advance(2 * INITIAL_DELAY_MS)
        poll_until(lambda: is_stable(group_coordinator, 2), slow, new)
        group_coordinator.kick(GROUP, client_id="new")
        poll_until(lambda: waiting(group_coordinator, 1), new)
        fired: list[str] = []
        while "join" not in fired:
            assert len(fired) < 10
            let_it_beat(group_coordinator, "slow")
            advanced = group_coordinator.advance(MAX_POLL_MS // 2)
            fired += [each.timer for each in advanced.fired] or ["none"]
        poll_until(lambda: is_stable(group_coordinator, 1), new)
        group = group_coordinator.group(GROUP)
        assert group is not None
        assert [member.client_id for member in group.members] == ["new"]


def test_records_that_are_too_old_are_deleted(group_coordinator: BlockingGroupCoordinator) -> None:
    producer = Producer({"bootstrap.servers": group_coordinator.bootstrap_servers})
    errors: list[Any] = []
    producer.produce("orders", b"old", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]
    group_coordinator.advance(8 * DAY_MS)
    assert group_coordinator.records("orders") == [], "retention.ms is a week"
    producer.produce("orders", b"new", partition=0, timestamp=group_coordinator.now_ms)
    producer.flush(30)
    (record,) = group_coordinator.records("orders")
    assert (record.offset, record.value) == (1, b"new")
