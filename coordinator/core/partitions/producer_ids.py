"""InitProducerId: producer ids, each given out once in the life of a cluster.

A node takes them in blocks, which the topics log keeps; what is left of a block is lost with its node.

Kafka: RPCProducerIdManager, TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import CLUSTER_NAME, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.transactions.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rejoin.protocol.records.topics import ProducerIdsData, ProducerIdsRecord

BLOCK_SIZE: Final = 1_000
FIRST_EPOCH: Final = 0
NONE_GIVEN: Final = -1


class ProducerIdRequests:
    """Gives out producer ids."""

    def __init__(self, ctx: StepContext, topics: Topics, changes: TopicChanges, admission: Admission) -> None:
        self._ctx = ctx
        self._topics = topics
        self._changes = changes
        self._admission = admission
        self._next_id = 0
        self._end_of_block = 0
        self._waiting: list[Token] = []

    def init_producer_id(self, token: Token, request: InitProducerIdRequest, context: Context) -> None:
        error = self._check(request, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        self._waiting.append(token)
        if self._next_id < self._end_of_block:
            self._give_out()
        elif len(self._waiting) == 1:
            self._changes.make(_BlockAllocation(self, self._topics, self._ctx.settings.broker_id))

    def _check(self, request: InitProducerIdRequest, context: Context) -> ErrorCode:
        if (request.producer_id == NONE_GIVEN) != (request.producer_epoch == NONE_GIVEN):
            return ErrorCode.INVALID_REQUEST
        transactional_id = request.transactional_id
        if transactional_id is None:
            # Kafka: who may write to any topic may have an id, too; here all may that are not denied.
            return self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        error = self._admission.authorize(request, context, Resource.TRANSACTIONAL_ID, transactional_id)
        if error is not ErrorCode.NONE:
            return error
        # Differs: there is no transaction coordinator yet.
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if transactional_id else ErrorCode.INVALID_REQUEST

    def allocated(self, first_id: int) -> None:
        """A block of ids is this node's."""
        self._next_id, self._end_of_block = first_id, first_id + BLOCK_SIZE
        self._give_out()

    def not_allocated(self) -> None:
        """No block could be had."""
        waiting, self._waiting = self._waiting, []
        for token in waiting:
            response = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1)
            self._ctx.reply(token, response)

    def _give_out(self) -> None:
        waiting, self._waiting = self._waiting, []
        for token in waiting:
            self._ctx.reply(token, InitProducerIdResponse(producer_id=self._next_id, producer_epoch=FIRST_EPOCH))
            self._next_id += 1


class _BlockAllocation(TopicChange):
    """The next block of ids, taken for one node."""

    def __init__(self, requests: ProducerIdRequests, topics: Topics, broker_id: int) -> None:
        self._requests = requests
        self._topics = topics
        self._broker_id = broker_id
        self._first_id = 0

    def decide(self) -> TopicsRecords:
        self._first_id = self._topics.next_producer_id
        data = ProducerIdsData(broker_id=self._broker_id, next_producer_id=self._first_id + BLOCK_SIZE)
        return (ProducerIdsRecord(data=data),)

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._requests.allocated(self._first_id)
        else:
            self._requests.not_allocated()
