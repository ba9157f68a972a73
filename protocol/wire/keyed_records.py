"""The records of ``__consumer_offsets`` in Kafka's binary form: version first, then the fields that it carries.

Kafka: OffsetCommitKey and its like, CoordinatorRecordSerde.
"""

from __future__ import annotations

from typing import Any, Final

from rejoin.protocol.records.keyed import KeyedRecord, VersionedData
from rejoin.protocol.records.table import BY_RECORD
from rejoin.protocol.wire.source import Layout
from rejoin.protocol.wire.writer import Writer, compile_writer


def key_bytes(record: KeyedRecord[Any, Any]) -> bytes:
    """The key of a record. Its version says of which type the record is."""
    return _bytes(record.key, None)


def value_bytes(record: KeyedRecord[Any, Any]) -> bytes | None:
    """The value of a record, or none for a tombstone."""
    return None if record.value is None else _bytes(record.value, BY_RECORD[type(record)].flexible_from)


def _bytes(versioned: VersionedData[Any], flexible_from: int | None) -> bytes:
    version = versioned.version
    is_flexible = flexible_from is not None and version >= flexible_from
    key = type(versioned.data), version
    write = _WRITERS.get(key)
    if write is None:
        write = _WRITERS[key] = compile_writer(type(versioned.data), Layout(version, is_flexible))
    return version.to_bytes(2, "big") + write(versioned.data)


_WRITERS: Final[dict[tuple[type, int], Writer]] = {}
