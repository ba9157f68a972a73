"""Parts that ShareFetch and ShareAcknowledge have in common: acknowledgements, and where the leader is."""

from __future__ import annotations

from typing import Final

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int8, Int32, Int64
from rejoin.protocol.unvalidated import unvalidated


class AcknowledgementBatch(Struct):
    """Offsets with one type for all, or one for each. Types: 0 gap, 1 accept, 2 release, 3 reject, 4 renew (v2)."""

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
