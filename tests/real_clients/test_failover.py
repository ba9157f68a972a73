"""Real clients with three brokers, of which one fails: nothing is lost, and order within a partition is kept.

`make client-failover` prints how long each client needed until it had everything, by the machine's clock.
"""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import pytest

from rejoin.coordinator.testing import BlockingGroupCoordinator, running_in_thread
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from tests.real_clients.client import Client
from tests.real_clients.libraries import LIBRARIES

TOPIC = "orders"
GROUP = "orders-app"
RECORDS = 60
TEN_MINUTES_MS = 600_000
SESSION_MS = 9_000
OFFSETS_PARTITIONS = 50
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": SESSION_MS,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
}


def leader_moved(cluster: BlockingGroupCoordinator) -> None:
    for partition in range(3):
        cluster.move_leader(TOPIC, partition)


def coordinator_moved(cluster: BlockingGroupCoordinator) -> None:
    cluster.move_leader(group=GROUP)


def coordinator_killed(cluster: BlockingGroupCoordinator) -> None:
    coordinator = cluster.partition(OFFSETS_TOPIC, partition_for(GROUP, OFFSETS_PARTITIONS)).leader
    assert coordinator is not None
    cluster.kill_broker(coordinator)
    cluster.advance(SESSION_MS)


def broker_stopped_for_ten_minutes(cluster: BlockingGroupCoordinator) -> None:
    """The one that leads partition 0, after the one that was killed is back."""
    for each in cluster.brokers():
        if each.state == "stopped":
            cluster.start_broker(each.broker)
    leader = cluster.partition(TOPIC, 0).leader
    assert leader is not None
    cluster.stop_broker(leader)
    cluster.advance(TEN_MINUTES_MS)
    cluster.start_broker(leader)
    cluster.elect_preferred()


FAILURES: Final[tuple[Callable[[BlockingGroupCoordinator], None], ...]] = (
    leader_moved,
    coordinator_moved,
    coordinator_killed,
    broker_stopped_for_ten_minutes,
)


def produced(name: str, fail: Callable[[], None]) -> Iterator[str]:
    """Values for a producer, in the midst of which a failure happens."""
    for number in range(RECORDS):
        if number == RECORDS // 2:
            fail()
        yield f"{name} {number:03}"


def in_order(values: list[str]) -> bool:
    """Whether the numbers of each run grow."""
    runs: dict[str, list[str]] = {}
    for value in values:
        runs.setdefault(value[:-3], []).append(value)
    return all(run == sorted(set(run)) for run in runs.values())


def close_refused_sockets() -> None:
    """kafka-python does not close the sockets of connections that were refused."""
    for each in gc.get_objects():
        if type(each) is socket.socket and each.family == socket.AF_INET and each.fileno() >= 0:
            with suppress(OSError):
                if each.getsockname()[0] == "0.0.0.0":
                    each.close()


def play(client: Client, cluster: BlockingGroupCoordinator, failure: Callable[[BlockingGroupCoordinator], None]) -> str:
    """Let a failure happen while the client produces; returns how long it took until all was well again."""
    name, began = failure.__name__, time.monotonic()
    written = client.produce(TOPIC, produced(name, lambda: failure(cluster)), idempotent=True)
    assert len(written) == RECORDS
    took = time.monotonic() - began
    wanted = {f"{name} {number:03}" for number in range(RECORDS)}

    def is_well() -> bool:
        group = cluster.group(GROUP)
        is_stable = group is not None and group.state == "Stable" and len(group.members) == 1
        return is_stable and wanted <= set(client.seen)

    client.poll_until(is_well)
    consumed = time.monotonic() - began
    return f"{name.replace('_', ' '):32} produced {took:5.1f} s, consumed and group stable {consumed:5.1f} s"


def play_all(library: type[Client]) -> None:
    """Let all failures happen, one after the other."""
    with running_in_thread(clock="virtual", brokers=3, topics={TOPIC: 3}, settings=SETTINGS) as coordinator:
        cluster = BlockingGroupCoordinator(coordinator)
        client = library(cluster.bootstrap_servers)
        try:
            client.join("m", GROUP, TOPIC)
            client.poll_until_shared(1, 3)
            for failure in FAILURES:
                print(library.name.ljust(16), play(client, cluster, failure))
            for partition in range(3):
                values_of = [(record.value or b"").decode() for record in cluster.records(TOPIC, partition)]
                assert in_order(values_of), "an idempotent producer writes once, and in order"
            assert len(cluster.records(TOPIC)) == RECORDS * len(FAILURES)
        finally:
            client.close()


@pytest.mark.parametrize(
    "library",
    [pytest.param(each, id=each.name, marks=pytest.mark.xdist_group(each.name)) for each in LIBRARIES],
)
def test_a_failure_loses_and_reorders_nothing(library: type[Client]) -> None:
    try:
        play_all(library)
    finally:
        close_refused_sockets()
