"""ListOffsets: where a log ends and begins, and which record is the first not older than a time.

Kafka: ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp, UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.fetch.synthetic import EPOCH, SyntheticBatches
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.partitions.log import READ_COMMITTED, READ_UNCOMMITTED, LogBatch, PartitionLog, newest_of
from rejoin.coordinator.core.partitions.partitions import leader_epoch_error
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.records import read_batch

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version that knows a timestamp which is none."""


class OffsetAndTime(NamedTuple):
    """Where a look-up led: timestamp, offset and leader epoch, or -1 in all of them."""

    timestamp: Millis
    offset: int
    leader_epoch: int


NOT_FOUND: Final = OffsetAndTime(-1, -1, -1)


class ListOffsetsRequests:
    """Looks up offsets, in real logs and in synthetic ones."""

    def __init__(self, ctx: StepContext, topics: Topics, logs: ReadableLogs, admission: Admission) -> None:
        self._ctx = ctx
        self._logs = logs
        self._topics = topics
        self._admission = admission

    def list_offsets(self, token: Token, request: ListOffsetsRequest, context: Context) -> None:
        times = Counter((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
        topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
        for topic in request.topics:
            results = topics.setdefault(topic.name, {})
            for wanted in topic.partitions:
                index = wanted.partition_index
                if times[topic.name, index] > 1:
                    found: OffsetAndTime | ErrorCode = ErrorCode.INVALID_REQUEST
                else:
                    found = self._find(topic.name, wanted, request, context)
                results[index] = self._result(topic.name, wanted, found, context)
        self._ctx.reply(
            token,
            ListOffsetsResponse(
                topics=tuple(
                    ListOffsetsTopicResponse(name=name, partitions=tuple(results.values()))
                    for name, results in topics.items()
                )
            ),
        )

    def _result(
        self, topic: str, wanted: ListOffsetsPartition, found: OffsetAndTime | ErrorCode, context: Context
    ) -> ListOffsetsPartitionResponse:
        index = wanted.partition_index
        if isinstance(found, ErrorCode):
            return ListOffsetsPartitionResponse(partition_index=index, error_code=found)
        if context.api_version == 0:
            # Kafka: the oldest version lists segment starts, newest first; a log is one segment here.
            start = self._start(topic, index)
            offsets = tuple(dict.fromkeys((found.offset, start)))[: wanted.max_num_offsets] if found.offset >= 0 else ()
            return ListOffsetsPartitionResponse(partition_index=index, old_style_offsets=offsets)
        return ListOffsetsPartitionResponse(partition_index=index, **found._asdict())

    def _start(self, topic: str, index: int) -> int:
        partition = self._logs.find(topic, index)
        return 0 if isinstance(partition, ErrorCode) else partition.log.log_start_offset

    def _find(
        self, name: str, wanted: ListOffsetsPartition, request: ListOffsetsRequest, context: Context
    ) -> OffsetAndTime | ErrorCode:
        if not self._admission.allows(ListOffsetsRequest, context, Resource.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        timestamp, index = wanted.timestamp, wanted.partition_index
        if timestamp < 0 and context.api_version and context.api_version < SINCE.get(timestamp, 1 << 15):
            return ErrorCode.UNSUPPORTED_VERSION
        if not self._topics.has_partition(name, index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        partition = self._logs.find(name, index)
        if isinstance(partition, ErrorCode):
            return partition
        error = leader_epoch_error(wanted.current_leader_epoch, partition.leader_epoch)
        if error is not ErrorCode.NONE:
            return error
        log = partition.log
        assert isinstance(log, PartitionLog | SyntheticBatches), "a log is real or synthetic"
        end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
        return look_up(log, timestamp, end, partition.leader_epoch)


def look_up(log: PartitionLog | SyntheticBatches, timestamp: Millis, end: int, leader_epoch: int) -> OffsetAndTime:
    """The offset for a timestamp, or for a special value such as latest; ``end`` is the end for the reader."""
    match timestamp:
        case -1:
            return OffsetAndTime(-1, end, leader_epoch)
        case -2 | -4:
            first = log.epochs[0] if log.epochs else None
            known = first is not None and first.start_offset <= log.log_start_offset
            return OffsetAndTime(-1, log.log_start_offset, first.epoch if first is not None and known else -1)
        case -3:
            found = newest_record(log)
        case -5 | -6:
            # There is no tiered storage.
            return NOT_FOUND
        case _:
            found = first_record_since(log, timestamp)
    return NOT_FOUND if found.offset >= end else found


def newest_record(log: PartitionLog | SyntheticBatches) -> OffsetAndTime:
    """The first record that has the largest timestamp of the whole log."""
    if isinstance(log, SyntheticBatches):
        return _synthetic(log.newest_record())
    newest = log.newest_deleted
    for batch in log.batches:
        newest = newest_of(newest, batch)
    if newest is None:
        return NOT_FOUND
    return _first_in(newest, newest.max_timestamp, newest.base_offset) or NOT_FOUND


def first_record_since(log: PartitionLog | SyntheticBatches, timestamp: Millis) -> OffsetAndTime:
    """The first record, in the order of offsets, that is not older than a time."""
    if isinstance(log, SyntheticBatches):
        return _synthetic(log.first_record_since(timestamp))
    for batch in log.batches:
        if batch.max_timestamp >= timestamp and batch.last_offset >= log.log_start_offset:
            found = _first_in(batch, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return NOT_FOUND


def _synthetic(record: tuple[int, Millis] | None) -> OffsetAndTime:
    """A record of a synthetic log, or none."""
    if record is None:
        return NOT_FOUND
    offset, time = record
    return OffsetAndTime(time, offset, EPOCH)


def _first_in(batch: LogBatch, timestamp: Millis, start_offset: int) -> OffsetAndTime | None:
    """The first record of a batch that is not older than a time, and not below an offset."""
    header = batch.header
    if header.has_log_append_time:
        return OffsetAndTime(batch.max_timestamp, max(batch.base_offset, start_offset), batch.leader_epoch)
    try:
        records = read_batch(batch.data)
    except RecordsError:
        # Large batches are stored unread. The header is all that is known of this one.
        return OffsetAndTime(batch.max_timestamp, max(batch.base_offset, start_offset), batch.leader_epoch)
    for record in records:
        time, offset = header.base_timestamp + record.timestamp_delta, batch.base_offset + record.offset_delta
        if time >= timestamp and offset >= start_offset:
            return OffsetAndTime(time, offset, batch.leader_epoch)
    return None
