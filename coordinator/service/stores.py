"""Where a node keeps what must outlive it: nowhere, in a directory of its own, or in a database that it shares."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from rejoin.coordinator.leadership.base import Leadership
from rejoin.coordinator.leadership.sole_leader import SoleLeader
from rejoin.coordinator.storage.base import OffsetsLog, SoleLog, StoreProblem
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.topics.base import TopicsLog, TopicsNotStored
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

    from rejoin.coordinator.config import Settings
    from rejoin.coordinator.service.driver import Runtime
    from rejoin.coordinator.service.metrics import Metrics
    from rejoin.coordinator.storage.topics.sync import TopicsSync

SCHEMES = ("postgresql", "postgres")


class Store:
    """What a runtime is made with: a log, and who says what the node leads."""

    def __init__(
        self,
        log: OffsetsLog,
        leadership: Leadership,
        shown: str = "memory",
        topics_log: TopicsLog | None = None,
    ) -> None:
        self.log = log
        self.shown = shown
        """Which one it is, for people; never with a password."""
        self.topics_log = topics_log
        self.leadership = leadership

    @property
    def is_durable(self) -> bool:
        """Whether topics are there again after a restart."""
        return self.topics_log is not None

    def attach(self, runtime: Runtime) -> None:
        """The runtime is made."""

    async def close(self) -> None:
        """The runtime has stopped."""


def open_store(log: SoleLog, data: Path | None, url: str | None, settings: Settings, metrics: Metrics) -> Store:
    """The store that was asked for, not connected yet. Raises :class:`StoreProblem` where it cannot be one.

    Imports are where they are needed: a node without a store does not wait for a database's.
    """
    if url is not None:
        check_url(url)
        return PostgresStore(url, settings, metrics)
    partitions = _offsets_partitions(settings)
    if data is not None:
        from rejoin.coordinator.storage.sqlite.database import SqliteDatabase  # noqa: PLC0415
        from rejoin.coordinator.storage.sqlite.log import SqliteLog  # noqa: PLC0415
        from rejoin.coordinator.storage.topics.sqlite import SqliteTopicsLog  # noqa: PLC0415

        database = SqliteDatabase(data)
        kept = SqliteLog(database, metrics.store)
        return Store(kept, SoleLeader(kept, partitions), str(data), SqliteTopicsLog(database))
    return Store(log, SoleLeader(log, partitions))


def _offsets_partitions(settings: Settings) -> list[TopicPartition]:
    return [offsets_partition(index) for index in range(settings.offsets_topic_num_partitions)]


def check_url(url: str) -> None:
    """Raises :class:`StoreProblem` for what cannot be the address of a database; says nothing that could be secret."""
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in SCHEMES and (parts.port is None or parts.port > 0)
    except ValueError:
        is_right = False
    if not is_right:
        raise StoreProblem(
            "--store: this is not the address of a PostgreSQL database; expected "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )


class PostgresStore(Store):
    """One database for all nodes of a cluster."""

    def __init__(self, url: str, settings: Settings, metrics: Metrics) -> None:
        from rejoin.coordinator.leadership.lease_driver import LeaseDriver  # noqa: PLC0415
        from rejoin.coordinator.leadership.lease_store import LeaseStore  # noqa: PLC0415
        from rejoin.coordinator.storage.postgres.database import Database  # noqa: PLC0415
        from rejoin.coordinator.storage.postgres.log import PostgresLog  # noqa: PLC0415
        from rejoin.coordinator.storage.topics.postgres import PostgresTopicsLog  # noqa: PLC0415

        incarnation = str(uuid.uuid4())
        partitions, lease_ms = _offsets_partitions(settings), settings.broker_session_timeout_ms
        self._database = Database(url)
        self._leases = LeaseStore(self._database, incarnation, partitions, lease_ms)
        self._holder = LeaseDriver(
            self._leases, settings.broker_id, incarnation, partitions, lease_ms, self._know_topics
        )
        self._runtime: Runtime | None = None
        self._throttle = LogThrottle(structlog.get_logger("coordinator").bind())
        super().__init__(
            PostgresLog(self._database, settings.broker_id, metrics.store),
            self._holder,
            self._database.shown,
            PostgresTopicsLog(self._database, lambda: self._leases.channel),
        )

    def attach(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._leases.load_ms = runtime.load_ms.get
        self._leases.on_notification = self._on_notification

    def _on_notification(self, what: str) -> None:
        """A node has stored something; an empty text may stand for anything."""
        from rejoin.coordinator.leadership.lease_store import CLUSTER_CHANGED  # noqa: PLC0415
        from rejoin.coordinator.storage.topics.postgres import TOPICS_CHANGED  # noqa: PLC0415

        if what != CLUSTER_CHANGED:
            self._topics().catch_up_soon()
        if what != TOPICS_CHANGED:
            self._holder.on_store_changed()

    async def _know_topics(self) -> bool:
        """Catch up with the topics before groups are loaded whose offsets are of topics that others have made."""
        try:
            await self._topics().catch_up()
        except TopicsNotStored as problem:
            self._throttle.failed("not_leading_yet", str(problem), level="warning")
            return False
        self._throttle.recovered("not_leading_yet", "topics_known_again")
        return True

    def _topics(self) -> TopicsSync:
        assert self._runtime is not None, "it was attached"
        assert self._runtime.topics is not None, "it was made with the topics log"
        return self._runtime.topics

    async def close(self) -> None:
        await self._database.close()
