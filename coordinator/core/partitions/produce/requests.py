"""Produce: batches go to the ends of their partitions, and the request is answered when they are stored.

A response to a request with acks of 0 is there for the record: a listener of Kafka's protocol sends nothing, and
closes the connection if a partition failed.

Kafka: KafkaApis.handleProduceRequest, ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.partitions.produce.production import (
    ALL_IN_SYNC,
    BatchVerifier,
    Guards,
    OffsetsProducers,
    Production,
    Slot,
    TxnBatch,
)
from rejoin.coordinator.core.partitions.produce.validation import (
    ProduceError,
    find_batch,
    is_transactional,
    problem_of_request,
    validate,
)
from rejoin.coordinator.core.partitions.producer_state import VerificationEntry
from rejoin.coordinator.core.quotas.client_rates import ClientRates
from rejoin.coordinator.core.quotas.sizes import size_of_request
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.delayed import DelayedTimer, Purgatory
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.leader_hints import UNKNOWN_LEADER, LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.messages.records.produce import (
    ProduceRequest,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import TopicIdPartition, TopicPartition
from rejoin.protocol.wire.record_batch import TRANSACTIONAL_BIT, BatchHeader

FIRST_WITH_TOPIC_IDS: Final = 13
FIRST_WITH_LEADERS: Final = 10


class ProduceRequests:
    """Appends what clients produce."""

    def __init__(
        self,
        ctx: StepContext,
        partitions: Partitions,
        topics: Topics,
        admission: Admission,
        verifier: Callable[[], BatchVerifier],
        offsets_producers: OffsetsProducers,
        rates: ClientRates,
    ) -> None:
        self.ctx = ctx
        self._partitions = partitions
        self._topics = topics
        self._admission = admission
        self._verifier = verifier
        self._offsets_producers = offsets_producers
        self._rates = rates
        self.purgatory = Purgatory(ctx, DelayedTimer.PRODUCE_TIMEOUT)

    def produce(self, token: Token, request: ProduceRequest, context: Context) -> None:
        production = Production(self, token, request, context)
        if self._rates.has_quotas:
            production.size = size_of_request(request, context)
        batches = self._find_batches(request, context, production)
        marked = [each for each in batches if each[1].attributes & TRANSACTIONAL_BIT]
        error = self._error_of_all(request, context, [header for _, header in marked]) if marked else None
        if error is not None:
            for slot in production.slots:
                slot.refuse(error)
            batches = marked = []
        elif request.acks not in (0, 1, ALL_IN_SYNC):
            refused = ProduceError(ErrorCode.INVALID_REQUIRED_ACKS, by_log=False)
            for slot, _ in batches:
                slot.refuse(refused)
            batches = marked = []
        if marked and (transactional := [each for each in marked if each[1].has_producer_id]):
            plain = [each for each in batches if not (each[1].is_transactional and each[1].has_producer_id)]
            self._append_transactional(production, request.transactional_id or "", plain, transactional, context)
        else:
            self._append_all(production, batches)

    def partitions_of(self, request: ProduceRequest) -> list[TopicIdPartition]:
        """The partitions with real logs that a request is for."""
        found = [
            self._partitions.identify(topic.name or self._topics.named(topic.topic_id) or "", data.index)
            for topic in request.topic_data
            for data in topic.partition_data
        ]
        return [partition for partition in found if partition is not None]

    # --- the request as a whole

    def _find_batches(
        self, request: ProduceRequest, context: Context, production: Production
    ) -> list[tuple[Slot, BatchHeader]]:
        """The header of the batch for each partition that has one to append; the others are refused."""
        slots = [
            Slot(production, topic.name, topic.topic_id, data)
            for topic in request.topic_data
            for data in topic.partition_data
        ]
        if len(slots) > 1:
            # Kafka: of a partition that is named twice the last batch counts, and the other is lost.
            last = {(slot.name, slot.topic_id, slot.index): slot for slot in slots}
            slots = [slot for slot in slots if last[slot.name, slot.topic_id, slot.index] is slot]
        production.slots = slots
        found: list[tuple[Slot, BatchHeader]] = []
        is_refused = False
        for slot in slots:
            try:
                found.append((slot, self._find_batch(slot, context)))
            except ProduceError as problem:
                of_all = problem if problem.of_request else problem_of_request(slot.records)
                if of_all is not None:
                    for each in slots:
                        each.refuse(of_all)
                    return []
                slot.refuse(problem)
                is_refused = is_refused or is_transactional(slot.records)
        if is_refused and not self._may_use(request.transactional_id, context):
            # Kafka: the transactional id is looked at before the topics.
            for each in slots:
                each.refuse(ProduceError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, by_log=False))
            return []
        return found

    def _find_batch(self, slot: Slot, context: Context) -> BatchHeader:
        """The header of the batch of a slot. Raises :class:`ProduceError`."""
        if context.api_version >= FIRST_WITH_TOPIC_IDS:
            name = self._topics.named(slot.topic_id)
            if name is None:
                raise ProduceError(ErrorCode.UNKNOWN_TOPIC_ID, by_log=False)
            slot.topic = name
        name, admission = slot.topic, self._admission
        if not (admission.allows_everything or admission.allows(ProduceRequest, context, Resource.TOPIC, name)):
            raise ProduceError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, by_log=False)
        if not self._topics.has_partition(name, slot.index):
            raise ProduceError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, by_log=False)
        return find_batch(slot.records, context.api_version)

    def _error_of_all(
        self, request: ProduceRequest, context: Context, transactional: list[BatchHeader]
    ) -> ProduceError | None:
        """The error of every partition, if they share one: it is that of the transactional batches."""
        if not self._may_use(request.transactional_id, context):
            return ProduceError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, by_log=False)
        if len({(header.producer_id, header.producer_epoch) for header in transactional}) > 1:
            message = "the transactional batches of a request are of one producer id and epoch"
            return ProduceError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, by_log=False, message=message)
        return None

    def _may_use(self, transactional_id: str | None, context: Context) -> bool:
        return transactional_id is not None and self._admission.allows(
            ProduceRequest, context, Resource.TRANSACTIONAL_ID, transactional_id
        )

    # --- batches of transactions

    def _append_transactional(
        self,
        production: Production,
        transactional_id: str,
        plain: list[tuple[Slot, BatchHeader]],
        batches: list[tuple[Slot, BatchHeader]],
        context: Context,
    ) -> None:
        """Append batches that their transaction coordinator knows of; the whole request waits until it is asked."""
        found: list[TxnBatch] = []
        slots: dict[TopicPartition, tuple[Slot, BatchHeader]] = {}
        for slot, header in batches:
            try:
                batch = self._batch(slot, header)
            except ProduceError as problem:
                slot.refuse(problem)
            else:
                found.append(batch)
                slots[batch.partition] = slot, header
        if found:
            on_guards = partial(self._append_guarded, production, plain, slots)
            self._verifier().verify(transactional_id, context.api_version, found, on_guards)
        else:
            self._append_all(production, plain)

    def _batch(self, slot: Slot, header: BatchHeader) -> TxnBatch:
        """A batch for its coordinator. Raises :class:`ProduceError` where its partition is not led here."""
        # Kafka: the coordinator comes before all that the append tests: internal topics, replicas in sync, the log.
        name = TopicPartition(slot.topic, slot.index)
        if slot.topic == OFFSETS_TOPIC:
            producers = self._offsets_producers(slot.index)
            if producers is None:
                raise ProduceError(ErrorCode.NOT_LEADER_OR_FOLLOWER, by_log=False)
            return TxnBatch(name, header, producers, None)
        partition = self._led(slot)
        return TxnBatch(name, header, partition.producers, partition.events)

    def _append_guarded(
        self,
        production: Production,
        plain: list[tuple[Slot, BatchHeader]],
        slots: dict[TopicPartition, tuple[Slot, BatchHeader]],
        guards: Guards,
    ) -> None:
        """Append batches with what the transaction coordinator has allowed."""
        for name, (slot, header) in slots.items():
            guard = guards[name]
            if isinstance(guard, ProduceError):
                slot.refuse(guard)
            else:
                self._append(slot, header, guard)
        self._append_all(production, plain)

    def _append_all(self, production: Production, batches: list[tuple[Slot, BatchHeader]]) -> None:
        """Append batches of no transaction, the last ones of a request."""
        for slot, header in batches:
            self._append(slot, header)
        production.begin()

    # --- one partition

    def _append(self, slot: Slot, header: BatchHeader, guard: VerificationEntry | None = None) -> None:
        try:
            partition = self._partition(slot)
            log, config = partition.log, partition.config
            base_offset = log.end_offset
            assert slot.records is not None, "a batch was found"
            is_only = len(slot.production.slots) == 1
            batch, header = validate(slot.records, header, config, self.ctx.now, is_only=is_only)
            header = header.with_position(base_offset, partition.epoch)
            if header.has_producer_id:
                before = partition.producers.duplicate_of(header)
                if before is not None:
                    slot.appended(partition, before.first_offset, before.last_offset + 1, before.timestamp)
                    return
                error = self._transaction_error(partition, header, guard) if header.is_transactional else ErrorCode.NONE
                if error is ErrorCode.NONE:
                    error = partition.producers.check(header)
                if error is not ErrorCode.NONE:
                    if error is ErrorCode.INVALID_PRODUCER_EPOCH:
                        partition.events.fenced(header)
                    raise ProduceError(error)
        except ProduceError as problem:
            slot.refuse(problem)
            return
        time = header.max_timestamp if config.uses_log_append_time else -1
        partition.append(batch, header)
        slot.appended(partition, base_offset, log.end_offset, time)

    def _transaction_error(
        self, partition: Partition, header: BatchHeader, guard: VerificationEntry | None
    ) -> ErrorCode:
        verifies = self.ctx.settings.transaction_partition_verification_enable
        return partition.producers.check_transaction(header, guard, verifies=verifies)

    def _partition(self, slot: Slot) -> Partition:
        """The partition to append to. Raises :class:`ProduceError`."""
        if slot.topic in INTERNAL_TOPICS:
            raise ProduceError(ErrorCode.INVALID_TOPIC_EXCEPTION, by_log=False)
        slot.partition = partition = self._led(slot)
        if slot.production.acks == ALL_IN_SYNC and not partition.followers.is_enough(
            partition.config.min_insync_replicas
        ):
            raise ProduceError(ErrorCode.NOT_ENOUGH_REPLICAS, by_log=False)
        return partition

    def _led(self, slot: Slot) -> Partition:
        """The partition of a slot. Raises :class:`ProduceError` where this node does not lead it."""
        identity = self._partitions.identify(slot.topic, slot.index)
        if identity is None:
            message = f"the log of {slot.topic} is synthetic: it grows by itself, and takes no records"
            raise ProduceError(ErrorCode.INVALID_TOPIC_EXCEPTION, by_log=False, message=message)
        partition = self._partitions.get(identity)
        if partition is None:
            raise ProduceError(ErrorCode.NOT_LEADER_OR_FOLLOWER, by_log=False)
        return partition

    def leader_of(self, slot: Slot, context: Context) -> tuple[LeaderIdAndEpoch, NodeEndpoint | None]:
        """Who leads a partition that is not led here, as far as it is known."""
        identity = self._partitions.identify(slot.topic, slot.index)
        broker, epoch = (None, -1) if identity is None else self._partitions.leader_of(identity)
        if broker is None:
            return UNKNOWN_LEADER, None
        _, host, port = broker.endpoint(context)
        endpoint = NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        return LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=epoch), endpoint

    # --- requests that wait

    def wait(self, production: Production, timeout_ms: int) -> None:
        """Keep a request that waits for all replicas, no longer than it allows."""
        self.purgatory.wait(production, timeout_ms)

    def answer(self, production: Production) -> None:
        """All that a request waited for has ended."""
        production.is_answered = True
        throttle_ms = 0
        if production.size:
            throttle_ms = self._rates.produced(production.token, production.context, production.size)
        self.ctx.reply(production.token, production.response(throttle_ms))
        self.purgatory.ended(production)
        # No cycle is left, so that the bytes of the request are freed with it.
        production.slots = []
