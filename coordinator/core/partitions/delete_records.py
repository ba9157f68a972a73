"""DeleteRecords: let logs begin later. Kafka: Partition.deleteRecordsOnLeader, DelayedDeleteRecords."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.runtime.delayed import DelayedOperation, DelayedTimer, Purgatory
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK: Final = -1
NO_OFFSET: Final = -1


class DeleteRecordsRequests:
    """Deletes the records before an offset."""

    def __init__(self, ctx: StepContext, partitions: Partitions, topics: Topics, admission: Admission) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._topics = topics
        self._admission = admission
        self.purgatory = Purgatory(ctx, DelayedTimer.DELETE_RECORDS_TIMEOUT)

    def delete_records(self, token: Token, request: DeleteRecordsRequest, context: Context) -> None:
        deletion = _Deletion(self._ctx, self.purgatory, token, request.timeout_ms)
        for topic in request.topics:
            for wanted in topic.partitions:
                slot = (topic.name, wanted.partition_index)
                partition = self._find(*slot, context)
                if isinstance(partition, ErrorCode):
                    deletion.failed(slot, partition)
                    continue
                log = partition.log
                offset = log.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
                if not 0 <= offset <= log.high_watermark:
                    deletion.failed(slot, ErrorCode.OFFSET_OUT_OF_RANGE)
                else:
                    deletion.delete(slot, partition, offset)
        deletion.begin()

    def _find(self, name: str, index: int, context: Context) -> Partition | ErrorCode:
        if not self._admission.allows(DeleteRecordsRequest, context, Resource.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if name in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not self._topics.has_partition(name, index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self._topics.by_name[name].is_real:
            # Differs: a synthetic log always begins at 0.
            return ErrorCode.POLICY_VIOLATION
        found = self._partitions.find(name, index)
        if isinstance(found, Partition) and not found.config.deletes:
            return ErrorCode.POLICY_VIOLATION
        return found


class _Deletion(DelayedOperation):
    """A DeleteRecords under way."""

    def __init__(self, ctx: StepContext, purgatory: Purgatory, token: Token, timeout_ms: int) -> None:
        self._ctx = ctx
        self._purgatory = purgatory
        self._timeout_ms = timeout_ms
        self._is_answered = False
        self._token = token
        self._results: dict[tuple[str, int], DeleteRecordsPartitionResult] = {}
        self._pending: set[tuple[str, int]] = set()

    def failed(self, slot: tuple[str, int], error: ErrorCode) -> None:
        self._results[slot] = DeleteRecordsPartitionResult(
            partition_index=slot[1], low_watermark=NO_OFFSET, error_code=error
        )

    def delete(self, slot: tuple[str, int], partition: Partition, offset: int) -> None:
        """Let a partition begin at an offset; it counts when that is stored."""
        if offset > partition.log.log_start_offset:
            partition.start_at(offset)
            self._pending.add(slot)
            partition.when_all_stored(_SlotDeleted(self, slot))
        low_watermark = partition.log.log_start_offset
        self._results[slot] = DeleteRecordsPartitionResult(partition_index=slot[1], low_watermark=low_watermark)

    def begin(self) -> None:
        """Every partition was looked at: answer, or wait."""
        if self._pending:
            self._purgatory.wait(self, self._timeout_ms)
        else:
            self._answer()

    def stored(self, slot: tuple[str, int], error: ErrorCode) -> None:
        """The new beginning of one partition is stored, or is not."""
        if self._is_answered:
            return
        self._pending.discard(slot)
        if error is not ErrorCode.NONE:
            self.failed(slot, error)
        if not self._pending:
            self._answer()

    def time_out(self) -> None:
        """The timeout has passed. A deletion that is not stored yet may still be stored later."""
        for slot in self._pending:
            self.failed(slot, ErrorCode.REQUEST_TIMED_OUT)
        self._answer()

    def _answer(self) -> None:
        self._is_answered = True
        self._purgatory.ended(self)
        topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
        for (name, _), result in self._results.items():
            topics.setdefault(name, []).append(result)
        results = tuple(
            DeleteRecordsTopicResult(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        )
        self._ctx.reply(self._token, DeleteRecordsResponse(topics=results))


class _SlotDeleted(AppendCompletion):
    """Goes on with a request when one partition begins later."""

    __slots__ = ("_deletion", "_slot")

    def __init__(self, deletion: _Deletion, slot: tuple[str, int]) -> None:
        self._deletion = deletion
        self._slot = slot

    def ended(self, error: ErrorCode) -> None:
        self._deletion.stored(self._slot, error)
