"""Nodes and leases in PostgreSQL: what ``Beat``, ``Take`` and ``GiveBack`` promise, by the clock of its server.

Each request is a few statements that stand for themselves, never a transaction of several round trips: a process that
is stopped between two of them holds no lock. Lease rows are locked in the order of their partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.leases import (
    Beat,
    BeatResult,
    GiveBack,
    GiveBackResult,
    LeaseInput,
    Refusal,
    Request,
    Take,
    TakeResult,
)
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.coordinator.storage.base import StoreProblem
from rejoin.coordinator.storage.postgres.database import CONNECT_SECONDS, Connection, Database
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition

CLUSTER_CHANGED: Final = "cluster"
"""What is notified when nodes or leases change hands."""

_EXPIRES: Final = "clock_timestamp() + {0}::integer * interval '1 millisecond'"
_MS_LEFT: Final = "ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint"

_LAY_OUT: Final = """
INSERT INTO leases (partition, epoch)
SELECT partition, -1 FROM unnest($1::integer[]) AS partition
WHERE NOT EXISTS (SELECT FROM leases) ON CONFLICT DO NOTHING
"""
_REGISTER: Final = f"""
INSERT INTO nodes (node_id, incarnation, host, port, rack, draining, expires_at)
VALUES ($1, $2::uuid, $3, $4, $5, false, {_EXPIRES.format("$6")})
ON CONFLICT (node_id) DO UPDATE SET incarnation = excluded.incarnation, host = excluded.host, port = excluded.port,
    rack = excluded.rack, draining = false, expires_at = excluded.expires_at
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
# Locked against the append that may be under way, which is waited for by coming back: one that hangs must not hold up
# the others.
_TAKE: Final = f"""
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
_GIVE: Final = """
WITH given AS (
    SELECT partition FROM leases
    WHERE incarnation = $1::uuid
        AND ($4 OR (partition, epoch) IN (SELECT * FROM unnest($2::integer[], $3::bigint[])))
    ORDER BY partition FOR NO KEY UPDATE
)
UPDATE leases SET expires_at = NULL FROM given WHERE leases.partition = given.partition
"""
_LEAVE: Final = "DELETE FROM nodes WHERE node_id = $1 AND incarnation = $2::uuid"
_NODES: Final = f"""
SELECT node_id, incarnation::text, host, port, rack, draining, {_MS_LEFT} AS ms_left FROM nodes ORDER BY node_id
"""
_NODE: Final = f"""
SELECT node_id, incarnation::text, host, port, rack, draining, {_MS_LEFT} AS ms_left FROM nodes WHERE node_id = $1
"""
_LEASES: Final = f"""
SELECT partition, epoch, coalesce(node_id, -1) AS node_id, coalesce(incarnation::text, '') AS incarnation, load_ms,
    {_MS_LEFT} AS ms_left
FROM leases ORDER BY partition
"""


class LeaseStore:
    """One node's way to the tables ``nodes`` and ``leases``, over one connection that is made anew when it breaks.

    ``on_notification`` is called with what was notified on ``channel``, and after each new connection, since what was
    sent meanwhile was missed.
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
        """See to it that there is a lease for each partition. Raises :class:`StoreProblem` where there are others."""
        connection = await self._connected()
        await connection.execute(_LAY_OUT, _indexes(self._partitions))
        there = await connection.fetchval("SELECT count(*) FROM leases")
        if there != len(self._partitions):
            raise StoreProblem(
                f"the store {self._database.shown} was made for {there} offsets partitions, and this node is set to "
                f"{len(self._partitions)}: start it with -c offsets.topic.num.partitions={there}, or give another "
                "search_path"
            )

    async def carry_out(self, request: Request) -> LeaseInput:
        """Do what is asked. Raises what asyncpg raises when it cannot be done, or may have been."""
        connection = await self._connected()
        match request:
            case Beat():
                return await self._beat(connection, request)
            case Take():
                return await self._take(connection, request)
            case GiveBack():
                return await self._give(connection, request)

    async def view(self) -> LeadershipView:
        """What the tables show."""
        connection = await self._connected()
        nodes = await connection.fetch(_NODES)
        leases = await connection.fetch(_LEASES)
        return LeadershipView(tuple(NodeInfo(**row) for row in nodes), tuple(_lease(row) for row in leases))

    def hang_up(self) -> None:
        """Break the connection; whatever was asked through it may still be done."""
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

    async def _beat(self, connection: Connection, request: Beat) -> LeaseInput:
        broker = self.broker
        there = await connection.fetchval(
            _REGISTER, broker.node_id, self._incarnation, broker.host, broker.port, broker.rack, self._lease_ms
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
        return BeatResult(tuple(sorted(offsets_partition(row["partition"]) for row in renewed)), await self.view())

    async def _take(self, connection: Connection, request: Take) -> LeaseInput:
        taken = await connection.fetch(
            _TAKE, _indexes(request.partitions), self._incarnation, self.broker.node_id, self._lease_ms
        )
        if taken:
            await self._notify(connection)
        return TakeResult({offsets_partition(row["partition"]): row["epoch"] for row in taken})

    async def _give(self, connection: Connection, request: GiveBack) -> LeaseInput:
        await connection.execute(
            _GIVE, self._incarnation, _indexes(request.held), list(request.held.values()), request.leave
        )
        if request.leave:
            await connection.execute(_LEAVE, self.broker.node_id, self._incarnation)
        await self._notify(connection)
        return GiveBackResult()

    async def _notify(self, connection: Connection) -> None:
        await connection.execute("SELECT pg_notify($1, $2)", self.channel, CLUSTER_CHANGED)


def _indexes(partitions: Iterable[TopicPartition]) -> list[int]:
    return [partition.partition for partition in partitions]


def _lease(row: Any) -> LeaseInfo:
    fields = dict(row)
    return LeaseInfo(partition=offsets_partition(fields.pop("partition")), **fields)
