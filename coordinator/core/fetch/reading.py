"""One reading of all partitions of a Fetch: which bytes each gives, within the limits.

Kafka: ReplicaManager.readFromLog, Partition.readRecords, LocalLog.read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rejoin.coordinator.core.fetch.logs import ReadableLog, ReadableLogs
from rejoin.coordinator.core.fetch.replica_selector import NO_REPLICA
from rejoin.coordinator.core.fetch.sessions import Answered, FetchContext, WantedPartition
from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.partitions.log import READ_COMMITTED, UNKNOWN_EPOCH, UNKNOWN_OFFSET
from rejoin.coordinator.core.partitions.partitions import leader_epoch_error
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER
from rejoin.protocol.messages.records.fetch import (
    NO_EPOCH,
    NO_SNAPSHOT,
    AbortedTransaction,
    EpochEndOffset,
    FetchablePartitionResponse,
    FetchPartition,
    FetchRequest,
)
from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.types import BatchBytes
from rejoin.protocol.unvalidated import unvalidated

FIRST_FETCH_WITH_ENDPOINTS: Final = 16
FIRST_FETCH_FROM_FOLLOWERS: Final = 11


@dataclass(slots=True)
class FetchRead:
    """A Fetch under way: its partitions, its limits, and its client."""

    token: Token
    request: FetchRequest
    context: Context
    session: FetchContext
    max_bytes: int
    from_follower: bool
    """Whether a copy will do. Kafka: FetchParams.fetchOnlyLeader."""
    partitions: list[WantedPartition] = field(default_factory=list)
    refused: Answered = field(default_factory=dict)

    @property
    def isolation_level(self) -> int:
        return self.request.isolation_level

    @property
    def max_wait_ms(self) -> Millis:
        return self.request.max_wait_ms

    @property
    def min_bytes(self) -> int:
        """A Fetch waits for no more than it can be given."""
        return min(self.request.min_bytes, self.max_bytes)


@dataclass(slots=True)
class FetchData:
    """The result of reading all partitions. ``ends_wait``: a partition has an error, or its log diverged."""

    partitions: Answered = field(default_factory=dict)
    size: int = 0
    ends_wait: bool = False


def read_partitions(read: FetchRead, logs: ReadableLogs) -> FetchData:
    """Read all partitions in order, until the limit of the request is reached."""
    data = FetchData()
    left, isolation_level = read.max_bytes, read.request.isolation_level
    from_follower, rack = read.from_follower, read.request.rack_id
    for wanted in read.partitions:
        key, topic, asked = wanted
        found = logs.find(topic or "", asked.partition, key.topic_id, from_follower=from_follower)
        if isinstance(found, ErrorCode):
            answer = failed(asked.partition, found)
        elif (error := epoch_error(asked, found.leader_epoch)) is not ErrorCode.NONE:
            answer = failed(asked.partition, error)
        elif (
            rack
            and from_follower
            and (replica := logs.preferred_replica(found, rack, asked.fetch_offset)) != NO_REPLICA
        ):
            # Kafka: ReplicaManager.readFromLog. Nothing is read then, not even whether the offset is there.
            answer = _given(asked, found.log, b"", None, NO_EPOCH, replica)
        else:
            # Kafka: as long as nothing was given, the first batch comes even if it is larger than the limits.
            answer = _read(asked, found.log, isolation_level, left, at_least_one=data.size == 0)
        data.partitions[key] = answer
        data.ends_wait |= (
            answer.error_code is not ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica != NO_REPLICA
        )
        size = len(answer.records or b"")
        data.size += size
        left = max(0, left - size)
    return data


def epoch_error(asked: FetchPartition, leader_epoch: int) -> ErrorCode:
    """The error of a partition that is asked for in another leader epoch than the leader's."""
    # Kafka: FetchRequest.optionalEpoch. No negative epoch is checked here; elsewhere -1 alone is none.
    return leader_epoch_error(max(UNKNOWN_EPOCH, asked.current_leader_epoch), leader_epoch)


def _read(
    asked: FetchPartition, log: ReadableLog, isolation_level: int, left: int, *, at_least_one: bool
) -> FetchablePartitionResponse:
    """The result of reading one partition."""
    offset = asked.fetch_offset
    if asked.last_fetched_epoch >= 0:
        epoch, end_offset = log.end_offset_for(asked.last_fetched_epoch)
        if epoch == UNKNOWN_EPOCH or end_offset == UNKNOWN_OFFSET or offset < log.log_start_offset:
            return failed(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < asked.last_fetched_epoch or end_offset < offset:
            return _given(asked, log, b"", None, EpochEndOffset(epoch=epoch, end_offset=end_offset))
    if not log.log_start_offset <= offset <= log.end_offset:
        return failed(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
    committed = isolation_level == READ_COMMITTED
    limit = log.last_stable_offset if committed else log.high_watermark
    size = min(asked.partition_max_bytes, left)
    if size < 0 and offset < limit:
        # Kafka: LogSegment.read, where a negative size is an unexpected exception.
        return failed(asked.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
    records = log.read(offset, size, limit, at_least_one=at_least_one) if offset < limit else b""
    aborted = _aborted(log, offset, limit, size, records) if committed else None
    return _given(asked, log, records, aborted, NO_EPOCH)


def _aborted(
    log: ReadableLog, offset: int, limit: int, max_bytes: int, records: BatchBytes | BatchRun
) -> tuple[AbortedTransaction, ...] | None:
    """The aborted transactions that a reader of committed records is sent."""
    if offset >= limit:
        return ()
    if not records and max_bytes > 0:
        # Kafka: ReplicaManager.checkFetchDataInfo. A batch that does not fit is replaced by nothing at all.
        return None
    found = log.aborted_between(offset, len(records))
    return tuple(
        [
            unvalidated(AbortedTransaction, producer_id=each.producer_id, first_offset=each.first_offset)
            for each in found
        ]
    )


def _given(
    asked: FetchPartition,
    log: ReadableLog,
    records: BatchBytes | BatchRun,
    aborted: tuple[AbortedTransaction, ...] | None,
    diverging: EpochEndOffset,
    preferred_replica: int = NO_REPLICA,
) -> FetchablePartitionResponse:
    return unvalidated(
        FetchablePartitionResponse,
        partition_index=asked.partition,
        error_code=ErrorCode.NONE,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        current_leader=UNKNOWN_LEADER,
        snapshot_id=NO_SNAPSHOT,
        aborted_transactions=aborted,
        preferred_read_replica=preferred_replica,
        records=records,
    )


def failed(partition: int, error: ErrorCode) -> FetchablePartitionResponse:
    """A partition whose reading failed. Those that are refused before have an empty list of aborted transactions."""
    return FetchablePartitionResponse(
        partition_index=partition, error_code=error, high_watermark=-1, aborted_transactions=None
    )
