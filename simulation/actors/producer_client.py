"""A producer within a process: its core and its connections. What became of records is its user's business."""

from __future__ import annotations

from collections import deque

from rejoin.client.core.effects import Send
from rejoin.client.core.inputs import Answered, Elapsed, Failed, Failure
from rejoin.client.core.producer.core import ProducerCore
from rejoin.client.core.producer.effects import ProducerEffect
from rejoin.client.core.producer.inputs import Disconnected, ProducerInput
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.produce import ProduceRequest, ProduceResponse
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.kernel import Millis, Order, World
from rejoin.simulation.network import Exchange, Network, NetworkClient
from rejoin.simulation.node_connections import NodeConnections


class ProducerClient(NetworkClient):
    """A producer's core and its connections, until it is killed. Subclasses say what its user does."""

    def __init__(self, world: World, network: Network, cluster: Cluster, config: ProducerConfig, name: str) -> None:
        super().__init__(world, name)
        self.config = config
        self.requests = 0
        """Produce requests, with those that were sent again."""
        self._core: ProducerCore | None = ProducerCore(config, self.random.random)
        self._connections = NodeConnections(self, network, cluster)
        self._waiting: set[int] = set()
        self._inbox: deque[ProducerInput] = deque()
        self._draining = False
        self._timer = world.new_timer(
            self, self.lane(Order.CONSUMER_TIMER), self._next_deadline, lambda: self.step(Elapsed())
        )

    def on_effect(self, effect: ProducerEffect) -> None:
        """Take what the core says about records and calls."""
        raise NotImplementedError

    @property
    def can_abort(self) -> bool:
        """Whether a transaction is open, and its end not decided."""
        return self._core is not None and self._core.can_abort

    def kill(self) -> None:
        """End it; no request is sent any more."""
        self._core = None
        self._inbox.clear()
        self._waiting.clear()
        self._connections.drop()

    def reset_connections(self) -> None:
        """Break every connection."""
        self._connections.break_off()

    # -- the core

    def step(self, what: ProducerInput) -> None:
        """Hand an input to the core and apply the effects."""
        self._inbox.append(what)
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox and self._core is not None:
                for effect in self._core.step(self._inbox.popleft(), self.world.now):
                    if self._core is None:
                        break
                    if isinstance(effect, Send):
                        self._send(effect)
                    else:
                        self.on_effect(effect)
        finally:
            self._draining = False
        self._timer.update()

    def _next_deadline(self) -> Millis | None:
        return None if self._core is None else self._core.next_deadline()

    # -- requests

    def _send(self, send: Send) -> None:
        self._connections.send(send)
        if isinstance(send.request, ProduceRequest):
            self.requests += 1
            if send.request.acks == 0:
                # The broker does not answer: the request is done once it is written.
                self._inbox.append(Answered(send.request_id, ProduceResponse()))
                return
        self._waiting.add(send.request_id)

    def answered(self, exchange: Exchange) -> None:
        """A response arrived."""
        if self.config.required_acks == 0 and _has_error(exchange.response):
            # Kafka: a broker that cannot append closes the connection, as it may not answer.
            exchange.connection.drop()
            self.step(Disconnected())
            return
        if exchange.request_id in self._waiting and exchange.response is not None:
            self._waiting.discard(exchange.request_id)
            self.step(Answered(exchange.request_id, exchange.response))

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        """A request has failed: no response will come."""
        if exchange.request_id in self._waiting:
            self._waiting.discard(exchange.request_id)
            self.step(Failed(exchange.request_id, failure))


def _has_error(response: Response | None) -> bool:
    return isinstance(response, ProduceResponse) and any(
        partition.error_code is not ErrorCode.NONE
        for topic in response.responses
        for partition in topic.partition_responses
    )
