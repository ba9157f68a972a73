"""Tasks in messages of streams groups (KIP-1071)."""

from __future__ import annotations

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int32, Int64, PartitionIndex


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str
    partitions: tuple[PartitionIndex, ...]


class TaskOffset(Struct):
    """How far the state of a task is: the sum of the offsets of its changelogs."""

    subtopology_id: str
    partition: Int32
    offset: Int64
