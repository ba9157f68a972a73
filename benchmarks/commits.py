"""Commits a second by 64 committers, each of which waits for its answer, with durability on.

Measured in turns, each round all of them, and compared within the round:

- bare: the same rows, of the same columns, written by a group commit of a few lines that does nothing else: no epochs
  are checked, no checksums made, no books kept, nothing is indexed or compacted. SQLite: one table and one thread, a
  transaction for all that wait. PostgreSQL: one connection, and one INSERT for all that wait; beside it "pipelined",
  which sends an INSERT for each, all before the first is answered;
- log: ``append`` of the offsets log;
- node: OffsetCommit through ``Runtime.submit``, ``Node.step`` and the offsets log; requests and answers are objects, so
  HTTP and JSON are not in it. What they cost is in heartbeats.http;
- answered: the same without a partition, which is answered at once. Together with the log this is the least that a node
  can take; what is left of "node" is the group's decision, the record, the event and the completion.

Python's collector looks as often as it does in the service, for all three. CPU is that of this process with all its
threads, without PostgreSQL's.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog
from rich.table import Table

from benchmarks import printer
from benchmarks.server_load import loop_factory
from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.coordinator.storage.codec import encode
from rejoin.coordinator.storage.postgres.database import Database
from rejoin.coordinator.storage.postgres.log import PostgresLog
from rejoin.coordinator.storage.sqlite.database import SqliteDatabase, connect
from rejoin.coordinator.storage.sqlite.log import SqliteLog
from rejoin.posix import calm_collector
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue, offset_record, offsets_partition
from rejoin.protocol.types import ZERO_UUID, TopicPartition
from rejoin.protocol.unvalidated import unvalidated
from tests.postgres import running_server

COMMITTERS: Final = 64
SECONDS: Final = 2.0
LOAD_SECONDS: Final = 30.0
ROUNDS: Final = 7
QUICK_ROUNDS: Final = 3
CPU_BOUND: Final = 0.11
PARTITIONS: Final = 50
_PLACE: Final = (37, 0, -1, 3_405_691_582)
"""Partition, epoch, producer id and checksum of what is written bare."""

Commit = Callable[[int, int], Awaitable[None]]
"""Commits an offset for a committer, and comes back when it is durable."""


@dataclass(slots=True)
class Rate:
    """What a round found."""

    per_second: float
    micros: float
    """The CPU of one."""


def group(committer: int) -> str:
    return f"group-{committer}"


def records(committer: int, number: int) -> tuple[Any, ...]:
    value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=1_700_000_000_000)
    return (offset_record(group(committer), "orders", 0, value),)


# --- bare


class _BareSqlite:
    """A group commit, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    async def commit(self, committer: int, number: int) -> None:
        entry = encode(records(committer, number)[0])
        await self.write((*_PLACE, entry.key, entry.value))

    async def write(self, row: tuple[Any, ...]) -> None:
        """Partition, epoch, producer id, checksum, key and value."""
        done = self._loop.create_future()
        self._waiting.put((row, done))
        await done

    def _run(self) -> None:
        connection = connect(self._path)
        connection.execute(
            "CREATE TABLE log (position INTEGER PRIMARY KEY, partition INTEGER, epoch INTEGER, producer_id INTEGER, "
            "checksum INTEGER, key TEXT, value TEXT)"
        )
        insert = "INSERT INTO log (partition, epoch, producer_id, checksum, key, value) VALUES (?, ?, ?, ?, ?, ?)"
        ended = False
        while not ended:
            batch = [self._waiting.get()]
            with suppress(queue.Empty):
                while True:
                    batch.append(self._waiting.get_nowait())
            ended = None in batch
            batch = [each for each in batch if each is not None]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, [each[0] for each in batch])
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_set_all, [each[1] for each in batch])
        connection.close()


def _set_all(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[_BareSqlite]:
    bare = _BareSqlite(folder / "bare.db")
    try:
        yield bare
    finally:
        await asyncio.to_thread(bare.stop)


@asynccontextmanager
async def bare_sqlite(folder: Path) -> AsyncIterator[Commit]:
    async with _running(folder) as bare:
        yield bare.commit


@asynccontextmanager
async def bare_sqlite_rows(folder: Path) -> AsyncIterator[Callable[[tuple[Any, ...]], Awaitable[None]]]:
    """Writes one row, and comes back when it is durable."""
    async with _running(folder) as bare:
        yield bare.write


@asynccontextmanager
async def bare_postgres(url: str, *, pipelined: bool = False) -> AsyncIterator[Commit]:
    database = Database(url)
    await database.start()
    connection = await database.connect()
    await connection.execute(
        "CREATE TABLE bare (position bigserial PRIMARY KEY, partition integer, epoch bigint, producer_id bigint, "
        "checksum bigint, key text, value text)"
    )
    insert = "INSERT INTO bare (partition, epoch, producer_id, checksum, key, value) "
    one_by_one = insert + "VALUES ($1, $2, $3, $4, $5, $6)"
    together = insert + (
        "SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])"
    )
    waiting: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
    something = asyncio.Event()

    async def commit(committer: int, number: int) -> None:
        entry = encode(records(committer, number)[0])
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(((*_PLACE, entry.key, entry.value), done))
        something.set()
        await done

    async def write() -> None:
        while True:
            await something.wait()
            something.clear()
            await asyncio.sleep(0)
            while waiting:
                rows, futures = zip(*waiting, strict=True)
                waiting.clear()
                if pipelined:
                    await connection.executemany(one_by_one, rows)
                else:
                    await connection.execute(together, *zip(*rows, strict=True))
                _set_all(list(futures))

    writing = asyncio.create_task(write())
    try:
        yield commit
    finally:
        writing.cancel()
        await connection.close()
        await database.close()


# --- ours


def _appending(log: SqliteLog | PostgresLog, epochs: dict[TopicPartition, int]) -> Commit:
    loop = asyncio.get_running_loop()
    partitions = [offsets_partition(partition_for(group(committer), PARTITIONS)) for committer in range(COMMITTERS)]

    async def commit(committer: int, number: int) -> None:
        done: asyncio.Future[ErrorCode] = loop.create_future()
        partition = partitions[committer]
        log.append(partition, epochs[partition], records(committer, number), done.set_result)
        error = await done
        assert error is ErrorCode.NONE, error

    return commit


@asynccontextmanager
async def log_sqlite(folder: Path) -> AsyncIterator[Commit]:
    log = SqliteLog(SqliteDatabase(folder / "log"))
    await log.start()
    epochs = {partition: log.elect(partition) for partition in map(offsets_partition, range(PARTITIONS))}
    try:
        yield _appending(log, epochs)
    finally:
        await log.close()


@asynccontextmanager
async def log_postgres(url: str) -> AsyncIterator[Commit]:
    database = Database(url)
    log = PostgresLog(database, 1)
    await log.start()
    async with database.acquire() as connection:
        await connection.execute(f"INSERT INTO leases SELECT n, 0, 1 FROM generate_series(0, {PARTITIONS - 1}) n")
    try:
        yield _appending(log, dict.fromkeys(map(offsets_partition, range(PARTITIONS)), 0))
    finally:
        await log.close()
        await database.close()


@asynccontextmanager
async def node(options: Options, *, commits_nothing: bool = False) -> AsyncIterator[Commit]:
    """A service; after their first commit, committers may send requests that name no partition."""
    app = App(options)
    await app.start()
    context = Context(api_version=8)
    loop = asyncio.get_running_loop()
    loads_until = loop.time() + LOAD_SECONDS

    async def commit(committer: int, number: int) -> None:
        # Requests are validated where they are read, which is the codec's work.
        partition = unvalidated(
            OffsetCommitRequestPartition,
            partition_index=0,
            committed_offset=number,
            committed_leader_epoch=-1,
            commit_timestamp=-1,
            committed_metadata="",
        )
        topic = unvalidated(OffsetCommitRequestTopic, name="orders", topic_id=ZERO_UUID, partitions=(partition,))
        request = unvalidated(
            OffsetCommitRequest,
            group_id=group(committer),
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=() if commits_nothing and number else (topic,),
        )
        while True:
            done: asyncio.Future[Any] = loop.create_future()
            app.runtime.submit(request, context).when_answered(done.set_result)
            answer = await done
            if not answer.topics or answer.topics[0].partitions[0].error_code is ErrorCode.NONE:
                return
            error = answer.topics[0].partitions[0].error_code
            # A node that has just started still loads its groups.
            assert not number, error
            assert loop.time() < loads_until, error
            await asyncio.sleep(0.01)

    for committer in range(COMMITTERS):
        await commit(committer, 0)
    try:
        yield commit
    finally:
        await app.stop()


# --- measuring


async def rate(commit: Commit) -> Rate:
    """Commits of all committers together."""
    loop = asyncio.get_running_loop()
    counts = [0] * COMMITTERS
    end = loop.time() + SECONDS

    async def run(committer: int) -> None:
        while not counts[committer] or loop.time() < end:
            counts[committer] += 1
            await commit(committer, counts[committer])

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(run(committer) for committer in range(COMMITTERS)))
    done = sum(counts)
    return Rate(done / (time.perf_counter() - began), (time.process_time() - used) / done * 1e6)


async def _measure(makers: dict[str, Callable[[int], Any]], rounds: int) -> dict[str, list[Rate]]:
    found: dict[str, list[Rate]] = {name: [] for name in makers}
    for run in range(rounds):
        for name, make in makers.items():
            async with make(run) as commit:
                gc.collect()
                found[name].append(await rate(commit))
    return found


def main(*, quick: bool = False) -> int:
    """Measure both stores, print a table. Returns 1 where the bound is missed."""
    rounds = min(ROUNDS, QUICK_ROUNDS) if quick else ROUNDS
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    topics = (InitialTopic("orders", 1),)
    table = Table(title=f"commits, {COMMITTERS} committers, durable")
    for column in ("store", "what", "commits/s", "of bare", "CPU µs each", "of bare "):
        table.add_column(column, justify="left" if column in ("store", "what") else "right")
    of_cpu = 0.0
    with tempfile.TemporaryDirectory() as name, running_server() as server:
        root = Path(name)

        def folder(run: int) -> Path:
            made = root / str(run)
            made.mkdir(exist_ok=True)
            return made

        stores: dict[str, dict[str, Callable[[int], Any]]] = {
            "SQLite": {
                "bare": lambda run: bare_sqlite(folder(run)),
                "log": lambda run: log_sqlite(folder(run)),
                "answered": lambda run: node(
                    Options(data=folder(run) / "empty", topics=topics, listen=False), commits_nothing=True
                ),
                "node": lambda run: node(Options(data=folder(run) / "node", topics=topics, listen=False)),
            },
            "PostgreSQL": {
                "bare": lambda run: bare_postgres(server.url(f"bare_{run}")),
                "pipelined": lambda run: bare_postgres(server.url(f"pipelined_{run}"), pipelined=True),
                "log": lambda run: log_postgres(server.url(f"log_{run}")),
                "answered": lambda run: node(
                    Options(store=server.url(f"empty_{run}"), topics=topics, listen=False), commits_nothing=True
                ),
                "node": lambda run: node(Options(store=server.url(f"node_{run}"), topics=topics, listen=False)),
            },
        }
        for store, makers in stores.items():
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                found = runner.run(_measure(makers, rounds))
            for what, rates in found.items():
                beside = list(zip(rates, found["bare"], strict=True))
                table.add_row(
                    store,
                    what,
                    f"{statistics.median(each.per_second for each in rates):,.0f}",
                    f"{statistics.median(each.per_second / bare.per_second for each, bare in beside):.2f}",
                    f"{statistics.median(each.micros for each in rates):,.1f}",
                    f"{statistics.median(bare.micros / each.micros for each, bare in beside):.2f}",
                )
            if store == "SQLite":
                cheapest = {what: min(each.micros for each in rates) for what, rates in found.items()}
                of_cpu = cheapest["bare"] / cheapest["node"]
    printer().print(table)
    is_kept = of_cpu >= CPU_BOUND
    kept = "kept" if is_kept else "MISSED"
    print(f"node on SQLite, CPU, bound ≥ {CPU_BOUND} of bare in the cheapest rounds: {of_cpu:.2f}, {kept}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
