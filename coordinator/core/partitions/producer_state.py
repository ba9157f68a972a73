"""A partition's state of producers: epochs, and the last batches of each with their sequences.

Kafka: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.wire.record_batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, BatchHeader

REMEMBERED_BATCHES: Final = 5
MAX_EPOCH: Final = 2**15 - 1
FIRST_WITH_EPOCH_BUMPS: Final = 2
"""The first transaction version in which each end of a transaction raises the epoch."""


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


class VerificationEntry:
    """An attempt to begin a transaction on a partition, while its coordinator is asked.

    ``adds``: the coordinator adds the partition, and does not only verify that it is in the transaction.
    """

    __slots__ = ("adds", "began_at", "epoch", "lowest_sequence")

    def __init__(self, header: BatchHeader, adds: bool, now: Millis) -> None:
        self.began_at = now
        self.epoch = header.producer_epoch
        self.lowest_sequence = header.base_sequence
        self.adds = adds

    def update(self, header: BatchHeader) -> None:
        """Another batch is about to begin the same transaction."""
        if header.producer_epoch > self.epoch:
            self.epoch = header.producer_epoch
            self.lowest_sequence = header.base_sequence
        elif header.producer_epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, header.base_sequence)


class CompletedTxn(NamedTuple):
    """A transaction that has ended here, with the offsets of its first record and of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerStateManager:
    """The producers of a partition, by producer id, and their transactions.

    ``ongoing`` has the first offsets of open transactions, in order. ``unstored`` has transactions that have ended, and
    whose markers are not stored yet.
    """

    __slots__ = ("entries", "ongoing", "unstored", "verifications")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerStateEntry] = {}
        self.ongoing: dict[int, int] = {}
        self.unstored: list[CompletedTxn] = []
        self.verifications: dict[int, VerificationEntry] = {}

    # --- transactions

    def is_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer, in this epoch, is open here."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset is not None and entry.epoch == producer_epoch

    def first_offset_of(self, producer_id: int) -> int | None:
        """Where the open transaction of a producer began, or none."""
        entry = self.entries.get(producer_id)
        return None if entry is None else entry.current_txn_first_offset

    def is_fenced(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a newer epoch of this producer was here."""
        entry = self.entries.get(producer_id)
        return entry is not None and producer_epoch < entry.epoch

    def verification(self, header: BatchHeader, adds: bool, now: Millis) -> VerificationEntry:
        """The entry of the attempt that a batch belongs to."""
        entry = self.verifications.get(header.producer_id)
        if entry is None:
            entry = self.verifications[header.producer_id] = VerificationEntry(header, adds, now)
        else:
            entry.update(header)
        return entry

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction began that is open, or whose marker is not stored."""
        first = next(iter(self.ongoing), None)
        for completed in self.unstored:
            first = completed.first_offset if first is None else min(first, completed.first_offset)
        return first

    def stored_up_to(self, offset: int) -> None:
        """All below an offset is stored, markers too."""
        if self.unstored:
            self.unstored = [completed for completed in self.unstored if completed.last_offset >= offset]

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> ErrorCode:
        """NONE, or why a marker cannot be written."""
        # Kafka: ProducerAppendInfo.checkProducerEpoch, then checkCoordinatorEpoch.
        if producer_id <= NO_PRODUCER_ID or producer_epoch <= NO_PRODUCER_EPOCH:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        entry = self.entries.get(producer_id)
        if entry is None:
            return ErrorCode.NONE
        if transaction_version >= FIRST_WITH_EPOCH_BUMPS:
            # A marker that is written again has the epoch that the first one brought.
            repeats = producer_epoch == entry.epoch and entry.current_txn_first_offset is None
            if producer_epoch <= entry.epoch and not repeats and producer_epoch != MAX_EPOCH:
                return ErrorCode.INVALID_PRODUCER_EPOCH
        elif producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int, *, is_abort: bool) -> CompletedTxn | None:
        """Take in a marker that is in the log; returns the transaction that it ends, if one was open."""
        entry = self._entry(header)
        first_offset, entry.current_txn_first_offset = entry.current_txn_first_offset, None
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        verification = self.verifications.get(header.producer_id)
        if verification is not None and not (verification.adds and verification.epoch == header.producer_epoch):
            # Kafka: UnifiedLog.updateProducers. The marker of the transaction before has the epoch of the next one.
            del self.verifications[header.producer_id]
        if first_offset is None:
            return None
        del self.ongoing[first_offset]
        completed = CompletedTxn(header.producer_id, first_offset, header.last_offset, is_abort)
        self.unstored.append(completed)
        return completed

    # --- batches

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch that this one repeats, by its sequences alone, or none."""
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for batch in entry.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def check(self, header: BatchHeader) -> ErrorCode:
        """NONE, or why a batch that repeats none cannot follow those of its producer."""
        # Kafka: ProducerAppendInfo.checkProducerEpoch, then checkSequence, then the transaction.
        entry = self.entries.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        verification = self.verifications.get(header.producer_id) if self.verifications else None
        if verification is not None:
            is_unknown = entry is None or not entry.batches
            skips = verification.adds and header.base_sequence != 0 and is_unknown
            if skips or header.base_sequence > verification.lowest_sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry is None:
            return ErrorCode.NONE
        if not _follows(entry, header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.current_txn_first_offset is not None and not header.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def check_transaction(self, header: BatchHeader, guard: VerificationEntry | None, *, verifies: bool) -> ErrorCode:
        """NONE, or why a transactional batch is not part of a transaction that its coordinator knows of."""
        # Kafka: UnifiedLog.analyzeAndValidateProducerState. The guard is gone if a marker came meanwhile.
        if self.is_ongoing(header.producer_id, header.producer_epoch):
            return ErrorCode.NONE
        if self.is_fenced(header.producer_id, header.producer_epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if verifies and (guard is None or self.verifications.get(header.producer_id) is not guard):
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def append(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log, with its offset."""
        entry = self._entry(header)
        batch = BatchMetadata(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        entry.batches = (*entry.batches, batch)[-REMEMBERED_BATCHES:]
        entry.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self.verifications.pop(header.producer_id, None)
            if entry.current_txn_first_offset is None:
                entry.current_txn_first_offset = header.base_offset
                self.ongoing[header.base_offset] = header.producer_id

    def _entry(self, header: BatchHeader) -> ProducerStateEntry:
        """The entry of a batch's producer, in the epoch of the batch."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerStateEntry(header.producer_id)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches = ()
        return entry

    def restarted(self) -> None:
        """The log is read after a restart."""
        # Kafka: a snapshot keeps only the last batch of each producer, so that is what is known after a restart.
        for entry in self.entries.values():
            entry.batches = entry.batches[-1:]
        self.unstored.clear()

    def expire(self, now: Millis, expiration_ms: Millis) -> None:
        """Forget producers that are in no transaction and whose last records are so old."""
        # Kafka: the records' time counts, so a producer that writes old timestamps is forgotten at the next check.
        self.entries = {
            producer_id: entry
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset is not None or now - entry.last_timestamp < expiration_ms
        }
        self.verifications = {
            producer_id: verification
            for producer_id, verification in self.verifications.items()
            if now - verification.began_at < expiration_ms
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
