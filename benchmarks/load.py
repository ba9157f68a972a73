"""How long a node needs to load an offsets partition: 10,000 groups of 10 members, and 1,000,000 committed offsets.

Compared, in the same process, with merely reading the same records from the same store and parsing them. The
node's time is from when it is elected until it serves; building groups and offsets of the records is the difference.
Both stores, and then the same log with a history twice as long behind it, compacted by the store itself.

Python's cycle collector is set as the service sets it. ``REJOIN_LOAD_GROUPS`` makes it smaller.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import loop_factory
from rejoin.coordinator.commands.log.contents import LogRecord, LogSummary
from rejoin.coordinator.commands.log.filling import fill_database
from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.storage.base import Observer
from rejoin.coordinator.storage.codec import Entry, decode, encode
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.log import PostgresLog
from rejoin.coordinator.storage.sqlite.check import rows
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase, connect
from rejoin.coordinator.storage.sqlite.log import PIECE_RECORDS, SqliteLog
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.posix import calm_collector
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from rejoin.protocol.records.consumer_offsets import (
    OFFSETS_TOPIC,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    group_record,
    offset_record,
    offsets_partition,
)
from rejoin.protocol.types import TopicPartition
from tests.postgres import running_server

GROUPS: Final = int(os.environ.get("REJOIN_LOAD_GROUPS", "10000"))
MEMBERS: Final = 10
OFFSETS: Final = 100
PARTITION = offsets_partition(0)
OPTIONS: Final[dict[str, Any]] = {
    "settings": Settings.model_validate({"offsets.topic.num.partitions": 1}),
    "listen": False,
}
_PIECE: Final = (
    "SELECT position, producer_id, key, value FROM log "
    "WHERE topic = '__consumer_offsets' AND partition = 0 AND position > $1 ORDER BY position LIMIT $2"
)


def entries(rounds: int) -> Iterator[tuple[TopicPartition, int, Entry | None]]:
    """Each group and its offsets, so often."""
    subscription = encode_subscription(Subscription(topics=("orders",)))
    assignments = [
        encode_assignment(Assignment(partitions=(TopicPartition("orders", member),))) for member in range(MEMBERS)
    ]
    for generation in range(1, rounds + 1):
        for number in range(GROUPS):
            group_id = f"group-{number}"
            members = tuple(
                MemberMetadata(
                    member_id=f"consumer-{number}-{member}-0d0ab8cf-2d37-4b26-9b25-5d9f0a8a1b7e",
                    client_id="consumer",
                    client_host="/127.0.0.1",
                    rebalance_timeout=300_000,
                    session_timeout=45_000,
                    subscription=subscription,
                    assignment=assignments[member],
                )
                for member in range(MEMBERS)
            )
            value = GroupMetadataValue(
                protocol_type="consumer",
                generation=generation,
                protocol="range",
                leader=members[0].member_id,
                current_state_timestamp=1_700_000_000_000,
                members=members,
            )
            yield PARTITION, 0, encode(group_record(group_id, value))
            for partition in range(OFFSETS):
                committed = OffsetCommitValue(offset=generation * 1_000_000, commit_timestamp=1_700_000_000_000)
                yield PARTITION, 0, encode(offset_record(group_id, "orders", partition, committed))


def records(rounds: int) -> Iterator[LogRecord]:
    """The same for an import."""
    return (LogRecord(partition, epoch, entry) for partition, epoch, entry in entries(rounds) if entry)


@dataclass(frozen=True)
class _Store:
    """Where a log is kept, and how it is read and parsed by itself."""

    name: str
    options: Options
    fill: Callable[[int], Awaitable[None]]
    read: Callable[[], Awaitable[int]]


# --- SQLite


def sqlite(folder: Path) -> _Store:
    """A data directory."""

    async def fill(rounds: int) -> None:
        log = SqliteLog(SqliteDatabase(folder))
        await log.start()
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        log.database.submit(partial(log.fill, entries(rounds)), done.set_result)
        count = await done
        assert isinstance(count, int), count
        if rounds > 1:
            log.compactor.look_after()
            while log.compactor.is_busy:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert sum(each.records for each in log.index.durable.values()) == count // rounds
        await log.close()

    async def read() -> int:
        connection = connect(folder / DATABASE, read_only=True)
        after = count = 0
        while found := rows(connection, 0, after, 2**62, PIECE_RECORDS):
            after = found[-1][0]
            count += len(decode(OFFSETS_TOPIC, ((producer_id, key, value) for _, producer_id, _, key, value in found)))
        connection.close()
        return count

    return _Store("SQLite", Options(data=folder, **OPTIONS), fill, read)


# --- PostgreSQL


def postgresql(url: str) -> _Store:
    """A database, in which a partition is compacted by the node that leads it."""

    async def fill(rounds: int) -> None:
        # Only an empty store can be filled, so its topics are taken out and put back with the records.
        database = Database(url)
        await database.start()
        async with database.acquire() as connection:
            topics: list[Any] = [
                tuple(row) for row in await connection.fetch("DELETE FROM topics_log RETURNING version, record::text")
            ]
        await database.close()
        await asyncio.to_thread(fill_database, url, LogSummary({PARTITION: 0}, topics), records(rounds))
        if rounds > 1:
            await compact()

    async def compact() -> None:
        database = Database(url)
        log = PostgresLog(database, 1, Observer())
        await log.start()
        async with database.acquire() as connection:
            epoch = await connection.fetchval("UPDATE leases SET node_id = 1, epoch = epoch + 1 RETURNING epoch")
        ended = asyncio.Event()
        log.read(PARTITION, epoch, lambda _, is_last: ended.set() if is_last else None)
        await ended.wait()
        # It looks whether it is time to when something is written.
        log.append(PARTITION, epoch, decode(OFFSETS_TOPIC, [next(records(1)).entry]), lambda error: None)
        async with database.acquire() as connection:
            while await connection.fetchval("SELECT count(*) FROM log") > GROUPS * (1 + OFFSETS):  # noqa: ASYNC110 - the store removes them slice by slice
                await asyncio.sleep(0.5)
            assert await connection.fetchval("SELECT count(*) FROM log") == GROUPS * (1 + OFFSETS)
            await connection.execute("UPDATE leases SET node_id = NULL")
        await log.close()
        await database.close()

    async def read() -> int:
        database = Database(url)
        await database.start()
        after = count = 0
        async with database.acquire() as connection:
            while found := await connection.fetch(_PIECE, after, PIECE_RECORDS):
                after = found[-1][0]
                count += len(decode(OFFSETS_TOPIC, [tuple(row)[1:] for row in found]))
        await database.close()
        return count

    return _Store("PostgreSQL", Options(store=url, **OPTIONS), fill, read)


# --- measuring


async def load(options: Options) -> tuple[float, float, int]:
    """Seconds until the partition is led and until it is loaded, and the committed offsets that a node then has."""
    app = App(options)
    began = time.perf_counter()
    starting = asyncio.ensure_future(app.start())
    # Asking the node how it is would cost more than what is measured.
    node, partition = app.runtime.node, offsets_partition(0)
    while node.shard(partition) is None:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    elected = time.perf_counter()
    while (shard := node.shard(partition)) is not None and not shard.is_active:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    loaded = time.perf_counter()
    await starting
    offsets = app.runtime.node.describe().offsets
    await app.stop()
    return elected - began, loaded - elected, offsets


async def measure(store: _Store, rounds: int) -> tuple[str, ...]:
    """A row of the table."""
    # Offsets of topics that are not there would be deleted when they are loaded.
    async with App(replace(store.options, topics=(InitialTopic("orders", OFFSETS),))):
        pass
    await store.fill(rounds)
    gc.collect()
    began = time.perf_counter()
    count = await store.read()
    reading = time.perf_counter() - began
    gc.collect()
    starting, loading, offsets = await load(store.options)
    assert offsets == GROUPS * OFFSETS
    seconds = (f"{each:.1f}" for each in (starting, reading, loading))
    written = "once" if rounds == 1 else "compacted"
    return store.name, written, *seconds, f"{count / loading:,.0f}", f"{reading / loading:.2f}"


def main() -> None:
    """Fill, read, load; print a table."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    table = Table(title=f"load of {GROUPS:,} groups of {MEMBERS}, {GROUPS * OFFSETS:,} offsets")
    for column in ("store", "written", "start s", "parse s", "load s", "records/s", "of parse"):
        table.add_column(column, justify="left" if column in ("store", "written") else "right")
    with tempfile.TemporaryDirectory() as name, running_server() as server:
        for rounds in (1, 2):
            for store in (sqlite(Path(name) / str(rounds)), postgresql(server.url(f"rounds_{rounds}"))):
                began = time.perf_counter()
                with asyncio.Runner(loop_factory=loop_factory()) as runner:
                    table.add_row(*runner.run(measure(store, rounds)))
                print(f"{len(table.rows)} of 4 measured, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    printer().print(table)


if __name__ == "__main__":
    main()
