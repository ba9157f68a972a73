"""The records of ``__share_group_state`` as bytes. A key begins with the record's type, a value with its version.

Kafka: ShareCoordinatorRecordSerde.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from rejoin.protocol.records.share_group_state import (
    ShareRecordType,
    ShareSnapshotValue,
    ShareStateKey,
    ShareStateRecord,
    ShareStateValue,
    ShareUpdateValue,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.errors import RecordsError, SchemaError
from rejoin.protocol.wire.reader import Reader, compile_reader
from rejoin.protocol.wire.source import Layout
from rejoin.protocol.wire.writer import Writer, compile_writer

VALUE_VERSION: Final = 0
_PREFIX_BYTES: Final = 2
_VALUES: Final[dict[ShareRecordType, type[ShareSnapshotValue | ShareUpdateValue]]] = {
    ShareRecordType.SNAPSHOT: ShareSnapshotValue,
    ShareRecordType.UPDATE: ShareUpdateValue,
}
_Model = type[ShareStateKey | ShareSnapshotValue | ShareUpdateValue]


def key_bytes(key: SharePartitionKey, kind: ShareRecordType) -> bytes:
    """The key of a record of one type."""
    group_id, topic_id, partition = key
    model = unvalidated(ShareStateKey, group_id=group_id, topic_id=topic_id, partition=partition)
    return _prefix(kind) + _writer(ShareStateKey)(model)


def value_bytes(value: ShareStateValue) -> bytes:
    """A value, in its only version."""
    return _prefix(VALUE_VERSION) + _writer(type(value))(value)


def read_key(data: bytes) -> tuple[ShareRecordType, SharePartitionKey] | None:
    """Type and share-partition of a record, or none for a type that is not known."""
    kind = _read_prefix(data)
    if kind not in _VALUES:
        return None
    key: ShareStateKey = _read(ShareStateKey, data)
    return ShareRecordType(kind), SharePartitionKey(key.group_id, key.topic_id, key.partition)


def read_record(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    """A record, or none for a type that is not known. Raises :class:`RecordsError` for bytes that are none."""
    found = read_key(key)
    if found is None:
        return None
    kind, share_partition = found
    if value is None:
        return ShareStateRecord(share_partition, None)
    version = _read_prefix(value)
    if version != VALUE_VERSION:
        raise RecordsError(f"a value of version {version}: expected {VALUE_VERSION}")
    return ShareStateRecord(share_partition, _read(_VALUES[kind], value))


def _read(model: _Model, data: bytes) -> Any:
    try:
        return _reader(model)(data, _PREFIX_BYTES)
    except SchemaError as problem:
        raise RecordsError(f"no {model.__name__}: {problem}") from None


def _read_prefix(data: bytes) -> int:
    if len(data) < _PREFIX_BYTES:
        raise RecordsError(f"{len(data)} bytes: a key or a value begins with two bytes of type or version")
    return int.from_bytes(data[:_PREFIX_BYTES], "big", signed=True)


def _prefix(number: int) -> bytes:
    return number.to_bytes(_PREFIX_BYTES, "big")


def _layout(model: _Model) -> Layout:
    return Layout(0, model is not ShareStateKey)


@cache
def _writer(model: _Model) -> Writer:
    return compile_writer(model, _layout(model))


@cache
def _reader(model: _Model) -> Reader:
    return compile_reader(model, _layout(model), None)
