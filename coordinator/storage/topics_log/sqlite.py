"""The topics log in a data directory, beside the offsets log."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords
from rejoin.coordinator.storage.sqlite.database import Done, SqliteDatabase, Work
from rejoin.coordinator.storage.topics_log.base import TopicsNotStored, as_text, changed, whole_as_text
from rejoin.protocol.errors import ErrorCode


class SqliteTopicsLog:
    """One process writes here, so none is ever faster; the version is checked all the same."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read(self, after: int) -> TopicsChanged:
        def read(connection: sqlite3.Connection) -> list[tuple[int, str]]:
            return connection.execute(
                "SELECT version, record FROM topics_log WHERE version > ? ORDER BY version", (after,)
            ).fetchall()

        return changed(after, await self._ask(self._database.read, read))

    async def append(self, version: int, records: TopicsRecords) -> int | None:
        def write(connection: sqlite3.Connection) -> int | None:
            newest = connection.execute("SELECT max(version) FROM topics_log").fetchone()[0] or 0
            if newest != version:
                return None
            connection.execute("INSERT INTO topics_log VALUES (?, ?)", (version + 1, as_text(records)))
            return version + 1

        stored: int | None = await self._ask(self._database.submit, write)
        return stored

    async def compact(self, version: int, records: TopicsRecords) -> None:
        def replace(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE topics_log SET record = ? WHERE version = ?", (whole_as_text(records), version))
            connection.execute("DELETE FROM topics_log WHERE version < ?", (version,))

        await self._ask(self._database.submit, replace)

    @staticmethod
    async def _ask(how: Callable[[Work, Done], None], work: Work) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        how(work, done)
        result = await future
        if isinstance(result, BaseException):
            raise TopicsNotStored(ErrorCode.KAFKA_STORAGE_ERROR, str(result)) from result
        return result
