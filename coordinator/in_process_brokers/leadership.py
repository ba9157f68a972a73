"""The leadership of one of several brokers in this process: a controller decides."""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.coordinator.core.inputs import NO_LEADER, Broker
from rejoin.coordinator.in_process_brokers.controller_driver import ControllerDriver
from rejoin.coordinator.leadership.base import FOREVER, PartitionHost
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.protocol.brokers.listener_address import addresses_text
from rejoin.protocol.types import TopicPartition


class ControlledLeadership:
    """The controller as a broker's runtime uses it."""

    def __init__(self, driver: ControllerDriver) -> None:
        self.valid_until = FOREVER
        self.lease_ms: int | None = None
        self.counts: Mapping[str, int] = {}
        self._driver = driver
        self._broker = Broker(-1, "", -1)

    async def start(self, host: PartitionHost, broker: Broker) -> None:
        self._broker = broker
        self._driver.register(broker)

    async def stop(self, patience_s: float) -> None:
        self._driver.shut_down(self._broker.node_id)

    def expire(self) -> None:
        raise AssertionError("there are no leases")

    def elect(self, partition: TopicPartition) -> bool:
        """Lead a partition: in a new epoch where this broker leads it already."""
        moved = self._driver.controller.move(partition, self._broker.node_id)
        self._driver.publish()
        return moved

    def resign(self, partition: TopicPartition) -> bool:
        """Let another broker lead a partition; false where this one does not lead it, or no other can."""
        controller = self._driver.controller
        registration = controller.partitions[partition]
        if registration.leader != self._broker.node_id:
            return False
        others = (each for each in registration.isr if each != registration.leader)
        moved = any(controller.move(partition, other) for other in others)
        self._driver.publish()
        return moved

    def problem(self) -> str:
        return ""

    def view(self) -> LeadershipView:
        controller = self._driver.controller
        nodes = tuple(
            NodeInfo(broker.node_id, "", broker.host, broker.port, 1, listeners=addresses_text(broker.endpoints))
            for _, broker in sorted(controller.brokers.items())
        )
        leases = tuple(
            LeaseInfo(partition, registration.leader_epoch, registration.leader, "", 1)
            for partition, registration in controller.partitions.items()
            if isinstance(partition, TopicPartition) and registration.leader != NO_LEADER
        )
        return LeadershipView(nodes, leases)
