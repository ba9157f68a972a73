"""What a log has, whatever it is kept in: its records in order, the newest epochs, and the topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rejoin.coordinator.storage.codec import PLAIN, Entry, Unreadable, decode
from rejoin.protocol.records.consumer_offsets import Record


class LogProblem(Exception):
    """What cannot be done as it was asked for; the text is for the person who asked."""


class Kept(NamedTuple):
    """A record in its place."""

    partition: int
    epoch: int
    entry: Entry

    @property
    def is_marker(self) -> bool:
        """Whether it is the end of a transaction, which Kafka's tools do not show."""
        return self.entry.key is None

    @property
    def is_transactional(self) -> bool:
        return self.entry.producer_id != PLAIN

    def record(self) -> Record:
        """The record itself. Raises :class:`Unreadable`."""
        return decode([self.entry])[0]

    def as_kafka_prints_it(self) -> str:
        """Kafka: ApiMessageFormatter. Key and value with their versions; null where there is no value."""
        return f'{{"key":{self.entry.key},"value":{self.entry.value or "null"}}}'


class TopicChange(NamedTuple):
    """An entry of the topics' log: its version and its JSON."""

    version: int
    record: str


@dataclass(slots=True)
class Contents:
    """Everything but the records, which are read one by one."""

    epochs: dict[int, int] = field(default_factory=dict)
    topics: list[TopicChange] = field(default_factory=list)


Records: TypeAlias = Iterator[Kept]


def problem_of(kept: Kept) -> str | None:
    """Why a record cannot be read, or none."""
    try:
        kept.record()
    except Unreadable as problem:
        return f"partition {kept.partition}: {problem}"
    return None
