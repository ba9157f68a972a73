"""How long a node needs to load an offsets partition: 10,000 groups of 10 members, and 1,000,000 committed offsets.

Compared, in one run and one process, with merely reading the same records from the same store and parsing them. The
node's time is from when it is elected until it serves; building groups and offsets of the records is the difference.
Then the same log with a history twice as long behind it, compacted by the log itself while it was written.

Python's cycle collector is set as the service sets it. ``REJOIN_LOAD_GROUPS`` makes it smaller.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.http_load import loop_factory
from coordinator.config import Settings
from coordinator.offsets_log.codec import Entry, decode, encode
from coordinator.offsets_log.sqlite import PIECE_RECORDS, SqliteLog
from coordinator.offsets_log.sqlite_check import rows
from coordinator.offsets_log.sqlite_database import SqliteDatabase, connect
from coordinator.offsets_log.sqlite_files import DATABASE
from coordinator.server.app import App, Options, Topic, calm_collector
from protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from protocol.records import GroupMetadataValue, MemberMetadata, OffsetCommitValue, group_record, offset_record

GROUPS: Final = int(os.environ.get("REJOIN_LOAD_GROUPS", "10000"))
MEMBERS: Final = 10
OFFSETS: Final = 100


def entries(rounds: int) -> Iterator[tuple[int, int, Entry | None]]:
    """Each group and its offsets, so often."""
    subscription = encode_subscription(Subscription(topics=("orders",)))
    assignments = [encode_assignment(Assignment(partitions=(("orders", member),))) for member in range(MEMBERS)]
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
            yield 0, 0, encode(group_record(group_id, value))
            for partition in range(OFFSETS):
                committed = OffsetCommitValue(offset=generation * 1_000_000, commit_timestamp=1_700_000_000_000)
                yield 0, 0, encode(offset_record(group_id, "orders", partition, committed))


async def fill(folder: Path, rounds: int) -> None:
    """Write the log, and let it be compacted when it has a history."""
    # Offsets of topics that are not there would be deleted when they are loaded.
    async with App(Options(data=folder, listen=False, topics=(Topic("orders", OFFSETS),))):
        pass
    log = SqliteLog(SqliteDatabase(folder))
    await log.start()
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    log.database.submit(partial(log.fill, entries(rounds)), done.set_result)
    count = await done
    assert isinstance(count, int), count
    if rounds > 1:
        log._compactor.look_after()
        while log._compactor.is_busy:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert sum(each.records for each in log._books.durable.values()) == count // rounds
    await log.close()


def bare(folder: Path) -> tuple[int, float]:
    """Records, and the seconds to read and parse them in the pieces in which a node does."""
    connection = connect(folder / DATABASE, read_only=True)
    began = time.perf_counter()
    after = count = 0
    while found := rows(connection, 0, after, 2**62, PIECE_RECORDS):
        after = found[-1][0]
        count += len(decode((producer_id, key, value) for _, producer_id, _, key, value in found))
    took = time.perf_counter() - began
    connection.close()
    return count, took


async def load(folder: Path) -> tuple[float, float, int]:
    """Seconds to check the directory and to load the partition, and the committed offsets that a node then has."""
    settings = Settings.model_validate({"offsets.topic.num.partitions": 1})
    app = App(Options(settings=settings, data=folder, listen=False))
    began = time.perf_counter()
    starting = asyncio.ensure_future(app.start())
    # Asking the node how it is would cost more than what is measured.
    shards = app.runtime.node._shards
    while not shards.by_partition:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    elected = time.perf_counter()
    while shards.is_loading:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    loaded = time.perf_counter()
    await starting
    offsets = app.runtime.node.describe(0).offsets
    await app.stop()
    return elected - began, loaded - elected, offsets


def main() -> None:
    """Fill, read, load; print a table."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    calm_collector()
    table = Table(title=f"load of {GROUPS:,} groups of {MEMBERS}, {GROUPS * OFFSETS:,} offsets, SQLite")
    for column in ("log", "records", "check s", "read+parse s", "load s", "records/s", "of read+parse"):
        table.add_column(column, justify="left" if column == "log" else "right")
    with tempfile.TemporaryDirectory() as name:
        for title, rounds in (("written once", 1), ("compacted", 2)):
            folder = Path(name) / title
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(fill(folder, rounds))
                gc.collect()
                count, reading = bare(folder)
                gc.collect()
                checking, loading, offsets = runner.run(load(folder))
            assert offsets == GROUPS * OFFSETS
            rate, ratio = f"{count / loading:,.0f}", f"{reading / loading:.2f}"
            table.add_row(title, f"{count:,}", f"{checking:.1f}", f"{reading:.1f}", f"{loading:.1f}", rate, ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
