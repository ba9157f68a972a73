"""The nodes and leases of the cluster at one moment, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from rejoin.coordinator.core.inputs import Broker
from rejoin.protocol.brokers.listener_address import addresses_from
from rejoin.protocol.types import TopicPartition

Millis: TypeAlias = int


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A registered node. ``ms_left`` is how long it counts as alive unless it renews."""

    node_id: int
    incarnation: str
    host: str
    port: int
    ms_left: Millis
    draining: bool = False
    rack: str | None = None
    listeners: str = ""
    """The addresses of its listeners beside HTTP's, as Kafka's ``advertised.listeners``."""

    @property
    def is_alive(self) -> bool:
        return self.ms_left > 0

    @property
    def broker(self) -> Broker:
        return Broker(self.node_id, self.host, self.port, self.rack, addresses_from(self.listeners))


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """The current or last holder of a partition. ``ms_left`` is none where the lease was released."""

    partition: TopicPartition
    epoch: int
    node_id: int
    incarnation: str
    ms_left: Millis | None
    load_ms: Millis | None = None

    @property
    def is_live(self) -> bool:
        return self.ms_left is not None and self.ms_left > 0


@dataclass(frozen=True, slots=True)
class LeadershipView:
    """Every node and every lease. A partition without a lease never had a holder."""

    nodes: tuple[NodeInfo, ...] = ()
    leases: tuple[LeaseInfo, ...] = ()
    by_partition: dict[TopicPartition, LeaseInfo] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_partition", {lease.partition: lease for lease in self.leases})

    def later(self, millis: Millis) -> Self:
        """The view ``millis`` later: every ``ms_left`` is that much less."""
        return replace(
            self,
            nodes=tuple(replace(node, ms_left=node.ms_left - millis) for node in self.nodes),
            leases=tuple(
                lease if lease.ms_left is None else replace(lease, ms_left=lease.ms_left - millis)
                for lease in self.leases
            ),
        )

    def workers(self) -> list[NodeInfo]:
        """The nodes that can lead partitions, by id."""
        return sorted(
            (node for node in self.nodes if node.is_alive and not node.draining), key=lambda node: node.node_id
        )
