"""Transitions of a transaction: calls allowed in each state, and questions of the rest of the producer."""

from __future__ import annotations

from typing import Final

from rejoin.client.core.effects import CallDone
from rejoin.client.core.errors import (
    CodedError,
    IllegalStateError,
    KafkaError,
    TransactionAbortedError,
)
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.inputs import TransactionCall, TransactionCalled
from rejoin.client.core.producer.state import (
    OffsetsToSend,
    PartitionQueue,
    ProducerBatch,
    ProducerCoreState,
    Transaction,
    TransactionStatus,
    WaitingCall,
)
from rejoin.protocol.errors import ErrorCode

_Status = TransactionStatus

_ALLOWED: Final = {
    # From where a call may be made, and where it leads to.
    TransactionCall.INIT: ((_Status.UNINITIALIZED,), _Status.INITIALIZING),
    TransactionCall.BEGIN: ((_Status.READY,), _Status.IN_TRANSACTION),
    TransactionCall.SEND_OFFSETS: ((_Status.IN_TRANSACTION,), _Status.IN_TRANSACTION),
    TransactionCall.COMMIT: ((_Status.IN_TRANSACTION,), _Status.COMMITTING),
    TransactionCall.ABORT: ((_Status.IN_TRANSACTION, _Status.ABORTABLE_ERROR), _Status.ABORTING),
}


# -- what others ask


def refusal(state: ProducerCoreState) -> KafkaError | None:
    """Why no record can be sent now, or none."""
    transaction = state.transaction
    if transaction is None or transaction.status is _Status.IN_TRANSACTION:
        return None
    return state.fatal_error or _not_allowed(transaction, "send")


def may_send(state: ProducerCoreState, batch: ProducerBatch) -> bool:
    """Whether the partition of a batch is part of the transaction, or becomes it by Produce."""
    transaction = state.transaction
    return transaction is None or transaction.bumps_epochs or batch.partition in transaction.partitions


def may_retry(transaction: Transaction, queue: PartitionQueue, batch: ProducerBatch) -> bool:
    """OUT_OF_ORDER_SEQUENCE_NUMBER: whether an earlier batch may still be in flight, and nothing is lost yet."""
    return transaction.error is None and not queue.is_next(batch.base_sequence)


def is_ending(state: ProducerCoreState) -> bool:
    """Whether the user waits for the end of a transaction."""
    transaction = state.transaction
    return transaction is not None and transaction.status in (_Status.COMMITTING, _Status.ABORTING)


def can_abort(state: ProducerCoreState) -> bool:
    """Whether a transaction has begun, and its end is not decided."""
    transaction = state.transaction
    return transaction is not None and transaction.status in _ALLOWED[TransactionCall.ABORT][0]


def is_open(state: ProducerCoreState) -> bool:
    """Whether a transaction has begun and not ended."""
    return is_ending(state) or can_abort(state)


def drop_reason(state: ProducerCoreState) -> KafkaError | None:
    """The error for the records of the transaction, if it is aborted."""
    transaction = state.transaction
    if transaction is None or transaction.status not in (_Status.ABORTING, _Status.ABORTABLE_ERROR):
        return None
    return transaction.error or TransactionAbortedError("the transaction was aborted before the record was sent")


def must_abort(transaction: Transaction, error: KafkaError) -> None:
    """A record or an offset is not part of the transaction: it can only be aborted."""
    # Kafka: transitionToAbortableError; needToTriggerEpochBumpFromClient.
    transaction.needs_new_epoch = not transaction.bumps_epochs
    transaction.offsets = None
    if transaction.error is None:
        transaction.error = error
    if transaction.status in (_Status.IN_TRANSACTION, _Status.COMMITTING):
        transaction.status = _Status.ABORTABLE_ERROR


def abort_open(transaction: Transaction) -> None:
    """Abort an open transaction, for a producer that is being closed."""
    if transaction.status in _ALLOWED[TransactionCall.ABORT][0]:
        transaction.status = _Status.ABORTING
        transaction.offsets = None


# -- calls


def called(state: ProducerCoreState, ctx: ProducerContext, what: TransactionCalled) -> None:
    """A user's call: refuse it, end it at once, or let it wait."""
    transaction = state.transaction
    if transaction is None:
        ctx.emit(CallDone(what.token, IllegalStateError("transactions need a transactional.id")))
        return
    call = what.call
    waiting = transaction.call
    if call is TransactionCall.ABORT and waiting is not None and waiting.call is TransactionCall.SEND_OFFSETS:
        fail_call(state, ctx, TransactionAbortedError("the transaction was aborted before the offsets were committed"))
    if state.fatal_error is not None:
        ctx.emit(CallDone(what.token, state.fatal_error))
    elif transaction.call is not None:
        waits = transaction.call.call.value
        ctx.emit(CallDone(what.token, IllegalStateError(f"{call.value}: {waits} is not done yet")))
    elif transaction.unseen is not None and call is transaction.unseen:
        transaction.unseen = None
        ctx.emit(CallDone(what.token))
    else:
        _begin(transaction, ctx, what)


def _begin(transaction: Transaction, ctx: ProducerContext, what: TransactionCalled) -> None:
    call = what.call
    allowed, leads_to = _ALLOWED[call]
    goes_on = transaction.status is leads_to and call in (
        TransactionCall.INIT,
        TransactionCall.COMMIT,
        TransactionCall.ABORT,
    )
    if not goes_on and transaction.status not in allowed:
        ctx.emit(CallDone(what.token, _not_allowed(transaction, call.value)))
        return
    transaction.status = leads_to
    transaction.unseen = None
    if call is TransactionCall.ABORT:
        transaction.offsets = None
    if call is TransactionCall.SEND_OFFSETS and what.offsets:
        assert what.group is not None, "offsets belong to a group"
        transaction.offsets = OffsetsToSend(what.offsets, what.group)
        if transaction.coordinated_group != what.group.group_id:
            # Differs: Kafka asks the coordinator of the group before, which answers NOT_COORDINATOR.
            transaction.coordinated_group, transaction.group_coordinator = what.group.group_id, None
    elif call in (TransactionCall.BEGIN, TransactionCall.SEND_OFFSETS):
        ctx.emit(CallDone(what.token))
        return
    transaction.call = WaitingCall(what.token, call, ctx.now + ctx.config.max_block_ms)


def _not_allowed(transaction: Transaction, what: str) -> KafkaError:
    status = transaction.status
    if status is _Status.ABORTABLE_ERROR:
        if isinstance(transaction.error, CodedError) and transaction.error.error is ErrorCode.INVALID_PRODUCER_EPOCH:
            # Kafka: TransactionManager.maybeFailWithError passes on this one as it is.
            return CodedError(ErrorCode.INVALID_PRODUCER_EPOCH, f"{what}: {transaction.error}")
        error = KafkaError(f"{what}: the transaction can only be aborted: {transaction.error}")
        error.__cause__ = transaction.error
        return error
    hint = {
        _Status.UNINITIALIZED: "; call init_transactions first",
        _Status.READY: "; call begin_transaction first",
    }.get(status, "")
    return IllegalStateError(f"{what} is not possible in state {status.value}{hint}")


def end_call(transaction: Transaction, ctx: ProducerContext, call: TransactionCall) -> None:
    """A transition is done."""
    waiting = transaction.call
    if waiting is not None and waiting.call is call:
        transaction.call = None
        ctx.emit(CallDone(waiting.token))
    elif call is not TransactionCall.SEND_OFFSETS:
        transaction.unseen = call


def fail_call(state: ProducerCoreState, ctx: ProducerContext, error: KafkaError) -> None:
    """Calls that wait are not served any more."""
    if state.transaction is not None and state.transaction.call is not None:
        token, state.transaction.call = state.transaction.call.token, None
        ctx.emit(CallDone(token, error))
