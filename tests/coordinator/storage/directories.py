"""Data directories with something in them, copied, and refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.sqlite.progress_file import DATABASE, PROGRESS
from rejoin.protocol.errors import ErrorCode
from tests.coordinator.storage.helpers import Sqlite, offset

NONE, BROKEN, UNKNOWN = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR
RECORDS = [offset(number, partition=number) for number in range(300)]

FILES = (DATABASE, f"{DATABASE}-wal", PROGRESS)


async def fill(store: Sqlite) -> None:
    epoch = await store.elect(0)
    for begin in range(0, len(RECORDS), 10):
        assert await store.append(0, epoch, *RECORDS[begin : begin + 10]) is NONE


def copied(store: Sqlite, to: Path, *names: str) -> Sqlite:
    """A naive copy of some of its files."""
    to.mkdir()
    for name in names or [path.name for path in sorted(store.folder.iterdir())]:
        shutil.copy(store.folder / name, to / name)
    return Sqlite(to)


async def refused(store: Sqlite) -> str:
    """What is said when it is not started. Whatever can still be read is left as it was."""
    before = {name: (store.folder / name).read_bytes() for name in FILES if (store.folder / name).exists()}
    with pytest.raises(StoreProblem) as problem:
        await store.start()
    assert {name: (store.folder / name).read_bytes() for name in before} == before
    return str(problem.value)
