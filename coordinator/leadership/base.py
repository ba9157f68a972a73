"""What a node needs to know of who leads what, whether it is alone or one of many."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.view import LeaseInfo, NodeInfo, View
from rejoin.coordinator.storage.base import SoleLog
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

    def view(self) -> View:
        """Nodes and leases as they were last seen, with the times that they have left now."""

    @property
    def lease_ms(self) -> int | None:
        """How long a lease lasts; none where nothing can be lost."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened how often, by name."""


class SoleLeader:
    """A node that is alone leads everything, and loses nothing."""

    def __init__(self, log: SoleLog, partitions: Sequence[TopicPartition]) -> None:
        self.valid_until = FOREVER
        self.lease_ms: int | None = None
        self.counts: Mapping[str, int] = {}
        self._log = log
        self._partitions = partitions
        self._host: PartitionHost | None = None
        self._broker = Broker(-1, "", -1)

    async def start(self, host: PartitionHost, broker: Broker) -> None:
        self._host = host
        self._broker = broker
        self.lead_everything()

    def lead_everything(self) -> None:
        """Lead every partition, with one line in the log for all of them."""
        host = self._host
        assert host is not None, "it was started"
        with host.quietly():
            for partition in self._partitions:
                host.take_lead(partition, self._log.elect(partition))
        self._publish(host)

    async def stop(self, patience_s: float) -> None:
        host = self._host
        if host is not None and host.leading:
            with host.quietly():
                for partition in host.leading:
                    host.give_lead(partition)
            self._publish(host)

    def lapse(self) -> None:
        raise AssertionError("a sole leader loses nothing")

    def elect(self, partition: TopicPartition) -> bool:
        assert self._host is not None, "it was started"
        self._host.take_lead(partition, self._log.elect(partition))
        self._publish(self._host)
        return True

    def resign(self, partition: TopicPartition) -> bool:
        host = self._host
        if host is None or partition not in host.leading:
            return False
        host.give_lead(partition)
        self._publish(host)
        return True

    def problem(self) -> str:
        return ""

    def view(self) -> View:
        broker = self._broker
        epochs = self._host.leading if self._host is not None else {}
        return View(
            (NodeInfo(broker.node_id, "", broker.host, broker.port, 1),),
            tuple(LeaseInfo(partition, epoch, broker.node_id, "", 1) for partition, epoch in sorted(epochs.items())),
        )

    def _publish(self, host: PartitionHost) -> None:
        host.on_cluster((self._broker,), dict.fromkeys(host.leading, self._broker.node_id))
