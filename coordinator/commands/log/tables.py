"""The logs in the tables of a cluster, read as one snapshot and checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Self

from rejoin.coordinator.commands.log.contents import (
    BatchCounts,
    LogProblem,
    LogRecord,
    LogSummary,
    StoredTopicChange,
    compact,
    entry_of,
    first_line,
    is_whole,
    problem_of,
    problem_text,
    topic_names,
)
from rejoin.coordinator.storage.codec import Unreadable
from rejoin.coordinator.storage.postgres.batch_reader import PostgresBatchReader
from rejoin.coordinator.storage.postgres.database import CONNECT_SECONDS, LOST, Database, PostgresError
from rejoin.coordinator.storage.remedy import of_database
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import TopicIdPartition, TopicPartition

_ROWS: Final = 5_000
_WITH_TOPICS: Final = 2
"""The first schema version with a table of topics."""
_WITH_TOPIC_PARTITIONS: Final = 4
"""The first schema version whose log has a column for the topic."""
_WITH_DATA: Final = 6
"""The first schema version with tables of batches."""
_DATA_PARTITIONS: Final = (
    "SELECT topic_id, partition FROM data_logs UNION SELECT DISTINCT topic_id, partition FROM batches ORDER BY 1, 2"
)


class PostgresSource:
    """The tables of a cluster, read in one transaction. Nothing is changed; old versions are not migrated."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self.name = self._database.shown
        self.notes: list[str] = []
        self.advice = ""
        self._connection: Any = None
        self._version = 0
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        try:
            self._loop.run_until_complete(self._begin())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(*LOST):
            self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _begin(self) -> None:
        self._connection = await self._database.reach()
        try:
            await self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # The transaction holds no lock that others need, and the user may page through the output slowly.
            await self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = '1h'")
            self._version = await self._database.version(self._connection)
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{self.name} cannot be read: {problem_text(problem)}; expected tables that this user may read"
            ) from problem
        if not self._version:
            raise LogProblem(
                f"{self.name} has no tables of a coordinator; expected the URL that was --store of a coordinator, with "
                "its search_path"
            )

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close(timeout=CONNECT_SECONDS)

    def _fetch(self, query: str, *arguments: object) -> list[Any]:
        try:
            found: list[Any] = self._loop.run_until_complete(self._connection.fetch(query, *arguments))
        except (*LOST, PostgresError) as problem:
            raise LogProblem(
                f"{self.name} cannot be read further: {problem_text(problem)}; expected a server that stays up"
            ) from problem
        return found

    @property
    def _topic(self) -> str:
        """The column of the topic, or the offsets topic as a literal."""
        return "topic" if self._version >= _WITH_TOPIC_PARTITIONS else f"'{OFFSETS_TOPIC}'"

    def contents(self) -> LogSummary:
        leases = self._fetch(f"SELECT {self._topic}, partition, epoch FROM leases ORDER BY 1, 2")
        epochs = {TopicPartition(topic, partition): int(epoch) for topic, partition, epoch in leases}
        found = []
        if self._version >= _WITH_TOPICS:
            found = self._fetch("SELECT version, record::text FROM topics_log ORDER BY version")
        return LogSummary(epochs, [StoredTopicChange(version, compact(record)) for version, record in found])

    def records(self, wanted: frozenset[TopicPartition] | None = None) -> Iterator[LogRecord]:
        """The records by partition, in order."""
        for partition, _, epoch, *row in self._rows(wanted):
            yield LogRecord(partition, epoch, entry_of(row))

    def salvaged(self, wanted: frozenset[TopicPartition] | None = None) -> Iterator[LogRecord]:
        """The records whose checksums are right."""
        lost = 0
        for partition, _, epoch, *row in self._rows(wanted):
            kept = LogRecord(partition, epoch, entry_of(row))
            if is_whole(partition, 0, row) and problem_of(kept) is None:
                yield kept
            else:
                lost += 1
        if lost:
            self.notes.append(f"{lost} damaged records were left out")

    def batch_counts(self) -> BatchCounts:
        """How many batches the topics have, where there are no problems."""
        if self._version < _WITH_DATA:
            return BatchCounts(0, 0)
        ((batches, partitions),) = self._fetch(
            "SELECT coalesce(sum(batches), 0)::bigint, count(*) FROM data_logs WHERE batches > 0"
        )
        return BatchCounts(batches, partitions)

    def problems(self) -> Iterator[str]:
        """Every problem of the tables."""
        self.advice = of_database(self.name).for_data_partitions()
        for problem in self._problems_of_logs():
            self.advice = ""
            yield problem
        yield from self._problems_of_batches()

    def _problems_of_batches(self) -> Iterator[str]:
        """Every partition of a topic that its leader could not read."""
        if self._version < _WITH_DATA:
            return
        topics = topic_names(self.contents().topics) if self._topics_problem() is None else {}
        for topic_id, index in self._fetch(_DATA_PARTITIONS):
            # The topic id names a topic that is gone. Its logs go with the next start.
            reader = PostgresBatchReader(TopicIdPartition(topic_id, index, topics.get(topic_id, topic_id)))
            try:
                end = False
                while not end:
                    _, end = reader.take(self._fetch(*reader.query()))
            except Unreadable as damage:
                yield str(damage)

    def _topics_problem(self) -> str | None:
        """Why the topics cannot be read, or none."""
        try:
            topic_names(self.contents().topics)
        except (ValueError, KeyError, TypeError) as problem:
            return f"the table topics_log cannot be read: {first_line(problem)}"
        return None

    def _problems_of_logs(self) -> Iterator[str]:
        """Every problem but the batches of topics."""
        if (problem := self._topics_problem()) is not None:
            yield problem
        newest = self.contents().epochs
        last: tuple[TopicPartition | None, int] = (None, -1)
        for partition, position, epoch, *row in self._rows(None):
            where = f"{partition}, position {position}"
            if not is_whole(partition, 0, row):
                yield f"{where}: the checksum does not match the record"
            else:
                found = problem_of(LogRecord(partition, epoch, entry_of(row)))
                if found is not None:
                    yield found
            if last[0] == partition and epoch < last[1]:
                yield f"{where}: of epoch {epoch}, behind one of epoch {last[1]}"
            if epoch > newest.get(partition, -1):
                yield f"{where}: of epoch {epoch}, which no node had: the lease has {newest.get(partition, 'none')}"
            last = (partition, epoch)

    def _rows(self, wanted: frozenset[TopicPartition] | None) -> Iterator[Any]:
        """Partition, position, epoch, producer id, checksum, key and value of each record."""
        for topic, index in self._fetch(f"SELECT DISTINCT {self._topic}, partition FROM log ORDER BY 1, 2"):
            partition = TopicPartition(topic, index)
            if wanted is not None and partition not in wanted:
                continue
            query = (
                "SELECT position, epoch, producer_id, checksum, key, value FROM log "
                f"WHERE {self._topic} = $1 AND partition = $2 AND position > $3 ORDER BY position LIMIT {_ROWS}"
            )
            after = 0
            while rows := self._fetch(query, *partition, after):
                for row in rows:
                    yield partition, *row
                after = rows[-1][0]
