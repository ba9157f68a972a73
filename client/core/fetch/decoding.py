"""The records of a batch, made in runs of one layout: this decides what consuming costs.

Most batches hold records of like sizes. Where one record has been read, a ``struct`` made from its layout reads those
behind it for as long as they have the same sizes. Kafka: DefaultRecordBatch, DefaultRecord.
"""

from __future__ import annotations

from functools import cache, lru_cache
from struct import Struct
from typing import Final, NamedTuple

from rejoin.client.core.fetch.consumer_record import ConsumerRecord, TimestampType
from rejoin.protocol.wire.compression import decompress
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import HEADER_SIZE, MAGIC, BatchHeader, crc_of
from rejoin.protocol.wire.records import DefaultRecord, read_record, read_varint

LEAST_RUN: Final = 3
"""With fewer records left, a layout is not worth its making."""
LONGEST_PAUSE: Final = 64
"""Records between two tries to find a run."""


class _Layout(NamedTuple):
    """The layout of a record without headers.

    A record unpacks to its length with the attributes, timestamp, offset, key with its length, value with its length,
    and the number of headers. The first and both lengths must be as they were in the first record of the run.
    """

    unpack: Struct
    head: bytes
    key_length: bytes
    value_length: bytes
    timestamps: dict[int, int]
    offsets: dict[int, int]


class _Batch(NamedTuple):
    """Fields that all records of a batch share."""

    topic: str
    partition: int
    base_offset: int
    base_timestamp: int
    append_time: int | None
    kind: TimestampType
    epoch: int


def decode(
    topic: str, partition: int, header: BatchHeader, batch: memoryview, *, check_crc: bool
) -> list[ConsumerRecord]:
    """The records of a whole batch. Raises :class:`RecordsError`."""
    if header.magic != MAGIC:
        raise RecordsError(f"a batch of magic {header.magic}: expected {MAGIC}")
    if check_crc and crc_of(batch) != header.crc:
        raise RecordsError(f"the checksum is {crc_of(batch):#010x}: expected {header.crc:#010x}")
    data = bytes(decompress(header.codec, batch[HEADER_SIZE:]))
    append_time = header.max_timestamp if header.has_log_append_time else None
    kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
    epoch = header.partition_leader_epoch
    common = _Batch(topic, partition, header.base_offset, header.base_timestamp, append_time, kind, epoch)
    return _records(common, data, header.records_count)


def _records(batch: _Batch, data: bytes, count: int) -> list[ConsumerRecord]:
    made: list[ConsumerRecord] = []
    at, size, try_at, pause = 0, len(data), 0, 1
    try:
        while len(made) < count:
            length, start = read_varint(data, at)
            end = start + length
            if length < 0 or end > size:
                raise RecordsError(f"record {len(made)} of {length} bytes at {start}: {size - start} follow")
            each = read_record(data, start, end)
            made.append(_record(batch, each))
            left = min(count - len(made), (size - end) // (end - at))
            layout = None
            if len(made) >= try_at and left >= LEAST_RUN and not each.headers:
                layout = _layout(data, at, start, each)
            at, stride = end, end - at
            if layout is not None:
                found = _run(batch, layout, each, memoryview(data)[end : end + left * stride], made)
                at += stride * found
                # Records of sizes that differ are read one by one: a layout for each would cost more.
                pause = 1 if found >= LEAST_RUN else min(2 * pause, LONGEST_PAUSE)
                try_at = len(made) + pause
    except IndexError:
        raise RecordsError(f"record {len(made)} of {count} at {at} ends too early") from None
    if at != size:
        raise RecordsError(f"{size - at} bytes behind the last of {count} records")
    return made


def _record(batch: _Batch, each: DefaultRecord) -> ConsumerRecord:
    append_time = batch.append_time
    return ConsumerRecord(
        batch.topic,
        batch.partition,
        batch.base_offset + each.offset_delta,
        batch.base_timestamp + each.timestamp_delta if append_time is None else append_time,
        each.key,
        each.value,
        each.headers,
        batch.kind,
        batch.epoch,
    )


def _run(batch: _Batch, layout: _Layout, like: DefaultRecord, data: memoryview, made: list[ConsumerRecord]) -> int:
    """Make the records that have the layout of the one before; returns how many they are."""
    topic, partition, base_offset, base_timestamp, append_time, kind, epoch = batch
    unpack, head, key_length, value_length, timestamps, offsets = layout
    has_key, has_value = like.key is not None, like.value is not None
    append, new, record, before = made.append, tuple.__new__, ConsumerRecord, len(made)
    try:
        for first, delta, number, of_key, key, of_value, value, headers in unpack.iter_unpack(data):
            if first != head or of_key != key_length or of_value != value_length or headers:
                break
            timestamp = base_timestamp + timestamps[delta]
            append(
                new(
                    record,
                    (
                        topic,
                        partition,
                        base_offset + offsets[number],
                        timestamp if append_time is None else append_time,
                        key if has_key else None,
                        value if has_value else None,
                        (),
                        kind,
                        epoch,
                        None,
                    ),
                )
            )
    except KeyError:
        pass  # A number that is longer.
    return len(made) - before


def _layout(data: bytes, at: int, start: int, each: DefaultRecord) -> _Layout | None:
    """The layout of the record that begins at a position; none where its numbers are too long for it."""
    timestamp = start + 1
    offset = timestamp + _width(data, timestamp)
    key_length = offset + _width(data, offset)
    key = key_length + _width(data, key_length)
    value_length = key + len(each.key or b"")
    value = value_length + _width(data, value_length)
    if offset - timestamp > 2 or key_length - offset > 2:
        return None
    widths = (timestamp - at, offset - timestamp, key_length - offset, key - key_length, value_length - key)
    return _Layout(
        _struct(*widths, value - value_length, len(each.value or b"")),
        data[at:timestamp],
        data[key_length:key],
        data[value_length:value],
        _numbers(offset - timestamp),
        _numbers(key_length - offset),
    )


def _width(data: bytes, at: int) -> int:
    width = 1
    while data[at] >= 0x80:
        at, width = at + 1, width + 1
    return width


@lru_cache(maxsize=1_024)
def _struct(head: int, timestamp: int, offset: int, key_length: int, key: int, value_length: int, value: int) -> Struct:
    numbers = "".join("BH"[width - 1] for width in (timestamp, offset))
    return Struct(f">{head}s{numbers}{key_length}s{key}s{value_length}s{value}sB")


@cache
def _numbers(width: int) -> dict[int, int]:
    """The numbers of one or two bytes by those bytes as an integer."""
    if width == 1:
        return {byte: _signed(byte) for byte in range(0x80)}
    return {(low | 0x80) << 8 | high: _signed(low | high << 7) for high in range(0x80) for low in range(0x80)}


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
