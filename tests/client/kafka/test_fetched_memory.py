"""What a consumer has fetched and not yet handed out stays within its limits, however slowly its records are read."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from conformance.members.proxy import ProxiedExchange
from rejoin.client import Consumer, TopicPartition
from rejoin.protocol.wire.record_batch import HEADER_SIZE, size_at
from tests.conformance.replaying.brokers import CLOCKS, ProxiedBrokers, proxied_brokers
from tests.conformance.replaying.virtual_time import PROCESS, VirtualLoop, run_virtually

PARTITIONS, RECORDS, VALUE_BYTES = 12, 20, 1_000
FETCH_MAX_BYTES = 20_000


class Backlog(NamedTuple):
    """The bytes of a batch, and of the most that was fetched ahead of what was handed out."""

    batch: int
    most: int


def fetched(exchanges: Sequence[ProxiedExchange]) -> list[int]:
    """The sizes of all batches that were fetched; an answer may end within one, which is fetched again."""
    sizes: list[int] = []
    for each in exchanges:
        response: Any = each.response
        if each.api == "Fetch" and response is not None:
            for topic in response.responses:
                for partition in topic.partitions:
                    data, at = bytes(partition.records or b""), 0
                    while at + HEADER_SIZE <= len(data) and at + size_at(data, at) <= len(data):
                        sizes.append(size_at(data, at))
                        at += sizes[-1]
    return sizes


async def read_slowly(brokers: ProxiedBrokers, settings: dict[str, Any]) -> Backlog:
    """Read one record after the other, with time in between to fetch all the others."""
    servers = brokers.kafka.bootstrap_servers
    seen = most = 0
    async with (
        asyncio.timeout(3_600),
        Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", **settings) as consumer,
    ):
        await consumer.assign([TopicPartition("orders", index) for index in range(PARTITIONS)])
        while seen < PARTITIONS * RECORDS:
            seen += len(await consumer.poll(1_000))
            await asyncio.sleep(1.0)
            most = max(most, sum(sizes := fetched(brokers.exchanges)) - seen * sizes[0])
    return Backlog(sizes[0], most)


def backlog(count: int, **settings: Any) -> Backlog:
    """With so many brokers, each of which leads its share of the partitions."""

    async def main(loop: VirtualLoop) -> Backlog:
        async with proxied_brokers(loop, count) as brokers:
            await brokers.create_topic("orders", PARTITIONS)
            for number in range(PARTITIONS * RECORDS):
                await brokers.kafka.produce("orders", number % PARTITIONS, [b"x" * VALUE_BYTES])
            context = contextvars.copy_context()
            context.run(PROCESS.set, "reader")
            return await loop.create_task(read_slowly(brokers, {"max_poll_records": 1, **settings}), context=context)

    return run_virtually(main, *CLOCKS)


@pytest.mark.parametrize("brokers", [1, 3])
def test_the_backlog_is_bounded_by_fetch_max_bytes_for_each_node(brokers: int) -> None:
    found = backlog(brokers, fetch_max_bytes=FETCH_MAX_BYTES, max_partition_fetch_bytes=5_000)
    assert found.batch < found.most <= brokers * FETCH_MAX_BYTES
