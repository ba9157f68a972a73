"""What a node needs to know of who leads what, whether it is alone or one of many."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.view import LeaseSeen, NodeSeen, View
from rejoin.coordinator.storage.base import SoleLog
from rejoin.protocol.types import TopicPartition

FOREVER: Final = float("inf")


_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ms() -> float:
    """A clock in ms that nobody sets, and that goes on while the process, or the whole machine, is suspended."""
    return time.clock_gettime(_CLOCK) * 1_000


class Led(Protocol):
    """What is led: a runtime, as a leadership sees it."""

    @property
    def leading(self) -> dict[TopicPartition, int]:
        """The partitions that are led, with their epochs."""

    def take_lead(self, partition: TopicPartition, epoch: int) -> None:
        """Lead a partition from now on."""

    def give_lead(self, partition: TopicPartition) -> None:
        """Lead it no more; whoever waits there is answered."""

    def see(self, brokers: tuple[Broker, ...], leaders: dict[TopicPartition, int]) -> None:
        """Know the cluster as it is now."""

    def quietly(self) -> AbstractContextManager[None]:
        """Log what happens to partitions meanwhile at debug only."""


class Leadership(Protocol):
    """Decides which partitions a node leads, and in which epochs."""

    valid_until: float
    """By :func:`steady_ms`: from then on not all that is led is led by right, unless ``lapse`` is called."""

    async def start(self, led: Led, broker: Broker) -> None:
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
    """A node that is alone leads everything, and nobody can take it away."""

    def __init__(self, log: SoleLog, partitions: Sequence[TopicPartition]) -> None:
        self.valid_until = FOREVER
        self.lease_ms: int | None = None
        self.counts: Mapping[str, int] = {}
        self._log = log
        self._partitions = partitions
        self._led: Led | None = None
        self._broker = Broker(-1, "", -1)

    async def start(self, led: Led, broker: Broker) -> None:
        self._led = led
        self._broker = broker
        self.lead_everything()

    def lead_everything(self) -> None:
        """Lead every partition, with one line in the log for all of them."""
        led = self._led
        assert led is not None, "it was started"
        with led.quietly():
            for partition in self._partitions:
                led.take_lead(partition, self._log.elect(partition))
        self._tell(led)

    async def stop(self, patience_s: float) -> None:
        led = self._led
        if led is not None and led.leading:
            with led.quietly():
                for partition in led.leading:
                    led.give_lead(partition)
            self._tell(led)

    def lapse(self) -> None:
        raise AssertionError("nobody can take anything away")

    def elect(self, partition: TopicPartition) -> bool:
        assert self._led is not None, "it was started"
        self._led.take_lead(partition, self._log.elect(partition))
        self._tell(self._led)
        return True

    def resign(self, partition: TopicPartition) -> bool:
        led = self._led
        if led is None or partition not in led.leading:
            return False
        led.give_lead(partition)
        self._tell(led)
        return True

    def problem(self) -> str:
        return ""

    def view(self) -> View:
        broker = self._broker
        epochs = self._led.leading if self._led is not None else {}
        return View(
            (NodeSeen(broker.node_id, "", broker.host, broker.port, 1),),
            tuple(LeaseSeen(partition, epoch, broker.node_id, "", 1) for partition, epoch in sorted(epochs.items())),
        )

    def _tell(self, led: Led) -> None:
        led.see((self._broker,), dict.fromkeys(led.leading, self._broker.node_id))
