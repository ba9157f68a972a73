"""Validation of produced batches, in Kafka's order of checks.

A batch stays as it is unless its topic wants another codec or time. Kafka: ProduceRequest.validateRecords,
UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.partitions.topic_config import TopicConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.wire.compression import CompressionType, compress, decompress
from rejoin.protocol.wire.errors import CompressionError, RecordsError
from rejoin.protocol.wire.record_batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_ID_END,
    TRANSACTIONAL_BIT,
    BatchHeader,
    checksum,
    crc_of,
    parse_header,
    sealed,
    size_at,
)
from rejoin.protocol.wire.record_scan import RecordScan, scan_records
from rejoin.protocol.wire.records import DefaultRecord, read_batch, write_records

FIRST_PRODUCE_WITH_ZSTD: Final = 7
_BEHIND_ONLY_BATCH: Final = (3, 0)
"""The bytes behind the only batch of a request: three empty sections of tags in flexible versions, else none."""
LEAST_ENTRY: Final = 14
"""The least length that any format has behind its own field."""

_KNOWN_CODECS: Final = frozenset(CompressionType)
_CODECS: Final = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


class RecordError(NamedTuple):
    """A record that the topic does not take, by its number in the batch."""

    batch_index: int
    message: str


@dataclass(slots=True)
class ProduceError(Exception):
    """Why a batch is not appended. ``by_log`` says that the log itself refused it, and names where it begins."""

    error: ErrorCode
    by_log: bool = True
    message: str | None = None
    records: tuple[RecordError, ...] = ()
    of_request: bool = False
    """Whether no other batch of the request is appended either."""


def is_transactional(data: BatchBytes | None) -> bool:
    """Whether what is to be appended begins with a whole batch of a transaction."""
    if data is None or len(data) < HEADER_SIZE or data[MAGIC_AT] != MAGIC:
        return False
    return bool(data[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT)


def find_batch(data: BatchBytes | None, version: int) -> BatchHeader:
    """The header of the one batch that there must be, which is whole. Raises :class:`ProduceError`."""
    if data is not None and len(data) >= HEADER_SIZE:
        header = parse_header(data)
        if header.magic == MAGIC and LENGTH_END + header.batch_length == len(data):
            # One batch and nothing else, as nearly all producers send it.
            if version < FIRST_PRODUCE_WITH_ZSTD:
                _check_codec(header.codec)
            return header
    # Differs: null records make Kafka fail inside and never answer.
    size = 0 if data is None else _next_size(data, 0)
    if data is None or size == 0:
        raise ProduceError(ErrorCode.INVALID_RECORD, by_log=False)
    if data[MAGIC_AT] != MAGIC:
        raise ProduceError(ErrorCode.INVALID_RECORD, by_log=False)
    if version < FIRST_PRODUCE_WITH_ZSTD:
        _check_codec(data[ATTRIBUTES_AT + 1] & CODEC_MASK)
    if _has_another(data, size):
        raise ProduceError(ErrorCode.INVALID_RECORD, by_log=False)
    if size < PRODUCER_ID_END:
        # Kafka: ReplicaManager looks for producers, which is an unexpected exception where a batch ends before.
        raise ProduceError(ErrorCode.UNKNOWN_SERVER_ERROR, by_log=False, of_request=True)
    if size < HEADER_SIZE:
        raise ProduceError(ErrorCode.CORRUPT_MESSAGE, by_log=False)
    return parse_header(data)


def problem_of_request(data: BatchBytes | None) -> ProduceError | None:
    """The problem of a partition's records that fails the whole request, whatever else may be wrong.

    Kafka: RequestUtils.hasTransactionalRecords looks at the first batch of each before anything is answered.
    """
    try:
        if data is not None:
            _next_size(data, 0)
    except ProduceError as problem:
        return problem
    return None


def _check_codec(codec: int) -> None:
    """Before zstd was known, a codec that does not fit comes before all else that is wrong with a batch."""
    if codec not in _KNOWN_CODECS:
        raise ProduceError(ErrorCode.UNKNOWN_SERVER_ERROR, by_log=False, of_request=True)
    if codec == CompressionType.ZSTD:
        raise ProduceError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, by_log=False)


def _has_another(data: BatchBytes, size: int) -> bool:
    """Whether a batch of this size is followed by another one."""
    try:
        return len(data) > size and bool(_next_size(data, size))
    except ProduceError as problem:
        raise ProduceError(problem.error, by_log=False) from None


def _next_size(data: BatchBytes, at: int) -> int:
    """The size of the entry at a position, or 0 where none is whole. Kafka: ByteBufferLogInputStream."""
    left = len(data) - at
    if left < LENGTH_END:
        return 0
    size = size_at(data, at)
    if size < LENGTH_END + LEAST_ENTRY:
        raise _corrupt(f"a batch claims to have {size} bytes: expected at least {LENGTH_END + LEAST_ENTRY}")
    if left <= MAGIC_AT:
        return 0
    magic = int.from_bytes(data[at + MAGIC_AT : at + MAGIC_AT + 1], "big", signed=True)
    if not 0 <= magic <= MAGIC:
        raise _corrupt(f"Invalid magic found in record: {magic}")
    return size if size <= left else 0


def _corrupt(message: str) -> ProduceError:
    return ProduceError(ErrorCode.CORRUPT_MESSAGE, by_log=False, message=message, of_request=True)


def validate(
    data: BatchBytes, header: BatchHeader, config: TopicConfig, now: Millis, *, is_only: bool
) -> tuple[BatchBytes, BatchHeader]:
    """The batch as it is to be appended, but for its offset and leader epoch. Raises :class:`ProduceError`.

    ``is_only``: the request has no other batch.
    """
    buffer, at, is_intact = _locate(data, header, is_only=is_only)
    _check_header(header, config, is_intact=is_intact)
    size = header.size
    batch = buffer if size == len(buffer) else memoryview(buffer)[at : at + size]
    scan = _scan(buffer, at, header)
    if size <= config.segment_bytes and _stays_as_it_is(header, scan, config, now):
        return batch, header
    times = _Times(header, config, now)
    codec = _CODECS.get(config.compression_type, header.codec)
    records: list[DefaultRecord] | None = None
    if codec != header.codec or config.is_compacted or times.are_doubtful(scan):
        records = _read(batch)
        times.check(records)
    newest = times.newest(scan)
    if codec != header.codec:
        assert records is not None, "a batch that is packed anew was read"
        batch, header = _rebuild(records, header, newest, codec, config)
        if header.size > config.max_message_bytes:
            raise ProduceError(ErrorCode.MESSAGE_TOO_LARGE, by_log=False)
    else:
        batch, header = _with_time(batch, header, newest, config)
    if header.size > config.segment_bytes:
        raise ProduceError(ErrorCode.RECORD_LIST_TOO_LARGE, by_log=False)
    return batch, header


class _BatchLocation(NamedTuple):
    """Bytes that have a batch at a position, and whether its checksum is right."""

    buffer: bytes
    at: int
    is_intact: bool


def _locate(data: BatchBytes, header: BatchHeader, *, is_only: bool) -> _BatchLocation:
    """Where the batch is that the data begins with.

    The only one of a request is looked at within the frame: what has its header, so far from the end, and the right
    checksum, is that batch, if there is no room before for another. All others are copied: looking into views is slow.
    """
    size, crc = header.size, header.crc
    if is_only and isinstance(data, memoryview) and len(data) == size and isinstance(frame := data.obj, bytes):
        for behind in _BEHIND_ONLY_BATCH:
            at = len(frame) - size - behind
            if 0 <= at < size and frame.startswith(data[:HEADER_SIZE], at):
                if checksum(memoryview(frame)[at + ATTRIBUTES_AT : at + size]) == crc:
                    return _BatchLocation(frame, at, is_intact=True)
                break
    batch = bytes(data[:size])
    return _BatchLocation(batch, 0, crc_of(batch) == crc)


def _check_header(header: BatchHeader, config: TopicConfig, *, is_intact: bool) -> None:
    base_offset, _, _, _, _, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, count = header
    if base_offset != 0:
        raise ProduceError(ErrorCode.INVALID_RECORD)
    if header.size > config.max_message_bytes:
        raise ProduceError(ErrorCode.MESSAGE_TOO_LARGE, by_log=False)
    if not is_intact:
        raise ProduceError(ErrorCode.CORRUPT_MESSAGE, by_log=False)
    if attributes & CODEC_MASK not in _KNOWN_CODECS:
        # Kafka: an unknown codec is an unexpected exception, here and in what cannot be unpacked.
        raise ProduceError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if last_offset_delta < 0 or count <= 0 or count != last_offset_delta + 1:
        raise ProduceError(ErrorCode.INVALID_RECORD)
    if attributes & CONTROL_BIT or (producer_id > NO_PRODUCER_ID and base_sequence < 0):
        raise ProduceError(ErrorCode.INVALID_RECORD)


def _stays_as_it_is(header: BatchHeader, scan: RecordScan, config: TopicConfig, now: Millis) -> bool:
    """Whether codec and times need no change, and no record can be refused: so it is with nearly all."""
    base, newest = header.base_timestamp, header.max_timestamp
    return (
        config.keeps_what_is_produced
        and not header.attributes & LOG_APPEND_TIME_BIT
        and base + scan.largest_timestamp_delta == newest <= now + config.message_timestamp_after_max_ms
        and base + scan.smallest_timestamp_delta >= now - config.message_timestamp_before_max_ms
    )


def _scan(buffer: bytes, at: int, header: BatchHeader) -> RecordScan:
    """A look at every record of the batch at a position. Kafka: LogValidator reads them all, packed or not."""
    records_at, end = at + HEADER_SIZE, at + header.size
    try:
        if not header.codec:
            return scan_records(buffer, records_at, header.records_count, end)
        # Differs: Kafka unpacks as much as max.decompressed.message.bytes says.
        unpacked = bytes(decompress(header.codec, memoryview(buffer)[records_at:end]))
        scan = scan_records(unpacked, 0, header.records_count, len(unpacked))
    except CompressionError:
        raise ProduceError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    except RecordsError:
        raise ProduceError(ErrorCode.INVALID_RECORD) from None
    if not scan.has_offsets_in_order:
        # Kafka: such a batch is packed anew, which fails. One that is not packed is stored as it is.
        raise ProduceError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return scan


def _read(batch: BatchBytes) -> list[DefaultRecord]:
    try:
        return read_batch(batch)
    except RecordsError:
        raise ProduceError(ErrorCode.INVALID_RECORD) from None


class _Times:
    """The timestamps of a batch, and what its topic makes of them."""

    def __init__(self, header: BatchHeader, config: TopicConfig, now: Millis) -> None:
        self._header = header
        self._config = config
        self._now = now
        self._earliest = now - config.message_timestamp_before_max_ms
        self._latest = now + config.message_timestamp_after_max_ms

    def are_doubtful(self, scan: RecordScan) -> bool:
        """Whether a record may have a time that the topic does not take."""
        header = self._header
        if header.has_log_append_time:
            return True
        if self._config.uses_log_append_time:
            return False
        base = header.base_timestamp
        return (
            base + scan.largest_timestamp_delta > self._latest or base + scan.smallest_timestamp_delta < self._earliest
        )

    def check(self, records: list[DefaultRecord]) -> None:
        """Refuse a batch with records that have no key but need one, or a time that is out of bounds."""
        errors: list[RecordError] = []
        are_times = False
        for index, record in enumerate(records):
            if self._config.is_compacted and record.key is None:
                errors.append(RecordError(index, "a compacted topic takes no record without a key"))
            elif problem := self._problem(index, record):
                errors.append(RecordError(index, problem))
                are_times = True
        if are_times:
            message = (
                "One or more records have been rejected due to invalid timestamp. The broker's clock is at "
                f"{self._now}, and message.timestamp.after.max.ms is {self._config.message_timestamp_after_max_ms}: "
                "advance a clock that stands still, or raise the setting"
            )
            raise ProduceError(ErrorCode.INVALID_TIMESTAMP, message=message, records=tuple(errors))
        if errors:
            shown = "; ".join(f"{error.batch_index}: {error.message}" for error in errors[:3])
            message = f"One or more records have been rejected: {len(errors)} in total, the first are {shown}"
            raise ProduceError(ErrorCode.INVALID_RECORD, message=message, records=tuple(errors))

    def _problem(self, index: int, record: DefaultRecord) -> str | None:
        header = self._header
        timestamp = header.base_timestamp + record.timestamp_delta
        if header.has_log_append_time:
            timestamp = header.max_timestamp
        if not self._config.uses_log_append_time and timestamp != NO_TIMESTAMP:
            if not self._earliest <= timestamp <= self._latest:
                within = f"[{self._earliest}, {self._latest}]"
                return f"Timestamp {timestamp} of message with offset {index} is out of range: expected {within}"
        elif header.has_log_append_time:
            return f"Invalid timestamp type in message {index}: a producer should not set LogAppendTime"
        return None

    def newest(self, scan: RecordScan) -> Millis:
        """The largest timestamp of the batch as it will be."""
        header = self._header
        if self._config.uses_log_append_time:
            return self._now
        if header.has_log_append_time:
            return header.max_timestamp
        # Kafka: LogValidator counts from NO_TIMESTAMP on; a batch of older records claims to have none.
        return max(NO_TIMESTAMP, header.base_timestamp + scan.largest_timestamp_delta)


def _with_time(
    batch: BatchBytes, header: BatchHeader, newest: Millis, config: TopicConfig
) -> tuple[BatchBytes, BatchHeader]:
    """The batch with its largest timestamp and the kind of its time, which need a new checksum if they change."""
    attributes = _with_time_bit(header.attributes, config)
    if attributes == header.attributes and newest == header.max_timestamp:
        return batch, header
    # Kafka: DefaultRecordBatch.setMaxTimestamp. Bits without a meaning stay where nothing is changed.
    attributes &= KNOWN_ATTRIBUTES
    changed = sealed(header._replace(attributes=attributes, max_timestamp=newest), batch[HEADER_SIZE:])
    return changed, parse_header(changed)


def _with_time_bit(attributes: int, config: TopicConfig) -> int:
    if config.uses_log_append_time:
        return attributes | LOG_APPEND_TIME_BIT
    return attributes & ~LOG_APPEND_TIME_BIT


def _rebuild(
    records: list[DefaultRecord], header: BatchHeader, newest: Millis, codec: int, config: TopicConfig
) -> tuple[bytes, BatchHeader]:
    """The batch packed with another codec; it begins at the time of its first record."""
    first = records[0].timestamp_delta
    shifted = (
        record._replace(timestamp_delta=record.timestamp_delta - first, offset_delta=index)
        for index, record in enumerate(records)
    )
    header = header._replace(
        attributes=_with_time_bit(header.attributes & ~CODEC_MASK, config) | codec,
        base_timestamp=header.base_timestamp + first,
        max_timestamp=newest,
    )
    batch = sealed(header, bytes(compress(codec, write_records(shifted))))
    return batch, parse_header(batch)
