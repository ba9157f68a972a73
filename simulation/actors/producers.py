"""A producer's process: its core, its connections, and a user who writes records at a steady rate.

The value of a record is its number among those of its producer, so that each can be found in the logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rejoin.client.core.inputs import Elapsed
from rejoin.client.core.producer.effects import BatchDone, ProducerEffect, RecordFailed
from rejoin.client.core.producer.inputs import Produced
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.producer_client import ProducerClient
from rejoin.simulation.kernel import Millis, Order, World
from rejoin.simulation.network import Network


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a producer: records a second, in turn to these topics, until an instant."""

    topics: tuple[str, ...]
    records_per_second: float
    keys: int
    until: Millis


class Acknowledgement(NamedTuple):
    """A record that counts as stored; the offset is -1 where the producer does not learn it."""

    partition: TopicPartition
    offset: int


class ProducerActor(ProducerClient):
    """One producer's process. What became of each record is in ``acknowledged`` and ``failures``, by its number."""

    def __init__(
        self, world: World, network: Network, cluster: Cluster, config: ProducerConfig, load: Load, name: str
    ) -> None:
        super().__init__(world, network, cluster, config, name)
        self.load = load
        self.written = 0
        self.acknowledged: dict[int, Acknowledgement] = {}
        self.failures: dict[int, str] = {}
        self._user_lane = self.lane(Order.USER)

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

    # -- what became of records

    def on_effect(self, effect: ProducerEffect) -> None:
        match effect:
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
