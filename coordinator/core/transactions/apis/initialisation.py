"""InitProducerId: a producer id for each producer, and for a transactional id always the same with a new epoch.

Kafka: KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.transactions.coordinator import TransactionCoordinator
from rejoin.coordinator.core.transactions.producer_ids import ProducerIds
from rejoin.coordinator.core.transactions.producers import TxnProducer
from rejoin.journal.events.transactions import ProducerIdInitialized
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH: Final = 0
FIRST_INIT_WITH_FENCED: Final = 4
NONE_GIVEN: Final = -1


class InitProducerIdRequests:
    """Gives out producer ids and epochs."""

    def __init__(
        self, ctx: StepContext, coordinator: TransactionCoordinator, ids: ProducerIds, admission: Admission
    ) -> None:
        self._ctx = ctx
        self._coordinator = coordinator
        self._ids = ids
        self._admission = admission

    def init_producer_id(self, token: Token, request: InitProducerIdRequest, context: Context) -> None:
        error = self._check(request, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
        elif request.transactional_id is None:
            self._ids.request(partial(self._give_out, token))
        else:
            self._initialise(request.transactional_id, token, request, context)

    def _check(self, request: InitProducerIdRequest, context: Context) -> ErrorCode:
        if (request.producer_id == NONE_GIVEN) != (request.producer_epoch == NONE_GIVEN):
            return ErrorCode.INVALID_REQUEST
        transactional_id = request.transactional_id
        if transactional_id is None:
            error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
            if error is not ErrorCode.NONE and self._admission.has_acls:
                # Kafka: who may write to some topic may have an id, too.
                writes = self._admission.allows_some(Operation.WRITE, context, Resource.TOPIC)
                return ErrorCode.NONE if writes else error
            return error
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, transactional_id)
        if error is not ErrorCode.NONE:
            return error
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not 0 < request.transaction_timeout_ms <= self._ctx.settings.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    def _give_out(self, token: Token, error: ErrorCode) -> None:
        """Answer a producer without a transactional id, when there are ids."""
        if error is ErrorCode.NONE:
            producer_id = self._ids.take()
            self._ctx.emit(
                ProducerIdInitialized(
                    transactional_id=None,
                    producer_id=producer_id,
                    producer_epoch=FIRST_EPOCH,
                    transaction_timeout_ms=None,
                    previous_producer_id=None,
                )
            )
            response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)
        else:
            response = InitProducerIdResponse(error_code=error, producer_epoch=-1)
        self._ctx.reply(token, response)

    # --- transactional ids

    def _initialise(
        self, transactional_id: str, token: Token, request: InitProducerIdRequest, context: Context
    ) -> None:
        again = partial(self._initialise, transactional_id, token, request, context)
        if not self._coordinator.when_ready(transactional_id, again):
            return
        shard = self._coordinator.find(transactional_id)
        if isinstance(shard, ErrorCode):
            self._answer(token, context, shard, TxnProducer())
        elif shard.needs_producer_id(transactional_id) and not self._ids.has_any:
            self._ids.request(partial(self._go_on, again, token, context))
        else:
            expected = None
            if request.producer_id != NONE_GIVEN:
                expected = TxnProducer(request.producer_id, request.producer_epoch)
            timeout_ms = request.transaction_timeout_ms
            shard.initialise(transactional_id, timeout_ms, expected, partial(self._answer, token, context))

    def _go_on(self, again: partial[None], token: Token, context: Context, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            again()
        else:
            self._answer(token, context, error, TxnProducer())

    def _answer(self, token: Token, context: Context, error: ErrorCode, given: TxnProducer) -> None:
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < FIRST_INIT_WITH_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        response = InitProducerIdResponse(error_code=error, producer_id=given.producer_id, producer_epoch=given.epoch)
        self._ctx.reply(token, response)
