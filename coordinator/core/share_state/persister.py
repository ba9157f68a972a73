"""The persister: asks share coordinators for the state of share-partitions, and tries again where they cannot answer.

A share-partition has one coordinator, found by ``group:topicId:partition``. Calls of one kind for one group that wait
for the same node travel together.

Kafka: DefaultStatePersister, PersisterStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis, PersisterFault
from rejoin.coordinator.core.peers import PeerRequests
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share.timers import NO_OWNER, ShareTimer
from rejoin.coordinator.core.share_state.coordinator import ShareCoordinator
from rejoin.coordinator.core.share_state.share_states import WrittenState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response, Struct
from rejoin.protocol.messages.share.share_group_state import (
    DeletedPartition,
    DeletedTopic,
    DeleteShareGroupStateRequest,
    InitializedPartition,
    InitializedTopic,
    InitializeShareGroupStateRequest,
    PartitionSummary,
    ReadPartition,
    ReadPartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ReadTopic,
    StateBatch,
    StatePartitionResult,
    WriteShareGroupStateRequest,
    WrittenPartition,
    WrittenTopic,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.unvalidated import unvalidated

MOST_RETRIES: Final = 5
FIRST_BACKOFF_MS: Final = 1_000
LONGEST_BACKOFF_MS: Final = 30_000
# Differs: Kafka's waits vary by 20 %; here they are the same each time.

RETRIED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which a call is made again."""


class _Kind(NamedTuple):
    """One API of share coordinators: how its requests are built, and the result of a call that failed here."""

    request: type[Request]
    topic: type[Struct]
    version: int
    result: type[Struct]


INITIALIZE: Final = _Kind(InitializeShareGroupStateRequest, InitializedTopic, 0, StatePartitionResult)
READ: Final = _Kind(ReadShareGroupStateRequest, ReadTopic, 0, ReadPartitionResult)
WRITE: Final = _Kind(WriteShareGroupStateRequest, WrittenTopic, 1, StatePartitionResult)
DELETE: Final = _Kind(DeleteShareGroupStateRequest, DeletedTopic, 0, StatePartitionResult)
SUMMARY: Final = _Kind(ReadShareGroupStateSummaryRequest, ReadTopic, 1, PartitionSummary)

BY_OPERATION: Final = {
    "initialize": INITIALIZE,
    "read": READ,
    "write": WRITE,
    "delete": DELETE,
    "summary": SUMMARY,
}
"""Kinds by the names of :class:`rejoin.coordinator.core.inputs.PersisterFault`."""

OnResult = Callable[[Any], None]
"""Called once with the result for one share-partition: a struct with ``error_code``."""


@dataclass(slots=True, eq=False)
class _Call:
    """One share-partition of a request under way."""

    kind: _Kind
    group_id: str
    partition: SharedPartition
    payload: Struct
    on_end: OnResult
    retries: int = 0

    def fail(self, error: ErrorCode) -> None:
        result: Any = self.kind.result
        self.on_end(result(partition=self.partition.partition, error_code=error))


_Lane = tuple[int, type[Request], str]
"""Node, kind and group: requests of one lane go out one after the other."""


class Persister:
    """Reads and writes the state of share-partitions, wherever that is coordinated."""

    def __init__(self, ctx: StepContext, peers: PeerRequests, coordinator: ShareCoordinator) -> None:
        self._ctx = ctx
        self._peers = peers
        self._coordinator = coordinator
        self._waiting: dict[TimerKey, _Call] = {}
        self._lanes: dict[_Lane, list[_Call]] = {}
        self._last_number = 0
        self._faults: dict[tuple[str, type[Request]], PersisterFault] = {}

    # --- calls

    def initialize(
        self, group_id: str, partition: SharedPartition, state_epoch: int, start_offset: int, on_end: OnResult
    ) -> None:
        """Begin to keep a share-partition; a start offset of -1 is its leader's choice."""
        payload = InitializedPartition(
            partition=partition.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        self._start(_Call(INITIALIZE, group_id, partition, payload, on_end))

    def read(self, group_id: str, partition: SharedPartition, leader_epoch: int, on_end: OnResult) -> None:
        """The whole state of a share-partition, for its leader."""
        payload = ReadPartition(partition=partition.partition, leader_epoch=leader_epoch)
        self._start(_Call(READ, group_id, partition, payload, on_end))

    def write(
        self, group_id: str, partition: SharedPartition, written: WrittenState, on_end: Callable[[ErrorCode], None]
    ) -> None:
        """A change of a share-partition, by its leader. ``on_end`` is called once, with the error.

        Where this node coordinates the state, as the only node always does, no request is made of the change.
        """
        key = SharePartitionKey(group_id, *partition)
        shard = self._coordinator.find(key.coordinator_key)
        if isinstance(shard, ErrorCode) or self._faults:
            self._send(group_id, partition, written, on_end)
            return
        changed = shard.states.write(key, written, self._ctx.now)
        if changed.error in RETRIED:
            self._send(group_id, partition, written, on_end)
        elif changed.error is not ErrorCode.NONE:
            on_end(changed.error)
        else:
            shard.store(changed.record, partial(self._stored, group_id, partition, written, on_end))

    def _stored(
        self,
        group_id: str,
        partition: SharedPartition,
        written: WrittenState,
        on_end: Callable[[ErrorCode], None],
        error: ErrorCode,
    ) -> None:
        if error in RETRIED:
            self._try_again(_write_call(group_id, partition, written, on_end), error)
        else:
            on_end(error)

    def _send(
        self, group_id: str, partition: SharedPartition, written: WrittenState, on_end: Callable[[ErrorCode], None]
    ) -> None:
        self._start(_write_call(group_id, partition, written, on_end))

    def delete(self, group_id: str, partition: SharedPartition, on_end: OnResult) -> None:
        """Forget a share-partition."""
        self._start(_Call(DELETE, group_id, partition, DeletedPartition(partition=partition.partition), on_end))

    def summary(self, group_id: str, partition: SharedPartition, leader_epoch: int, on_end: OnResult) -> None:
        """How far a share-partition is, as it was last written."""
        payload = ReadPartition(partition=partition.partition, leader_epoch=leader_epoch)
        self._start(_Call(SUMMARY, group_id, partition, payload, on_end))

    def fail(self, fault: PersisterFault) -> None:
        """Fail requests of a group, in place of an earlier fault of the same operation."""
        self._faults[fault.group_id, BY_OPERATION[fault.operation].request] = fault

    def _take_fault(self, group_id: str, kind: _Kind) -> PersisterFault | None:
        """The fault of a request that is about to be sent, or none; it is used up by so many."""
        fault = self._faults.get((group_id, kind.request))
        if fault is None or not fault.count:
            return None
        if fault.count > 0:
            self._faults[group_id, kind.request] = replace(fault, count=fault.count - 1)
        return fault

    # --- finding and asking

    def _start(self, call: _Call) -> None:
        key = SharePartitionKey(call.group_id, *call.partition).coordinator_key
        if not self._coordinator.when_ready(key, partial(self._start, call)):
            return
        leader = self._coordinator.leader_of(key)
        if leader is None:
            self._try_again(call, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif self._peers.is_own(leader.node_id):
            self._ask(leader.node_id, call.kind, call.group_id, [call])
        else:
            lane = (leader.node_id, call.kind.request, call.group_id)
            waiting = self._lanes.get(lane)
            if waiting is None:
                self._lanes[lane] = []
                self._ask(leader.node_id, call.kind, call.group_id, [call])
            else:
                waiting.append(call)

    def _ask(self, node_id: int, kind: _Kind, group_id: str, calls: list[_Call]) -> None:
        fault = self._take_fault(group_id, kind)
        if fault is not None:
            self._failed(node_id, kind, group_id, calls, fault.error or ErrorCode.NETWORK_EXCEPTION)
            return
        topics: dict[str, list[Struct]] = {}
        for call in calls:
            topics.setdefault(call.partition.topic_id, []).append(call.payload)
        topic_type: Any = kind.topic
        request_type: Any = kind.request
        request = request_type(
            group_id=group_id,
            topics=tuple(topic_type(topic_id=topic_id, partitions=tuple(each)) for topic_id, each in topics.items()),
        )
        self._peers.ask(node_id, request, kind.version, partial(self._answered, node_id, kind, group_id, calls))

    def _answered(
        self, node_id: int, kind: _Kind, group_id: str, calls: list[_Call], response: Response | None
    ) -> None:
        self._go_on(node_id, kind, group_id)
        results = _results(response)
        for call in calls:
            result = results.get(call.partition)
            error = ErrorCode.NETWORK_EXCEPTION if result is None else result.error_code
            if error in RETRIED:
                self._try_again(call, error)
            else:
                call.on_end(result)

    def _failed(self, node_id: int, kind: _Kind, group_id: str, calls: list[_Call], error: ErrorCode) -> None:
        self._go_on(node_id, kind, group_id)
        for call in calls:
            if error in RETRIED:
                self._try_again(call, error)
            else:
                call.fail(error)

    def _go_on(self, node_id: int, kind: _Kind, group_id: str) -> None:
        """A request has ended: send those that wait for it, if it was to another node."""
        lane = (node_id, kind.request, group_id)
        waiting = self._lanes.pop(lane, None)
        if waiting:
            together, self._lanes[lane] = _once_each(waiting)
            self._ask(node_id, kind, group_id, together)

    def _try_again(self, call: _Call, error: ErrorCode) -> None:
        if call.retries >= MOST_RETRIES:
            call.fail(error)
            return
        self._last_number += 1
        timer = TimerKey(ShareTimer.PERSISTER, NO_OWNER, name=f"{self._last_number:012}")
        self._waiting[timer] = call
        self._ctx.deadlines.set(timer, self._ctx.now + _backoff(call.retries))
        call.retries += 1

    def timer_fired(self, timer: TimerKey) -> None:
        """A call is to be made again."""
        call = self._waiting.pop(timer, None)
        if call is not None:
            self._start(call)


def _write_call(
    group_id: str, partition: SharedPartition, written: WrittenState, on_end: Callable[[ErrorCode], None]
) -> _Call:
    """A change as a part of a request."""
    payload = unvalidated(
        WrittenPartition,
        partition=partition.partition,
        state_epoch=written.state_epoch,
        leader_epoch=written.leader_epoch,
        start_offset=written.start_offset,
        delivery_complete_count=written.delivery_complete_count,
        state_batches=tuple(
            [
                unvalidated(
                    StateBatch, first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in written.batches
            ]
        ),
    )
    return _Call(WRITE, group_id, partition, payload, lambda result: on_end(result.error_code))


def _once_each(calls: list[_Call]) -> tuple[list[_Call], list[_Call]]:
    """Calls for one request, which names no share-partition twice, and those that have to wait for the next one."""
    together: dict[SharedPartition, _Call] = {}
    later = [call for call in calls if together.setdefault(call.partition, call) is not call]
    return list(together.values()), later


def _backoff(retries: int) -> Millis:
    return min(FIRST_BACKOFF_MS << retries, LONGEST_BACKOFF_MS)


def _results(response: Any) -> Mapping[SharedPartition, Any]:
    """The results of a response by share-partition."""
    if response is None:
        return {}
    return {
        SharedPartition(topic.topic_id, each.partition): each for topic in response.results for each in topic.partitions
    }
