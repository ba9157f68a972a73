"""The one door: a producer as a function of what happened and when.

    for effect in producer.step(Produced(token, "orders", None, key, value), now):
        apply(effect)                  # Send, SendBlocked, SendUnblocked, RecordFailed, BatchDone or CallDone, in order
    producer.next_deadline()           # when to call again, or None

Most records only grow a batch: such a step has no effects and moves no deadline.

Source: Kafka's KafkaProducer, RecordAccumulator, Sender and TransactionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rejoin.client.core.effects import CallDone
from rejoin.client.core.errors import CodedError, IllegalStateError, KafkaError
from rejoin.client.core.inputs import Answered, Elapsed, Failed, Failure, Millis
from rejoin.client.core.producer import completion, metadata, sender, sequences
from rejoin.client.core.producer.accumulator import AppendOutcome, append, fail, retry_parked, take
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.effects import ProducerEffect, RecordFailed
from rejoin.client.core.producer.inputs import (
    Disconnected,
    Flushed,
    Produced,
    ProducerClosed,
    ProducerInput,
    TransactionCalled,
)
from rejoin.client.core.producer.reactions import ProducerReaction, reaction
from rejoin.client.core.producer.state import (
    Close,
    Flush,
    InitProducerIdSent,
    MetadataSent,
    ProducerCoreState,
    ProducerIdAndEpoch,
    ProduceSent,
    Transaction,
    TransactionRequestSent,
)
from rejoin.client.core.producer.transactions import coordination, transitions
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataResponse
from rejoin.protocol.messages.records.produce import ProduceResponse
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdResponse
from rejoin.protocol.registry import Api

CLOSED = "this producer is closed"
CLOSED_FORCEFULLY = "the producer was closed before the record was stored"

_ERROR_OF: Mapping[Failure, ErrorCode] = {
    Failure.DISCONNECT: ErrorCode.NETWORK_EXCEPTION,
    Failure.TIMEOUT: ErrorCode.REQUEST_TIMED_OUT,
}


class ProducerCore:
    """One producer. ``random`` gives a number in [0, 1) for each backoff and each choice of a sticky partition."""

    def __init__(
        self, config: ProducerConfig, random: Callable[[], float], *, versions: Mapping[Api, int] | None = None
    ) -> None:
        self.config = config
        self._ctx = ProducerContext(config, random, versions or {})
        self._state = ProducerCoreState(transaction=None if config.transactional_id is None else Transaction())

    # -- the door

    def step(self, what: ProducerInput, now: Millis) -> list[ProducerEffect]:
        """Handle an input and due timers; return the effects, in order."""
        state, ctx = self._state, self._ctx
        if (
            what.__class__ is Produced
            and not state.parked
            and state.close is None
            and state.fatal_error is None
            and (state.transaction is None or transitions.refusal(state) is None)
        ):
            return self._produce(what, now)
        ctx.begin(now)
        if state.is_closed:
            _refuse(ctx, what)
            return ctx.effects
        _take_in(state, ctx, what)
        _advance(state, ctx)
        return ctx.effects

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Elapsed`` at the latest, or none."""
        return None if self._state.is_closed else self._ctx.next_wake

    def _produce(self, produced: Produced, now: Millis) -> list[ProducerEffect]:
        state, ctx = self._state, self._ctx
        try:
            outcome = append(state, ctx, produced, now)
        except KafkaError as error:
            ctx.begin(now)
            fail(state, ctx, produced, error)
            _advance(state, ctx)
            return ctx.effects
        if outcome is AppendOutcome.APPENDED:
            return []
        ctx.begin(now)
        if outcome is not AppendOutcome.CHANGED:
            take(state, ctx, produced)
        _advance(state, ctx)
        return ctx.effects

    def abandon(self, error: KafkaError) -> list[ProducerEffect]:
        """Fail every record, for a driver that cannot go on. Nothing can be sent any more."""
        state, ctx = self._state, self._ctx
        ctx.begin(ctx.now)
        state.fatal_error = error
        sender.abort_all(state, ctx, error)
        _fail_parked(state, ctx, error)
        _end_flushes(state, ctx)
        return ctx.effects

    # -- queries

    @property
    def closed(self) -> bool:
        return self._state.is_closed

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The producer id and epoch, -1 both without one."""
        return self._state.idempotence.producer

    def check_transaction(self) -> None:
        """Raise the reason why a record cannot be sent: no transaction, or one that can only be aborted."""
        refusal = transitions.refusal(self._state)
        if refusal is not None:
            raise refusal

    @property
    def can_abort(self) -> bool:
        """Whether a transaction is open, and its end not decided."""
        return transitions.can_abort(self._state)

    @property
    def buffered_bytes(self) -> int:
        """The part of ``buffer.memory`` in use."""
        return self._state.memory_used

    @property
    def requests_in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._state.requests)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has, as far as it is known."""
        known = self._state.topics.get(topic)
        return len(known.leaders) if known is not None and known.leaders else None


# -- what happened


def _take_in(state: ProducerCoreState, ctx: ProducerContext, what: ProducerInput) -> None:
    match what:
        case Produced():
            if state.close is not None:
                ctx.emit(RecordFailed(what.token, IllegalStateError(CLOSED)))
            else:
                take(state, ctx, what)
        case Answered():
            _take_answer(state, ctx, what)
        case Failed():
            _take_failure(state, ctx, what)
        case Flushed():
            state.flushes.append(Flush(what.token, dict.fromkeys(state.incomplete)))
        case TransactionCalled():
            transitions.called(state, ctx, what)
        case ProducerClosed():
            _begin_close(state, ctx, what)
        case Disconnected():
            # Kafka: MetadataUpdater.handleServerDisconnect.
            metadata.request_update(state)
        case Elapsed():
            pass


def _refuse(ctx: ProducerContext, what: ProducerInput) -> None:
    """Answer what happens to a producer that is closed."""
    match what:
        case Produced():
            ctx.emit(RecordFailed(what.token, IllegalStateError(CLOSED)))
        case Flushed() | TransactionCalled():
            ctx.emit(CallDone(what.token, IllegalStateError(CLOSED)))
        case ProducerClosed():
            ctx.emit(CallDone(what.token))
        case _:
            pass


def _take_answer(state: ProducerCoreState, ctx: ProducerContext, what: Answered) -> None:
    sent = state.requests.pop(what.request_id, None)
    response = what.response
    match sent:
        case ProduceSent():
            assert isinstance(response, ProduceResponse)
            completion.answered(state, ctx, sent, response)
        case MetadataSent():
            assert isinstance(response, MetadataResponse)
            metadata.answered(state, ctx, sent, response)
        case InitProducerIdSent():
            assert isinstance(response, InitProducerIdResponse)
            _take_producer_id(state, ctx, response)
        case TransactionRequestSent():
            coordination.answered(state, ctx, sent, response)


def _take_failure(state: ProducerCoreState, ctx: ProducerContext, what: Failed) -> None:
    sent = state.requests.pop(what.request_id, None)
    match sent:
        case ProduceSent():
            detail = what.detail or what.failure.value
            completion.lost(state, ctx, sent, _ERROR_OF[what.failure], detail)
            metadata.request_update(state)
        case MetadataSent():
            metadata.failed(state, ctx, what.detail)
        case InitProducerIdSent():
            sequences.id_not_found(state, ctx)
        case TransactionRequestSent():
            coordination.react(state, ctx, sent, _ERROR_OF[what.failure])


def _take_producer_id(state: ProducerCoreState, ctx: ProducerContext, response: InitProducerIdResponse) -> None:
    error = response.error_code
    match reaction("InitProducerId", error):
        case ProducerReaction.COMPLETE:
            sequences.id_found(state, response.producer_id, response.producer_epoch)
            return
        case ProducerReaction.FAIL_ALL:
            # Kafka: shouldHandleAuthorizationError.
            sender.abort_all(state, ctx, CodedError(error, "not authorized to write with idempotence"))
        case ProducerReaction.FATAL:
            state.fatal_error = CodedError(error, f"unexpected error in InitProducerId: {error.name} ({error.value})")
    sequences.id_not_found(state, ctx)


def _begin_close(state: ProducerCoreState, ctx: ProducerContext, what: ProducerClosed) -> None:
    if state.close is not None:
        ctx.emit(CallDone(what.token, IllegalStateError("the producer is being closed")))
        return
    state.close = Close(what.token, None if what.timeout_ms is None else ctx.now + what.timeout_ms)
    _fail_parked(state, ctx, IllegalStateError("the producer was closed while the record waited"))


def _fail_parked(state: ProducerCoreState, ctx: ProducerContext, error: KafkaError) -> None:
    for parked in state.parked:
        ctx.emit(RecordFailed(parked.produced.token, error))
    state.parked.clear()
    state.waits_for_memory = False


# -- what is due


def _advance(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Do all that can be done now. Each part says how long it can wait."""
    sender.expire(state, ctx)
    _drop_aborted(state, ctx)
    retry_parked(state, ctx)
    if state.fatal_error is not None:
        sender.abort_all(state, ctx, state.fatal_error)
        _fail_parked(state, ctx, state.fatal_error)
    elif ctx.config.enable_idempotence and state.transaction is None:
        sequences.ensure_producer_id(state, ctx)
    if state.fatal_error is None:
        sender.send_ready(state, ctx)
        metadata.ensure_fresh(state, ctx)
    _abort_at_close(state)
    coordination.advance(state, ctx)
    _end_flushes(state, ctx)
    _close_if_done(state, ctx)


def _drop_aborted(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Give up the records of a transaction that is aborted, but for those that the broker may have."""
    error = transitions.drop_reason(state)
    if error is not None:
        sender.drop_unsent(state, ctx, error)
        _fail_parked(state, ctx, error)


def _abort_at_close(state: ProducerCoreState) -> None:
    # Kafka: Sender.run.
    if state.close is not None and not state.incomplete and state.transaction is not None:
        transitions.abort_open(state.transaction)


def _end_flushes(state: ProducerCoreState, ctx: ProducerContext) -> None:
    for flush in [flush for flush in state.flushes if not flush.waiting]:
        state.flushes.remove(flush)
        ctx.emit(CallDone(flush.token))


def _close_if_done(state: ProducerCoreState, ctx: ProducerContext) -> None:
    close = state.close
    if close is None:
        return
    is_open = transitions.is_open(state)
    if close.until is not None and (state.incomplete or is_open):
        if ctx.now < close.until:
            ctx.wake(close.until)
            return
        sender.abort_all(state, ctx, KafkaError(CLOSED_FORCEFULLY))
        _end_flushes(state, ctx)
        is_open = False
    if not state.incomplete and not is_open:
        transitions.fail_call(state, ctx, IllegalStateError(CLOSED))
        state.is_closed = True
        ctx.emit(CallDone(close.token))
