"""Producer ids, each given out once in the life of a cluster.

A node takes them in blocks, which the topics log keeps; what is left of a block is lost with its node.

Kafka: RPCProducerIdManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.topics import ProducerIdsData, ProducerIdsRecord

BLOCK_SIZE: Final = 1_000

OnBlock: TypeAlias = Callable[[ErrorCode], None]
"""Called when there are ids, or with the error of a client that needs one where there are none."""


class ProducerIds:
    """The producer ids that a node may give out."""

    def __init__(self, topics: Topics, changes: TopicChanges, broker_id: int) -> None:
        self._topics = topics
        self._changes = changes
        self._broker_id = broker_id
        self._next_id = 0
        self._end_of_block = 0
        self._waiting: list[OnBlock] = []

    @property
    def has_any(self) -> bool:
        """Whether an id can be taken at once."""
        return self._next_id < self._end_of_block

    def take(self) -> int:
        """A new id; there must be one."""
        assert self.has_any, "a block is allocated before"
        self._next_id += 1
        return self._next_id - 1

    def request(self, on_block: OnBlock) -> None:
        """Call back as soon as there are ids."""
        self._waiting.append(on_block)
        if self.has_any:
            self._call_back(ErrorCode.NONE)
        elif len(self._waiting) == 1:
            self._changes.make(_BlockAllocation(self, self._topics, self._broker_id))

    def allocated(self, first_id: int) -> None:
        """A block of ids is this node's."""
        self._next_id, self._end_of_block = first_id, first_id + BLOCK_SIZE
        self._call_back(ErrorCode.NONE)

    def not_allocated(self) -> None:
        """No block could be had."""
        self._call_back(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _call_back(self, error: ErrorCode) -> None:
        while self._waiting and (self.has_any or error is not ErrorCode.NONE):
            self._waiting.pop(0)(error)
        if self._waiting:
            self._changes.make(_BlockAllocation(self, self._topics, self._broker_id))


class _BlockAllocation(TopicChange):
    """The next block of ids, taken for one node."""

    def __init__(self, ids: ProducerIds, topics: Topics, broker_id: int) -> None:
        self._ids = ids
        self._topics = topics
        self._broker_id = broker_id
        self._first_id = 0

    def decide(self) -> TopicsRecords:
        self._first_id = self._topics.next_producer_id
        data = ProducerIdsData(broker_id=self._broker_id, next_producer_id=self._first_id + BLOCK_SIZE)
        return (ProducerIdsRecord(data=data),)

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._ids.allocated(self._first_id)
        else:
            self._ids.not_allocated()
