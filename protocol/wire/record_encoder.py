"""Writes the records of a batch one by one as they come, in one pass, and the header over them at the end.

    builder = BatchBuilder(timestamp)
    builder.append(encode_record(0, 0, b"key", b"value"), timestamp)
    batch = builder.seal(CompressionType.NONE)

A batch that is sealed gets another producer id, epoch or sequence by :func:`with_producer_state`.
Kafka: DefaultRecord.writeTo, MemoryRecordsBuilder.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

from rejoin.protocol.wire.compression import CompressionType, compress
from rejoin.protocol.wire.record_batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc_of,
)

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17

_IN_TABLE: Final = 4_096
_ONE_BYTE: Final = 64
_VARINTS: Final = (
    *(bytes((number << 1,)) for number in range(_ONE_BYTE)),
    *(bytes((number << 1 & 0x7F | 0x80, number >> 6)) for number in range(_ONE_BYTE, _IN_TABLE)),
)
"""The signed varints of small numbers: most lengths and deltas are among them."""

_NULL: Final = b"\x01"
_ATTRIBUTES: Final = b"\x00"
_NO_HEADERS: Final = b"\x00"


def signed_varint(value: int) -> bytes:
    """A zig-zag number, of 32 or of 64 bits: both are written alike."""
    if 0 <= value < _IN_TABLE:
        return _VARINTS[value]
    left = (value << 1) ^ (value >> 63)
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers = (),
    attributes: bytes = _ATTRIBUTES,
) -> bytes:
    """One record with its length ahead."""
    times = (_VARINTS[timestamp_delta] if 0 <= timestamp_delta < _IN_TABLE else signed_varint(timestamp_delta)) + (
        _VARINTS[offset_delta] if 0 <= offset_delta < _IN_TABLE else signed_varint(offset_delta)
    )
    if value is None:
        value_length, value = _NULL, b""
    else:
        size = len(value)
        value_length = _VARINTS[size] if size < _IN_TABLE else signed_varint(size)
    if key is None:
        key_length, key = _NULL, b""
    else:
        size = len(key)
        key_length = _VARINTS[size] if size < _IN_TABLE else signed_varint(size)
    behind = _encode_headers(headers) if headers else _NO_HEADERS
    size = 1 + len(times) + len(key_length) + len(key) + len(value_length) + len(value) + len(behind)
    length = _VARINTS[size] if size < _IN_TABLE else signed_varint(size)
    return b"".join((length, attributes, times, key_length, key, value_length, value, behind))


def _encode_headers(headers: Headers) -> bytes:
    written = bytearray(signed_varint(len(headers)))
    for name, content in headers:
        encoded = name.encode()
        written += signed_varint(len(encoded))
        written += encoded
        if content is None:
            written += _NULL
        else:
            written += signed_varint(len(content))
            written += content
    return bytes(written)


class BatchBuilder:
    """The records of one batch. Its base timestamp is that of the first record."""

    __slots__ = ("_buffer", "base_timestamp", "count", "max_timestamp")

    def __init__(self, base_timestamp: int) -> None:
        self._buffer = bytearray(HEADER_SIZE)
        self.base_timestamp = base_timestamp
        self.max_timestamp = base_timestamp
        self.count = 0

    @property
    def size(self) -> int:
        """The bytes so far with the header, not packed."""
        return len(self._buffer)

    def append(self, record: bytes, timestamp: int) -> None:
        """Add a record that was encoded with this builder's count and base timestamp."""
        self._buffer += record
        self.count += 1
        if timestamp > self.max_timestamp:  # noqa: PLR1730 (a call of max costs more than the rest)
            self.max_timestamp = timestamp

    def seal(
        self,
        codec: int,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        *,
        is_transactional: bool = False,
    ) -> bytes:
        """The whole batch. The builder can be thrown away."""
        buffer = self._buffer
        if codec != CompressionType.NONE:
            packed = compress(codec, bytes(memoryview(buffer)[HEADER_SIZE:]))
            buffer = bytearray(HEADER_SIZE)
            buffer += packed
        buffer[:HEADER_SIZE] = BatchHeader(
            base_offset=0,
            batch_length=len(buffer) - LENGTH_END,
            partition_leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=codec | (TRANSACTIONAL_BIT if is_transactional else 0),
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.count,
        ).pack()
        return _with_checksum(buffer)


def with_producer_state(batch: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """A batch with another producer id, epoch and sequence, and the checksum that they need."""
    buffer = bytearray(batch)
    _PRODUCER.pack_into(buffer, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    return _with_checksum(buffer)


def _with_checksum(buffer: bytearray) -> bytes:
    _CRC.pack_into(buffer, _CRC_AT, crc_of(memoryview(buffer)))
    return bytes(buffer)
