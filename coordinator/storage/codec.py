"""How a record is kept: the JSON of its key and of its value, as Kafka's console formatter prints them, and a checksum.

Which fields a version has, and which type of record a key means, is in the protocol's table of records.
Kafka: ApiMessageFormatter.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from pydantic import ValidationError

from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, Record, TransactionMarker
from rejoin.protocol.records.table import RECORD_TYPES
from rejoin.protocol.types import TopicPartition

_NOTHING: Final = "\0"
_VERSION: Final = re.compile(r'\{"version":(\d+),')

PLAIN: Final = -1
"""The producer id of what no transaction wrote."""


class Entry(NamedTuple):
    """A record as it is kept. Without a value it is a tombstone; without a key, the end of a producer's transaction."""

    producer_id: int
    key: str | None
    value: str | None


Row: TypeAlias = tuple[int, int, int, str | None, str | None]
"""Position, producer id, checksum, key, value."""


class Unreadable(Exception):
    """What is kept is not what was written; the text says where and why."""


def encode(record: Record) -> Entry:
    """How a record is kept."""
    if isinstance(record, TransactionMarker):
        ended = {"producerEpoch": record.producer_epoch, "committed": record.committed}
        return Entry(record.producer_id, None, orjson.dumps(ended).decode())
    return Entry(record.producer_id, record.key.as_json(), None if record.value is None else record.value.as_json())


def decode(topic: str, entries: Iterable[tuple[int, str | None, str | None]]) -> tuple[Record, ...]:
    """The records of a topic's log out of (producer id, key, value) of each.

    Raises :class:`Unreadable` for what is not one.
    """
    types = RECORD_TYPES.get(topic, {})
    found: list[Record] = []
    for producer_id, key, value in entries:
        try:
            if key is None:
                found.append(TransactionMarker.model_validate({"producer_id": producer_id, **_marker(value)}))
            else:
                record_type = types[_version(key)]
                text = f'{{"key":{key},"value":{value or "null"},"producerId":{producer_id}}}'
                record = record_type.record.__pydantic_validator__.validate_json(text)
                if record.value is not None and not record_type.reads_value(record.value.version):
                    raise ValueError(f"{record_type.name} has no version {record.value.version}")
                found.append(record)
        except KeyError as problem:
            raise Unreadable(f"it is no record: {key} {value}: keys have no version {problem}") from problem
        except (ValidationError, ValueError, TypeError) as problem:
            raise Unreadable(f"it is no record: {key} {value}: {_first_line(problem)}") from problem
    return tuple(found)


def checksum(partition: TopicPartition, position: int, entry: Sequence[Any]) -> int:
    """A CRC-32 of an entry and its place; of a row's last three after the position.

    The offsets topic goes without its name, as when it was the only one.
    """
    producer_id, key, value = entry
    topic, index = partition
    name = index if topic == OFFSETS_TOPIC else f"{topic}-{index}"
    # A value that is missing must not look like one that is empty.
    text = f"{name} {position} {producer_id}{'' if key is None else key}{_NOTHING if value is None else value}"
    return zlib.crc32(text.encode())


def check(partition: TopicPartition, rows: Iterable[Row]) -> None:
    """Raise :class:`Unreadable` at the first row that is not what was written."""
    for position, producer_id, kept, key, value in rows:
        if checksum(partition, position, (producer_id, key, value)) != kept:
            raise Unreadable(f"{partition}, position {position}: the checksum does not fit the record")


def _version(key: str) -> int:
    """The version of a key. It stands first in what is written here; an imported key may have it elsewhere."""
    found = _VERSION.match(key)
    return int(found[1]) if found else int(orjson.loads(key)["version"])


def _marker(value: str | None) -> dict[str, Any]:
    fields = orjson.loads(value or "")
    return {"producer_epoch": fields["producerEpoch"], "committed": fields["committed"]}


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0]
