"""A wrapper that makes an offsets log fail or hang on command."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rejoin.coordinator.storage.base import Damaged, DataPiece, OnStored, Piece, SoleLogs, Together, one_by_one
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import DataEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition


class FaultyLog:
    """Forwards every call to the wrapped log, unless a fault is set.

    ``hold_appends`` and ``hold_reads`` hold calls back until ``release``. ``fail_appends`` answers appends of records
    with an error and writes nothing.
    """

    def __init__(self, log: SoleLogs) -> None:
        self._log = log
        self._held: list[Callable[[], None]] = []
        self.hold_appends = False
        self.hold_reads = False
        self.fail_appends: ErrorCode | None = None

    @property
    def held(self) -> int:
        """The number of appends and reads held back."""
        return len(self._held)

    async def start(self, together: Together = one_by_one) -> None:
        await self._log.start(together)

    async def close(self) -> None:
        await self._log.close()

    def elect(self, partition: TopicPartition) -> int:
        return self._log.elect(partition)

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
        if not self.hold_appends and self.fail_appends is None:
            self._log.append(partition, epoch, records, stored)
            return
        self._append(lambda: self._log.append(partition, epoch, records, stored), bool(records), stored)

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        if not self.hold_appends and self.fail_appends is None:
            self._log.append_data(partition, epoch, leased_by, entries, stored)
            return
        self._append(lambda: self._log.append_data(partition, epoch, leased_by, entries, stored), True, stored)

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        self._read(lambda: self._log.read(partition, epoch, piece))

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        self._read(lambda: self._log.read_data(partition, epoch, piece, damaged))

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        self._log.delete_data(partition, epoch, leased_by)

    def keep_only(self, topic_ids: Collection[str]) -> None:
        self._log.keep_only(topic_ids)

    def release(self) -> None:
        """Stop holding calls back, and make those that were held, in order."""
        self.hold_appends = self.hold_reads = False
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def _append(self, append: Callable[[], None], writes: bool, stored: OnStored) -> None:
        def unless_failing() -> None:
            if self.fail_appends is not None and writes:
                stored(self.fail_appends)
            else:
                append()

        if self.hold_appends:
            self._held.append(unless_failing)
        else:
            unless_failing()

    def _read(self, read: Callable[[], None]) -> None:
        if self.hold_reads:
            self._held.append(read)
        else:
            read()
