"""Transformers that commit what they write together with the offsets of what they read.

What a poll returns becomes one transaction or several, which end before the next poll. One that fails is aborted, and
its records are read again; a producer that is fenced ends its process, which its supervisor starts again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from rejoin.client.core.effects import CallListener
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.core.inputs import CallbackDone, GroupMetadata, OffsetAndMetadata, Processed, RecordRange
from rejoin.client.core.producer.inputs import TransactionCall, TransactionCalled
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.transformers import OnEnd, TransformActor, TransformProducer, TransformWork


class TransactionOutcome(Enum):
    """How a transaction ended, as far as its user learned."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class UserTransaction:
    """A transaction as its user knows it: the records it was made from, and how it ended."""

    ranges: tuple[RecordRange, ...]
    outcome: TransactionOutcome = TransactionOutcome.OPEN


@dataclass(slots=True)
class TransactionCounts:
    """The transactions of a process, and what its producers went through."""

    transactions: dict[str, UserTransaction] = field(default_factory=dict)
    """By the name that is in their records."""
    initialised: int = 0
    fenced: int = 0
    """How often a fatal error of a producer ended the process."""


class TransactionalTransformActor(TransformActor):
    """A transformer with a transactional id, or with one for each partition that it owns."""

    transactional_id = ""
    """That of the process; the beginning of those of its partitions."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.counts = TransactionCounts()
        self._ready: set[TransformProducer] = set()
        self._jobs: deque[tuple[RecordRange, ...]] = deque()

    # -- producers

    def make_producers(self) -> None:
        if not self.transform.id_per_partition:
            self._initialise(self.add_producer(None, self.transactional_id))

    def _end(self) -> None:
        super()._end()
        self._ready.clear()
        self._jobs.clear()

    def _initialise(self, producer: TransformProducer) -> None:
        self._call(producer, TransactionCall.INIT, partial(self._initialised, producer))

    def _initialised(self, producer: TransformProducer, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._initialise(producer)
        elif error is not None:
            self._fence(error)
        elif producer in self.producers.values():
            self.counts.initialised += 1
            self._ready.add(producer)
            if self.transform.id_per_partition:
                self._when_all_are_ready()
            else:
                self._poll()

    def _poll(self, _: object = None) -> None:
        if not self.transform.id_per_partition and not self._ready and self.core is not None and not self.stopping:
            return  # It polls when its producer is ready.
        super()._poll()

    def _call_listener(self, effect: CallListener) -> None:
        if not self.transform.id_per_partition or not effect.partitions:
            super()._call_listener(effect)
        elif effect.kind == "assigned":
            for partition in effect.partitions:
                name = f"{self.transactional_id.rpartition('-')[0]}-{partition.topic}-{partition.partition}"
                self._initialise(self.add_producer(partition, name))
        else:
            self._ready -= {self.producers[each] for each in effect.partitions if each in self.producers}
            self.kill_producers(effect.partitions)
            super()._call_listener(effect)

    def _when_all_are_ready(self) -> None:
        """The listener returns when every partition has its producer."""
        if self._ready.issuperset(self.producers.values()):
            self.step(CallbackDone())

    # -- transactions

    def _process(self) -> None:
        self._jobs = deque(self._split())
        self._hand = [taken for job in self._jobs for taken in job]
        self._next_transaction()

    def _split(self) -> Iterator[tuple[RecordRange, ...]]:
        """The records in hand by transaction."""
        most = self.transform.records
        job: list[RecordRange] = []
        room = most
        for topic, index, start, end in self._hand:
            first = start
            while first < end:
                cut = min(end, first + room) if most else end
                job.append(RecordRange(topic, index, first, cut))
                room -= cut - first
                first = cut
                if most and not room:
                    yield tuple(job)
                    job, room = [], most
            if job and self.transform.id_per_partition:
                yield tuple(job)
                job, room = [], most
        if job:
            yield tuple(job)

    def _next_transaction(self) -> None:
        if not self._jobs or self.stopping:
            self._put_back()
            self._poll()
            return
        ranges = self._jobs.popleft()
        key = TopicPartition(ranges[0].topic, ranges[0].partition) if self.transform.id_per_partition else None
        producer = self.producers[key]
        self._call(producer, TransactionCall.BEGIN, partial(self._begun, producer, ranges))

    def _begun(self, producer: TransformProducer, ranges: tuple[RecordRange, ...], error: KafkaError | None) -> None:
        if error is not None:
            self._fence(error)
            return
        work = self.begin_work(producer, ranges)
        self.counts.transactions[work.name] = UserTransaction(ranges)

    def _call(self, producer: TransformProducer, call: TransactionCall, on_end: OnEnd) -> None:
        producer.step(TransactionCalled(self.guarded(on_end), call))

    def work_done(self, work: TransformWork) -> None:
        if self.transform.aborts and self.random.random() < self.transform.aborts:
            self._call(work.producer, TransactionCall.ABORT, partial(self._aborted, work))
            return
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic, index, _, end in work.ranges:
            offsets[TopicPartition(topic, index)] = OffsetAndMetadata(end)
        on_end = self.guarded(partial(self._offsets_sent, work))
        work.producer.step(TransactionCalled(on_end, TransactionCall.SEND_OFFSETS, offsets, self._group_metadata()))

    def _group_metadata(self) -> GroupMetadata:
        assert self.core is not None, "a process that is up writes"
        group_id = self.config.group_id or ""
        if not self.transform.fences_by_group:
            return GroupMetadata(group_id)
        generation = self.core.group_generation
        return GroupMetadata(group_id, generation.generation_id, generation.member_id, self.config.group_instance_id)

    def _offsets_sent(self, work: TransformWork, error: KafkaError | None) -> None:
        if error is not None:
            self._abort(work, error)
        else:
            self._call(work.producer, TransactionCall.COMMIT, partial(self._transaction_committed, work))

    def _transaction_committed(self, work: TransformWork, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._call(work.producer, TransactionCall.COMMIT, partial(self._transaction_committed, work))
        elif error is not None:
            self._abort(work, error)
        else:
            self.counts.transactions[work.name].outcome = TransactionOutcome.COMMITTED
            del self._hand[: len(work.ranges)]
            self.step(Processed(work.ranges))
            if self.core is not None:
                self._next_transaction()

    def _abort(self, work: TransformWork, error: KafkaError) -> None:
        if work.producer.can_abort:
            self._call(work.producer, TransactionCall.ABORT, partial(self._aborted, work))
        else:
            self._fence(error)

    def _aborted(self, work: TransformWork, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._call(work.producer, TransactionCall.ABORT, partial(self._aborted, work))
        elif error is not None:
            self._fence(error)
        else:
            self.counts.transactions[work.name].outcome = TransactionOutcome.ABORTED
            self._jobs.clear()
            self.give_back()

    def _fence(self, error: KafkaError) -> None:
        """The producer cannot go on: the process ends."""
        self.counts.fenced += 1
        self._die(error)
