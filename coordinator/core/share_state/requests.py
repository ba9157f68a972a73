"""Requests about the state of share-partitions: each share-partition is asked by itself, and all are answered together.

Leaders, group coordinators and administrators send them; this node sends them to itself, too.

Kafka: KafkaApis, ShareCoordinatorService, ShareCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.share_state.coordinator import ShareCoordinator
from rejoin.coordinator.core.share_state.shard import ShareStateShard
from rejoin.coordinator.core.share_state.share_states import WrittenState
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.share.share_group_state import (
    DeletedPartition,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializedPartition,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    PartitionSummary,
    ReadPartition,
    ReadPartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateResult,
    StateBatch,
    StatePartitionResult,
    StateResult,
    SummaryResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WrittenPartition,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey

OnResult: TypeAlias = Callable[[Struct], None]
"""Called once with the result for one share-partition."""

_Operation: TypeAlias = Callable[["ShareStateRequests", ShareStateShard, SharePartitionKey, Any, OnResult], None]


class _Api(NamedTuple):
    """One of the five: the operation on one share-partition, and the structs of the response."""

    operation: _Operation
    response: type[Response]
    topic: type[Struct]
    result: type[Struct]


class ShareStateRequests:
    """Handles the requests that this node gets as a share coordinator."""

    def __init__(
        self, ctx: StepContext, coordinator: ShareCoordinator, admission: Admission, peers: PeerRequests
    ) -> None:
        self._ctx = ctx
        self._coordinator = coordinator
        self._admission = admission
        for request in _APIS:
            peers.serve(request, self.handle_own)

    def handle(self, token: Token, request: Any, context: Context) -> None:
        """One of the five requests, by a client or another node."""
        if self._admission.allows(type(request), context, Resource.CLUSTER):
            self.handle_own(token, request)
        else:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._ctx.reply(token, request.error_response(context.api_version, error))

    def handle_own(self, token: Token, request: Any) -> None:
        """One of the five requests, by a node that may always ask."""
        api = _APIS[type(request)]
        topics = [topic for topic in request.topics if topic.partitions] if request.group_id else []
        pending = _Pending(self._ctx, token, api, topics)
        for number, topic in enumerate(topics):
            for position, each in enumerate(topic.partitions):
                key = SharePartitionKey(request.group_id, topic.topic_id, each.partition)
                self._ask(api, key, each, partial(pending.done, number, position))
        pending.begun()

    def _ask(self, api: _Api, key: SharePartitionKey, asked: Any, on_end: OnResult) -> None:
        result: Any = api.result
        shard = self._coordinator.find(key.coordinator_key)
        if isinstance(shard, ErrorCode):
            on_end(result(partition=key.partition, error_code=shard))
            return
        api.operation(self, shard, key, asked, on_end)

    # --- operations

    def initialize(
        self, shard: ShareStateShard, key: SharePartitionKey, asked: InitializedPartition, on_end: OnResult
    ) -> None:
        changed = shard.states.initialize(key, asked.state_epoch, asked.start_offset, self._ctx.now)
        _store(shard, key, changed.error, changed.record, on_end)

    def write(self, shard: ShareStateShard, key: SharePartitionKey, asked: WrittenPartition, on_end: OnResult) -> None:
        batches = [
            PersistedBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ]
        written = WrittenState(
            asked.state_epoch, asked.leader_epoch, asked.start_offset, asked.delivery_complete_count, batches
        )
        changed = shard.states.write(key, written, self._ctx.now)
        _store(shard, key, changed.error, changed.record, on_end)

    def delete(self, shard: ShareStateShard, key: SharePartitionKey, asked: DeletedPartition, on_end: OnResult) -> None:
        changed = shard.states.delete(key)
        _store(shard, key, changed.error, changed.record, on_end)

    def read(self, shard: ShareStateShard, key: SharePartitionKey, asked: ReadPartition, on_end: OnResult) -> None:
        outcome = shard.states.read(key, asked.leader_epoch, self._ctx.now)
        if outcome.state is None:
            on_end(ReadPartitionResult(partition=key.partition, error_code=outcome.error))
            return
        state_epoch, start_offset, kept = outcome.state
        batches = tuple(
            StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in kept
        )
        found = ReadPartitionResult(
            partition=key.partition, state_epoch=state_epoch, start_offset=start_offset, state_batches=batches
        )
        shard.store(outcome.record, lambda error: on_end(found if error is ErrorCode.NONE else _unread(key, error)))

    def summarize(self, shard: ShareStateShard, key: SharePartitionKey, asked: ReadPartition, on_end: OnResult) -> None:
        error, *values = shard.states.summarize(key)
        if error is not ErrorCode.NONE:
            on_end(PartitionSummary(partition=key.partition, error_code=error))
            return
        state_epoch, leader_epoch, start_offset, count = values
        found = PartitionSummary(
            partition=key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=count,
        )
        shard.store(None, lambda _: on_end(found))


def _unread(key: SharePartitionKey, error: ErrorCode) -> ReadPartitionResult:
    return ReadPartitionResult(partition=key.partition, error_code=error)


def _store(shard: ShareStateShard, key: SharePartitionKey, error: ErrorCode, record: Any, on_end: OnResult) -> None:
    """Answer when the record is durable, or at once with an error."""
    if error is not ErrorCode.NONE:
        on_end(StatePartitionResult(partition=key.partition, error_code=error))
    else:
        shard.store(record, lambda code: on_end(StatePartitionResult(partition=key.partition, error_code=code)))


_APIS: Final[dict[type[Request], _Api]] = {
    InitializeShareGroupStateRequest: _Api(
        ShareStateRequests.initialize, InitializeShareGroupStateResponse, StateResult, StatePartitionResult
    ),
    ReadShareGroupStateRequest: _Api(
        ShareStateRequests.read, ReadShareGroupStateResponse, ReadStateResult, ReadPartitionResult
    ),
    WriteShareGroupStateRequest: _Api(
        ShareStateRequests.write, WriteShareGroupStateResponse, StateResult, StatePartitionResult
    ),
    DeleteShareGroupStateRequest: _Api(
        ShareStateRequests.delete, DeleteShareGroupStateResponse, StateResult, StatePartitionResult
    ),
    ReadShareGroupStateSummaryRequest: _Api(
        ShareStateRequests.summarize, ReadShareGroupStateSummaryResponse, SummaryResult, PartitionSummary
    ),
}


class _Pending:
    """A request, until the last of its share-partitions has a result."""

    def __init__(self, ctx: StepContext, token: Token, api: _Api, topics: Any) -> None:
        self._ctx = ctx
        self._token = token
        self._api = api
        self._topic_ids = [topic.topic_id for topic in topics]
        self._results: list[list[Struct | None]] = [[None] * len(topic.partitions) for topic in topics]
        self._left = 1 + sum(len(each) for each in self._results)

    def begun(self) -> None:
        """All share-partitions are asked."""
        self._count_down()

    def done(self, topic: int, position: int, result: Struct) -> None:
        """One has a result."""
        self._results[topic][position] = result
        self._count_down()

    def _count_down(self) -> None:
        self._left -= 1
        if self._left:
            return
        topic_type: Any = self._api.topic
        response: Any = self._api.response
        results = tuple(
            topic_type(topic_id=topic_id, partitions=tuple(results))
            for topic_id, results in zip(self._topic_ids, self._results, strict=True)
        )
        self._ctx.reply(self._token, response(results=results))
