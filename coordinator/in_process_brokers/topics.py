"""The topics of all brokers in one process: each change is known to all of them before it is answered."""

from __future__ import annotations

from collections.abc import Callable

from rejoin.coordinator.core.effects import AppendTopics
from rejoin.coordinator.core.inputs import Input, TopicsChanged, TopicsRecords, TopicsStored
from rejoin.protocol.errors import ErrorCode


class TopicsRegistry:
    """Every change of the topics, in order. ``on_changed`` is called with each, once all brokers know it."""

    def __init__(self, reaches_controller: Callable[[int], bool], on_changed: Callable[[TopicsRecords], None]) -> None:
        self._changes: list[TopicsRecords] = []
        self._clients: dict[int, BrokerTopics] = {}
        self._reaches_controller = reaches_controller
        self._on_changed = on_changed

    def clear(self) -> None:
        """Forget all topics."""
        self._changes.clear()

    def client(self, node_id: int, version: Callable[[], int], hand_in: Callable[[Input], None]) -> BrokerTopics:
        """The topics log as one broker uses it."""
        client = self._clients[node_id] = BrokerTopics(self, node_id, version, hand_in)
        return client

    def reaches(self, node_id: int) -> bool:
        """Whether changes reach a broker, and its requests for them the controller."""
        return self._reaches_controller(node_id)

    def since(self, version: int) -> TopicsChanged:
        """The changes behind a version."""
        newer = enumerate(self._changes[version:], version + 1)
        return TopicsChanged(tuple(newer), len(self._changes), shares_events=True)

    def append(self, by: BrokerTopics, wanted: AppendTopics) -> None:
        """Take in a change of a broker that knows all before it."""
        if not self.reaches(by.node_id):
            by.hand_in(TopicsStored(wanted.append_id, error=ErrorCode.REQUEST_TIMED_OUT))
            return
        if wanted.version != len(self._changes):
            by.hand_in(self.since(wanted.version))
            by.hand_in(TopicsStored(wanted.append_id, overtaken=True))
            return
        self._changes.append(wanted.records)
        for client in self._clients.values():
            if client is by:
                by.hand_in(TopicsStored(wanted.append_id, len(self._changes)))
            else:
                client.catch_up_now()
        self._on_changed(wanted.records)


class BrokerTopics:
    """The topics log as one broker's runtime uses it."""

    def __init__(
        self,
        registry: TopicsRegistry,
        node_id: int,
        version: Callable[[], int],
        hand_in: Callable[[Input], None],
    ) -> None:
        self.node_id = node_id
        self.hand_in = hand_in
        self._registry = registry
        self._version = version

    def catch_up_now(self) -> None:
        """Hand in what the broker does not know, if it can be reached."""
        if self._registry.reaches(self.node_id):
            self.hand_in(self._registry.since(self._version()))

    async def catch_up(self) -> None:
        self.catch_up_now()

    def append(self, wanted: AppendTopics) -> None:
        self._registry.append(self, wanted)

    async def stop(self) -> None:
        """Nothing is in flight."""
