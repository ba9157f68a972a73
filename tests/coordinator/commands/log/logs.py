"""Logs of every kind with the same records in them, and what is in them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import asyncpg

from rejoin.coordinator.storage.sqlite.progress_file import DATABASE
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from tests.coordinator.storage.helpers import Store, gone, group, marker, offset
from tests.coordinator.storage.histories import history

Run = Callable[..., tuple[int, str, str]]

AHEAD = f"{DATABASE}-wal"

ONE_RECORD = ": 1 record in 1 offsets partition, 0 batches in 0 data partitions, all as written\n"
"""What ``verify`` says of a store with one record, behind its name."""

RECORDS: dict[int, list[Record]] = {
    0: [offset(100, "group-id"), group(3, "group-id", members=2), gone(1, "group-id")],
    5: [
        offset(7, 'odd "\\ \u2028 \0 name', 2),
        offset(8, partition=3, producer_id=9),
        marker(),
        marker(4, committed=False),
    ],
    7: history(random.Random(7), 200),
}


def filled(store: Store) -> None:
    async def fill() -> None:
        await store.start()
        for partition, records in RECORDS.items():
            for _ in range(3):
                epoch = await store.elect(partition)
            for record in records:
                assert await store.append(partition, epoch, record) is ErrorCode.NONE
        await store.elect(9)
        await store.close()

    asyncio.run(fill())


def read(store: Store) -> dict[int, list[Record]]:
    async def read() -> dict[int, list[Record]]:
        await store.start()
        found = {partition: await store.read(partition) for partition in RECORDS}
        await store.close()
        return found

    return asyncio.run(read())


async def asked(url: str, *statements: str) -> list[object]:
    """What the last of some statements gave, without this program's hands in between."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            found = await connection.fetch(statement)
    finally:
        await connection.close()
    return [value for (value,) in found]
