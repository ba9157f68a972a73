"""The producers of an offsets partition: their epochs, and which of them have a transaction open there.

Offsets have no sequences. The log keeps the epochs of markers but not those of pending offsets, so after a failover the
coordinator of an open transaction is asked once more.

Kafka: ProducerStateManager, as it is used for a partition of ``__consumer_offsets``.
"""

from __future__ import annotations

from rejoin.coordinator.core.partitions.producer_state import ProducerStateEntry, ProducerStateManager
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import TransactionMarker
from rejoin.protocol.wire.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_IN_TRANSACTION = 0
"""Where transactions begin does not matter here."""


class OffsetProducers:
    """The producers of one offsets partition."""

    def __init__(self) -> None:
        self.state = ProducerStateManager()

    def is_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer, in this epoch, is known to be open here."""
        return self.state.is_ongoing(producer_id, producer_epoch)

    def check(self, producer_id: int, producer_epoch: int) -> ErrorCode:
        """NONE, or why a producer cannot commit."""
        is_fenced = self.state.is_fenced(producer_id, producer_epoch)
        return ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else ErrorCode.NONE

    def epoch_of(self, producer_id: int) -> int:
        """The epoch of a producer as it is known here, or -1."""
        entry = self.state.entries.get(producer_id)
        return NO_PRODUCER_EPOCH if entry is None else entry.epoch

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> ErrorCode:
        """NONE, or why a marker cannot be written."""
        return self.state.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)

    def commit(self, producer_id: int, producer_epoch: int) -> None:
        """A producer commits within a transaction; without an id it is in none."""
        if producer_id == NO_PRODUCER_ID:
            return
        entry = self._entry(producer_id)
        entry.epoch = producer_epoch
        entry.current_txn_first_offset = _IN_TRANSACTION

    def end(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """A marker is written."""
        entry = self._entry(producer_id)
        entry.epoch = producer_epoch
        entry.coordinator_epoch = coordinator_epoch
        entry.current_txn_first_offset = None

    def replay(self, marker: TransactionMarker) -> None:
        """A marker was read from the log."""
        self.end(marker.producer_id, marker.producer_epoch, -1)

    def _entry(self, producer_id: int) -> ProducerStateEntry:
        entry = self.state.entries.get(producer_id)
        if entry is None:
            entry = self.state.entries[producer_id] = ProducerStateEntry(producer_id)
        return entry
