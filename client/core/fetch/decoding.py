"""The records of a batch, made in one pass: this loop decides what consuming costs.

Kafka: DefaultRecordBatch, DefaultRecord. :mod:`rejoin.protocol.wire.records` reads records that have headers or long
numbers, and says what is wrong with damaged ones.
"""

from __future__ import annotations

from typing import Final

from rejoin.client.core.fetch.consumer_record import ConsumerRecord, TimestampType
from rejoin.protocol.wire.compression import decompress
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import HEADER_SIZE, BatchHeader, crc_of
from rejoin.protocol.wire.records import read_record, read_varint

MAGIC: Final = 2
LARGEST_OF_TWO_BYTES: Final = 0x3FFF


def decode(
    topic: str, partition: int, header: BatchHeader, batch: memoryview, *, check_crc: bool
) -> list[ConsumerRecord]:
    """The records of a whole batch. Raises :class:`RecordsError`."""
    if header.magic != MAGIC:
        raise RecordsError(f"a batch of magic {header.magic}: expected {MAGIC}")
    if check_crc and crc_of(batch) != header.crc:
        raise RecordsError(f"the checksum is {crc_of(batch):#010x}: expected {header.crc:#010x}")
    return _records(topic, partition, header, bytes(decompress(header.codec, batch[HEADER_SIZE:])))


def _records(topic: str, partition: int, header: BatchHeader, data: bytes) -> list[ConsumerRecord]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.has_log_append_time else None
    kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
    epoch, count, size = header.partition_leader_epoch, header.records_count, len(data)
    made: list[ConsumerRecord] = []
    append, new, record, at = made.append, tuple.__new__, ConsumerRecord, 0
    try:
        for _ in range(count):
            length, at = read_varint(data, at)
            end = at + length
            if length < 0 or end > size:
                raise RecordsError(f"record {len(made)} of {length} bytes at {at}: {size - at} follow")
            found = _plain(data, at, end)
            if found is None:
                each = read_record(data, at, end)
                delta, offset, key, value, headers = (
                    each.timestamp_delta,
                    each.offset_delta,
                    each.key,
                    each.value,
                    each.headers,
                )
            else:
                delta, offset, key, value = found
                headers = ()
            timestamp = base_timestamp + delta if append_time is None else append_time
            append(new(record, (topic, partition, base_offset + offset, timestamp, key, value, headers, kind, epoch)))
            at = end
    except IndexError:
        raise RecordsError(f"record {len(made)} of {count} at {at} ends too early") from None
    if at != size:
        raise RecordsError(f"{size - at} bytes behind the last of {count} records")
    return made


def _plain(data: bytes, at: int, end: int) -> tuple[int, int, bytes | None, bytes | None] | None:
    """Timestamp delta, offset delta, key and value of a record without headers, its numbers of at most two bytes.

    None for other records, and for damaged ones.
    """
    delta = data[at + 1]  # Behind the attributes, of which none are defined.
    at += 2
    if delta >= 0x80:
        delta += (data[at] - 1) << 7
        at += 1
        if delta > LARGEST_OF_TWO_BYTES:
            return None
    offset = data[at]
    at += 1
    if offset >= 0x80:
        offset += (data[at] - 1) << 7
        at += 1
        if offset > LARGEST_OF_TWO_BYTES:
            return None
    key = value = None
    length = data[at]
    at += 1
    if length != 1:
        if length >= 0x80:
            length += (data[at] - 1) << 7
            at += 1
            if length > LARGEST_OF_TWO_BYTES:
                return None
        stop = at + (length >> 1)
        key = data[at:stop]
        at = stop
    size = data[at]
    at += 1
    if size != 1:
        if size >= 0x80:
            size += (data[at] - 1) << 7
            at += 1
            if size > LARGEST_OF_TWO_BYTES:
                return None
        stop = at + (size >> 1)
        value = data[at:stop]
        at = stop
    if at + 1 != end or data[at] or (length & 1 and key is not None) or (size & 1 and value is not None):
        return None
    return (delta >> 1) ^ -(delta & 1), (offset >> 1) ^ -(offset & 1), key, value
