"""Nodes and leases in PostgreSQL: what ``Renew``, ``Acquire`` and ``Release`` promise, by the server's clock.

Each request is a few separate statements, never a transaction of several round trips: a process that stops between two
of them holds no lock. Lease rows are locked in partition order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.leases import (
    Acquire,
    AcquireResult,
    LeaseInput,
    Refusal,
    Release,
    ReleaseResult,
    Renew,
    RenewResult,
    Request,
)
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.postgres.database import CONNECT_SECONDS, Connection, Database
from rejoin.protocol.brokers.listener_address import addresses_text
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition

CLUSTER_CHANGED: Final = "cluster"
"""The payload of the notification that nodes or leases have changed."""

_EXPIRES: Final = "clock_timestamp() + {0}::integer * interval '1 millisecond'"
_MS_LEFT: Final = "ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint"

_CREATE_LEASES: Final = """
INSERT INTO leases (partition, epoch)
SELECT partition, -1 FROM unnest($1::integer[]) AS partition
WHERE NOT EXISTS (SELECT FROM leases) ON CONFLICT DO NOTHING
"""
_REGISTER: Final = f"""
INSERT INTO nodes (node_id, incarnation, host, port, rack, listeners, draining, expires_at)
VALUES ($1, $2::uuid, $3, $4, $5, $6, false, {_EXPIRES.format("$7")})
ON CONFLICT (node_id) DO UPDATE SET incarnation = excluded.incarnation, host = excluded.host, port = excluded.port,
    rack = excluded.rack, listeners = excluded.listeners, draining = false, expires_at = excluded.expires_at
WHERE nodes.incarnation = excluded.incarnation OR nodes.expires_at <= clock_timestamp()
RETURNING node_id
"""
_RENEW: Final = f"""
WITH held AS (
    SELECT partition, epoch, load_ms FROM unnest($2::integer[], $3::bigint[], $4::integer[])
        AS held (partition, epoch, load_ms)
), mine AS (
    SELECT leases.partition, held.load_ms FROM leases JOIN held USING (partition, epoch)
    WHERE leases.incarnation = $1::uuid AND leases.expires_at > clock_timestamp()
    ORDER BY leases.partition FOR NO KEY UPDATE OF leases
)
UPDATE leases SET expires_at = {_EXPIRES.format("$5")}, load_ms = mine.load_ms
FROM mine WHERE leases.partition = mine.partition RETURNING leases.partition
"""
# An append in flight locks its row. Such a row is skipped and tried again later: an append that hangs must not hold up
# the other partitions.
_ACQUIRE: Final = f"""
WITH free AS (
    SELECT partition FROM leases
    WHERE partition = ANY($1::integer[])
        AND (expires_at IS NULL OR expires_at <= clock_timestamp() OR incarnation = $2::uuid)
    ORDER BY partition FOR UPDATE SKIP LOCKED
)
UPDATE leases SET epoch = epoch + 1, node_id = $3, incarnation = $2::uuid, load_ms = NULL,
    expires_at = {_EXPIRES.format("$4")}
FROM free WHERE leases.partition = free.partition RETURNING leases.partition, leases.epoch
"""
_RELEASE: Final = """
WITH released AS (
    SELECT partition FROM leases
    WHERE incarnation = $1::uuid
        AND ($4 OR (partition, epoch) IN (SELECT * FROM unnest($2::integer[], $3::bigint[])))
    ORDER BY partition FOR NO KEY UPDATE
)
UPDATE leases SET expires_at = NULL FROM released WHERE leases.partition = released.partition
"""
_LEAVE: Final = "DELETE FROM nodes WHERE node_id = $1 AND incarnation = $2::uuid"
_NODES: Final = f"""
SELECT node_id, incarnation::text, host, port, rack, listeners, draining, {_MS_LEFT} AS ms_left FROM nodes
ORDER BY node_id
"""
_NODE: Final = f"""
SELECT node_id, incarnation::text, host, port, rack, listeners, draining, {_MS_LEFT} AS ms_left FROM nodes
WHERE node_id = $1
"""
_LEASES: Final = f"""
SELECT partition, epoch, coalesce(node_id, -1) AS node_id, coalesce(incarnation::text, '') AS incarnation, load_ms,
    {_MS_LEFT} AS ms_left
FROM leases ORDER BY partition
"""


class LeaseStore:
    """One node's access to the tables ``nodes`` and ``leases``, over a connection that is reopened if it breaks.

    ``on_notification`` is called with each payload on ``channel``, and with "" after each new connection, as some
    payloads may have been missed.
    """

    def __init__(
        self, database: Database, incarnation: str, partitions: Sequence[TopicPartition], lease_ms: int
    ) -> None:
        self.channel = ""
        self.on_notification: Callable[[str], None] = lambda what: None
        self.broker = Broker(-1, "", -1)
        self.load_ms: Callable[[TopicPartition], int | None] = lambda partition: None
        self._database = database
        self._incarnation = incarnation
        self._partitions = partitions
        self._lease_ms = lease_ms
        self._connection: Connection | None = None

    async def prepare(self) -> None:
        """Create a lease row for each partition. Raises :class:`StoreProblem` if their number differs."""
        connection = await self._connected()
        await connection.execute(_CREATE_LEASES, _indexes(self._partitions))
        there = await connection.fetchval("SELECT count(*) FROM leases")
        if there != len(self._partitions):
            raise StoreProblem(
                f"the store {self._database.shown} was created with {there} offsets partitions, this node is set to "
                f"{len(self._partitions)}: start it with -c offsets.topic.num.partitions={there}, or use another "
                "search_path"
            )

    async def carry_out(self, request: Request) -> LeaseInput:
        """Carry out a request. An exception of asyncpg means that it failed, or may have succeeded."""
        connection = await self._connected()
        match request:
            case Renew():
                return await self._renew(connection, request)
            case Acquire():
                return await self._acquire(connection, request)
            case Release():
                return await self._release(connection, request)

    async def view(self) -> LeadershipView:
        """Read both tables."""
        connection = await self._connected()
        nodes = await connection.fetch(_NODES)
        leases = await connection.fetch(_LEASES)
        return LeadershipView(tuple(NodeInfo(**row) for row in nodes), tuple(_lease(row) for row in leases))

    def hang_up(self) -> None:
        """Abort the connection; a request in flight may still be carried out."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        connection = await self._database.connect()
        try:
            schema = await connection.fetchval("SELECT current_schema()")
            # PostgreSQL's limit for the name of a channel.
            self.channel = f"rejoin.{schema}"[:63]
            await connection.add_listener(self.channel, lambda *sent: self.on_notification(str(sent[3])))
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        self.on_notification("")
        return connection

    async def close(self) -> None:
        """Close the connection cleanly, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            await connection.close(timeout=CONNECT_SECONDS)

    async def _renew(self, connection: Connection, request: Renew) -> LeaseInput:
        broker = self.broker
        there = await connection.fetchval(
            _REGISTER,
            broker.node_id,
            self._incarnation,
            broker.host,
            broker.port,
            broker.rack,
            addresses_text(broker.endpoints),
            self._lease_ms,
        )
        if there is None:
            other = await connection.fetchrow(_NODE, broker.node_id)
            if other is not None:
                return Refusal(NodeInfo(**other))
        renewed: list[Any] = []
        if request.held:
            loads = [self.load_ms(partition) for partition in request.held]
            renewed = await connection.fetch(
                _RENEW, self._incarnation, _indexes(request.held), list(request.held.values()), loads, self._lease_ms
            )
        self.on_notification("topics")
        return RenewResult(tuple(sorted(offsets_partition(row["partition"]) for row in renewed)), await self.view())

    async def _acquire(self, connection: Connection, request: Acquire) -> LeaseInput:
        acquired = await connection.fetch(
            _ACQUIRE, _indexes(request.partitions), self._incarnation, self.broker.node_id, self._lease_ms
        )
        if acquired:
            await self._notify(connection)
        return AcquireResult({offsets_partition(row["partition"]): row["epoch"] for row in acquired})

    async def _release(self, connection: Connection, request: Release) -> LeaseInput:
        await connection.execute(
            _RELEASE, self._incarnation, _indexes(request.held), list(request.held.values()), request.leave
        )
        if request.leave:
            await connection.execute(_LEAVE, self.broker.node_id, self._incarnation)
        await self._notify(connection)
        return ReleaseResult()

    async def _notify(self, connection: Connection) -> None:
        await connection.execute("SELECT pg_notify($1, $2)", self.channel, CLUSTER_CHANGED)


def _indexes(partitions: Iterable[TopicPartition]) -> list[int]:
    return [partition.partition for partition in partitions]


def _lease(row: Any) -> LeaseInfo:
    fields = dict(row)
    return LeaseInfo(partition=offsets_partition(fields.pop("partition")), **fields)
