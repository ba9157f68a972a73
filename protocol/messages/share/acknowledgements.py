"""Parts that ShareFetch and ShareAcknowledge have in common: acknowledgements, and where the leader is."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int8, Int32, Int64
from rejoin.protocol.unvalidated import unvalidated


class AcknowledgeType(IntEnum):
    """The verdict of a member on a record. Kafka: AcknowledgeType."""

    GAP = 0
    """There is no record for consumers at this offset."""
    ACCEPT = 1
    """It is processed."""
    RELEASE = 2
    """It becomes available again."""
    REJECT = 3
    """No consumer can process it: it is archived, or sent to the dead-letter topic."""
    RENEW = 4
    """It is still being processed: its lock begins anew (KIP-1222, v2)."""


class AcknowledgementBatch(Struct):
    """Offsets with one type for all, or one for each: see :class:`AcknowledgeType`."""

    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...]


class ShareLeader(Struct):
    """The leader of a partition and its epoch; both are 0 where no hint is given."""

    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


NO_HINT: Final = unvalidated(ShareLeader, leader_id=0, leader_epoch=0)
"""The default."""

FIRST_WITH_RENEWALS: Final = 2
"""The version of both requests from which on locks are renewed (KIP-1222)."""
