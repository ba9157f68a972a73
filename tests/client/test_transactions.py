"""Our producer's transactions over Kafka's protocol against our own coordinator, and what consumers read of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rejoin.client import Consumer, IllegalStateError, Producer, ProducerFencedError, TopicPartition
from rejoin.client.core.errors import CommitFailedError, KafkaError
from rejoin.client.core.inputs import GroupMetadata
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.docs.texts import python_blocks

IN, OUT = TopicPartition("in", 0), TopicPartition("out", 0)


@pytest.fixture(params=[2, 1])
async def kafka(request: pytest.FixtureRequest) -> AsyncIterator[GroupCoordinator]:
    """A coordinator with topics of one partition, once with each transaction.version that clients tell apart."""
    settings = {"group.initial.rebalance.delay.ms": 0, "emulator.transaction.version": request.param}
    async with running(topics={"in": 1, "out": 1, "orders": 1, "invoices": 1}, settings=settings) as coordinator:
        yield coordinator


def writer(kafka: GroupCoordinator, **settings: Any) -> Producer:
    given: dict[str, Any] = {"transactional_id": "shop-1", "linger_ms": 0, "retry_backoff_ms": 20}
    return Producer(bootstrap_servers=kafka.bootstrap_servers, **given | settings)


async def read(kafka: GroupCoordinator, partition: TopicPartition, last: bytes, isolation: str) -> list[bytes]:
    """The values of a partition up to this one."""
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
    values: list[bytes] = []
    async with Consumer(bootstrap_servers=kafka.bootstrap_servers, isolation_level=isolation, **settings) as consumer:
        await consumer.assign([partition])
        async with asyncio.timeout(30):
            while not values or values[-1] != last:
                values += [record.value or b"" for record in await consumer.poll(200)]
    return values


async def test_only_committed_records_are_read(kafka: GroupCoordinator) -> None:
    async with writer(kafka) as producer:
        await producer.init_transactions()
        for number in range(3):
            await producer.begin_transaction()
            sent = await producer.send("out", f"kept-{number}")
            await producer.commit_transaction()
            assert (await sent).offset >= 0
            await producer.begin_transaction()
            await producer.send_and_wait("out", f"aborted-{number}")
            await producer.abort_transaction()
        await producer.begin_transaction()
        await producer.commit_transaction()
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 (it is raised within the transaction)
            async with producer.transaction():
                await producer.send("out", "aborted-3")
                raise ZeroDivisionError
        async with producer.transaction():
            await producer.send("out", "end")
    assert await read(kafka, OUT, b"end", "read_committed") == [b"kept-0", b"kept-1", b"kept-2", b"end"]
    assert b"aborted-2" in await read(kafka, OUT, b"end", "read_uncommitted")


async def test_consume_transform_produce(kafka: GroupCoordinator) -> None:
    await kafka.produce("in", 0, ["a", "b", "c", "d"])
    group: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    async with (
        Consumer("in", bootstrap_servers=kafka.bootstrap_servers, max_poll_records=2, **group) as consumer,
        writer(kafka) as producer,
    ):
        await producer.init_transactions()
        turn = 0
        async with asyncio.timeout(30):
            while await committed(consumer) != 4:
                records = await consumer.poll(500)
                if not records:
                    continue
                turn += 1
                await producer.begin_transaction()
                for record in records:
                    await producer.send("out", (record.value or b"").upper() + b"%d" % turn)
                    following = record.offset + 1
                await producer.send_offsets_to_transaction({IN: following}, consumer.group_metadata())
                if turn == 1:
                    await producer.abort_transaction()
                    consumer.seek(IN, 0)
                else:
                    await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.send("out", b"never")
        late = GroupMetadata("g", 99, "another-member")
        with pytest.raises(CommitFailedError, match="generation"):
            await producer.send_offsets_to_transaction({IN: 1}, late)
        with pytest.raises(KafkaError, match="only be aborted"):
            await producer.commit_transaction()
        with pytest.raises(KafkaError, match="only be aborted"):
            await producer.send("out", b"more")
        await producer.abort_transaction()
        assert await committed(consumer) == 4
        async with producer.transaction():
            await producer.send("out", b"end")
    assert await read(kafka, OUT, b"end", "read_committed") == [b"A2", b"B2", b"C3", b"D3", b"end"]


async def test_the_example_of_the_documentation(kafka: GroupCoordinator) -> None:
    _, example = python_blocks("docs/producer.md")
    await kafka.produce("orders", 0, ["a", "b"])
    scope: dict[str, Any] = {}
    exec(example.replace("127.0.0.1:9092", kafka.bootstrap_servers), scope)
    await scope["main"]()
    assert await read(kafka, TopicPartition("invoices", 0), b"b", "read_committed") == [b"a", b"b"]


async def committed(consumer: Consumer) -> int | None:
    """The offset that counts for the group once no transaction is open."""
    found = await consumer.committed(IN)
    return None if found is None else found.offset


async def test_a_second_producer_with_the_id_fences_the_first(kafka: GroupCoordinator) -> None:
    async with writer(kafka) as first, writer(kafka) as second:
        await first.init_transactions()
        await first.begin_transaction()
        await first.send_and_wait("out", "aborted")
        await second.init_transactions()
        with pytest.raises(ProducerFencedError, match="another producer"):
            await first.commit_transaction()
        with pytest.raises(ProducerFencedError):
            await first.begin_transaction()
        async with second.transaction():
            await second.send("out", "end")
    assert await read(kafka, OUT, b"end", "read_committed") == [b"end"]


async def test_close_aborts_an_open_transaction(kafka: GroupCoordinator) -> None:
    async with writer(kafka) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("out", "aborted")
    async with writer(kafka) as producer:
        with pytest.raises(IllegalStateError, match="init_transactions first"):
            await producer.send("out", "too early")
        await producer.init_transactions()
        with pytest.raises(IllegalStateError, match="begin_transaction first"):
            await producer.send("out", "too early")
        await producer.begin_transaction()
        await producer.send("out", "end")
        await producer.commit_transaction()
    assert await read(kafka, OUT, b"end", "read_committed") == [b"end"]
