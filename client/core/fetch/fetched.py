"""Fetched data of one partition: batches, opened one after the other as their records are due.

Kafka: CompletedFetch.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Final

from rejoin.client.core.errors import CorruptRecordError
from rejoin.client.core.fetch.consumer_record import ConsumerRecord
from rejoin.client.core.fetch.decoding import decode
from rejoin.protocol.messages.records.fetch import AbortedTransaction
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_batch import HEADER_SIZE, BatchHeader, parse_header, size_at
from rejoin.protocol.wire.records import ControlRecordType, EndTransactionMarker, read_batch

_NONE: Final[tuple[ConsumerRecord, ...]] = ()


class FetchedBatches:
    """The batches of one answer for one partition.

    ``next_offset`` is where the next records are; ``epoch`` the leader epoch of the batch before it, or -1.
    """

    def __init__(
        self,
        partition: TopicPartition,
        fetch_offset: int,
        records: bytes | memoryview,
        aborted: Iterable[AbortedTransaction] | None,
        *,
        check_crcs: bool,
    ) -> None:
        self.partition = partition
        self.next_offset = fetch_offset
        self.epoch = -1
        self._data = memoryview(records)
        self._at = 0
        self._check_crcs = check_crcs
        self._decoded: list[ConsumerRecord] = []
        self._index = 0
        self._has_opened = False
        self._end_offset = fetch_offset
        self._is_committed_only = aborted is not None
        self._transactions = deque(sorted(aborted or (), key=lambda each: each.first_offset))
        self._aborted: set[int] = set()

    @property
    def is_drained(self) -> bool:
        """Whether all records have been taken; an incomplete last batch does not count."""
        if self._index < len(self._decoded) or not self._has_opened:
            return False
        left = len(self._data) - self._at
        return left < HEADER_SIZE or size_at(self._data, self._at) > left

    def take(self, most: int) -> list[ConsumerRecord]:
        """Up to so many records; none at the end. Raises CorruptRecordError, with ``next_offset`` at the damage."""
        taken: list[ConsumerRecord] = []
        while len(taken) < most:
            left = len(self._decoded) - self._index
            if left == 0:
                try:
                    if not self._open_next():
                        break
                except CorruptRecordError:
                    if not taken:
                        raise
                    break  # What came before is handed out first.
                continue
            some = self._decoded[self._index : self._index + min(left, most - len(taken))]
            taken += some
            self._index += len(some)
            is_last = self._index == len(self._decoded)
            self.next_offset = self._end_offset if is_last else some[-1].offset + 1
        return taken

    def take_batch(self) -> list[ConsumerRecord]:
        """The rest of the current batch, or the next one; none at the end. Raises CorruptRecordError."""
        if self._index == len(self._decoded) and not self._open_next():
            return []
        some = self._decoded[self._index :]
        self._index = len(self._decoded)
        self.next_offset = self._end_offset
        return some

    def skip_damaged(self) -> None:
        """Continue behind the batch that could not be read."""
        header = parse_header(self._data, self._at)
        self._at += header.size
        self._has_opened = True
        self.next_offset = self._end_offset = max(self.next_offset, header.last_offset + 1)

    def put_back(self, records: list[ConsumerRecord]) -> None:
        """Hand these out again; they were taken last."""
        self._decoded = [*records, *self._decoded[self._index :]]
        self._index = 0
        self.next_offset = records[0].offset

    def _open_next(self) -> bool:
        """Decode the next batch that has records for the consumer; false at the end of the last whole one."""
        while True:
            try:
                header = parse_header(self._data, self._at)
            except struct.error:
                return False
            stop = self._at + header.size
            if stop > len(self._data) or header.size < HEADER_SIZE:
                # Kafka: the last batch of an answer may be cut off.
                return False
            batch = self._data[self._at : stop]
            self._decoded = self._records(header, batch)
            self._has_opened = True
            self._index = 0
            self._at = stop
            self._end_offset = header.last_offset + 1
            self.epoch = header.partition_leader_epoch
            if self._decoded:
                return True
            self.next_offset = max(self.next_offset, self._end_offset)

    def _records(self, header: BatchHeader, batch: memoryview) -> list[ConsumerRecord]:
        if header.last_offset < self.next_offset or self._is_skipped(header, batch):
            return []
        topic, partition = self.partition
        try:
            decoded = decode(topic, partition, header, batch, check_crc=self._check_crcs)
        except RecordsError as problem:
            raise self._corrupt(header, problem) from problem
        if header.base_offset >= self.next_offset:
            return decoded
        return [record for record in decoded if record.offset >= self.next_offset]

    def _is_skipped(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a batch is a marker, or of a transaction that was aborted."""
        # Kafka: CompletedFetch.nextFetchedRecord.
        if self._is_committed_only and header.has_producer_id:
            while self._transactions and self._transactions[0].first_offset <= header.last_offset:
                self._aborted.add(self._transactions.popleft().producer_id)
            if header.is_control:
                if self._is_abort_marker(header, batch):
                    self._aborted.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in self._aborted:
                return True
        return header.is_control

    def _is_abort_marker(self, header: BatchHeader, batch: memoryview) -> bool:
        try:
            records = read_batch(batch)
            marker = EndTransactionMarker.of(records[0]) if records else None
        except RecordsError as problem:
            raise self._corrupt(header, problem) from problem
        return marker is not None and marker.control_type is ControlRecordType.ABORT

    def _corrupt(self, header: BatchHeader, problem: Exception) -> CorruptRecordError:
        return CorruptRecordError(self.partition, max(header.base_offset, self.next_offset), str(problem))
