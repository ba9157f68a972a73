"""Consumers that write a record for each one they read: consume, transform, produce.

The value of a record says which one it was made from, so that what came out can be compared with what went in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Self

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.effects import CallDone
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Processed, RecordRange, Sought
from rejoin.client.core.producer.effects import BatchDone, ProducerEffect, RecordFailed
from rejoin.client.core.producer.inputs import Flushed, Produced
from rejoin.client.producer_config import ProducerConfig
from rejoin.protocol.partitioner import partition_of_key
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.actors.consumer_process import UserCode
from rejoin.simulation.actors.consumers import ConsumerActor
from rejoin.simulation.actors.producer_client import ProducerClient
from rejoin.simulation.kernel import Millis, World
from rejoin.simulation.network import Network

OnEnd = Callable[[KafkaError | None], None]

PAUSE_AFTER_ERROR_MS = 100


class OutputRecord(NamedTuple):
    """Content of a written record: the batch of work that it belongs to, and the record that it was made from.

    ``output`` counts what was made from one record.
    """

    work: str
    origin: TopicPartition
    offset: int
    output: int = 0

    def value(self) -> bytes:
        """The record's value."""
        output = f"/{self.output}" if self.output else ""
        return f"{self.work}/{self.origin.topic}/{self.origin.partition}/{self.offset}{output}".encode()

    @classmethod
    def of(cls, value: bytes) -> Self:
        """Read the value of a record."""
        work, topic, partition, offset, *output = value.decode().split("/")
        return cls(work, TopicPartition(topic, int(partition)), int(offset), *map(int, output))


@dataclass(frozen=True, slots=True)
class TransformCode:
    """Records to write, and how.

    A transaction has at most so many ``records``, 0: all that a poll returned. Each is aborted by its user with the
    chance ``aborts``. ``commit_interval_ms``: how old it is when it ends; 0: it ends before the next poll.
    ``fences_by_group``: offsets are committed with the member's generation (KIP-447).
    ``outputs``: how many records are made from one, each in another of so many ``partitions``.
    """

    to: str
    config: Callable[[str, str | None], ProducerConfig]
    """The settings of a producer, by client id and transactional id."""
    keys: int = 0
    records: int = 0
    aborts: float = 0.0
    commit_interval_ms: Millis = 0
    id_per_partition: bool = False
    fences_by_group: bool = True
    outputs: int = 1
    partitions: int = 1

    def partition_of(self, key: bytes, output: int) -> int | None:
        """Where an output goes; none: where its key belongs."""
        if self.outputs == 1:
            return None
        return (partition_of_key(key, self.partitions) + output) % self.partitions


class TransformProducer(ProducerClient):
    """A producer that ends calls by calling their tokens, and counts the records that failed."""

    failures = 0

    def on_effect(self, effect: ProducerEffect) -> None:
        match effect:
            case CallDone() if callable(effect.token):
                effect.token(effect.error)
            case RecordFailed():
                self.failures += 1
            case BatchDone(error=error):
                self.failures += len(effect.tokens) if error is not None else len(effect.record_errors)
            case _:
                pass


@dataclass(slots=True)
class TransformWork:
    """Records that are transformed one after the other, each in its time."""

    name: str
    producer: TransformProducer
    ranges: tuple[RecordRange, ...]
    total_ms: float
    began_at: Millis
    done: int = 0

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(taken.end - taken.start for taken in self.ranges)

    def due(self) -> Millis:
        """When the next record is transformed."""
        return self.began_at + ceil(self.total_ms * (self.done + 1) / self.count)

    def next(self) -> tuple[RecordRange, int]:
        """The next record: its range and its offset."""
        left = self.done
        for taken in self.ranges:
            if left < taken.end - taken.start:
                return taken, taken.start + left
            left -= taken.end - taken.start
        raise AssertionError("there is a record left")


class TransformActor(ConsumerActor):
    """A consumer that transforms: its offsets are committed as its group says, beside what it writes."""

    def __init__(
        self,
        world: World,
        network: Network,
        cluster: Cluster,
        config: ConsumerConfig,
        user_code: UserCode,
        transform: TransformCode,
        name: str,
    ) -> None:
        super().__init__(world, network, cluster, config, user_code, name)
        self.transform = transform
        self.producers: dict[TopicPartition | None, TransformProducer] = {}
        """By the partition they write for; one for all under none."""
        self.handled: Counter[tuple[TopicPartition, int]] = Counter()
        """How often the user's code was called for each record, whatever became of what it wrote."""
        self._works = 0
        self._is_flushing = False

    # -- the process

    def start(self) -> None:
        was_up = self.core is not None
        super().start()
        if not was_up:
            self._is_flushing = False
            self.make_producers()

    def make_producers(self) -> None:
        """Make the producers that a process starts with."""
        self.add_producer(None, None)

    def add_producer(self, partition: TopicPartition | None, transactional_id: str | None) -> TransformProducer:
        """Make a producer."""
        config = self.transform.config(self.name, transactional_id)
        made = TransformProducer(self.world, self.network, self.cluster, config, self.name)
        self.producers[partition] = made
        return made

    def _end(self) -> None:
        super()._end()
        self.kill_producers(list(self.producers))

    def kill_producers(self, partitions: Iterable[TopicPartition | None]) -> None:
        """End producers without a request."""
        for partition in partitions:
            producer = self.producers.pop(partition, None)
            if producer is not None:
                producer.kill()

    def pause(self, until: Millis) -> None:
        super().pause(until)
        for producer in self.producers.values():
            producer.paused_until = self.paused_until

    def reset_connections(self) -> None:
        super().reset_connections()
        for producer in list(self.producers.values()):
            producer.reset_connections()

    def guarded(self, act: OnEnd) -> OnEnd:
        """A token of a call that only counts in this incarnation."""
        incarnation = self.incarnation

        def ended(error: KafkaError | None) -> None:
            if incarnation == self.incarnation:
                act(error)

        return ended

    # -- transforming

    def next_name(self) -> str:
        """The name of the next batch of work."""
        self._works += 1
        return f"{self.name}.{self._works}"

    def begin_work(self, producer: TransformProducer, ranges: tuple[RecordRange, ...], name: str) -> None:
        """Begin with records; ``work_done`` follows when each is written."""
        count = sum(taken.end - taken.start for taken in ranges)
        total = self.user_code.processing.of(count, self.random)
        work = TransformWork(name, producer, ranges, total, self.world.now)
        self._user(work.due(), self._transform_next, work)

    def _transform_next(self, work: TransformWork) -> None:
        taken, offset = work.next()
        work.done += 1
        origin = TopicPartition(taken.topic, taken.partition)
        self.handled[origin, offset] += 1
        # Without keys the records of a partition stay together, in order.
        name = f"{offset % self.transform.keys}" if self.transform.keys else f"{taken.topic}-{taken.partition}"
        key = name.encode()
        for output in range(self.transform.outputs):
            value = OutputRecord(work.name, origin, offset, output).value()
            work.producer.step(Produced(None, self.transform.to, self.transform.partition_of(key, output), key, value))
        if work.done < work.count:
            self._user(max(work.due(), self.world.now), self._transform_next, work)
        else:
            self.work_done(work)

    def work_done(self, work: TransformWork) -> None:
        """Each record of a batch of work is written, and perhaps not yet stored."""
        self.step(Processed(work.ranges))
        if self.core is not None:
            self._finished()

    def _process(self) -> None:
        self.begin_work(self.producers[None], tuple(self._hand), self.next_name())

    def _finished(self) -> None:
        if self.user_code.commit not in ("after", "after-async"):
            self._hand = []
            super()._finished()
            return
        producer = self.producers[None]
        before = producer.failures
        producer.step(Flushed(self.guarded(lambda _: self._flushed(producer.failures > before))))

    def _flushed(self, has_failed: bool) -> None:
        """The user's code has waited for what it wrote; offsets are committed if nothing of it has failed."""
        if has_failed:
            self.give_back()
            return
        self._hand = []
        super()._finished()

    def give_back(self) -> None:
        """Read the records in hand again."""
        self._put_back()
        if self.core is not None:
            self._user(self.world.now + PAUSE_AFTER_ERROR_MS, self._poll, None)

    def _put_back(self) -> None:
        assert self.core is not None
        owned = frozenset(self.core.assignment())
        first: dict[TopicPartition, int] = {}
        for topic, index, start, _ in self._hand:
            partition = TopicPartition(topic, index)
            first[partition] = min(start, first.get(partition, start))
        self._hand = []
        for partition, start in first.items():
            if partition in owned:
                self.step(Sought((partition,), start))

    # -- closing

    def _close(self) -> None:
        """Wait for what was written, then close."""
        if self.closing or self.core is None or self._is_flushing or not self.producers:
            super()._close()
            return
        self._is_flushing = True
        waiting = dict.fromkeys(self.producers.values())

        def flushed(producer: TransformProducer) -> None:
            waiting.pop(producer, None)
            if not waiting:
                super(TransformActor, self)._close()

        for producer in list(waiting):
            producer.step(Flushed(self.guarded(lambda _, done=producer: flushed(done))))  # type: ignore[misc]
