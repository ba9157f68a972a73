"""What a partition remembers of its producers: epochs, and the last batches of each with their sequences.

Kafka: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_SEQUENCE, BatchHeader

REMEMBERED_BATCHES: Final = 5


class BatchMetadata(NamedTuple):
    """A batch of a producer: its last sequence and offset, how far its first ones lie before them, its timestamp."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: Millis

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + MAX_SEQUENCE + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """One producer on one partition. The batches are those of its epoch, oldest first."""

    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp: Millis = -1
        self.current_txn_first_offset: int | None = None
        self.batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStateManager:
    """The producers of a partition, by producer id."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, ProducerStateEntry] = {}

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch that this one repeats, by its sequences alone, or none."""
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        for batch in entry.batches:
            if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def check(self, header: BatchHeader) -> ErrorCode:
        """NONE, or why a batch that repeats none cannot follow those of its producer."""
        # Kafka: ProducerAppendInfo.checkProducerEpoch, then checkSequence, then the transaction.
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return ErrorCode.NONE
        if header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if not _follows(entry, header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.current_txn_first_offset is not None and not header.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def append(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log, with its offset."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerStateEntry(header.producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches = ()
        batch = BatchMetadata(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        entry.batches = (*entry.batches, batch)[-REMEMBERED_BATCHES:]
        entry.last_timestamp = header.max_timestamp
        if header.is_transactional and entry.current_txn_first_offset is None:
            entry.current_txn_first_offset = header.base_offset

    def loaded(self) -> None:
        """The log is read."""
        # Kafka: a snapshot keeps only the last batch of each producer, so that is what is known after a restart.
        for entry in self.entries.values():
            entry.batches = entry.batches[-1:]

    def expire(self, now: Millis, expiration_ms: Millis) -> None:
        """Forget producers that are in no transaction and whose last records are so old."""
        # Kafka: the records' time counts, so a producer that writes old timestamps is forgotten at the next check.
        self.entries = {
            producer_id: entry
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset is not None or now - entry.last_timestamp < expiration_ms
        }


def _follows(entry: ProducerStateEntry, header: BatchHeader) -> bool:
    """Whether the sequences of a batch continue those of its producer."""
    first = header.base_sequence
    if entry.epoch == NO_PRODUCER_EPOCH:
        return True
    if header.producer_epoch != entry.epoch:
        return first == 0
    last = entry.last_sequence
    return first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
