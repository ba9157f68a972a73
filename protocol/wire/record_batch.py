"""The header of a record batch (magic 2), and its checksum. The records behind the header stay bytes here.

Kafka: DefaultRecordBatch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, Self, TypeAlias

import google_crc32c

Checksum: TypeAlias = Callable[[memoryview], int]
"""Computes the CRC-32C of a buffer."""

HEADER_SIZE: Final = 61
LENGTH_END: Final = 12
"""Where the bytes begin that ``batch_length`` counts."""
LEAST_LENGTH: Final = HEADER_SIZE - LENGTH_END
MAGIC: Final = 2
MAGIC_AT: Final = 16
ATTRIBUTES_AT: Final = 21
"""Where the bytes begin that the checksum covers."""

PRODUCER_ID_END: Final = 51
"""Where the producer id ends."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
KNOWN_ATTRIBUTES: Final = CODEC_MASK | LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
"""Bits of the attributes that have a meaning."""

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

_PIECE: Final = 65_536
MAX_SEQUENCE: Final = 2**31 - 1

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_UP_TO_CHECKSUM: Final = struct.Struct(">qiibI")
_COVERED_BY_CHECKSUM: Final = struct.Struct(">hiqqqhii")
"""The two parts of the header: up to the checksum, and what it covers."""
_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")
_OFFSET_LENGTH_EPOCH: Final = struct.Struct(">qii")
_new_header: Final = tuple.__new__


class BatchHeader(NamedTuple):
    """The header of a batch, field by field."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """The bytes of the whole batch."""
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        """Whether ``max_timestamp`` is the time of every record."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def delete_horizon(self) -> int | None:
        """From when on compaction drops the tombstones or the marker of this batch, or none where that is not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    def pack(self) -> bytes:
        """The header as bytes."""
        return _HEADER.pack(*self)

    def with_fields(self, **changes: int) -> Self:
        """A header with other values in some fields."""
        return self._replace(**changes)

    def with_position(self, base_offset: int, leader_epoch: int) -> BatchHeader:
        """The header at an offset of a log. The checksum does not cover that."""
        return _new_header(BatchHeader, (base_offset, self.batch_length, leader_epoch, *self[3:]))

    def pack_start(self) -> bytes:
        """The bytes before ``MAGIC_AT``: base offset, length and leader epoch."""
        return _OFFSET_LENGTH_EPOCH.pack(*self[:3])


def parse_header(data: bytes | memoryview, at: int = 0) -> BatchHeader:
    """The header of the batch that begins at a position. Raises ``struct.error`` where the bytes end before."""
    return _new_header(BatchHeader, _HEADER.unpack_from(data, at))


def size_at(data: bytes | memoryview, at: int = 0) -> int:
    """The size that the batch at a position claims to have."""
    return LENGTH_END + int(_OFFSET_AND_LENGTH.unpack_from(data, at)[1])


def increment_sequence(sequence: int, by: int) -> int:
    """The sequence so many records later; 0 follows the largest."""
    return by - (MAX_SEQUENCE - sequence) - 1 if sequence > MAX_SEQUENCE - by else sequence + by


def checksum_of_copies(data: memoryview) -> int:
    """The checksum of a buffer, which is copied piece by piece."""
    # Copies of moderate pieces stay in the cache, and give no memory back to the system.
    if len(data) <= _PIECE:
        return int(google_crc32c.value(bytes(data)))
    crc = 0
    for at in range(0, len(data), _PIECE):
        crc = google_crc32c.extend(crc, bytes(data[at : at + _PIECE]))
    return int(crc)


def checksum_in_place() -> Checksum | None:
    """A checksum that does not copy the buffer, from the package of the extra ``fast``; none without it."""
    try:
        # With the first checksum: its own start takes milliseconds.
        from crc32c import crc32c  # noqa: PLC0415
    except ImportError:
        return None
    return crc32c


_checksum: Checksum | None = None


def checksum(data: memoryview) -> int:
    """The CRC-32C of a buffer."""
    global _checksum  # noqa: PLW0603 - chosen once
    if _checksum is None:
        _checksum = checksum_in_place() or checksum_of_copies
    return _checksum(data)


def crc_of(batch: bytes | memoryview) -> int:
    """The CRC-32C that the header of a batch should have."""
    return checksum(memoryview(batch)[ATTRIBUTES_AT:])


def sealed(header: BatchHeader, records: bytes | memoryview) -> bytes:
    """A batch of these records: length and checksum are computed, all else is as the header says."""
    base_offset, _, leader_epoch, magic, _, *covered = header
    behind = b"".join((_COVERED_BY_CHECKSUM.pack(*covered), records))
    length, crc = LEAST_LENGTH + len(records), google_crc32c.value(behind)
    return _UP_TO_CHECKSUM.pack(base_offset, length, leader_epoch, magic, crc) + behind


def batch_of_one(
    base_offset: int,
    leader_epoch: int,
    timestamp: int,
    record: bytes,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> tuple[bytes, BatchHeader]:
    """A batch of one encoded record that a broker writes itself, and its header. It has no sequence."""
    covered = (attributes, 0, timestamp, timestamp, producer_id, producer_epoch, NO_SEQUENCE, 1)
    behind = b"".join((_COVERED_BY_CHECKSUM.pack(*covered), record))
    length, crc = LEAST_LENGTH + len(record), google_crc32c.value(behind)
    header = _new_header(BatchHeader, (base_offset, length, leader_epoch, MAGIC, crc, *covered))
    return _UP_TO_CHECKSUM.pack(base_offset, length, leader_epoch, MAGIC, crc) + behind, header


def is_intact(batch: bytes) -> bool:
    """Whether these bytes are one whole batch with the right checksum."""
    if len(batch) < HEADER_SIZE:
        return False
    header = parse_header(batch)
    return header.size == len(batch) and header.crc == crc_of(batch)
