"""A wrapper that makes an offsets log fail or hang on command."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.coordinator.storage.base import Piece, SoleLog, Stored
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition


class FaultyLog:
    """Forwards every call to the wrapped log, unless a fault is set.

    ``hold_appends`` and ``hold_reads`` hold calls back until ``release``. ``fail_appends`` answers appends of records
    with an error and writes nothing.
    """

    def __init__(self, log: SoleLog) -> None:
        self._log = log
        self._held: list[Callable[[], None]] = []
        self.hold_appends = False
        self.hold_reads = False
        self.fail_appends: ErrorCode | None = None

    @property
    def held(self) -> int:
        """The number of appends and reads held back."""
        return len(self._held)

    async def start(self) -> None:
        await self._log.start()

    async def close(self) -> None:
        await self._log.close()

    def elect(self, partition: TopicPartition) -> int:
        return self._log.elect(partition)

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: Stored) -> None:
        if self.hold_appends:
            self._held.append(lambda: self._append(partition, epoch, records, stored))
        else:
            self._append(partition, epoch, records, stored)

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        if self.hold_reads:
            self._held.append(lambda: self._log.read(partition, epoch, piece))
        else:
            self._log.read(partition, epoch, piece)

    def release(self) -> None:
        """Stop holding calls back, and make those that were held, in order."""
        self.hold_appends = self.hold_reads = False
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def _append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: Stored) -> None:
        if self.fail_appends is not None and records:
            stored(self.fail_appends)
        else:
            self._log.append(partition, epoch, records, stored)
