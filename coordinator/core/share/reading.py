"""Reading share-partitions for one member: which of them can give records, and what each gives within the limits.

Kafka: DelayedShareFetch, ShareFetchUtils.processFetchResponse.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from rejoin.coordinator.core.fetch.logs import ReadableLog, ReadableLogs
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.share.fetch_under_way import Fetched, ShareFetchUnderWay
from rejoin.coordinator.core.share.led_partitions import LedSharePartition
from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share.window.aborted import (
    ReadBatch,
    aborted_batches,
    returned_batches,
)
from rejoin.coordinator.core.share.window.acquiring import AcquireLimits
from rejoin.coordinator.core.share.window.values import ReadRange
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import AbortedTransaction
from rejoin.protocol.messages.share.share_fetch import AcquiredRecords, ShareFetchRequest
from rejoin.protocol.records.batch_run import whole
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.record_batch import HEADER_SIZE, BatchHeader, parse_header
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch

BY_BATCHES: Final = 0
RECORD_LIMIT: Final = 1
ACQUIRE_MODES: Final = (BY_BATCHES, RECORD_LIMIT)

_LENGTH_AT: Final = 8
_BEFORE_LENGTH_ENDS: Final = 12
_RANGE: Final = Struct(">qi11xi")
"""Base offset, length and last offset delta at the beginning of a batch."""


class Acquirable(NamedTuple):
    """A share-partition that may give records, and the offset to read it from."""

    shared: SharedPartition
    led: LedSharePartition
    log: ReadableLog
    offset: int
    limit: int

    @property
    def is_out_of_range(self) -> bool:
        """Whether the log does not have the offset."""
        return not self.log.log_start_offset <= self.offset <= self.log.end_offset


class WholeBatch(NamedTuple):
    """A whole batch among the bytes read."""

    header: BatchHeader
    begin: int
    end: int


def acquirable(fetch: ShareFetchUnderWay, logs: ReadableLogs) -> list[Acquirable]:
    """The share-partitions that take part, in order."""
    taking_part = [fetch.led[shared] for shared in fetch.partitions if shared in fetch.led]
    return [found for led in taking_part if (found := acquirable_of(led, logs)) is not None]


def acquirable_of(led: LedSharePartition, logs: ReadableLogs) -> Acquirable | None:
    """A share-partition with the place where it is read, or none if it can give nothing."""
    if not led.machine.is_active or not led.machine.may_acquire():
        return None
    _, index, topic = led.partition
    readable = logs.find(topic, index, led.partition.topic_id)
    if isinstance(readable, ErrorCode):
        return None
    log = readable.log
    limit = log.last_stable_offset if led.settings.reads_committed else log.high_watermark
    return Acquirable(led.shared, led, log, led.machine.next_fetch_offset(), limit)


def share_of_bytes(max_bytes: int, count: int) -> int:
    """The bytes that each of so many partitions may give."""
    # Differs: Kafka gives the remainder to a random partition.
    return max_bytes // count if count else max_bytes


def is_enough(candidates: list[Acquirable], request: ShareFetchRequest, max_bytes: int) -> bool:
    """Whether a fetch need not wait: there are bytes enough, or a partition has to be looked at more closely."""
    if not candidates:
        return False
    # More bytes than the request waits for do not count.
    size, bound = 0, min(share_of_bytes(max_bytes, len(candidates)), max(request.min_bytes, 0))
    for _, _, log, offset, limit in candidates:
        if not log.log_start_offset <= offset <= log.end_offset:
            return True
        if offset < limit:
            size += log.bytes_between(offset, limit, bound)
    return size >= request.min_bytes


def looked_at(candidates: list[Acquirable]) -> list[Acquirable]:
    """Candidates of a first look in the order in which they are read; each remembers at which offset it was seen.

    Kafka: DelayedShareFetch.combineLogReadResponse. Partitions whose place in the log is known come first.
    """
    known = [each for each in candidates if each.led.known_offset == each.offset]
    fresh = [each for each in candidates if each.led.known_offset != each.offset]
    remember(fresh)
    return known + fresh


def remember(candidates: list[Acquirable]) -> None:
    """A fetch has looked at the log here."""
    for each in candidates:
        if not each.is_out_of_range:
            each.led.known_offset = each.offset


def read_all(fetch: ShareFetchUnderWay, candidates: list[Acquirable], max_bytes: int, now: Millis) -> None:
    """Read all candidates in order, and acquire their records for the member."""
    request = fetch.request
    bound = share_of_bytes(max_bytes, len(candidates))
    left, has_given = request.max_records, False
    for each in candidates:
        if each.is_out_of_range:
            each.led.machine.log_start_moved(each.log.log_start_offset)
            fetch.fetched[each.shared] = Fetched()
            continue
        # Nothing behind this offset can be acquired. Kafka reads on, and cuts what it has read.
        limit = min(each.limit, max(each.offset, each.led.machine.end_offset) + left + 1)
        data = b"" if each.offset >= limit else each.log.read(each.offset, bound, limit, at_least_one=not has_given)
        has_given |= len(data) > 0
        limits = AcquireLimits(left, request.batch_size, request.share_acquire_mode == RECORD_LIMIT)
        fetched, count = _acquire(each, whole(data), fetch.member_id, limits, now)
        fetch.fetched[each.shared] = fetched
        left -= count


def _acquire(
    each: Acquirable, data: BatchBytes, member_id: str, limits: AcquireLimits, now: Millis
) -> tuple[Fetched, int]:
    """The records of one share-partition that the member gets, and how many are acquired."""
    read, ends = ranges_of(data)
    if not read:
        return Fetched(), 0
    acquired = each.led.machine.acquire(member_id, read, each.offset, limits, now)
    if acquired.rows and each.led.settings.reads_committed:
        dropped = _aborted(each, data)
        if dropped:
            acquired = each.led.machine.drop_aborted(acquired, dropped)
    if acquired.broken:
        return Fetched(ErrorCode.UNKNOWN_SERVER_ERROR), 0
    kept = returned_batches(read, acquired.rows)
    if kept.start == kept.stop:
        return Fetched(), acquired.record_count
    each.led.machine.report_acquired(member_id, acquired.rows)
    begin, end = ends[kept.start - 1] if kept.start else 0, ends[kept.stop - 1]
    rows = tuple(
        [
            unvalidated(AcquiredRecords, first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquired.rows
        ]
    )
    records = data if end - begin == len(data) else data[begin:end]
    return Fetched(records=records, acquired=rows), acquired.record_count


def ranges_of(data: BatchBytes) -> tuple[list[ReadRange], list[int]]:
    """The offsets of each whole batch of bytes that may be cut at their end, and the position where each ends."""
    ranges: list[ReadRange] = []
    ends: list[int] = []
    end, size = 0, len(data)
    while end + HEADER_SIZE <= size:
        base_offset, length, last_offset_delta = _RANGE.unpack_from(data, end)
        end += _BEFORE_LENGTH_ENDS + length
        if end > size:
            break
        ranges.append(ReadRange(base_offset, base_offset + last_offset_delta))
        ends.append(end)
    return ranges, ends


def batches_of(data: BatchBytes) -> Iterator[WholeBatch]:
    """The whole batches of bytes that may be cut at their end."""
    view, begin = memoryview(data), 0
    while begin + HEADER_SIZE <= len(view):
        length = int.from_bytes(view[begin + _LENGTH_AT : begin + _BEFORE_LENGTH_ENDS], "big")
        end = begin + _BEFORE_LENGTH_ENDS + length
        if end > len(view):
            return
        yield WholeBatch(parse_header(view[begin:end]), begin, end)
        begin = end


def _aborted(each: Acquirable, data: BatchBytes) -> list[ReadRange]:
    """The data batches of aborted transactions among those read."""
    index = [
        unvalidated(AbortedTransaction, producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in each.log.aborted_between(each.offset, len(data))
    ]
    if not index:
        return []
    view = memoryview(data)
    read = [
        ReadBatch(
            header.base_offset,
            header.last_offset,
            header.producer_id,
            header.is_transactional and not header.is_control,
            header.is_control and _is_abort(view[begin:end]),
        )
        for header, begin, end in batches_of(data)
    ]
    return aborted_batches(read, index)


def _is_abort(batch: memoryview) -> bool:
    records = read_batch(batch)
    marker = EndTransactionMarker.of(records[0]) if records else None
    return marker is not None and marker.control_type is ControlRecordType.ABORT
