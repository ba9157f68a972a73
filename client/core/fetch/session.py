"""A fetch session with one node (KIP-227): after the first Fetch only what has changed is sent and answered.

Source: Kafka's FetchSessionHandler, FetchMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import ZERO_UUID, TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class PartitionRequest(NamedTuple):
    """The fields of a partition in a Fetch."""

    topic_id: str
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchContents(NamedTuple):
    """The content of the next Fetch. ``uses_topic_ids`` is false while the id of a topic is not known."""

    session_id: int
    epoch: int
    wanted: dict[TopicPartition, PartitionRequest]
    forgotten: list[tuple[TopicPartition, str]]
    uses_topic_ids: bool


@dataclass(slots=True)
class FetchSessionHandler:
    """The session as the node knows it. Always true: ``partitions`` are those of the last Fetch that was built."""

    session_id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    partitions: dict[TopicPartition, PartitionRequest] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the next Fetch names all partitions."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def build(self, wanted: dict[TopicPartition, PartitionRequest]) -> FetchContents:
        """The next Fetch, to read these partitions."""
        before, self.partitions = self.partitions, wanted
        uses_topic_ids = all(each.topic_id != ZERO_UUID for each in wanted.values())
        if self.is_full:
            return FetchContents(self.session_id, self.epoch, wanted, [], uses_topic_ids)
        forgotten = []
        for partition, old in before.items():
            new = wanted.get(partition)
            if new is None or (new.topic_id != old.topic_id and ZERO_UUID not in (new.topic_id, old.topic_id)):
                forgotten.append((partition, old.topic_id))
                uses_topic_ids = uses_topic_ids and old.topic_id != ZERO_UUID
        changed = {partition: new for partition, new in wanted.items() if before.get(partition) != new}
        return FetchContents(self.session_id, self.epoch, changed, forgotten, uses_topic_ids)

    def answered(self, error: ErrorCode, session_id: int, partitions: Iterable[TopicPartition]) -> bool:
        """Take in an answer; false when its partitions must not be looked at."""
        if error is not ErrorCode.NONE:
            if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.reset()
            else:
                self.failed()
            return False
        answered = set(partitions)
        if self.is_full:
            if answered != set(self.partitions):
                self.reset()
                return False
            self.session_id, self.epoch = session_id, INITIAL_EPOCH + 1 if session_id != NO_SESSION else INITIAL_EPOCH
            return True
        if not answered <= set(self.partitions):
            self.failed()
            return False
        if session_id == NO_SESSION:
            self.reset()
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1
        return True

    def reset(self) -> None:
        """There is no session."""
        self.session_id, self.epoch = NO_SESSION, INITIAL_EPOCH

    def failed(self) -> None:
        """Close what session there may be, and open another with the next Fetch."""
        # Kafka: FetchMetadata.nextCloseExistingAttemptNew.
        self.epoch = INITIAL_EPOCH
