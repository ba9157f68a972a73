"""A Produce request under way: what becomes of each of its partitions, and its answer when all are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from rejoin.coordinator.core.inputs import Context, Millis, Token
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.produce.validation import ProduceError
from rejoin.coordinator.core.partitions.producer_state import ProducerStateManager, VerificationEntry
from rejoin.coordinator.core.partitions.transaction_events import TransactionEvents
from rejoin.coordinator.core.runtime.appends import AppendCompletion
from rejoin.coordinator.core.runtime.delayed import DelayedOperation
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER, LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.messages.records.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated
from rejoin.protocol.wire.record_batch import BatchHeader

if TYPE_CHECKING:
    from rejoin.coordinator.core.partitions.produce.requests import ProduceRequests

ALL_IN_SYNC: Final = -1


class TxnBatch(NamedTuple):
    """A transactional batch for a partition that is led here, and what that knows of producers.

    ``events`` is none for a partition of ``__consumer_offsets``, which takes no batches of clients.
    """

    partition: TopicPartition
    header: BatchHeader
    producers: ProducerStateManager
    events: TransactionEvents | None


OffsetsProducers: TypeAlias = Callable[[int], ProducerStateManager | None]
"""The producers of an offsets partition that is led here."""


Guards: TypeAlias = dict[TopicPartition, VerificationEntry | ProduceError | None]
"""For each partition what its batch is appended with, or why it is not; none where the transaction is open there."""


class BatchVerifier(Protocol):
    """Asks transaction coordinators."""

    def verify(
        self, transactional_id: str, version: int, batches: list[TxnBatch], on_guards: Callable[[Guards], None]
    ) -> None:
        """Call back with what each batch may be appended with. All are of one producer."""


class Slot(AppendCompletion):
    """One partition of a request: the batch to append, and the result. Also the append's completion."""

    __slots__ = ("index", "is_pending", "name", "partition", "production", "records", "result", "topic", "topic_id")

    def __init__(self, production: Production, name: str, topic_id: str, data: PartitionProduceData) -> None:
        self.production = production
        self.name = name
        """As the request has it, as the topic id."""
        self.topic_id = topic_id
        self.index = data.index
        self.records = data.records
        self.topic = name
        """The name of the topic, once it is found by its id."""
        self.partition: Partition | None = None
        self.result: PartitionProduceResponse | None = None
        self.is_pending = False

    def refuse(self, problem: ProduceError) -> None:
        """The batch is not appended."""
        partition = self.partition
        is_elsewhere = problem.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.result = PartitionProduceResponse(
            index=self.index,
            error_code=problem.error,
            base_offset=-1,
            log_start_offset=partition.log.log_start_offset if problem.by_log and partition is not None else -1,
            record_errors=tuple(
                BatchIndexAndErrorMessage(batch_index=error.batch_index, batch_index_error_message=error.message)
                for error in problem.records
            ),
            error_message=problem.message,
            current_leader=self.production.leader_of(self) if is_elsewhere else UNKNOWN_LEADER,
        )

    def appended(self, partition: Partition, base_offset: int, end_offset: int, time: Millis) -> None:
        """The batch is in the log, now or since an earlier request. It counts when it is stored."""
        log = partition.log
        self.result = unvalidated(
            PartitionProduceResponse,
            index=self.index,
            error_code=ErrorCode.NONE,
            base_offset=base_offset,
            log_append_time_ms=time,
            log_start_offset=log.log_start_offset,
            record_errors=(),
            error_message=None,
            current_leader=UNKNOWN_LEADER,
        )
        acks = self.production.acks
        if not acks or (log.high_watermark if acks == ALL_IN_SYNC else partition.stored_end) >= end_offset:
            return
        self.is_pending = True
        self.production.pending += 1
        if acks == ALL_IN_SYNC:
            partition.when_replicated(end_offset, self)
        else:
            partition.when_stored(end_offset, self)

    def ended(self, error: ErrorCode) -> None:
        """The append has ended."""
        self.production.stored(self, error)


class Production(DelayedOperation):
    """A Produce request under way, and how many of its partitions it waits for."""

    __slots__ = (
        "_endpoints",
        "_requests",
        "acks",
        "context",
        "is_answered",
        "pending",
        "size",
        "slots",
        "timeout_ms",
        "token",
    )

    def __init__(self, made_by: ProduceRequests, token: Token, request: ProduceRequest, context: Context) -> None:
        self._requests = made_by
        self.token = token
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.context = context
        self.size = 0
        """Bytes of the request in Kafka's protocol; 0 where there are no quotas."""
        self.slots: list[Slot] = []
        self.pending = 0
        self._endpoints: dict[int, NodeEndpoint] = {}
        self.is_answered = False

    def leader_of(self, slot: Slot) -> LeaderIdAndEpoch:
        """Who leads a partition that is led elsewhere; its address goes into the response."""
        leader, endpoint = self._requests.leader_of(slot, self.context)
        if endpoint is not None:
            self._endpoints[endpoint.node_id] = endpoint
        return leader

    def begin(self) -> None:
        """Every partition was looked at: answer, or wait."""
        if not self.pending:
            self._requests.answer(self)
        elif self.acks == ALL_IN_SYNC:
            self._requests.wait(self, self.timeout_ms)

    def stored(self, slot: Slot, error: ErrorCode) -> None:
        """The append of one batch has ended."""
        if self.is_answered:
            return
        slot.is_pending = False
        self.pending -= 1
        if error is not ErrorCode.NONE:
            slot.refuse(ProduceError(error, by_log=False))
        if not self.pending:
            self._requests.answer(self)

    def time_out(self) -> None:
        """Wait no longer. What is not stored yet is in the log, and may be stored later."""
        for slot in self.slots:
            if slot.is_pending and slot.result is not None:
                slot.result = slot.result.model_copy(update={"error_code": ErrorCode.REQUEST_TIMED_OUT})
        self._requests.answer(self)

    def response(self, throttle_ms: Millis) -> ProduceResponse:
        """Result of each partition, by topic."""
        topics: dict[tuple[str, str], list[PartitionProduceResponse]] = {}
        for slot in self.slots:
            assert slot.result is not None, "every partition was looked at"
            key = slot.name, slot.topic_id
            if key in topics:
                topics[key].append(slot.result)
            else:
                topics[key] = [slot.result]
        responses = [
            unvalidated(TopicProduceResponse, name=key[0], topic_id=key[1], partition_responses=tuple(topics[key]))
            for key in topics
        ]
        endpoints = tuple(self._endpoints.values()) if self._endpoints else ()
        return unvalidated(
            ProduceResponse, responses=tuple(responses), throttle_time_ms=throttle_ms, node_endpoints=endpoints
        )
