"""Where the leader of a partition is: what answers that refuse a partition add, so that clients need not ask.

Kafka: KIP-951.
"""

from __future__ import annotations

from typing import Final

from rejoin.protocol.message import Struct
from rejoin.protocol.types import BrokerId, Int32
from rejoin.protocol.unvalidated import unvalidated


class LeaderIdAndEpoch(Struct):
    """The leader of a partition and its epoch; -1 where it is not known."""

    leader_id: BrokerId = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Struct):
    """The address of a node that leads one of the partitions."""

    node_id: BrokerId
    host: str
    port: Int32
    rack: str | None = None


UNKNOWN_LEADER: Final = unvalidated(LeaderIdAndEpoch, leader_id=-1, leader_epoch=-1)
"""The default. It is left out on the wire."""
