"""The leadership of a single node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.leadership.base import FOREVER, PartitionHost
from rejoin.coordinator.leadership.view import LeadershipView, LeaseInfo, NodeInfo
from rejoin.coordinator.storage.base import SoleLog
from rejoin.protocol.brokers.listener_address import addresses_text
from rejoin.protocol.types import TopicPartition


class SoleLeader:
    """A single node leads every partition and never loses one."""

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
        """Lead every partition, with one log line for all of them."""
        host = self._host
        assert host is not None, "it was started"
        with host.at_debug_level():
            for partition in self._partitions:
                host.start_leading(partition, self._log.elect(partition))
        self._publish(host)

    def advertise(self, broker: Broker) -> None:
        """Send clients to other addresses of this node."""
        assert self._host is not None, "it was started"
        self._broker = broker
        self._publish(self._host)

    async def stop(self, patience_s: float) -> None:
        host = self._host
        if host is not None and host.leading:
            with host.at_debug_level():
                for partition in host.leading:
                    host.stop_leading(partition)
            self._publish(host)

    def expire(self) -> None:
        raise AssertionError("a sole leader has no leases")

    def elect(self, partition: TopicPartition) -> bool:
        assert self._host is not None, "it was started"
        self._host.start_leading(partition, self._log.elect(partition))
        self._publish(self._host)
        return True

    def resign(self, partition: TopicPartition) -> bool:
        host = self._host
        if host is None or partition not in host.leading:
            return False
        host.stop_leading(partition)
        self._publish(host)
        return True

    def problem(self) -> str:
        return ""

    def view(self) -> LeadershipView:
        broker = self._broker
        epochs = self._host.leading if self._host is not None else {}
        return LeadershipView(
            (NodeInfo(broker.node_id, "", broker.host, broker.port, 1, listeners=addresses_text(broker.endpoints)),),
            tuple(LeaseInfo(partition, epoch, broker.node_id, "", 1) for partition, epoch in sorted(epochs.items())),
        )

    def _publish(self, host: PartitionHost) -> None:
        host.on_cluster((self._broker,), dict.fromkeys(host.leading, self._broker.node_id))
