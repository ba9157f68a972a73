"""`rejoin consume --transform-to`: what reaches the other topic, at least once and exactly once."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rejoin.client import Consumer, Producer, TopicPartition
from rejoin.client.commands.consume import ConsumeOptions, app
from rejoin.client.commands.consumer_processes import work_from
from rejoin.client.workload.worker import run_worker
from rejoin.coordinator.testing import GroupCoordinator, running
from tests.docs.texts import TEXTS

SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
OUT = "out"


def command(kafka: GroupCoordinator, *more: str) -> ConsumeOptions:
    """The options of a command line, as the command itself reads them."""
    given = ["--group", "g", "--topic", "in", "--bootstrap", kafka.bootstrap_servers, "--transform-to", OUT, *more]
    _, bound, _ = app.parse_args([*given, "-c", "linger.ms=0", "-c", "retry.backoff.ms=20"])
    options: ConsumeOptions = bound.arguments["options"]
    return options


async def read(kafka: GroupCoordinator, until: Callable[[list[Any]], bool], isolation: str = "read_committed") -> Any:
    """The records of the output, from its beginning until there are enough."""
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 20, "isolation_level": isolation}
    records: list[Any] = []
    async with Consumer(bootstrap_servers=kafka.bootstrap_servers, **settings) as consumer:
        await consumer.assign([TopicPartition(OUT, 0)])
        async with asyncio.timeout(60):
            while not until(records):
                records += await consumer.poll(200)
    return records


def sources(records: list[Any]) -> list[bytes]:
    return [dict(record.headers)["source"] for record in records]


@pytest.mark.parametrize("more", [(), ("--commit", "sync"), ("--exactly-once",)])
async def test_each_record_is_written_with_its_source(more: tuple[str, ...]) -> None:
    stop = asyncio.Event()
    async with running(topics={"in": 1, OUT: 1}, settings=SETTINGS) as kafka:
        await kafka.produce("in", 0, [("k", "a"), "b", "c"])
        worker = asyncio.create_task(run_worker(work_from(command(kafka, *more)), until=stop))
        records = await read(kafka, lambda found: len(found) >= 3)
        stop.set()
        assert await worker == 0
        assert [(record.key, record.value) for record in records] == [(b"k", b"a"), (None, b"b"), (None, b"c")]
        assert sources(records) == [b"in-0@0", b"in-0@1", b"in-0@2"]
        await kafka.wait_for_committed("g", {("in", 0): 3})


async def test_an_aborted_transaction_is_written_again() -> None:
    """The group has moved on, so the offsets are refused once."""
    stop = asyncio.Event()
    async with running(topics={"in": 1, OUT: 1}, settings=SETTINGS) as kafka:
        await kafka.add_fault(keys="TxnOffsetCommit", error="ILLEGAL_GENERATION", count=1)
        await kafka.produce("in", 0, ["a", "b"])
        worker = asyncio.create_task(run_worker(work_from(command(kafka, "--exactly-once")), until=stop))
        assert sources(await read(kafka, lambda found: len(found) >= 2)) == [b"in-0@0", b"in-0@1"]
        stop.set()
        assert await worker == 0
        everything = await read(kafka, lambda found: len(found) >= 4, "read_uncommitted")
        assert sources(everything) == [b"in-0@0", b"in-0@1"] * 2


FOR_LONG = ("--exactly-once", "--commit-interval", "10m", "-c", "transaction.timeout.ms=900000")


async def test_a_transaction_takes_in_several_polls_until_partitions_are_revoked() -> None:
    stop, stop_other = asyncio.Event(), asyncio.Event()
    async with running(topics={"in": 1, OUT: 1}, settings=SETTINGS) as kafka:
        worker = asyncio.create_task(run_worker(work_from(command(kafka, *FOR_LONG)), until=stop))
        for count, value in enumerate("ab", 1):
            await kafka.produce("in", 0, [value])
            await read(kafka, lambda found, count=count: len(found) >= count, "read_uncommitted")  # type: ignore[misc]
        other = work_from(command(kafka, *FOR_LONG, "--first", "2"))
        other_worker = asyncio.create_task(run_worker(other, until=stop_other))
        records = await read(kafka, lambda found: len(found) >= 2)
        await kafka.wait_for_committed("g", {("in", 0): 2})
        # Its second transaction ends when the process stops.
        await kafka.produce("in", 0, ["c"])
        await read(kafka, lambda found: len(found) >= 3, "read_uncommitted")
        stop.set()
        stop_other.set()
        assert (await worker, await other_worker) == (0, 0)
        records = await read(kafka, lambda found: len(found) >= 3)
        assert sources(records) == [b"in-0@0", b"in-0@1", b"in-0@2"]
        assert [record.offset for record in records] == [0, 1, 3], "one marker ends the records of two polls"


async def test_a_transaction_of_lost_partitions_is_aborted() -> None:
    stop = asyncio.Event()
    async with running(topics={"in": 1, OUT: 1}, settings=SETTINGS) as kafka:
        given = command(kafka, *FOR_LONG, "--heartbeat-interval-ms", "50")
        worker = asyncio.create_task(run_worker(work_from(given), until=stop))
        for count, value in enumerate("ab", 1):
            await kafka.produce("in", 0, [value])
            await read(kafka, lambda found, count=count: len(found) >= count, "read_uncommitted")  # type: ignore[misc]
        await kafka.kick("g", client_id="g-1")
        everything = await read(kafka, lambda found: len(found) >= 4, "read_uncommitted")
        assert sources(everything) == [b"in-0@0", b"in-0@1"] * 2
        stop.set()
        assert await worker == 0
        records = await read(kafka, lambda found: len(found) >= 2)
        assert [record.offset for record in records] == [3, 4], "behind those that were aborted, and their marker"
        await kafka.wait_for_committed("g", {("in", 0): 2})


async def test_a_consumer_stops_when_another_process_has_its_transactional_id() -> None:
    async with running(topics={"in": 1, OUT: 1}, settings=SETTINGS) as kafka:
        await kafka.produce("in", 0, ["a"])
        worker = asyncio.create_task(run_worker(work_from(command(kafka, "--exactly-once"))))
        await read(kafka, lambda found: len(found) >= 1)
        async with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="g-1") as other:
            await other.init_transactions()
            await kafka.produce("in", 0, ["b"])
            assert await worker == 1
            async with other.transaction():
                await other.send(OUT, "end", headers={"source": "another process"})
        assert sources(await read(kafka, lambda found: len(found) >= 2)) == [b"in-0@0", b"another process"]


async def test_the_command_of_the_documentation() -> None:
    [line] = re.findall(r"^rejoin (consume .*--exactly-once.*)$", TEXTS["docs/consumer.md"], re.MULTILINE)
    async with running(topics={"orders": 1, "invoices": 1}, settings=SETTINGS) as kafka:
        await kafka.produce("orders", 0, ["a", "b"])
        line = line.replace("localhost:9092", kafka.bootstrap_servers).replace("--processes 3", "--processes 1")
        words = shlex.split(line)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "rejoin", *words, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            await kafka.wait_for_committed("billing", {("orders", 0): 2}, timeout_ms=120_000)
        finally:
            process.terminate()
        assert await process.wait() == 0
