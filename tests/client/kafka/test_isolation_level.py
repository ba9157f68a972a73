"""Our consumer reads what a transactional producer of another library writes, by isolation level."""

from __future__ import annotations

import asyncio

from confluent_kafka import Producer

from rejoin.client import Consumer
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.client.test_over_the_listener import P0, read, reader

PATIENCE_S = 30.0


def write(producer: Producer, value: str, *, commits: bool) -> None:
    """A transaction with one record."""
    producer.begin_transaction()
    producer.produce("orders", value, partition=0)
    producer.flush(PATIENCE_S)
    (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_S)


def begin(producer: Producer) -> None:
    """A transaction that stays open."""
    producer.begin_transaction()
    producer.produce("orders", "open", partition=0)
    producer.flush(PATIENCE_S)


async def test_committed_records_are_read_and_aborted_ones_by_who_wants_all() -> None:
    async with running(topics={"orders": 1}, settings={"group.initial.rebalance.delay.ms": 0}) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
        await asyncio.to_thread(producer.init_transactions, PATIENCE_S)
        for number in range(3):
            await asyncio.to_thread(write, producer, f"{number} aborted", commits=False)
            await asyncio.to_thread(write, producer, f"{number} committed", commits=True)
        await asyncio.to_thread(begin, producer)
        # Each transaction has a record and a marker, which has an offset as well.
        committed = [(2, b"0 committed"), (6, b"1 committed"), (10, b"2 committed")]
        aborted = [(0, b"0 aborted"), (4, b"1 aborted"), (8, b"2 aborted")]
        async with (
            isolated_reader(kafka) as isolated,
            reader(kafka, "orders", group_id="all", isolation_level="read_uncommitted") as dirty,
        ):
            assert await values(isolated, 3) == committed
            assert await values(dirty, 7) == [*sorted(committed + aborted), (12, b"open")]
            assert len(await isolated.poll(50)) == 0
            assert await isolated.end_offsets([P0]) == {P0: 12}
            assert await dirty.end_offsets([P0]) == {P0: 13}
            assert (await isolated.position(P0), isolated.lag(P0)) == (12, 0)
            await isolated.commit()
            await asyncio.to_thread(producer.commit_transaction, PATIENCE_S)
            assert await values(isolated, 1) == [(12, b"open")]
            assert len(await dirty.poll(50)) == 0
        async with isolated_reader(kafka) as isolated:
            assert await values(isolated, 1) == [(12, b"open")]


def isolated_reader(kafka: GroupCoordinator) -> Consumer:
    settings = {"isolation_level": "read_committed", "enable_auto_commit": False}
    return reader(kafka, "orders", group_id="committed", **settings)


async def values(consumer: Consumer, count: int) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) for record in await read(consumer, count)]
