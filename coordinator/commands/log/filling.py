"""Fill an empty store with an exported log."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from rejoin.coordinator.commands.log.contents import LogProblem, LogRecord, LogSummary, problem_text
from rejoin.coordinator.storage.codec import Entry, checksum
from rejoin.coordinator.storage.postgres.database import LOST, Database, PostgresError
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.protocol.types import TopicPartition

_ROWS: Final = 5_000
_ALIVE: Final = """
SELECT node_id, host, port, ceil(extract(epoch FROM expires_at - clock_timestamp()))::bigint FROM nodes
WHERE expires_at > clock_timestamp() ORDER BY node_id
"""


def fill_directory(folder: Path, contents: LogSummary, records: Iterable[LogRecord]) -> int:
    """Write a log into an empty data directory: all of its records, or none. Returns how many."""

    async def fill() -> int:
        log = SqliteLog(SqliteDatabase(folder))
        await log.start()
        try:
            if log.holds_anything():
                raise LogProblem(f"{folder} has a log already: expected an empty directory, or a new one")
            entries = list(_entries(contents, records))

            def write(connection: sqlite3.Connection) -> int:
                connection.executemany("INSERT INTO topics_log VALUES (?, ?)", contents.topics)
                return log.fill(entries, connection)

            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            log.database.submit(write, done.set_result)
            written = await done
            if isinstance(written, sqlite3.Error):
                raise LogProblem(
                    f"{folder} cannot be filled: {written}; nothing was imported; expected free space and the "
                    "permission to write"
                ) from written
            if isinstance(written, BaseException):
                raise written
            return int(written)
        finally:
            await log.close()

    return asyncio.run(fill())


def fill_database(url: str, contents: LogSummary, records: Iterable[LogRecord]) -> tuple[int, int]:
    """Write a log into the empty tables of a cluster. Returns how many records, and how many leases were cleared."""

    async def fill() -> tuple[int, int]:
        database = Database(url)
        await database.start()
        try:
            async with database.acquire() as connection, connection.transaction():
                await _refuse_used(connection, database.shown)
                # No node may start before this is done. A refusal must not block the nodes that run.
                await connection.execute("LOCK TABLE nodes, leases IN EXCLUSIVE MODE")
                await _refuse_used(connection, database.shown)
                there = await connection.fetchval("SELECT count(*) FROM leases")
                held = await connection.fetchval("SELECT count(*) FROM leases WHERE node_id IS NOT NULL")
                count, partitions = await _copy(connection, contents, records)
                if there not in (0, partitions):
                    raise LogProblem(
                        f"{database.shown} was made for {there} offsets partitions, and this log has {partitions}: "
                        "expected as many, or another search_path in the URL, where new tables are made"
                    )
                return count, int(held)
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{database.shown} cannot be filled: {problem_text(problem)}; nothing was imported; "
                "expected a server that stays up and tables that Rejoin made"
            ) from problem
        finally:
            await database.close()

    return asyncio.run(fill())


async def _refuse_used(connection: Any, shown: str) -> None:
    """Refuse tables that a live node uses: it would go on with the groups that it has loaded."""
    alive = await connection.fetch(_ALIVE)
    if alive:
        nodes = ", ".join(f"node {node_id} ({host}:{port}, for {left} s)" for node_id, host, port, left in alive)
        raise LogProblem(
            f"{shown} is in use: {nodes}. Stop these nodes first; a killed node counts as alive until its lease has "
            "run out"
        )
    for table, what in (("log", "a log"), ("topics_log", "topics")):
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})"):
            raise LogProblem(
                f"{shown} has {what} already: expected tables without records and topics, or another search_path "
                "in the URL, where new tables are made"
            )


async def _copy(connection: Any, contents: LogSummary, records: Iterable[LogRecord]) -> tuple[int, int]:
    """Copy the records. Returns the number of records and of partitions."""
    count = 0
    ends: dict[TopicPartition, int] = {}
    epochs = dict(contents.epochs)
    rows: list[tuple[Any, ...]] = []
    columns = ["topic", "partition", "position", "epoch", "producer_id", "checksum", "key", "value"]
    for kept in records:
        position = ends[kept.partition] = ends.get(kept.partition, 0) + 1
        epochs[kept.partition] = max(epochs.get(kept.partition, 0), kept.epoch)
        crc = checksum(kept.partition, 0, kept.entry)
        producer_id, key, value = kept.entry
        rows.append((*kept.partition, position, kept.epoch, producer_id, crc, key, value))
        if len(rows) == _ROWS:
            await connection.copy_records_to_table("log", records=rows, columns=columns)
            count += len(rows)
            rows.clear()
    if rows:
        await connection.copy_records_to_table("log", records=rows, columns=columns)
    # A node that has missed the end of its lease must not write with an epoch of the imported log.
    await connection.execute("UPDATE leases SET node_id = NULL, incarnation = NULL, expires_at = NULL")
    await connection.executemany(
        "INSERT INTO leases AS l (topic, partition, epoch) VALUES ($1, $2, $3) "
        "ON CONFLICT (topic, partition) DO UPDATE SET epoch = greatest(l.epoch, excluded.epoch)",
        [(*partition, epoch) for partition, epoch in sorted(epochs.items())],
    )
    await connection.executemany("INSERT INTO topics_log VALUES ($1, $2::jsonb)", contents.topics)
    return count + len(rows), len(epochs)


def _entries(contents: LogSummary, records: Iterable[LogRecord]) -> Iterator[tuple[TopicPartition, int, Entry | None]]:
    for partition, epoch in sorted(contents.epochs.items()):
        yield partition, epoch, None
    for kept in records:
        yield kept.partition, kept.epoch, kept.entry
