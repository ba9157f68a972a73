"""The interface between the coordinator and its logs, one per topic partition.

A log may be slow: each completion is reported through a callback, exactly once, on the event loop's thread. A fast log
may call it before the method returns; the runtime handles it after the other effects of the same step.

Appends to one partition complete in order. An append completes with ``NONE`` only when its records are durable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batches import DataEntry
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicIdPartition, TopicPartition

OnStored: TypeAlias = Callable[[ErrorCode], None]
"""The result of an append: ``NONE``, or the log's own error."""

Piece: TypeAlias = Callable[[tuple[Record, ...], bool], None]
"""A piece of a partition in log order, and whether it is the last."""


Together: TypeAlias = Callable[[Callable[[], None]], None]
"""Calls a function that reports the ends of many appends, so that they can be handled in one go."""


def one_by_one(report: Callable[[], None]) -> None:
    """Have each end handled when it is reported."""
    report()


class StoreProblem(Exception):
    """A store that cannot be used. The text has the problem, the place and the remedy."""


class Observer:
    """Observer of a log's work, for metrics, called on the event loop's thread. This one ignores all calls."""

    def appended(self, records: int, millis: float) -> None:
        """An append became durable: how many records it had, and how long that took from when it was asked for."""

    def batch(self, appends: int, millis: float) -> None:
        """Appends were written together: how many, and how long the store needed for them."""

    def fenced(self, partition: TopicPartition) -> None:
        """An append of an older epoch was refused."""

    def failed(self, error: ErrorCode) -> None:
        """An append could not be written."""

    def damaged(self, partition: TopicPartition, text: str) -> None:
        """A partition is unreadable for good; the text has the problem."""

    def read(self, partition: TopicPartition, records: int, millis: float) -> None:
        """A partition was read to its end."""

    def compacted(self, partition: TopicPartition, removed: int) -> None:
        """Records that did not count any more were removed from a partition."""

    def reconnected(self) -> None:
        """The connection to the store was made anew."""


class OffsetsLog(Protocol):
    """Logs by topic partition. An epoch is one node's time as leader of a partition; newer ones fence older."""

    async def start(self, together: Together = one_by_one) -> None:
        """Be ready for everything below. Raises :class:`StoreProblem` where the store cannot be used.

        A log that writes many appends together reports their ends through ``together``.
        """

    async def close(self) -> None:
        """Finish pending work."""

    def append(self, partition: TopicPartition, epoch: int, records: tuple[Record, ...], stored: OnStored) -> None:
        """Write records, all or none, behind everything appended before. No records: it ends when all before is stored.

        An older epoch than the newest elected is refused with ``NOT_LEADER_OR_FOLLOWER``.
        """

    def read(self, partition: TopicPartition, epoch: int, piece: Piece) -> None:
        """Read a partition from its start. A reader of an older epoch may be left without an end."""


DataPiece: TypeAlias = Callable[[tuple[DataEntry, ...], bool], None]
"""A piece of a data partition in log order, and whether it is the last."""


Damaged: TypeAlias = Callable[[], None]
"""Called instead of a next piece: the partition cannot be read."""


class DataLogs(Protocol):
    """The logs of data partitions. The epoch of one is that of the offsets partition by which it is leased."""

    def append_data(
        self,
        partition: TopicIdPartition,
        epoch: int,
        leased_by: TopicPartition,
        entries: tuple[DataEntry, ...],
        stored: OnStored,
    ) -> None:
        """Write entries, all or none, behind everything appended before.

        An older epoch than the newest elected is refused with ``NOT_LEADER_OR_FOLLOWER``.
        """

    def read_data(self, partition: TopicIdPartition, epoch: int, piece: DataPiece, damaged: Damaged) -> None:
        """Read a partition from its start, up to its end or to the first damaged record.

        A reader of an older epoch may be left without an end.
        """

    def delete_data(self, partition: TopicIdPartition, epoch: int, leased_by: TopicPartition) -> None:
        """Delete a partition with all that it has. Its topic is gone, so the epoch may be an older one."""

    def keep_only(self, topic_ids: Collection[str]) -> None:
        """Delete the logs of topics that are gone: a process may have ended before it could. At the start."""


class SoleLog(OffsetsLog, Protocol):
    """A log with a single writer, which therefore makes the epochs. Where several nodes write, leases do."""

    def elect(self, partition: TopicPartition) -> int:
        """Make this node the leader of a partition and return its epoch, newer than all before."""


class SoleLogs(SoleLog, DataLogs, Protocol):
    """All logs of a single node."""
