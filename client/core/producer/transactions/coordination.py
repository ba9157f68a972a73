"""The requests about a transaction, one after the other, and what follows from their answers."""

from __future__ import annotations

from typing import Final

from rejoin.client.core import requests
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import (
    CodedError,
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from rejoin.client.core.producer import sequences
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.inputs import TransactionCall
from rejoin.client.core.producer.reactions import INIT_WITH_ID, ProducerReaction, reaction
from rejoin.client.core.producer.state import (
    NO_PRODUCER,
    OffsetsToSend,
    ProducerCoreState,
    ProducerIdAndEpoch,
    Transaction,
    TransactionRequestSent,
    TransactionStatus,
)
from rejoin.client.core.producer.transactions import transitions
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.messages.cluster.find_coordinator import FindCoordinatorResponse
from rejoin.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from rejoin.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from rejoin.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from rejoin.protocol.registry import ADD_PARTITIONS_TO_TXN, BY_REQUEST, END_TXN, FIND_COORDINATOR, TXN_OFFSET_COMMIT

_FEATURE: Final = "transaction.version"
_FIRST_WITH_EPOCH_BUMPS: Final = 2
_GROUP, _TRANSACTION = 0, 1
_SOFTWARE: Final = "rejoin-producer"

_FIRST_ADD_BACKOFF_MS: Final = 20
"""The former transaction still writes its markers, which takes a moment. Kafka: ADD_PARTITIONS_RETRY_BACKOFF_MS."""

_Status = TransactionStatus
_GRAVITY: Final = (
    ProducerReaction.COMPLETE,
    ProducerReaction.ABORT,
    ProducerReaction.RETRY,
    ProducerReaction.FIND_COORDINATOR,
    ProducerReaction.FATAL,
)


# -- what is due


def advance(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Do the next thing, and say how long it can wait."""
    transaction = state.transaction
    if transaction is None:
        return
    if state.fatal_error is not None:
        transaction.status = _Status.FATAL_ERROR
        transitions.fail_call(state, ctx, state.fatal_error)
        return
    if transaction.status is _Status.ABORTABLE_ERROR and transaction.error is not None:
        transitions.fail_call(state, ctx, transaction.error)
    if transaction.request_id is None:
        if ctx.now < transaction.retry_at:
            ctx.wake(transaction.retry_at)
        else:
            _next(state, ctx, transaction)
    _expire_call(state, ctx, transaction)


def _expire_call(state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction) -> None:
    waiting = transaction.call
    if waiting is None:
        return
    if ctx.now < waiting.expires_at:
        ctx.wake(waiting.expires_at)
        return
    # Kafka: TransactionalRequestResult.await. The transition goes on.
    text = f"{waiting.call.value} is not done after {ctx.config.max_block_ms} ms; call it again to wait longer"
    transitions.fail_call(state, ctx, KafkaTimeoutError(text))


def _next(state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction) -> None:
    """Make the next request, or end the transaction where there is none to make."""
    match transaction.status:
        case _Status.INITIALIZING if not transaction.knows_features:
            request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
            _send(state, ctx, request, None)
        case _Status.INITIALIZING:
            _init_producer_id(state, ctx, transaction, NO_PRODUCER)
        case _Status.IN_TRANSACTION:
            _add(state, ctx, transaction)
        case _Status.COMMITTING:
            if not _add(state, ctx, transaction) and not state.incomplete and not state.parked:
                _end(state, ctx, transaction, committed=True)
        case _Status.ABORTING:
            if transaction.adding:
                _add_partitions(state, ctx, transaction)
            elif not state.incomplete:
                _end(state, ctx, transaction, committed=False)
        case _:
            pass


def _end(state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction, *, committed: bool) -> None:
    producer_id, epoch = producer = state.idempotence.producer
    if transaction.is_started:
        request = EndTxnRequest(
            transactional_id=_id(ctx), producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        _ask(state, ctx, transaction, request)
    elif transaction.needs_new_epoch:
        _init_producer_id(state, ctx, transaction, producer)
    else:
        transaction.status = _Status.READY
        transaction.error = None
        transaction.partitions.clear()
        transaction.groups.clear()
        transitions.end_call(transaction, ctx, TransactionCall.COMMIT if committed else TransactionCall.ABORT)


def _init_producer_id(
    state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction, known: ProducerIdAndEpoch
) -> None:
    request = InitProducerIdRequest(
        transactional_id=_id(ctx),
        transaction_timeout_ms=ctx.config.transaction_timeout_ms,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
    )
    _ask(state, ctx, transaction, request, INIT_WITH_ID)


def _add(state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction) -> bool:
    """Make partitions and offsets part of the transaction; false where there is nothing to add."""
    if not transaction.bumps_epochs and not transaction.adding:
        transaction.adding = frozenset(queue.partition for queue in state.active) - transaction.partitions
    if transaction.adding:
        _add_partitions(state, ctx, transaction)
    elif transaction.offsets is not None:
        _add_offsets(state, ctx, transaction, transaction.offsets)
    else:
        return False
    return True


def _add_partitions(state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction) -> None:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.adding):
        topics.setdefault(topic, []).append(partition)
    producer_id, epoch = state.idempotence.producer
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=_id(ctx),
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        ),
    )
    _ask(state, ctx, transaction, request)


def _add_offsets(
    state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction, sending: OffsetsToSend
) -> None:
    producer_id, epoch = state.idempotence.producer
    group = sending.group
    if not transaction.bumps_epochs and group.group_id not in transaction.groups:
        request = AddOffsetsToTxnRequest(
            transactional_id=_id(ctx), producer_id=producer_id, producer_epoch=epoch, group_id=group.group_id
        )
        _ask(state, ctx, transaction, request)
        return
    if transaction.group_coordinator is None:
        _find_coordinator(state, ctx, group.group_id, _GROUP)
        return
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in sending.offsets.items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    commit = TxnOffsetCommitRequest(
        transactional_id=_id(ctx),
        group_id=group.group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id_or_member_epoch=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        ),
    )
    transaction.is_started = True
    _send(state, ctx, commit, transaction.group_coordinator)


def _id(ctx: ProducerContext) -> str:
    given = ctx.config.transactional_id
    assert given is not None, "only a producer with a transactional id has transactions"
    return given


def _ask(
    state: ProducerCoreState, ctx: ProducerContext, transaction: Transaction, request: Request, name: str = ""
) -> None:
    """Ask the transaction's coordinator, which may have to be found first."""
    if transaction.coordinator is None:
        _find_coordinator(state, ctx, _id(ctx), _TRANSACTION)
    else:
        _send(state, ctx, request, transaction.coordinator, name)


def _find_coordinator(state: ProducerCoreState, ctx: ProducerContext, key: str, key_type: int) -> None:
    version = ctx.version(FIND_COORDINATOR)
    request = requests.find_coordinator(key, version, key_type)
    sent = TransactionRequestSent(FIND_COORDINATOR.name, version, key, key_type)
    _transaction(state).request_id = ctx.send(state, request, sent)


def _send(
    state: ProducerCoreState, ctx: ProducerContext, request: Request, to: Endpoint | None, name: str = ""
) -> None:
    sent = TransactionRequestSent(name or BY_REQUEST[type(request)].name)
    _transaction(state).request_id = ctx.send(state, request, sent, to)


# -- answers


def answered(state: ProducerCoreState, ctx: ProducerContext, sent: TransactionRequestSent, response: Response) -> None:
    """A request about the transaction was answered."""
    match response:
        case FindCoordinatorResponse():
            found = requests.coordinator_found(response, sent.key, sent.version)
            if react(state, ctx, sent, found.error_code) is ProducerReaction.COMPLETE:
                endpoint = Endpoint(found.node_id, found.host, found.port, is_coordinator=True)
                _take_coordinator(state, sent, endpoint)
            return
        case AddPartitionsToTxnResponse():
            topics = response.results_by_topic_v3_and_below
            results = [each for topic in topics for each in topic.results_by_partition]
            error = _gravest(sent, [each.partition_error_code for each in results])
        case TxnOffsetCommitResponse():
            error = _gravest(sent, [each.error_code for topic in response.topics for each in topic.partitions])
        case ApiVersionsResponse() | InitProducerIdResponse() | AddOffsetsToTxnResponse() | EndTxnResponse():
            error = response.error_code
        case _:
            raise AssertionError(f"{type(response).__name__} answers no request about transactions")
    if react(state, ctx, sent, error) is ProducerReaction.COMPLETE:
        _take(state, ctx, response)


def _gravest(sent: TransactionRequestSent, errors: list[ErrorCode]) -> ErrorCode:
    """The error that decides about a request for several partitions."""
    return max(errors, key=lambda error: _GRAVITY.index(reaction(sent.name, error)), default=ErrorCode.NONE)


def react(
    state: ProducerCoreState, ctx: ProducerContext, sent: TransactionRequestSent, error: ErrorCode
) -> ProducerReaction:
    """React to an error as the table says; a lost connection is NETWORK_EXCEPTION."""
    transaction = _transaction(state)
    transaction.request_id = None
    what = reaction(sent.name, error)
    match what:
        case ProducerReaction.COMPLETE:
            transaction.attempts = 0
        case ProducerReaction.ABORT:
            _abort(transaction, sent, error)
        case ProducerReaction.FATAL:
            state.fatal_error = _error(sent, error)
        case _:
            if what is ProducerReaction.FIND_COORDINATOR and sent.name == TXN_OFFSET_COMMIT.name:
                transaction.group_coordinator = None
            elif what is ProducerReaction.FIND_COORDINATOR:
                transaction.coordinator = None
            if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # Nothing was added: after an abort there is no reason to go on.
                transaction.adding = frozenset()
            is_first_add = sent.name == ADD_PARTITIONS_TO_TXN.name and not transaction.partitions
            if is_first_add and error is ErrorCode.CONCURRENT_TRANSACTIONS:
                transaction.retry_at = ctx.now + _FIRST_ADD_BACKOFF_MS
            else:
                transaction.retry_at = ctx.now + ctx.backoff(transaction.attempts)
            transaction.attempts += 1
    return what


def _abort(transaction: Transaction, sent: TransactionRequestSent, error: ErrorCode) -> None:
    was_aborting = transaction.status is _Status.ABORTING
    transitions.must_abort(transaction, _error(sent, error))
    transaction.adding = frozenset()
    if error in (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.UNKNOWN_PRODUCER_ID):
        # Kafka: beginAbort. The coordinator does not know this producer, so there is nothing to end.
        transaction.is_started = False
        transaction.needs_new_epoch = True
    elif was_aborting and sent.name == END_TXN.name:
        transaction.status = _Status.ABORTABLE_ERROR


def _error(sent: TransactionRequestSent, error: ErrorCode) -> KafkaError:
    text = f"{sent.name}: {error.name} ({error.value})"
    if error in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        return ProducerFencedError(f"{text}: another producer has this transactional.id, or the transaction timed out")
    if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        return CommitFailedError(f"{text}: the consumer is not in this generation of its group any more")
    if error is ErrorCode.FENCED_INSTANCE_ID:
        return FencedInstanceIdError(text)
    return CodedError(error, text)


def _take_coordinator(state: ProducerCoreState, sent: TransactionRequestSent, endpoint: Endpoint) -> None:
    transaction = _transaction(state)
    if sent.key_type == _GROUP:
        transaction.group_coordinator = endpoint
    else:
        transaction.coordinator = endpoint


def _take(state: ProducerCoreState, ctx: ProducerContext, response: Response) -> None:
    """Take in an answer without an error."""
    transaction = _transaction(state)
    match response:
        case ApiVersionsResponse():
            levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
            transaction.bumps_epochs = levels.get(_FEATURE, 0) >= _FIRST_WITH_EPOCH_BUMPS
            transaction.knows_features = True
        case InitProducerIdResponse():
            sequences.id_found(state, response.producer_id, response.producer_epoch)
            transaction.needs_new_epoch = False
            if transaction.status is _Status.INITIALIZING:
                transaction.status = _Status.READY
                transitions.end_call(transaction, ctx, TransactionCall.INIT)
        case AddPartitionsToTxnResponse():
            transaction.partitions |= transaction.adding
            transaction.adding = frozenset()
            transaction.is_started = True
        case AddOffsetsToTxnResponse():
            if transaction.offsets is not None:
                transaction.groups.add(transaction.offsets.group.group_id)
            transaction.is_started = True
        case TxnOffsetCommitResponse():
            transaction.offsets = None
            transitions.end_call(transaction, ctx, TransactionCall.SEND_OFFSETS)
        case EndTxnResponse():
            transaction.is_started = False
            if transaction.bumps_epochs and response.producer_id >= 0:
                sequences.id_found(state, response.producer_id, response.producer_epoch)


def _transaction(state: ProducerCoreState) -> Transaction:
    assert state.transaction is not None, "only a producer with a transactional id has transactions"
    return state.transaction
