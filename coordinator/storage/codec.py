"""Stored records: key and value as the JSON that Kafka's console formatter prints, with a checksum.

The protocol's table of record types has the fields of each version and the record type of each key.
Kafka: ApiMessageFormatter.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from pydantic import ValidationError

from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.keyed import Record, TransactionMarker
from rejoin.protocol.records.table import RECORD_TYPES
from rejoin.protocol.types import TopicPartition

_NOTHING: Final = "\0"
_VERSION: Final = re.compile(r'\{"version":(\d+),')

PLAIN: Final = -1
"""The producer id of a record outside any transaction."""


class Entry(NamedTuple):
    """A stored record. Without a value it is a tombstone; without a key, the marker of a producer's transaction."""

    producer_id: int
    key: str | None
    value: str | None


Row: TypeAlias = tuple[int, int, int, str | None, str | None]
"""Position, producer id, checksum, key, value."""


class Unreadable(Exception):
    """A stored record differs from the one that was written. The text says where and why."""


def encode(record: Record) -> Entry:
    """Stored form of a record. Raises ``ValueError`` for text that is not Unicode."""
    if isinstance(record, TransactionMarker):
        ended = {"producerEpoch": record.producer_epoch, "committed": record.committed}
        return Entry(record.producer_id, None, orjson.dumps(ended).decode())
    key, value = record.key.as_json(), None if record.value is None else record.value.as_json()
    for text in (key, value):
        if text is not None and not text.isascii():
            text.encode()  # half of a surrogate pair cannot be stored
    return Entry(record.producer_id, key, value)


def decode(topic: str, entries: Iterable[tuple[int, str | None, str | None]]) -> tuple[Record, ...]:
    """Decode the records of a topic's log, each from its producer id, key and value.

    Raises :class:`Unreadable` for the first one that is not a record.
    """
    types = RECORD_TYPES.get(topic, {})
    found: list[Record] = []
    for producer_id, key, value in entries:
        try:
            if key is None:
                found.append(_marker(producer_id, value))
            else:
                found.append(types[_version(key)].read(key, value, producer_id))
        except KeyError as problem:
            raise Unreadable(f"it is no record: {key} {value}: keys have no version {problem}") from problem
        except (ValidationError, ValueError, TypeError) as problem:
            raise Unreadable(f"it is no record: {key} {value}: {_first_line(problem)}") from problem
    return tuple(found)


def is_entry(producer_id: object, key: object, value: object) -> bool:
    """Whether these are of the types that an entry has. In a damaged file a column may hold anything."""
    return isinstance(producer_id, int) and isinstance(key, str | None) and isinstance(value, str | None)


def checksum(partition: TopicPartition, position: int, entry: Sequence[Any]) -> int:
    """The CRC-32 of an entry with its partition and position.

    For the offsets topic the name of the topic is left out: the first versions had no other topic.
    """
    producer_id, key, value = entry
    topic, index = partition
    name = index if topic == OFFSETS_TOPIC else f"{topic}-{index}"
    # A missing value and an empty one must differ.
    text = f"{name} {position} {producer_id}{'' if key is None else key}{_NOTHING if value is None else value}"
    return zlib.crc32(text.encode())


def check(partition: TopicPartition, rows: Iterable[Row]) -> None:
    """Raise :class:`Unreadable` at the first row whose checksum is wrong."""
    for position, producer_id, kept, key, value in rows:
        if checksum(partition, position, (producer_id, key, value)) != kept:
            raise Unreadable(f"{partition}, position {position}: the checksum does not match the record")


def _version(key: str) -> int:
    """The version of a key. Keys written here begin with it; imported ones may have it elsewhere."""
    found = _VERSION.match(key)
    return int(found[1]) if found else int(orjson.loads(key)["version"])


def _marker(producer_id: int, value: str | None) -> TransactionMarker:
    fields = orjson.loads(value or "")
    producer_epoch, committed = fields["producerEpoch"], fields["committed"]
    if type(producer_epoch) is not int or type(committed) is not bool:
        raise ValueError("expected a producerEpoch, and committed as true or false")
    return TransactionMarker(producer_id=producer_id, producer_epoch=producer_epoch, committed=committed)


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0]
