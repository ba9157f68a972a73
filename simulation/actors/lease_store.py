"""The store of leases in memory: carries out ``Renew``, ``Acquire`` and ``Release`` by the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.leases import (
    Acquire,
    AcquireResult,
    LeaseInput,
    Refusal,
    Release,
    ReleaseResult,
    Renew,
    RenewResult,
    Request,
)
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.protocol.types import TopicPartition


@dataclass
class LeaseRow:
    """The row of a node or of a lease; a released lease does not expire."""

    node_id: int
    incarnation: str
    expires_at: float | None
    epoch: int = -1


class MemoryLeaseStore:
    """Nodes and leases. ``now`` is given with each request, in ms."""

    def __init__(self, partitions: Sequence[TopicPartition], lease_ms: int, broker_of: Callable[[int], Broker]) -> None:
        self.lease_ms = lease_ms
        self.partitions = partitions
        self.broker_of = broker_of
        self.nodes: dict[int, LeaseRow] = {}
        self.leases: dict[TopicPartition, LeaseRow] = {}

    def carry_out(self, request: Request, node_id: int, incarnation: str, now: float) -> LeaseInput:
        match request:
            case Renew():
                return self._renew(request, node_id, incarnation, now)
            case Acquire():
                return self._acquire(request, node_id, incarnation, now)
            case Release():
                return self._release(request, node_id, incarnation)

    def _renew(self, request: Renew, node_id: int, incarnation: str, now: float) -> LeaseInput:
        row = self.nodes.get(node_id)
        if row is not None and row.incarnation != incarnation and (row.expires_at or 0) > now:
            return Refusal(self._node(row, now))
        self.nodes[node_id] = LeaseRow(node_id, incarnation, now + self.lease_ms)
        renewed = []
        for partition, epoch in request.held.items():
            lease = self.leases[partition]
            if lease.incarnation == incarnation and lease.epoch == epoch and self._live(lease, now):
                lease.expires_at = now + self.lease_ms
                renewed.append(partition)
        return RenewResult(tuple(renewed), self.view(now))

    def _acquire(self, request: Acquire, node_id: int, incarnation: str, now: float) -> LeaseInput:
        epochs = {}
        for partition in request.partitions:
            lease = self.leases.get(partition)
            if lease is not None and self._live(lease, now) and lease.incarnation != incarnation:
                continue
            epochs[partition] = 0 if lease is None else lease.epoch + 1
            self.leases[partition] = LeaseRow(node_id, incarnation, now + self.lease_ms, epochs[partition])
        return AcquireResult(epochs)

    def _release(self, request: Release, node_id: int, incarnation: str) -> LeaseInput:
        for partition, lease in self.leases.items():
            if lease.incarnation == incarnation and (request.leave or request.held.get(partition) == lease.epoch):
                lease.expires_at = None
        if request.leave and node_id in self.nodes and self.nodes[node_id].incarnation == incarnation:
            del self.nodes[node_id]
        return ReleaseResult()

    @staticmethod
    def _live(lease: LeaseRow, now: float) -> bool:
        return lease.expires_at is not None and lease.expires_at > now

    def view(self, now: float) -> LeadershipView:
        return LeadershipView(
            tuple(self._node(row, now) for row in self.nodes.values()),
            tuple(
                LeaseInfo(
                    partition,
                    row.epoch,
                    row.node_id,
                    row.incarnation,
                    None if row.expires_at is None else int(row.expires_at - now),
                )
                for partition, row in sorted(self.leases.items())
            ),
        )

    def leader(self, partition: TopicPartition, now: float) -> int | None:
        """The id of the node that holds a partition's lease, or none."""
        lease = self.leases.get(partition)
        return lease.node_id if lease is not None and self._live(lease, now) else None

    def _node(self, row: LeaseRow, now: float) -> NodeInfo:
        assert row.expires_at is not None, "a node's row expires"
        broker = self.broker_of(row.node_id)
        return NodeInfo(row.node_id, row.incarnation, broker.host, broker.port, int(row.expires_at - now))
