"""The PostgreSQL database of a cluster: connections, and tables of the version that this program knows.

asyncpg is imported here only, and it is an extra: a node that keeps everything in one process does not need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import structlog

from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.postgres.schema import STEPS

try:
    import asyncpg  # type: ignore[import-untyped, unused-ignore]
except ImportError:
    asyncpg = None

Connection: TypeAlias = Any
"""asyncpg has no types of its own: an ``asyncpg.Connection``."""

CONNECT_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 30.0
SESSION: Final = {
    "application_name": "rejoin",
    "synchronous_commit": "on",
    "idle_in_transaction_session_timeout": "10s",
}
"""Settings of each session. A process that is stopped in a transaction must not keep its locks for ever."""

LOST: Final[tuple[type[BaseException], ...]] = (
    (OSError, TimeoutError, EOFError)
    if asyncpg is None
    else (
        OSError,
        TimeoutError,
        EOFError,
        asyncpg.PostgresConnectionError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        asyncpg.AdminShutdownError,
        asyncpg.CrashShutdownError,
        asyncpg.CannotConnectNowError,
    )
)
"""Errors of a broken or refused connection: the last command may or may not have been carried out."""

PostgresError: Final[type[Exception]] = Exception if asyncpg is None else asyncpg.PostgresError
"""Errors of the server for a command that it did not carry out; ``sqlstate`` says why."""


class Database:
    """A pool of connections to one database, and single ones beside it.

    ``url`` is what libpq takes: ``postgresql://user:password@host:port/database``. Parameters that libpq does not know
    become settings of each session, so ``?search_path=NAME`` chooses the schema, which is made where there is none.
    A pool mends itself: a connection that broke is replaced when the next one is asked for.
    """

    def __init__(self, url: str, *, steps: Sequence[str] = STEPS, pool_size: int = 4) -> None:
        if asyncpg is None:
            raise StoreProblem(
                "a store in PostgreSQL needs asyncpg, which is not installed: pip install 'rejoin-kafka[postgres]'"
            )
        self.url = url
        self.shown = _without_password(url)
        self._steps = steps
        self._pool_size = pool_size
        self._pool: Any = None

    async def start(self) -> None:
        """Connect, and bring the tables up to date. Raises :class:`StoreProblem` where either cannot be done.

        It may be started more than once: only the first time counts.
        """
        if self._pool is not None:
            return
        connection = await self.reach()
        try:
            await self._migrate(connection)
        finally:
            await connection.close(timeout=CONNECT_SECONDS)
        self._pool = await asyncpg.create_pool(
            self.url,
            min_size=0,
            max_size=self._pool_size,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings=dict(SESSION),
        )

    async def close(self) -> None:
        """Close the pool; queries under way have some seconds to end."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection out of the pool. Raises one of :data:`LOST` while the database cannot be reached."""
        assert self._pool is not None, "the database was started"
        async with self._pool.acquire(timeout=COMMAND_SECONDS) as connection:
            yield connection

    async def connect(self, on_end: Callable[[], None] | None = None) -> Connection:
        """A connection beside the pool, the caller's to close. ``on_end`` is called once when it ends, however."""
        connection = await asyncpg.connect(
            self.url,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings=dict(SESSION),
        )
        if on_end is not None:
            connection.add_termination_listener(lambda _: on_end())
        return connection

    async def reach(self) -> Connection:
        """The first connection. Raises :class:`StoreProblem` where there can be none."""
        try:
            return await self.connect()
        except (*LOST, ValueError, asyncpg.PostgresError) as problem:
            raise StoreProblem(
                f"the store {self.shown} cannot be reached: {_text(problem)}; expected a PostgreSQL server there that "
                "lets this user in"
            ) from problem

    async def version(self, connection: Connection) -> int:
        """The version of the tables, 0 where there are none, which are not made. Newer ones are a problem."""
        there = "SELECT to_regclass(quote_ident(current_schema()) || '.schema_version') IS NOT NULL"
        if not await connection.fetchval(there):
            return 0
        return await self._known_version(connection)

    async def _known_version(self, connection: Connection) -> int:
        version: int = await connection.fetchval("SELECT max(version) FROM schema_version") or 0
        known = len(self._steps)
        if version > known:
            raise StoreProblem(
                f"the store {self.shown} has tables of version {version}, made by a newer program; this one knows "
                f"version {known} and older: run the newer one, or give another search_path"
            )
        return version

    async def _migrate(self, connection: Connection) -> None:
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            raise StoreProblem(
                f"the store {self.shown} keeps text in {encoding}; expected UTF8: "
                "CREATE DATABASE rejoin ENCODING 'UTF8' TEMPLATE template0"
            )
        try:
            async with connection.transaction():
                version = await self._migrate_alone(connection)
        except asyncpg.InsufficientPrivilegeError as problem:
            raise StoreProblem(
                f"the store {self.shown} does not let this user make tables: {_text(problem)}"
            ) from problem
        if 0 < version < len(self._steps):
            logger: Any = structlog.get_logger("coordinator")
            logger.info("schema_migrated", store=self.shown, from_version=version, to_version=len(self._steps))

    async def _migrate_alone(self, connection: Connection) -> int:
        """Carry out the steps that are missing, while every other node that wants to waits; how many there were."""
        schema = await connection.fetchval("SELECT current_schema()")
        if schema is None:
            schema = (await connection.fetchval("SHOW search_path")).split(",")[0].strip().strip('"')
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('rejoin ' || $1::text, 0))", schema)
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL, since timestamptz NOT NULL)"
        )
        version = await self._known_version(connection)
        for number in range(version, len(self._steps)):
            await connection.execute(self._steps[number])
            await connection.execute("INSERT INTO schema_version VALUES ($1, now())", number + 1)
        return version


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__


def _without_password(url: str) -> str:
    """The URL as it may be shown: of its parameters, those that say which tables are meant."""
    parts = urlsplit(url)
    user, at, host_and_port = parts.netloc.rpartition("@")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name == "search_path"], safe=",")
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host_and_port, query=query))
