"""The vocabulary of a share-partition's window: states, acknowledgements, settings."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, Protocol

from rejoin.coordinator.core.inputs import Millis

NO_MEMBER: Final = ""
"""The holder of a record that is not acquired."""


class RecordState(IntEnum):
    """The state of a record in the window. Numbers are those of ``__share_group_state``; 1 is never persisted."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """The record waits for the dead-letter queue."""
    ARCHIVED = 4


class SharePartitionState(StrEnum):
    """The state of a share-partition. Only an active one acquires and acknowledges."""

    EMPTY = "EMPTY"
    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    FENCED = "FENCED"


class WindowSettings(Protocol):
    """Settings of the group. The window reads each at the moment of use, so a change holds from the next use on."""

    @property
    def lock_duration_ms(self) -> Millis:
        """``share.record.lock.duration.ms``"""

    @property
    def delivery_count_limit(self) -> int:
        """``share.delivery.count.limit``"""

    @property
    def max_record_locks(self) -> int:
        """``share.partition.max.record.locks``"""

    @property
    def allows_renewal(self) -> bool:
        """``share.renew.acknowledge.enable``"""

    @property
    def has_dead_letters(self) -> bool:
        """Whether ``share.version`` is at least 2 and the group names a dead-letter topic."""


class ReadRange(NamedTuple):
    """A batch that was read from the log, by its first and last offset."""

    base_offset: int
    last_offset: int


class AcquiredRow(NamedTuple):
    """One row of ``acquiredRecords`` in a response."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquired(NamedTuple):
    """The outcome of an acquisition.

    ``broken`` is true where Kafka throws: the partition is answered with UNKNOWN_SERVER_ERROR, although records may be
    acquired by then.
    """

    rows: tuple[AcquiredRow, ...] = ()
    record_count: int = 0
    broken: bool = False


class RecordRun(NamedTuple):
    """Neighbours of equal state in a described window. ``lock_ms`` is the rest of the lock in ms; none: no lock.

    A lock that ran out during a transition has a negative rest.
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str
    in_transition: bool
    lock_ms: Millis | None


class BatchView(NamedTuple):
    """One in-flight batch. ``by_record`` is true for a batch that was split: each record has a state of its own."""

    first_offset: int
    last_offset: int
    by_record: bool
    runs: tuple[RecordRun, ...]


class SharePartitionView(NamedTuple):
    """A share-partition at one instant. ``gap_window`` has the next hole and the end at load; none: no hole is left."""

    state: SharePartitionState
    start_offset: int
    end_offset: int
    find_next: bool
    delivery_complete_count: int
    state_epoch: int
    leader_epoch: int
    gap_window: tuple[int, int] | None
    batches: tuple[BatchView, ...]
