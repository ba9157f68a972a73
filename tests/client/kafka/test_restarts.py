"""Our consumers over Kafka's protocol, and a service process that is killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rejoin.client import Consumer, Producer
from tests.coordinator.durability.service import PATIENCE, Service

TOPIC, GROUP, PARTITIONS, RESTARTS, RECORDS = "orders", "orders-app", 2, 2, 20
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
QUICK: dict[str, Any] = {"retry_backoff_ms": 10, "reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 50}


class Group:
    """Consumers of one group, and what they have read."""

    def __init__(self, consumers: tuple[Consumer, ...]) -> None:
        self._consumers = consumers
        self.values: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}

    def owned(self) -> list[int]:
        return sorted(each.partition for consumer in self._consumers for each in consumer.assignment())

    def has_read(self, count: int) -> bool:
        """Whether each partition has given so many records."""
        return all(len(values) >= count for values in self.values.values())

    def generations(self) -> set[int]:
        return {consumer.group_metadata().generation_id for consumer in self._consumers}

    async def poll_until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                for records in await asyncio.gather(*(consumer.poll(50) for consumer in self._consumers)):
                    for record in records:
                        self.values[record.partition].append(int(record.value))

    async def commit(self) -> None:
        for consumer in self._consumers:
            await consumer.commit(timeout_ms=int(PATIENCE * 1_000))


async def test_records_are_complete_and_the_group_goes_on(tmp_path: Path) -> None:
    service = Service(tmp_path, ["--data", str(tmp_path / "data")], SETTINGS, f"{TOPIC}:{PARTITIONS}")
    service.start()
    servers: dict[str, Any] = {"bootstrap_servers": f"127.0.0.1:{service.kafka_port}", **QUICK}
    member = {**servers, "group_id": GROUP, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
    try:
        async with (
            Producer(**servers) as producer,
            Consumer(TOPIC, client_id="one", **member) as one,
            Consumer(TOPIC, client_id="two", **member) as two,
        ):
            group = Group((one, two))
            await group.poll_until(lambda: group.owned() == [0, 1] and len(one.assignment()) == 1)
            generations = group.generations()
            for restart in range(RESTARTS + 1):
                if restart:
                    service.kill()
                    starting = asyncio.create_task(asyncio.to_thread(service.start))
                    await group.poll_until(starting.done)
                    await starting
                expected = list(range((restart + 1) * RECORDS))
                for number in expected[-RECORDS:]:
                    for partition in range(PARTITIONS):
                        await producer.send_and_wait(TOPIC, str(number), partition=partition)
                await group.poll_until(partial(group.has_read, len(expected)))
                assert group.values == {0: expected, 1: expected}
                await group.commit()
            assert group.generations() == generations, "members are known from the log: nothing rebalanced"
        # A new member begins where they committed.
        async with Producer(**servers) as producer, Consumer(TOPIC, **member) as another:
            group = Group((another,))
            for partition in range(PARTITIONS):
                await producer.send_and_wait(TOPIC, "-1", partition=partition)
            await group.poll_until(partial(group.has_read, 1))
            assert group.values == {0: [-1], 1: [-1]}
    finally:
        service.kill()
    assert service.said("coordinator") == "", "nothing failed inside"
