"""A group at one instant, as Kafka's protocol shows it to other clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from rejoin.protocol.types import TopicPartition

Row = dict[str, Any]


class PartitionOffsets(NamedTuple):
    """Offsets of one partition; none where there is no commit, or the end is not known."""

    committed: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """Records between the two. Kafka: without a commit there is no lag."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


NO_OFFSETS: Final = PartitionOffsets(None, None)


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A member with what it is assigned."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def name(self) -> str:
        """The name that is shown for the member."""
        return self.group_instance_id or self.client_id or self.member_id


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """A group at ``at_ms``. Kafka shows the epoch of a consumer group, and no generation of a classic one."""

    at_ms: int
    group_id: str
    state: str | None
    protocol: str | None = None
    group_type: str | None = None
    epoch: int | None = None
    members: tuple[ClusterMember, ...] = ()
    offsets: Mapping[TopicPartition, PartitionOffsets] = field(default_factory=dict)

    @property
    def owners(self) -> dict[TopicPartition, ClusterMember]:
        """Partition to the member that is assigned it."""
        return {partition: member for member in self.members for partition in member.partitions}

    @property
    def lag(self) -> int | None:
        """Lag of all partitions; none where no partition has one."""
        lags = [each.lag for each in self.offsets.values() if each.lag is not None]
        return sum(lags) if lags else None

    def differs_only_in_offsets(self, other: ClusterGroup) -> bool:
        """Whether only offsets differ."""
        return replace(self, at_ms=0, offsets={}) == replace(other, at_ms=0, offsets={})

    def as_row(self) -> Row:
        """The snapshot as JSON."""
        topics: dict[str, dict[str, list[int | None]]] = {}
        for (topic, partition), offsets in sorted(self.offsets.items()):
            topics.setdefault(topic, {})[str(partition)] = [offsets.committed, offsets.end]
        return {
            "at_ms": self.at_ms,
            "group_id": self.group_id,
            "state": self.state,
            "protocol": self.protocol,
            "group_type": self.group_type,
            "epoch": self.epoch,
            "members": [_member_row(member) for member in self.members],
            "offsets": topics,
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> ClusterGroup:
        """From :meth:`as_row`. Raises KeyError, TypeError and ValueError for what is none."""
        return cls(
            at_ms=int(row["at_ms"]),
            group_id=str(row["group_id"]),
            state=row["state"],
            protocol=row["protocol"],
            group_type=row["group_type"],
            epoch=row["epoch"],
            members=tuple(map(_member_of, row["members"])),
            offsets={
                TopicPartition(topic, int(partition)): PartitionOffsets(*pair)
                for topic, partitions in row["offsets"].items()
                for partition, pair in partitions.items()
            },
        )


def _member_row(member: ClusterMember) -> Row:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(member.partitions):
        topics.setdefault(topic, []).append(partition)
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "partitions": topics,
    }


def _member_of(row: Mapping[str, Any]) -> ClusterMember:
    return ClusterMember(
        row["member_id"],
        row["group_instance_id"],
        row["client_id"],
        row["client_host"],
        tuple(_partitions(row["partitions"])),
    )


def _partitions(topics: Mapping[str, list[int]]) -> Iterator[TopicPartition]:
    for topic, partitions in topics.items():
        yield from (TopicPartition(topic, partition) for partition in partitions)
