"""Snapshots of a group, written down in few words."""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.pipeline.kafka_cluster.snapshots import ClusterGroup, ClusterMember, PartitionOffsets
from rejoin.protocol.types import TopicPartition

START = 1_772_323_200_000
Offsets = Mapping[int, tuple[int | None, int | None]]


def member(name: str, *partitions: int, instance: str | None = None, incarnation: int = 1) -> ClusterMember:
    owned = tuple(TopicPartition("orders", partition) for partition in partitions)
    return ClusterMember(f"{name}-{incarnation}", instance, name, "/10.0.0.1", owned)


def snapshot(
    second: float, *members: ClusterMember, offsets: Offsets | None = None, state: str = "Stable"
) -> ClusterGroup:
    """The group ``orders-app`` so many seconds after the start."""
    return ClusterGroup(
        at_ms=START + int(second * 1_000),
        group_id="orders-app",
        state=state,
        protocol="range",
        group_type="classic",
        members=members,
        offsets={TopicPartition("orders", at): PartitionOffsets(*each) for at, each in (offsets or {}).items()},
    )
