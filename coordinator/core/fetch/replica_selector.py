"""Which replica a consumer reads from, by its rack (KIP-392).

Kafka: RackAwareReplicaSelector, ReplicaView.comparator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.coordinator.core.inputs import Broker, Millis

NO_REPLICA: Final = -1
"""The leader itself."""


def in_rack(rack: str, leader: int, followers: Iterable[tuple[int, int, Millis]], brokers: Iterable[Broker]) -> int:
    """The follower to read from in a rack, or -1: none is there, or the leader is.

    ``followers`` are in sync, each with the end of its log and how long it has been behind. Of several the one with
    the longest log is chosen, then the one that is behind for the shortest time, then the highest id.
    """
    racks = {broker.node_id: broker.rack for broker in brokers}
    if racks.get(leader) == rack:
        return NO_REPLICA
    near = [(end, -behind_ms, replica) for replica, end, behind_ms in followers if racks.get(replica) == rack]
    return max(near)[-1] if near else NO_REPLICA
