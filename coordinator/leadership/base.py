"""The interface between a runtime and its leadership, for one node or several."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final, Protocol

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.view import LeadershipView
from rejoin.protocol.types import TopicPartition

FOREVER: Final = float("inf")


_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ms() -> float:
    """A monotonic clock in ms that also advances while the machine is suspended."""
    return time.clock_gettime(_CLOCK) * 1_000


class PartitionHost(Protocol):
    """A runtime, as its leadership sees it: it leads the partitions."""

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The partitions that this node leads, with their epochs."""

    def start_leading(self, partition: TopicPartition, epoch: int) -> None:
        """Start leading a partition."""

    def stop_leading(self, partition: TopicPartition) -> None:
        """Stop leading a partition. Parked requests are answered."""

    def on_cluster(self, brokers: tuple[Broker, ...], leaders: dict[TopicPartition, int]) -> None:
        """The brokers or the leaders have changed."""

    def at_debug_level(self) -> AbstractContextManager[None]:
        """Log partition events at debug level meanwhile."""


class Leadership(Protocol):
    """Decides which partitions a node leads, and in which epochs."""

    valid_until: float
    """When the first lease expires, by :func:`steady_ms`. From then on ``expire`` comes before any other input."""

    async def start(self, host: PartitionHost, broker: Broker) -> None:
        """Start leading. Raises :class:`StoreProblem` if the store is unavailable or the node's id is in use."""

    async def stop(self, patience_s: float) -> None:
        """Release everything, so that other nodes can take over at once."""

    def expire(self) -> None:
        """Stop leading the partitions whose leases have expired."""

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition in a new epoch; false where leases decide that."""

    def resign(self, partition: TopicPartition) -> bool:
        """Stop leading a partition; false where this node does not lead it."""

    def problem(self) -> str:
        """Why this node is not ready; empty when it is."""

    def view(self) -> LeadershipView:
        """The last view of nodes and leases, with the time that each has left now."""

    @property
    def lease_ms(self) -> int | None:
        """How long a lease lasts; none without leases."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of lease events, by name."""
