"""The stores of a node: memory, a directory of its own, or a database that several nodes share."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from rejoin.coordinator.leadership.base import Leadership
from rejoin.coordinator.leadership.sole_leader import SoleLeader
from rejoin.coordinator.storage.base import DataLogs, OffsetsLog, SoleLogs, StoreProblem
from rejoin.coordinator.storage.log_throttle import LogThrottle
from rejoin.coordinator.storage.topics_log.base import TopicsLog, TopicsNotStored
from rejoin.coordinator.storage.topics_log.sync import TopicsSync
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.types import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

    from rejoin.coordinator.config import Settings
    from rejoin.coordinator.service.driver import Runtime
    from rejoin.coordinator.service.metrics import Metrics

SCHEMES = ("postgresql", "postgres")


class Store:
    """The logs of a runtime, and its leadership."""

    def __init__(
        self,
        log: OffsetsLog,
        leadership: Leadership,
        label: str = "memory",
        topics_log: TopicsLog | None = None,
        *,
        data_logs: DataLogs,
    ) -> None:
        self.log = log
        self.data_logs = data_logs
        self.label = label
        """Its name for display; never with a password."""
        self.topics_log = topics_log
        self.leadership = leadership

    @property
    def is_durable(self) -> bool:
        """Whether topics survive a restart."""
        return self.topics_log is not None

    def attach(self, runtime: Runtime) -> None:
        """Called with the new runtime."""

    async def close(self) -> None:
        """Called when the runtime has stopped."""


def open_store(log: SoleLogs, data: Path | None, url: str | None, settings: Settings, metrics: Metrics) -> Store:
    """The requested store, not connected yet. Raises :class:`StoreProblem` for an invalid URL.

    Imports are local, so that a node loads only the modules of its own store.
    """
    if url is not None:
        check_url(url)
        return PostgresStore(url, settings, metrics)
    partitions = coordinator_partitions(settings)
    if data is not None:
        from rejoin.coordinator.storage.sqlite.data_logs import SqliteDataLogs  # noqa: PLC0415
        from rejoin.coordinator.storage.sqlite.database import SqliteDatabase  # noqa: PLC0415
        from rejoin.coordinator.storage.sqlite.log import SqliteLog  # noqa: PLC0415
        from rejoin.coordinator.storage.topics_log.sqlite import SqliteTopicsLog  # noqa: PLC0415

        database = SqliteDatabase(data)
        kept = SqliteLog(database, metrics.store)
        data_logs = SqliteDataLogs(database, kept, metrics.store)
        return Store(kept, SoleLeader(kept, partitions), str(data), SqliteTopicsLog(database), data_logs=data_logs)
    return Store(log, SoleLeader(log, partitions), data_logs=log)


def coordinator_partitions(settings: Settings) -> list[TopicPartition]:
    """The partitions of internal topics, each of which has a leader."""
    return [offsets_partition(index) for index in range(settings.offsets_topic_num_partitions)]


def check_url(url: str) -> None:
    """Raise :class:`StoreProblem` for an invalid database URL. The message has no part of the URL."""
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
        from rejoin.coordinator.storage.postgres.data_logs import PostgresDataLogs  # noqa: PLC0415
        from rejoin.coordinator.storage.postgres.database import Database  # noqa: PLC0415
        from rejoin.coordinator.storage.postgres.log import PostgresLog  # noqa: PLC0415
        from rejoin.coordinator.storage.topics_log.postgres import PostgresTopicsLog  # noqa: PLC0415

        incarnation = str(uuid.uuid4())
        partitions, lease_ms = coordinator_partitions(settings), settings.broker_session_timeout_ms
        self._database = Database(url)
        self._leases = LeaseStore(self._database, incarnation, partitions, lease_ms)
        self._lease_driver = LeaseDriver(
            self._leases, settings.broker_id, incarnation, partitions, lease_ms, self._catch_up_with_topics
        )
        self._runtime: Runtime | None = None
        log = PostgresLog(self._database, settings.broker_id, metrics.store)
        self._throttle = LogThrottle(structlog.get_logger("coordinator").bind())
        super().__init__(
            log,
            self._lease_driver,
            self._database.shown,
            PostgresTopicsLog(self._database, lambda: self._leases.channel),
            data_logs=PostgresDataLogs(log),
        )

    def attach(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._leases.load_ms = runtime.load_ms.get
        self._leases.on_notification = self._on_notification

    def _on_notification(self, what: str) -> None:
        """Another node has stored a change; an empty payload may stand for any."""
        from rejoin.coordinator.leadership.lease_store import CLUSTER_CHANGED  # noqa: PLC0415
        from rejoin.coordinator.storage.topics_log.postgres import TOPICS_CHANGED  # noqa: PLC0415

        if what != CLUSTER_CHANGED:
            self._topics().catch_up_soon()
        if what != TOPICS_CHANGED:
            self._lease_driver.on_store_changed()

    async def _catch_up_with_topics(self) -> bool:
        """Read new topics before loading groups, whose offsets may name topics that other nodes have created."""
        try:
            await self._topics().catch_up()
        except TopicsNotStored as problem:
            self._throttle.failed("topics_not_caught_up", str(problem), level="warning")
            return False
        self._throttle.recovered("topics_not_caught_up", "topics_caught_up")
        return True

    def _topics(self) -> TopicsSync:
        assert self._runtime is not None, "it was attached"
        topics = self._runtime.topics
        assert isinstance(topics, TopicsSync), "it was made with the topics log"
        return topics

    async def close(self) -> None:
        await self._database.close()
