"""What Produce needs to know of transactions: who verifies its batches, and what comes of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.producer_state import VerificationEntry
from rejoin.coordinator.core.partitions.validation import ProduceError
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_batch import BatchHeader


class TxnBatch(NamedTuple):
    """A transactional batch for a partition that is led here."""

    partition: Partition
    header: BatchHeader


Guards: TypeAlias = dict[TopicPartition, VerificationEntry | ProduceError | None]
"""For each partition what its batch is appended with, or why it is not; none where the transaction is open there."""


class BatchVerifier(Protocol):
    """Asks transaction coordinators."""

    def verify(
        self, transactional_id: str, version: int, batches: list[TxnBatch], on_guards: Callable[[Guards], None]
    ) -> None:
        """Call back with what each batch may be appended with. All are of one producer."""
