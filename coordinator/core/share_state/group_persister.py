"""The persister as the group coordinator asks it: one answer for all share-partitions of a request.

Kafka: DefaultStatePersister.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rejoin.coordinator.core.share.sessions import SharedPartition
from rejoin.coordinator.core.share_state.persister import Persister
from rejoin.protocol.messages.share.share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    StatePartitionResult,
    StateResult,
)


class GroupPersister:
    """Takes requests apart, and puts the results together."""

    def __init__(self, persister: Persister) -> None:
        self._persister = persister

    def initialize(
        self,
        request: InitializeShareGroupStateRequest,
        on_answer: Callable[[InitializeShareGroupStateResponse], None],
    ) -> None:
        """Have the state of share-partitions made, or made anew."""
        wanted = {
            SharedPartition(topic.topic_id, each.partition): each
            for topic in request.topics
            for each in topic.partitions
        }
        results = Results(wanted, partial(_answer, InitializeShareGroupStateResponse, on_answer))
        for shared, each in wanted.items():
            on_end = partial(results.done, shared)
            self._persister.initialize(request.group_id, shared, each.state_epoch, each.start_offset, on_end)

    def delete(
        self, request: DeleteShareGroupStateRequest, on_answer: Callable[[DeleteShareGroupStateResponse], None]
    ) -> None:
        """Have the state of share-partitions deleted."""
        wanted = [
            SharedPartition(topic.topic_id, each.partition) for topic in request.topics for each in topic.partitions
        ]
        results = Results(wanted, partial(_answer, DeleteShareGroupStateResponse, on_answer))
        for shared in wanted:
            self._persister.delete(request.group_id, shared, partial(results.done, shared))


class Results:
    """The results of some share-partitions, in order; ``on_all`` is called with the last one."""

    def __init__(self, wanted: Iterable[SharedPartition], on_all: Callable[[dict[SharedPartition, Any]], None]) -> None:
        self._results: dict[SharedPartition, Any] = dict.fromkeys(wanted)
        self._left = len(self._results)
        self._on_all = on_all

    def done(self, shared: SharedPartition, result: Any) -> None:
        """A share-partition has its result."""
        self._results[shared] = result
        self._left -= 1
        if not self._left:
            self._on_all(self._results)


def _answer(
    response: Any, on_answer: Callable[[Any], None], results: dict[SharedPartition, StatePartitionResult]
) -> None:
    topics: dict[str, list[StatePartitionResult]] = {}
    for shared, result in results.items():
        topics.setdefault(shared.topic_id, []).append(result)
    on_answer(
        response(
            results=tuple(
                StateResult(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in topics.items()
            )
        )
    )
