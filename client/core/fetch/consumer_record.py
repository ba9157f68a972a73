"""A record as a consumer hands it out."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

Headers: TypeAlias = tuple[tuple[str, "bytes | None"], ...]


class TimestampType(IntEnum):
    """Whose clock a record's timestamp is of."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ConsumerRecord(NamedTuple):
    """A record: ``key`` and ``value`` are bytes or None, or what the deserializers make of them.

    A record of a synthetic log that was read over HTTP has the time at which it was handed out. Share consumers set
    ``delivery_count``, which is 1 for the first delivery.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers = ()
    timestamp_type: TimestampType = TimestampType.NO_TIMESTAMP_TYPE
    leader_epoch: int = -1
    delivery_count: int | None = None
