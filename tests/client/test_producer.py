"""The Producer of the Python API against a coordinator: over Kafka's protocol, over HTTP, and within one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from rejoin import GroupCoordinator, Producer, RecordMetadata, running
from rejoin.client.core.errors import CodedError, IllegalStateError, KafkaTimeoutError, RecordTooLargeError
from rejoin.client.transports.in_process import InProcessTransport
from rejoin.protocol.partitioner import partition_of_key


@pytest.fixture
async def coordinator() -> AsyncIterator[GroupCoordinator]:
    async with running(topics={"orders": 3}) as started:
        yield started


def settings(coordinator: GroupCoordinator, way: str) -> dict[str, Any]:
    match way:
        case "kafka":
            return {"bootstrap_servers": coordinator.bootstrap_servers}
        case "http":
            return {"bootstrap_servers": coordinator.url}
        case _:
            return {"transport": InProcessTransport(coordinator)}


@pytest.mark.parametrize("way", ["kafka", "http", "in process"])
async def test_records_are_stored_in_the_order_of_their_sends(coordinator: GroupCoordinator, way: str) -> None:
    async with Producer(**settings(coordinator, way), linger_ms=0, batch_size=200) as producer:
        sent = [await producer.send("orders", f"value {number}", partition=1) for number in range(40)]
        stored = [await each for each in sent]
    assert [(each.topic, each.partition, each.offset) for each in stored] == [("orders", 1, n) for n in range(40)]
    records = await coordinator.records("orders", 1)
    assert [record.value for record in records] == [f"value {number}".encode() for number in range(40)]


@pytest.mark.parametrize("acks", ["all", 1, 0])
async def test_each_way_to_acknowledge(coordinator: GroupCoordinator, acks: str | int) -> None:
    async with Producer(bootstrap_servers=coordinator.bootstrap_servers, acks=acks) as producer:
        stored = await producer.send_and_wait("orders", b"v", partition=0)
        assert stored.offset == (-1 if acks == 0 else 0)
    assert len(await coordinator.records("orders", 0)) == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_another_client_reads_what_was_compressed(coordinator: GroupCoordinator, codec: str) -> None:
    address = coordinator.bootstrap_servers
    async with Producer(bootstrap_servers=address, compression_type=codec) as producer:
        for number in range(100):
            await producer.send("orders", b"x" * 100, key="eu", headers={"n": str(number), "none": None}, timestamp=7)
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        read = [await asyncio.wait_for(consumer.getone(), 20) for _ in range(100)]
    finally:
        await consumer.stop()
    assert [record.headers for record in read] == [(("n", str(n).encode()), ("none", None)) for n in range(100)]
    assert {(record.partition, record.key, record.timestamp) for record in read} == {
        (partition_of_key(b"eu", 3), b"eu", 7)
    }


async def test_serializers_callbacks_and_tombstones(coordinator: GroupCoordinator) -> None:
    called: list[tuple[RecordMetadata | None, BaseException | None]] = []
    async with Producer(
        bootstrap_servers=coordinator.bootstrap_servers,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode(),
    ) as producer:
        await producer.send("orders", {"id": 1}, key="a", callback=lambda *result: called.append(result))
        await producer.send("orders", None, key="a", callback=lambda *result: called.append(result))
    await asyncio.sleep(0)
    assert [(metadata.offset, error) for metadata, error in called if metadata] == [(0, None), (1, None)]
    records = await coordinator.records("orders", partition_of_key(b"a", 3))
    assert [record.value for record in records] == [b'{"id": 1}', None]


async def test_what_cannot_be_written_says_why(coordinator: GroupCoordinator) -> None:
    address = coordinator.bootstrap_servers
    async with Producer(bootstrap_servers=address, max_block_ms=50) as impatient:
        with pytest.raises(KafkaTimeoutError, match="not present in metadata after 50 ms"):
            await impatient.send_and_wait("orders", b"v", partition=7)
    async with Producer(bootstrap_servers=address) as producer:
        with pytest.raises(TypeError, match="value: expected bytes or str without a value_serializer, not int"):
            await producer.send("orders", 5)
        with pytest.raises(RecordTooLargeError, match=r"max.request.size is 1048576"):
            await producer.send_and_wait("orders", bytes(2_000_000))
        with pytest.raises(CodedError, match=r"orders-0: INVALID_TIMESTAMP \(32\): .* out of range"):
            await producer.send_and_wait("orders", b"v", partition=0, timestamp=2**50)
        assert (await producer.send_and_wait("orders", b"v", partition=0)).offset == 0
    with pytest.raises(IllegalStateError, match="this producer is closed"):
        await producer.send("orders", b"v")


async def test_a_lost_answer_makes_no_duplicate(coordinator: GroupCoordinator) -> None:
    async with Producer(bootstrap_servers=coordinator.bootstrap_servers, linger_ms=0, retry_backoff_ms=1) as producer:
        await producer.send_and_wait("orders", b"0", partition=0)
        cut = await coordinator.add_fault(keys="Produce", cut_after_bytes=2)
        sent = [await producer.send("orders", str(number), partition=0) for number in range(1, 9)]
        assert [(await each).offset for each in sent] == list(range(1, 9))
        assert cut.hits == 1
    assert [record.value for record in await coordinator.records("orders", 0)] == [b"%d" % n for n in range(9)]


async def test_with_acks_0_an_error_shows_in_a_closed_connection(coordinator: GroupCoordinator) -> None:
    async with Producer(
        bootstrap_servers=coordinator.bootstrap_servers, acks=0, linger_ms=0, client_id="p", retry_backoff_ms=1
    ) as producer:
        await producer.send_and_wait("orders", b"v", partition=0, timestamp=2**50)
        while len(await coordinator.requests("Metadata", "p")) < 2:  # noqa: ASYNC110 (leaders may have changed)
            await asyncio.sleep(0)
        await producer.send_and_wait("orders", b"w", partition=0)
        while not await coordinator.records("orders"):  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert [record.value for record in await coordinator.records("orders")] == [b"w"]


async def test_memory_is_bounded_by_buffer_memory(coordinator: GroupCoordinator) -> None:
    most = 0
    async with Producer(
        bootstrap_servers=coordinator.bootstrap_servers, buffer_memory=65_536, linger_ms=1_000
    ) as producer:
        for _ in range(2_000):
            await producer.send("orders", b"x" * 100)
            most = max(most, producer.buffered_bytes)
        await producer.flush()
        assert producer.buffered_bytes == 0
    assert 16_384 < most <= 65_536
    assert len(await coordinator.records("orders")) == 2_000
