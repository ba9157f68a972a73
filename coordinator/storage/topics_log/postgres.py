"""The topics log in PostgreSQL. Every node is notified of changes by another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords
from rejoin.coordinator.storage.postgres.database import LOST, Connection, Database, PostgresError
from rejoin.coordinator.storage.topics_log.base import TopicsNotStored, as_text, changed, whole_as_text
from rejoin.protocol.errors import ErrorCode

TOPICS_CHANGED: Final = "topics"
"""The payload of the notification that topics have changed."""

_READ = "SELECT version, record FROM topics_log WHERE version > $1 ORDER BY version"
# The key lets only one of two that come at once have the next version; a version behind was had long ago.
_APPEND = """
INSERT INTO topics_log (version, record)
SELECT $1 + 1, $2::jsonb
WHERE $1 = coalesce((SELECT max(version) FROM topics_log), 0)
ON CONFLICT DO NOTHING
RETURNING version
"""
# Both at once, so that no reader sees the one without the other.
_COMPACT = """
WITH whole AS (UPDATE topics_log SET record = $2::jsonb WHERE version = $1 RETURNING version)
DELETE FROM topics_log WHERE version < (SELECT version FROM whole)
"""


class PostgresTopicsLog:
    """The topics log of a cluster. ``channel`` is where nodes notify one another of changes."""

    def __init__(self, database: Database, channel: Callable[[], str]) -> None:
        self._database = database
        self._channel = channel

    async def read(self, after: int) -> TopicsChanged:
        async with self._connection() as connection:
            rows = await connection.fetch(_READ, after)
        return changed(after, ((row["version"], row["record"]) for row in rows))

    async def append(self, version: int, records: TopicsRecords) -> int | None:
        async with self._connection() as connection:
            stored: int | None = await connection.fetchval(_APPEND, version, as_text(records))
            if stored is not None:
                await connection.execute("SELECT pg_notify($1, $2)", self._channel(), TOPICS_CHANGED)
        return stored

    async def compact(self, version: int, records: TopicsRecords) -> None:
        async with self._connection() as connection:
            await connection.execute(_COMPACT, version, whole_as_text(records))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        try:
            async with self._database.acquire() as connection:
                yield connection
        except LOST as problem:
            raise TopicsNotStored(ErrorCode.REQUEST_TIMED_OUT, str(problem) or type(problem).__name__) from problem
        except PostgresError as problem:
            raise TopicsNotStored(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)) from problem
