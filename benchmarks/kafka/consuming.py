"""What reading a record of 100 bytes costs a consumer: ours beside aiokafka and kafka-python.

Each client reads the whole topic in a process of its own, one after the other, and looks at key, value, offset and
timestamp of each record. What counts is the processor time of that process for each record.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks import printer
from rejoin.client import Consumer, TopicPartition
from rejoin.client.transports.kafka.transport import KafkaTransport
from rejoin.coordinator.testing import GroupCoordinator, running
from rejoin.protocol.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rejoin.protocol.wire.record_batch import BatchHeader, sealed
from rejoin.protocol.wire.records import DefaultRecord, write_records

RECORDS: Final = 1_000_000
ROUNDS: Final = 3
AT_MOST: Final = 1.05
"""Of the cheapest other client; what a busy machine blurs is a twentieth."""
CLIENTS: Final = ("ours", "aiokafka", "kafka-python")
VALUE_BYTES: Final = 100
BATCH_RECORDS: Final = 150
"""A batch of about 16 kB, as producers make them."""
TOPIC: Final = "bench"
PRODUCE_VERSION: Final = 9
_BATCHES_A_REQUEST: Final = 50


def batch() -> bytes:
    """A batch of records of 100 bytes."""
    records = [DefaultRecord(number, number // 10, None, b"x" * VALUE_BYTES) for number in range(BATCH_RECORDS)]
    now = int(time.time() * 1_000)
    header = BatchHeader(0, 0, -1, 2, 0, 0, BATCH_RECORDS - 1, now, now + 14, -1, -1, -1, BATCH_RECORDS)
    return sealed(header, write_records(records))


async def fill(server: str, count: int) -> int:
    """Write at least so many records to the topic, and return how many."""
    one = batch()
    batches = -(-count // BATCH_RECORDS)
    data = PartitionProduceData(index=0, records=one)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),)
    )
    async with KafkaTransport([server]) as transport:
        for first in range(0, batches, _BATCHES_A_REQUEST):
            sent = range(first, min(first + _BATCHES_A_REQUEST, batches))
            await asyncio.gather(
                *(transport.send(None, request, PRODUCE_VERSION, timeout_ms=30_000, client_id="fill") for _ in sent)
            )
    return batches * BATCH_RECORDS


async def read_with_ours(server: str, count: int) -> int:
    """Read so many records with our consumer; returns the bytes of their values."""
    size = seen = 0
    async with Consumer(bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
        await consumer.assign([TopicPartition(TOPIC, 0)])
        while seen < count:
            for record in await consumer.poll(1_000):
                if record.key is None and record.timestamp and record.offset >= 0:
                    size += len(record.value)
                seen += 1
    return size


async def read_with_aiokafka(server: str, count: int) -> int:
    """The same with aiokafka."""
    import aiokafka  # noqa: PLC0415 (one client in each process)

    size = seen = 0
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([aiokafka.TopicPartition(TOPIC, 0)])
        while seen < count:
            for records in (await consumer.getmany(timeout_ms=1_000, max_records=500)).values():
                for record in records:
                    if record.key is None and record.timestamp and record.offset >= 0:
                        size += len(record.value)
                    seen += 1
    finally:
        await consumer.stop()
    return size


async def read_with_kafka_python(server: str, count: int) -> int:
    """The same with kafka-python, which blocks."""
    import kafka  # noqa: PLC0415 (one client in each process)

    size = seen = 0
    consumer: Any = kafka.KafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest")
    consumer.assign([kafka.TopicPartition(TOPIC, 0)])
    while seen < count:
        for records in consumer.poll(timeout_ms=1_000, max_records=500).values():
            for record in records:
                if record.key is None and record.timestamp and record.offset >= 0:
                    size += len(record.value)
                seen += 1
    consumer.close()
    return size


READERS: Final[Mapping[str, Callable[[str, int], Awaitable[int]]]] = {
    "ours": read_with_ours,
    "aiokafka": read_with_aiokafka,
    "kafka-python": read_with_kafka_python,
}


def read_in_a_process(client: str, server: str, count: int) -> float:
    """Processor time of reading, in seconds: called in a process that does nothing else."""

    async def read() -> float:
        await READERS[client](server, 1)
        began = time.process_time()
        size = await READERS[client](server, count)
        if size < count * VALUE_BYTES:
            raise RuntimeError(f"{client} read {size} bytes of {count} records")
        return time.process_time() - began

    return asyncio.run(read())


async def measured(node: GroupCoordinator, count: int, rounds: int) -> dict[str, float]:
    """Microseconds of processor time for each record, by client; rounds alternate."""
    count = await fill(node.bootstrap_servers, count)
    found: dict[str, list[float]] = {client: [] for client in CLIENTS}
    context = multiprocessing.get_context("spawn")
    for _ in range(rounds):
        for client, seconds in found.items():
            with context.Pool(1) as pool:
                read = partial(pool.apply, read_in_a_process, (client, node.bootstrap_servers, count))
                seconds.append(await asyncio.to_thread(read))
    return {client: median(seconds) / count * 1e6 for client, seconds in found.items()}


async def costs_of(count: int, rounds: int) -> dict[str, float]:
    """What each client costs on a coordinator of our own."""
    async with running(topics={TOPIC: 1}) as node:
        return await measured(node, count, rounds)


def main() -> int:
    """Measure, and print a table. Returns 1 if ours costs more than the cheapest other."""
    costs, rounds = asyncio.run(costs_of(RECORDS, ROUNDS)), ROUNDS
    table = Table(title=f"Reading {RECORDS:,} records of {VALUE_BYTES} bytes, medians of {rounds} rounds")
    for column in ("client", "µs of CPU a record", "of ours"):
        table.add_column(column, justify="left" if column == "client" else "right")
    for client, cost in costs.items():
        table.add_row(client, f"{cost:.2f}", f"{cost / costs['ours']:.2f}")
    printer().print(table)
    ours, *others = costs.pop("ours"), *costs.values()
    return int(ours > AT_MOST * min(others, default=ours))
