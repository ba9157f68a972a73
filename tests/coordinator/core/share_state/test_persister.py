"""Calls to share coordinators of other nodes: which of them travel together, and which result each gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share_state.persister import Persister
from rejoin.coordinator.core.share_state.share_states import WrittenState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.share.share_group_state import (
    StatePartitionResult,
    StateResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

TOPIC: Final = "AAAAAAAAAAAAAAAAAAAAAQ"


class Peers:
    """Another node, whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[WriteShareGroupStateRequest, Callable[[Response | None], None]]] = []

    def is_own(self, node_id: int) -> bool:
        return node_id == 1

    def ask(self, node_id: int, request: Any, version: int, on_answer: Callable[[Response | None], None]) -> None:
        assert (node_id, version) == (2, 1)
        self.asked.append((request, on_answer))


class Coordinator:
    """All share-partitions are coordinated by node 2."""

    def when_ready(self, key: str, retry: Callable[[], None]) -> bool:
        return True

    def leader_of(self, key: str) -> Broker:
        return Broker(2, "node-2", 9092)

    def find(self, key: str) -> ErrorCode:
        return ErrorCode.NOT_COORDINATOR


def writes(persister: Persister, partition: int, start: int, results: dict[int, ErrorCode]) -> None:
    written = WrittenState(1, 0, start, 0, ())

    def ended(error: ErrorCode) -> None:
        results[start] = error

    persister.write("g", SharedPartition(TOPIC, partition), written, ended)


def starts(request: WriteShareGroupStateRequest) -> list[int]:
    return [each.start_offset for topic in request.topics for each in topic.partitions]


def answer(request: WriteShareGroupStateRequest, error: ErrorCode) -> WriteShareGroupStateResponse:
    results = tuple(
        StatePartitionResult(partition=each.partition, error_code=error)
        for topic in request.topics
        for each in topic.partitions
    )
    return WriteShareGroupStateResponse(results=(StateResult(topic_id=TOPIC, partitions=results),))


def test_two_writes_for_one_share_partition_travel_one_after_the_other() -> None:
    peers: Any = Peers()
    coordinator: Any = Coordinator()
    persister = Persister(StepContext(Settings(), lambda: "id"), peers, coordinator)
    results: dict[int, ErrorCode] = {}
    for partition, start in ((0, 10), (0, 20), (1, 30), (0, 40)):
        writes(persister, partition, start, results)
    for expected, error in (
        ([10], ErrorCode.NONE),
        ([20, 30], ErrorCode.FENCED_STATE_EPOCH),
        ([40], ErrorCode.INVALID_REQUEST),
    ):
        [(request, on_answer)] = peers.asked
        peers.asked.clear()
        assert starts(request) == expected
        on_answer(answer(request, error))
    assert results == {
        10: ErrorCode.NONE,
        20: ErrorCode.FENCED_STATE_EPOCH,
        30: ErrorCode.FENCED_STATE_EPOCH,
        40: ErrorCode.INVALID_REQUEST,
    }
    assert peers.asked == []
