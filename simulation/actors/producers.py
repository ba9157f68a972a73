"""A producer's process: its core, its connections, and a user who writes records at a steady rate.

The value of a record is its number among those of its producer, so that each can be found in the logs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from rejoin.client.core.effects import Send
from rejoin.client.core.inputs import Answered, Elapsed, Failed, Failure
from rejoin.client.core.producer.core import ProducerCore
from rejoin.client.core.producer.effects import BatchDone, ProducerEffect, RecordFailed
from rejoin.client.core.producer.inputs import Disconnected, Produced, ProducerInput
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.produce import ProduceRequest, ProduceResponse
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.core_timer import CoreTimer
from rejoin.simulation.kernel import Actor, Millis, Order, World
from rejoin.simulation.network import Exchange, Network

_LEADER, _ANY = 0, 1


@dataclass(frozen=True, slots=True)
class Load:
    """What a producer writes: so many records a second, in turn to these topics, until an instant."""

    topics: tuple[str, ...]
    records_per_second: float
    keys: int
    until: Millis


class Acknowledgement(NamedTuple):
    """A record that counts as stored; the offset is -1 where the producer does not learn it."""

    partition: TopicPartition
    offset: int


class ProducerActor(Actor):
    """One producer's process. What became of each record is in ``acknowledged`` and ``failures``, by its number."""

    def __init__(
        self, world: World, network: Network, cluster: Cluster, config: ProducerConfig, load: Load, name: str
    ) -> None:
        super().__init__(world, name)
        self.config = config
        self.load = load
        self.written = 0
        self.requests = 0
        """Produce requests, with those that were sent again."""
        self.acknowledged: dict[int, Acknowledgement] = {}
        self.failures: dict[int, str] = {}
        self._cluster = cluster
        self._core = ProducerCore(config, self.random.random)
        self._connections = [[network.connect(self, node, kind) for kind in (_LEADER, _ANY)] for node in cluster.nodes]
        self._waiting: set[int] = set()
        self._inbox: deque[ProducerInput] = deque()
        self._draining = False
        self._user_lane = self.lane(Order.USER)
        self._timer = CoreTimer(
            self, self.lane(Order.CONSUMER_TIMER), self._core.next_deadline, lambda: self.step(Elapsed())
        )

    @property
    def is_exactly_once(self) -> bool:
        """Whether each record must be stored once, and in order."""
        return self.config.enable_idempotence

    @property
    def pending(self) -> int:
        """Records that are neither acknowledged nor failed."""
        return self.written - len(self.acknowledged) - len(self.failures)

    def start(self) -> None:
        """Begin to write."""
        self.step(Elapsed())
        self._write(self.world.now)

    def _write(self, began: Millis) -> None:
        load = self.load
        if self.world.now >= load.until:
            return
        number = self.written
        self.written += 1
        topic = load.topics[number % len(load.topics)]
        key = b"%d" % (number % load.keys) if load.keys else None
        self.step(Produced(number, topic, None, key, f"{self.name}/{number}".encode()))
        at = began + int(self.written * 1_000 / load.records_per_second)
        self.world.at(at, self._user_lane, self._write, began)

    # -- the core

    def step(self, what: ProducerInput) -> None:
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

    def _apply(self, effect: ProducerEffect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case RecordFailed():
                self._fail(effect.token, str(effect.error))
            case BatchDone():
                self._done(effect)
            case _:
                pass  # The user does not wait.

    def _done(self, done: BatchDone) -> None:
        for index, number in enumerate(done.tokens):
            error = done.record_errors.get(index, done.error)
            if error is not None:
                self._fail(number, str(error))
                continue
            assert isinstance(number, int)
            offset = done.base_offset + index if done.base_offset >= 0 else -1
            self.acknowledged[number] = Acknowledgement(done.partition, offset)

    def _fail(self, number: object, problem: str) -> None:
        assert isinstance(number, int)
        self.failures[number] = problem

    # -- requests

    def _send(self, send: Send) -> None:
        if send.to is not None:
            connection = self._connections[self._cluster.by_address(send.to.port).index][_LEADER]
        else:
            connection = self._connections[self._cluster.any_node(self.number, self.world.now).index][_ANY]
        connection.ask(send.request_id, send.request, send.version, send.timeout_ms)
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
