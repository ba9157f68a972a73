"""The timers of share-partitions, of the persister and of the share coordinator."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rejoin.protocol.types import TopicPartition


class ShareTimer(IntEnum):
    """Kinds of timers. Of several at one instant, the lower number fires first."""

    RECORD_LOCK = 2_300
    PERSISTER = 2_301
    DEAD_LETTERS = 2_302
    FETCH = 2_303
    SESSION_LIMIT = 2_304


class ShareStateTimer(IntEnum):
    """The timer of a partition of ``__share_group_state``: old records are deleted, cold states written anew."""

    PRUNE = 2_310


NO_OWNER: Final = TopicPartition("", -1)
"""The owner of timers that belong to no partition of a topic."""
