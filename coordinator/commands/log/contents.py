"""The contents of a log from any source: its records in order, the newest epochs, and the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import orjson

from rejoin.coordinator.storage.codec import PLAIN, Entry, Unreadable, checksum, decode, is_entry
from rejoin.coordinator.storage.topics_log.base import changed
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.records.topics import RemoveTopicRecord, TopicRecord
from rejoin.protocol.types import TopicPartition


class LogProblem(Exception):
    """A command cannot be carried out. The text is shown to the user."""


class LogNotRead(LogProblem):
    """The log is not there, or cannot be opened: nothing is known about damage."""


class LogRecord(NamedTuple):
    """A record with its partition and epoch."""

    partition: TopicPartition
    epoch: int
    entry: Entry

    @property
    def is_transactional(self) -> bool:
        return self.entry.producer_id != PLAIN

    def record(self) -> Record:
        """The decoded record. Raises :class:`Unreadable`."""
        return decode(self.partition.topic, [self.entry])[0]

    def as_kafka_prints_it(self) -> str:
        """Kafka: ApiMessageFormatter. Key and value with their versions; null where there is no value."""
        return f'{{"key":{self.entry.key},"value":{self.entry.value or "null"}}}'


class StoredTopicChange(NamedTuple):
    """An entry of the log of topics: its version and its JSON."""

    version: int
    record: str


@dataclass(slots=True)
class LogSummary:
    """Everything but the records, which are read as a stream."""

    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    topics: list[StoredTopicChange] = field(default_factory=list)


class BatchCounts(NamedTuple):
    """How many batches a store has, and how many data partitions have any."""

    batches: int
    partitions: int


LogRecords: TypeAlias = Iterator[LogRecord]


def topic_names(topics: Sequence[StoredTopicChange]) -> dict[str, str]:
    """The names of the topics that are there, by topic id. Raises ``ValueError`` or ``KeyError`` for other entries."""
    names: dict[str, str] = {}
    for _, records in changed(0, topics).changes:
        for record in records:
            if isinstance(record, TopicRecord):
                names[record.data.topic_id] = record.data.name
            elif isinstance(record, RemoveTopicRecord):
                names.pop(record.data.topic_id, None)
    return names


def problem_of(kept: LogRecord) -> str | None:
    """Why a record cannot be read, or none."""
    try:
        kept.record()
    except Unreadable as problem:
        return f"{kept.partition}: {problem}"
    return None


def unreadable(records: Iterator[LogRecord]) -> Iterator[str]:
    """The problem of each record that cannot be read."""
    for kept in records:
        found = problem_of(kept)
        if found is not None:
            yield found


def entry_of(row: Sequence[Any]) -> Entry:
    """The record in the last four columns of a row: producer id, checksum, key, value."""
    producer_id, _, key, value = row
    return Entry(producer_id, key, value)


def is_whole(partition: TopicPartition, position: int, row: Sequence[Any]) -> bool:
    """Whether the checksum of a row is right."""
    producer_id, kept, key, value = row
    if not is_entry(producer_id, key, value) or not isinstance(kept, int):
        return False
    return checksum(partition, position, (producer_id, key, value)) == kept


def compact(record: str) -> str:
    """JSON without white space."""
    return orjson.dumps(orjson.loads(record)).decode()


def problem_text(problem: BaseException) -> str:
    """The message of a server in one line."""
    return " ".join(str(problem).split()) or type(problem).__name__


def first_line(problem: Exception) -> str:
    """The first line of a message, which names the problem."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]
