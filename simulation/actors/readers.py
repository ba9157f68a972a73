"""A verifying reader: a consumer without a group that reads all of some topics and remembers what it got."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import Cancel, Effect, PollFailed, PollReturned, Send
from rejoin.client.core.inputs import (
    Answered,
    Assigned,
    Elapsed,
    Failed,
    Failure,
    Input,
    OffsetReset,
    OffsetsAsked,
    Polled,
)
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.kernel import Millis, Order, World
from rejoin.simulation.network import ClientConnection, Exchange, Network, NetworkClient
from rejoin.simulation.node_connections import NodeConnections

_PAUSE_AFTER_ERROR_MS = 100


class ReadRecord(NamedTuple):
    """A record that was read, and when."""

    partition: TopicPartition
    offset: int
    value: bytes
    at: Millis


class ReaderActor(NetworkClient):
    """One reader. What it has read is in ``records``, in the order in which it got them."""

    def __init__(
        self,
        world: World,
        network: Network,
        cluster: Cluster,
        config: ConsumerConfig,
        partitions: tuple[TopicPartition, ...],
        name: str,
        end_offsets_ms: Millis = 0,
    ) -> None:
        super().__init__(world, name)
        self.config = config
        self.partitions = partitions
        self.end_offsets_ms = end_offsets_ms
        """How often it asks where its partitions end; 0: never."""
        self.records: list[ReadRecord] = []
        self._core = ConsumerCore(config, [], self.random.random, reads_records=True)
        self._connections = NodeConnections(self, network, cluster)
        self._connection_of: dict[int, ClientConnection] = {}
        self._inbox: deque[Input] = deque()
        self._draining = False
        self._user_lane = self.lane(Order.USER)
        self._timer = world.new_timer(
            self, self.lane(Order.CONSUMER_TIMER), self._core.next_deadline, lambda: self.step(Elapsed())
        )

    @property
    def reads_committed(self) -> bool:
        """Whether the reader takes records of transactions only once they are committed."""
        return self.config.isolation_level == "read_committed"

    def positions(self) -> dict[TopicPartition, int]:
        """How far it has got."""
        return self._core.positions()

    def start(self) -> None:
        """Begin to read."""
        self.step(Assigned(self.partitions))
        self._poll()
        self._ask_for_ends()

    def _poll(self, _: object = None) -> None:
        self.step(Polled(self.config.fetch_max_wait_ms))

    def _ask_for_ends(self, _: object = None) -> None:
        if self.end_offsets_ms:
            self.step(OffsetsAsked(None, dict.fromkeys(self.partitions, OffsetReset.LATEST.value)))
            self.world.at(self.world.now + self.end_offsets_ms, self._user_lane, self._ask_for_ends)

    def step(self, what: Input) -> None:
        """Hand an input to the core and apply the effects."""
        self._inbox.append(what)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                for effect in self._core.step(self._inbox.popleft(), self.world.now):
                    self._apply(effect)
        finally:
            self._draining = False
        self._timer.update()

    def _apply(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case Cancel():
                connection = self._connection_of.pop(effect.request_id, None)
                if connection is not None:
                    connection.cancel(effect.request_id)
            case PollReturned():
                for records in effect.records or ():
                    self.records += [
                        ReadRecord(TopicPartition(each.topic, each.partition), each.offset, each.value, self.world.now)
                        for each in records
                    ]
                self.world.at(self.world.now, self._user_lane, self._poll)
            case PollFailed():
                self.world.at(self.world.now + _PAUSE_AFTER_ERROR_MS, self._user_lane, self._poll)
            case _:
                pass

    def _send(self, send: Send) -> None:
        self._connection_of[send.request_id] = self._connections.send(send)

    def answered(self, exchange: Exchange) -> None:
        if self._connection_of.pop(exchange.request_id, None) is not None and exchange.response is not None:
            self.step(Answered(exchange.request_id, exchange.response))

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        if self._connection_of.pop(exchange.request_id, None) is not None:
            self.step(Failed(exchange.request_id, failure))
