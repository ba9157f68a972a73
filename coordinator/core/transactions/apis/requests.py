"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn. Kafka: KafkaApis, TransactionCoordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator, Verified
from rejoin.coordinator.core.transactions.metadata import FIRST_WITH_EPOCH_BUMPS
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from rejoin.protocol.messages.transactions.add_partitions_to_txn import (
    FIRST_ADD_PARTITIONS_OF_BROKERS,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    topic_results,
)
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.unvalidated import unvalidated

FIRST_WITH_FENCED: Final = 2
FIRST_END_WITH_EPOCH_BUMP: Final = 5


class TransactionRequests:
    """Adds to transactions, and ends them."""

    def __init__(
        self,
        ctx: StepContext,
        coordinator: TransactionCoordinator,
        ids: ProducerIds,
        groups: GroupShards,
        topics: Topics,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._coordinator = coordinator
        self._ids = ids
        self._groups = groups
        self._topics = topics
        self._admission = admission

    # --- AddPartitionsToTxn

    def add_partitions(self, token: Token, request: AddPartitionsToTxnRequest, context: Context) -> None:
        if context.api_version < FIRST_ADD_PARTITIONS_OF_BROKERS:
            self._add_for_client(token, request, context)
        elif self._admission.allows(AddPartitionsToTxnRequest, context, Resource.CLUSTER):
            self.add_for_brokers(token, request)
        else:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._ctx.reply(token, AddPartitionsToTxnResponse(error_code=error))

    def _add_for_client(self, token: Token, request: AddPartitionsToTxnRequest, context: Context) -> None:
        """Add partitions to the one transaction of a client."""
        transactional_id, topics = request.v3_and_below_transactional_id, request.v3_and_below_topics
        again = partial(self._add_for_client, token, request, context)
        if not self._coordinator.when_ready(transactional_id, again):
            return
        answer = partial(self._answer_client, token, context, topics)
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, transactional_id)
        if error is not ErrorCode.NONE:
            answer(error)
            return
        refused = self._refused(request, topics, context)
        if refused:
            results = topic_results(topics, ErrorCode.OPERATION_NOT_ATTEMPTED, refused)
            self._ctx.reply(token, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))
            return
        if not transactional_id:
            answer(ErrorCode.INVALID_REQUEST)
            return
        shard = self._coordinator.find(transactional_id)
        if isinstance(shard, ErrorCode):
            answer(shard)
            return
        producer = TxnProducer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        shard.add_partitions(transactional_id, producer, _partitions(topics), answer)

    def _refused(
        self, request: AddPartitionsToTxnRequest, topics: tuple[AddPartitionsToTxnTopic, ...], context: Context
    ) -> dict[TopicPartition, ErrorCode]:
        """The partitions that are unknown, or that the client may not write to."""
        refused: dict[TopicPartition, ErrorCode] = {}
        for topic in topics:
            # Kafka: what is internal is added by brokers only.
            error = self._admission.authorize(request, context, Resource.TOPIC, topic.name)
            if topic.name in INTERNAL_TOPICS:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            for index in topic.partitions:
                if error is not ErrorCode.NONE:
                    refused[TopicPartition(topic.name, index)] = error
                elif not self._topics.has_partition(topic.name, index):
                    refused[TopicPartition(topic.name, index)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    def _answer_client(
        self, token: Token, context: Context, topics: tuple[AddPartitionsToTxnTopic, ...], error: ErrorCode
    ) -> None:
        results = topic_results(topics, _error_for(error, context))
        self._ctx.reply(token, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

    def add_for_brokers(self, token: Token, request: AddPartitionsToTxnRequest) -> None:
        """Add or verify partitions of the transactions that a broker has records of."""
        batch = _BatchOfTransactions(self._ctx, token, request)
        for number, transaction in enumerate(request.transactions):
            wanted = _partitions(transaction.topics)
            unknown = [each for each in wanted if not self._topics.has_partition(*each)]
            if unknown:
                unattempted = dict.fromkeys(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
                batch.verified(number, unattempted | dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            self._coordinator.verify(
                transaction.transactional_id,
                TxnProducer(transaction.producer_id, transaction.producer_epoch),
                wanted,
                adds=not transaction.verify_only,
                on_verified=partial(batch.verified, number),
            )
        batch.begun()

    # --- AddOffsetsToTxn

    def add_offsets(self, token: Token, request: AddOffsetsToTxnRequest, context: Context) -> None:
        again = partial(self.add_offsets, token, request, context)
        if not self._coordinator.when_ready(request.transactional_id, again):
            return
        answer = partial(self._answer_offsets, token, context)
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, request.transactional_id)
        if error is ErrorCode.NONE:
            error = self._admission.authorize(request, context, Resource.GROUP, request.group_id)
        if error is ErrorCode.NONE and not request.transactional_id:
            error = ErrorCode.INVALID_REQUEST
        shard = self._coordinator.find(request.transactional_id) if error is ErrorCode.NONE else error
        if isinstance(shard, ErrorCode):
            answer(shard)
            return
        producer = TxnProducer(request.producer_id, request.producer_epoch)
        partitions = [self._groups.partition_of(request.group_id)]
        shard.add_partitions(request.transactional_id, producer, partitions, answer)

    def _answer_offsets(self, token: Token, context: Context, error: ErrorCode) -> None:
        self._ctx.reply(token, AddOffsetsToTxnResponse(error_code=_error_for(error, context)))

    # --- EndTxn

    def end_txn(self, token: Token, request: EndTxnRequest, context: Context) -> None:
        again = partial(self.end_txn, token, request, context)
        if not self._coordinator.when_ready(request.transactional_id, again):
            return
        answer = partial(self._answer_end, token, context)
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, request.transactional_id)
        version = FIRST_WITH_EPOCH_BUMPS if context.api_version >= FIRST_END_WITH_EPOCH_BUMP else 0
        if error is ErrorCode.NONE and not request.transactional_id:
            error = ErrorCode.INVALID_REQUEST
        shard = self._coordinator.find(request.transactional_id) if error is ErrorCode.NONE else error
        if isinstance(shard, ErrorCode):
            answer(shard, TxnProducer())
        elif version and not self._ctx.features.transaction_version:
            # Differs: Kafka answers the same, but then the transactional id is stuck.
            answer(ErrorCode.UNSUPPORTED_VERSION, TxnProducer())
        elif shard.needs_producer_id(request.transactional_id) and version and not self._ids.has_any:
            self._ids.request(partial(_go_on, again, answer))
        else:
            producer = TxnProducer(request.producer_id, request.producer_epoch)
            shard.end(request.transactional_id, producer, commits=request.committed, version=version, on_end=answer)

    def _answer_end(self, token: Token, context: Context, error: ErrorCode, given: TxnProducer) -> None:
        response = unvalidated(
            EndTxnResponse,
            throttle_time_ms=0,
            error_code=_error_for(error, context),
            producer_id=given.producer_id,
            producer_epoch=given.epoch,
        )
        self._ctx.reply(token, response)


@dataclass(slots=True)
class _BatchOfTransactions:
    """An AddPartitionsToTxn of a broker, until the last transaction is changed."""

    ctx: StepContext
    token: Token
    request: AddPartitionsToTxnRequest
    results: dict[int, AddPartitionsToTxnResult] = field(default_factory=dict)
    is_begun: bool = False

    def verified(self, number: int, errors: Verified) -> None:
        transaction = self.request.transactions[number]
        self.results[number] = AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=topic_results(transaction.topics, ErrorCode.NONE, errors),
        )
        self._answer()

    def begun(self) -> None:
        """Every transaction was looked at."""
        self.is_begun = True
        self._answer()

    def _answer(self) -> None:
        if self.is_begun and len(self.results) == len(self.request.transactions):
            results = tuple(result for _, result in sorted(self.results.items()))
            self.ctx.reply(self.token, AddPartitionsToTxnResponse(results_by_transaction=results))


def _partitions(topics: tuple[AddPartitionsToTxnTopic, ...]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _error_for(error: ErrorCode, context: Context) -> ErrorCode:
    """The error as older clients know it."""
    is_fenced = error is ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced and context.api_version < FIRST_WITH_FENCED else error


def _go_on(again: partial[None], answer: partial[None], error: ErrorCode) -> None:
    """There are producer ids again, or none can be had."""
    if error is ErrorCode.NONE:
        again()
    else:
        answer(error, TxnProducer())
