"""Effects of a share-partition: the caller takes them after each call and carries them out in order.

A result comes back as a call on the share-partition. The effects of that call come before the rest of those already
taken, as Kafka's callbacks do: carry out depth first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from rejoin.coordinator.core.share_state.state_batch import PersistedBatch
from rejoin.protocol.errors import ErrorCode


@dataclass(slots=True, frozen=True)
class StateWrite:
    """A write to the share coordinator. The result comes back as ``written(write_id, error)``.

    ``runs`` is for a share coordinator in the same process, which puts neighbours together in any case. ``by_record``
    has a byte for each run: whether a request to the share coordinator has one batch for each of its records.
    """

    write_id: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    runs: tuple[PersistedBatch, ...]
    by_record: bytes

    def batches(self) -> Iterator[PersistedBatch]:
        """State batches of a WriteShareGroupState request: Kafka's leader sends split batches record by record."""
        for run, by_record in zip(self.runs, self.by_record, strict=True):
            first, last, state, count = run
            if by_record:
                for offset in range(first, last + 1):
                    yield PersistedBatch(offset, offset, state, count)
            else:
                yield run


class DeadLetterCause(StrEnum):
    """Reason why records go to the dead-letter queue."""

    REJECTED = "rejected"
    DELIVERY_COUNT = "delivery count"


@dataclass(slots=True, frozen=True)
class DeadLetter:
    """Records for the dead-letter queue. Its end, good or bad, comes back as ``dead_letter_ended(letter_id)``."""

    letter_id: int
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause


@dataclass(slots=True, frozen=True)
class CallEnded:
    """An acknowledgement or a release is complete. ``call`` is the caller's object.

    ``breaks_request`` is true where Kafka throws: the whole request is answered with UNKNOWN_SERVER_ERROR, and what was
    done for earlier partitions stays.
    """

    call: object
    error: ErrorCode
    breaks_request: bool = False


@dataclass(slots=True, frozen=True)
class FetchesWoken:
    """Waiting fetches of the share-partition should look again."""


WindowEffect: TypeAlias = StateWrite | DeadLetter | CallEnded | FetchesWoken
