"""The entries of a data partition's log: batches as bytes, and what moves or rewrites the log's beginning."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from rejoin.protocol.types import BatchBytes

_LAST_OFFSET_DELTA: Final = Struct(">i")


class BatchEntry(NamedTuple):
    """A record batch, whole, with its offset and leader epoch in its header."""

    base_offset: int
    data: BatchBytes

    @property
    def next_offset(self) -> int:
        """The offset behind the batch."""
        (last_offset_delta,) = _LAST_OFFSET_DELTA.unpack_from(self.data, 23)
        return self.base_offset + int(last_offset_delta) + 1


@dataclass(slots=True, frozen=True)
class LogStartEntry:
    """The log begins at this offset: batches that end below it are gone."""

    offset: int


@dataclass(slots=True, frozen=True)
class CompactionEntry:
    """These batches stand for all that began below an offset."""

    end_offset: int
    batches: tuple[BatchEntry, ...]


DataEntry: TypeAlias = BatchEntry | LogStartEntry | CompactionEntry
"""One entry of a data partition's log."""
