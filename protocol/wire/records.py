"""The records inside a batch of magic 2: read and written one by one, packed or not.

A broker stores batches as they come. It looks inside only for timestamps and keys, to compact, and to show records.
Kafka: DefaultRecord, DefaultRecordBatch, ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from rejoin.protocol.wire.compression import Buffer, decompress
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_encoder import encode_record

_CODEC: Final = 0b111
_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_AT: Final = 21
_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = 57
_RECORDS_AT: Final = 61

_CONTROL_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")


class DefaultRecord(NamedTuple):
    """One record. Offset and timestamp count from those of its batch; a record without a value is a tombstone."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    attributes: int = 0


class ControlRecordType(IntEnum):
    """Types of control records. Only the ends of transactions occur in topics."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The one record of a control batch that ends a transaction."""

    control_type: ControlRecordType
    coordinator_epoch: int

    def as_record(self) -> DefaultRecord:
        """The record as it stands in the batch."""
        return DefaultRecord(
            0, 0, _CONTROL_KEY.pack(0, self.control_type), _MARKER_VALUE.pack(0, self.coordinator_epoch)
        )

    @classmethod
    def of(cls, record: DefaultRecord) -> EndTransactionMarker | None:
        """The marker that a control record is, or none for a control record of another type."""
        if record.key is None or len(record.key) < _CONTROL_KEY.size:
            raise RecordsError(f"a control record with the key {record.key!r}: expected version and type")
        _, control_type = _CONTROL_KEY.unpack_from(record.key)
        if control_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return None
        if record.value is None or len(record.value) < _MARKER_VALUE.size:
            raise RecordsError(f"a marker with the value {record.value!r}: expected version and coordinator epoch")
        _, epoch = _MARKER_VALUE.unpack_from(record.value)
        return cls(ControlRecordType(control_type), epoch)


# --- reading


def read_batch(batch: Buffer) -> list[DefaultRecord]:
    """The records of a whole batch. Raises :class:`RecordsError` where its records are damaged or not as declared."""
    if len(batch) < _RECORDS_AT:
        raise RecordsError(f"a batch of {len(batch)} bytes: its header alone has {_RECORDS_AT}")
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    (count,) = _COUNT.unpack_from(batch, _COUNT_AT)
    return read_records(decompress(attributes & _CODEC, memoryview(batch)[_RECORDS_AT:]), count)


def read_records(data: Buffer, count: int) -> list[DefaultRecord]:
    """Exactly ``count`` records, unpacked. Raises :class:`RecordsError`."""
    data = bytes(data)
    records: list[DefaultRecord] = []
    position = 0
    try:
        for _ in range(count):
            length, start = read_varint(data, position)
            end = start + length
            if length < 0 or end > len(data):
                raise RecordsError(f"record {len(records)} of {length} bytes at {position}: {len(data) - start} follow")
            records.append(read_record(data, start, end))
            position = end
    except IndexError:
        raise RecordsError(f"record {len(records)} of {count} at {position} ends too early") from None
    if position != len(data):
        raise RecordsError(f"{len(data) - position} bytes behind the last of {count} records")
    return records


def read_record(data: bytes, position: int, end: int) -> DefaultRecord:
    """The record between two positions, without its length."""
    attributes = data[position]
    timestamp_delta, position = _read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise RecordsError(f"a record with {count} headers: {end - position} bytes follow")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise RecordsError("a record with a header that has no key")
        content, position = _read_bytes(data, position, end)
        headers.append((name.decode(errors="replace"), content))
    if position != end:
        raise RecordsError(f"a record whose fields end {abs(end - position)} bytes beside its end")
    return DefaultRecord(offset_delta, timestamp_delta, key, value, tuple(headers), attributes)


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Bytes with their length ahead, or null, and the position behind."""
    length, position = read_varint(data, position)
    if length < 0:
        # Kafka: Utils.readBytes. Producers write -1; every other negative length is null as well.
        return None, position
    if length > end - position:
        raise RecordsError(f"a field of {length} bytes: {end - position} are left in the record")
    return data[position : position + length], position + length


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A zig-zag number of at most 32 bits, and the position behind it. ``IndexError`` at the end of the data."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return read_long_number(data, position, 32)


def _read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Read a varint of at most 64 bits."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return read_long_number(data, position, 64)


def read_long_number(data: bytes, position: int, bits: int) -> tuple[int, int]:
    """A zig-zag number of at least two bytes, and the position behind it."""
    second = data[position + 1]
    if second < 0x80:
        value = (data[position] & 0x7F) | (second << 7)
        return (value >> 1) ^ -(value & 1), position + 2
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise RecordsError(f"a number of more than {bits} bits at {position}")
    value &= (1 << bits) - 1
    return (value >> 1) ^ -(value & 1), position


# --- writing


def write_records(records: Iterable[DefaultRecord]) -> bytes:
    """The records one after another, not packed."""
    return b"".join(
        encode_record(
            record.timestamp_delta,
            record.offset_delta,
            record.key,
            record.value,
            record.headers,
            bytes((record.attributes & 0xFF,)),
        )
        for record in records
    )
