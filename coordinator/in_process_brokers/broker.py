"""One of several brokers in this process: an application that can be stopped, killed, started, paused and cut off."""

from __future__ import annotations

from rejoin.coordinator.control.control import Control
from rejoin.coordinator.in_process_brokers.controller_driver import ControllerDriver
from rejoin.coordinator.in_process_brokers.leadership import ControlledLeadership
from rejoin.coordinator.in_process_brokers.runtime import BrokerRuntime
from rejoin.coordinator.in_process_brokers.topics import TopicsRegistry
from rejoin.coordinator.service.app import App, CommonParts
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.coordinator.service.stores import Store
from rejoin.coordinator.storage.replicated import ReplicatedLogs


class BrokerApp(App):
    """A broker. Its HTTP listener goes on while it is down, for the control API, but answers no request of Kafka's."""

    runtime: BrokerRuntime

    def __init__(
        self,
        options: Options,
        logs: ReplicatedLogs,
        driver: ControllerDriver,
        topics: TopicsRegistry,
        security: ListenerSecurity,
        control: Control | None,
    ) -> None:
        leadership = ControlledLeadership(driver)
        store = Store(logs, leadership, data_logs=logs)
        super().__init__(options, CommonParts(store, BrokerRuntime, security, control))
        self._driver = driver
        runtime = self.runtime
        runtime.topics = topics.client(self.node_id, lambda: runtime.node.topics_version, runtime.hand_in)
        runtime.follow = lambda partition: logs.follow(partition, self.node_id)
        runtime.on_high_watermark = logs.high_watermark_moved
        driver.add(runtime)

    # --- what a test does to it

    async def stop_broker(self) -> None:
        """Stop cleanly: others lead first, then connections are closed."""
        self._driver.shut_down(self.node_id)
        # What was parked is answered, and may go out before the connections end.
        if self.kafka is not None:
            await self.kafka.stop()
        self.runtime.kill()

    async def kill_broker(self) -> None:
        """End as by kill -9: connections are reset, and the others find out when its session is over."""
        self.runtime.kill()
        if self.kafka is not None:
            await self.kafka.abort()

    async def start_broker(self) -> None:
        """Start again with nothing in memory, on the ports from before."""
        self.runtime.start_anew(self.new_node())
        topics = self.runtime.topics
        assert topics is not None, "all brokers share their topics"
        await topics.catch_up()
        self._driver.register(self.runtime.broker)
        if self.kafka is not None:
            await self.kafka.listen(self._bind_kafka(next(iter(self.bound_ports.values()))))
