"""What a node needs of its leadership, whether it is alone or one of many."""

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
    """A clock in ms that cannot be set, and that goes on while the process, or the whole machine, is suspended."""
    return time.clock_gettime(_CLOCK) * 1_000


class PartitionHost(Protocol):
    """What leads the partitions: a runtime, as a leadership sees it."""

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The partitions that are led, with their epochs."""

    def take_lead(self, partition: TopicPartition, epoch: int) -> None:
        """Lead a partition from now on."""

    def give_lead(self, partition: TopicPartition) -> None:
        """Stop leading it; parked requests are answered."""

    def on_cluster(self, brokers: tuple[Broker, ...], leaders: dict[TopicPartition, int]) -> None:
        """The cluster has changed to this."""

    def quietly(self) -> AbstractContextManager[None]:
        """Log what happens to partitions meanwhile at debug only."""


class Leadership(Protocol):
    """Decides which partitions a node leads, and in which epochs."""

    valid_until: float
    """By :func:`steady_ms`: from then on not all that is led is led by right, unless ``lapse`` is called."""

    async def start(self, host: PartitionHost, broker: Broker) -> None:
        """Begin to lead. Raises :class:`StoreProblem` where the store, or the node's id, cannot be had."""

    async def stop(self, patience_s: float) -> None:
        """Give up everything, and let others have it at once."""

    def lapse(self) -> None:
        """Give up what is not led by right any more."""

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition, in a new epoch; false where that is not for this node to decide."""

    def resign(self, partition: TopicPartition) -> bool:
        """Give up a partition; false where it is not led."""

    def problem(self) -> str:
        """Why this node cannot do its part; empty when it can."""

    def view(self) -> LeadershipView:
        """Nodes and leases as they were last seen, with the times that they have left now."""

    @property
    def lease_ms(self) -> int | None:
        """How long a lease lasts; none where nothing can be lost."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened how often, by name."""
