"""Transformers that commit what they write together with the offsets of what they read.

What a poll returns becomes one transaction or several, which end before the next poll. With a commit interval a
transaction takes in what several polls return, as in Kafka Streams (commit.interval.ms): it ends when it is that old,
before partitions of it are revoked, and before its process stops; where they are lost it is aborted.

One that fails is aborted, and all of its records are read again; a producer that is fenced ends its process, which its
supervisor starts again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from rejoin.client.core.effects import CallListener
from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.core.inputs import CallbackDone, GroupMetadata, OffsetAndMetadata, Processed, RecordRange
from rejoin.client.core.producer.inputs import TransactionCall, TransactionCalled
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.transformers import (
    PAUSE_AFTER_ERROR_MS,
    OnEnd,
    TransformActor,
    TransformProducer,
    TransformWork,
)
from rejoin.simulation.kernel import Millis


class TransactionOutcome(Enum):
    """End of a transaction, as far as its user learned."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class UserTransaction:
    """A transaction as its user knows it: the records it was made from, and how it ended."""

    ranges: tuple[RecordRange, ...] = ()
    outcome: TransactionOutcome = TransactionOutcome.OPEN

    def add(self, more: Iterable[RecordRange]) -> None:
        """Further records. Those that follow on what is there, are one range with it."""
        ranges = list(self.ranges)
        for taken in more:
            before = next(
                (at for at, each in enumerate(ranges) if each[:2] == taken[:2] and each.end == taken.start), None
            )
            if before is None:
                ranges.append(taken)
            else:
                ranges[before] = ranges[before]._replace(end=taken.end)
        self.ranges = tuple(ranges)


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """One that a process has begun and not ended."""

    name: str
    producer: TransformProducer
    began_at: Millis
    known: UserTransaction


@dataclass(frozen=True, slots=True)
class _End:
    """A transaction that is being ended, and how its process goes on."""

    transaction: OpenTransaction
    then: Callable[[], None]


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
    """Transactional id of the process, or the beginning of its partitions' ids."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.counts = TransactionCounts()
        self._ready: set[TransformProducer] = set()
        self._jobs: deque[tuple[RecordRange, ...]] = deque()
        self._open: dict[TransformProducer, OpenTransaction] = {}
        self._is_ending = False

    def in_hand(self) -> list[RecordRange]:
        """Records that are part of an open transaction, or of none yet."""
        begun = [taken for each in self._open.values() for taken in each.known.ranges]
        return [*begun, *super().in_hand()]

    # -- producers

    def make_producers(self) -> None:
        if not self.transform.id_per_partition:
            self._initialise(self.add_producer(None, self.transactional_id))

    def _end(self) -> None:
        super()._end()
        self._ready.clear()
        self._jobs.clear()
        self._open.clear()
        self._is_ending = False

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
        due = [] if self.stopping else [each for each in self._open.values() if self._is_due(each)]
        if due:
            self.busy = True
            self._end_transactions(due, self._poll)
        else:
            super()._poll()

    def _is_due(self, transaction: OpenTransaction) -> bool:
        return self.world.now >= transaction.began_at + self.transform.commit_interval_ms

    def _call_listener(self, effect: CallListener) -> None:
        if effect.partitions and effect.kind == "assigned" and self.transform.id_per_partition:
            for partition in effect.partitions:
                name = f"{self.transactional_id.rpartition('-')[0]}-{partition.topic}-{partition.partition}"
                self._initialise(self.add_producer(partition, name))
        elif effect.partitions and effect.kind != "assigned":
            given_up = self._open_with(effect.partitions)
            self._end_transactions(given_up, partial(self._give_up, effect), commits=effect.kind == "revoked")
        else:
            super()._call_listener(effect)

    def _open_with(self, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
        """The open transactions that have records of these partitions."""
        return [
            each
            for each in self._open.values()
            if any(TopicPartition(taken.topic, taken.partition) in partitions for taken in each.known.ranges)
        ]

    def _give_up(self, effect: CallListener) -> None:
        if self.transform.id_per_partition:
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
        self._next_job()

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

    def _next_job(self) -> None:
        if not self._jobs or self.stopping:
            self._put_back()
            self._poll()
            return
        ranges = self._jobs.popleft()
        key = TopicPartition(ranges[0].topic, ranges[0].partition) if self.transform.id_per_partition else None
        producer = self.producers[key]
        if producer in self._open:
            self._go_on(self._open[producer], ranges)
        else:
            self._call(producer, TransactionCall.BEGIN, partial(self._begun, producer, ranges))

    def _begun(self, producer: TransformProducer, ranges: tuple[RecordRange, ...], error: KafkaError | None) -> None:
        if error is not None:
            self._fence(error)
            return
        known = UserTransaction()
        transaction = OpenTransaction(self.next_name(), producer, self.world.now, known)
        self._open[producer] = transaction
        self.counts.transactions[transaction.name] = known
        self._go_on(transaction, ranges)

    def _go_on(self, transaction: OpenTransaction, ranges: tuple[RecordRange, ...]) -> None:
        """The next records in hand become part of a transaction."""
        del self._hand[: len(ranges)]
        transaction.known.add(ranges)
        self.begin_work(transaction.producer, ranges, transaction.name)

    def work_done(self, work: TransformWork) -> None:
        if self.transform.commit_interval_ms:
            self._next_job()
        else:
            self._end_transactions([self._open[work.producer]], self._next_job)

    # -- ends of transactions

    def _call(self, producer: TransformProducer, call: TransactionCall, on_end: OnEnd) -> None:
        producer.step(TransactionCalled(self.guarded(on_end), call))

    def _end_transactions(
        self, transactions: list[OpenTransaction], then: Callable[[], None], *, commits: bool = True
    ) -> None:
        """End them one after the other, then go on."""
        self._is_ending = bool(transactions)
        if not transactions:
            then()
            return
        first, *others = transactions
        end = _End(first, partial(self._end_transactions, others, then, commits=commits))
        if not commits or (self.transform.aborts and self.random.random() < self.transform.aborts):
            self._abort(end)
            return
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic, index, _, behind in first.known.ranges:
            offsets[TopicPartition(topic, index)] = OffsetAndMetadata(behind)
        on_end = self.guarded(partial(self._offsets_sent, end))
        first.producer.step(TransactionCalled(on_end, TransactionCall.SEND_OFFSETS, offsets, self._group_metadata()))

    def _group_metadata(self) -> GroupMetadata:
        assert self.core is not None, "a process that is up writes"
        group_id = self.config.group_id or ""
        if not self.transform.fences_by_group:
            return GroupMetadata(group_id)
        generation = self.core.group_generation
        return GroupMetadata(group_id, generation.generation_id, generation.member_id, self.config.group_instance_id)

    def _offsets_sent(self, end: _End, error: KafkaError | None) -> None:
        if error is not None:
            self._abort_after(end, error)
        else:
            self._commit(end)

    def _commit(self, end: _End) -> None:
        self._call(end.transaction.producer, TransactionCall.COMMIT, partial(self._transaction_committed, end))

    def _transaction_committed(self, end: _End, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._commit(end)
        elif error is not None:
            self._abort_after(end, error)
        else:
            self._ended(end, TransactionOutcome.COMMITTED)
            self.step(Processed(end.transaction.known.ranges))
            if self.core is not None:
                end.then()

    def _abort_after(self, end: _End, error: KafkaError) -> None:
        if end.transaction.producer.can_abort:
            self._abort(end)
        else:
            self._fence(error)

    def _abort(self, end: _End) -> None:
        self._call(end.transaction.producer, TransactionCall.ABORT, partial(self._aborted, end))

    def _aborted(self, end: _End, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._abort(end)
        elif error is not None:
            self._fence(error)
        else:
            self._ended(end, TransactionOutcome.ABORTED)
            self._hand = [*end.transaction.known.ranges, *self._hand]
            self._jobs.clear()
            self._put_back()
            if self.core is not None:
                self._user(self.world.now + PAUSE_AFTER_ERROR_MS, lambda _: end.then(), None)

    def _ended(self, end: _End, outcome: TransactionOutcome) -> None:
        end.transaction.known.outcome = outcome
        del self._open[end.transaction.producer]

    def _fence(self, error: KafkaError) -> None:
        """The producer cannot go on: the process ends."""
        self.counts.fenced += 1
        self._die(error)

    # -- closing

    def _close(self) -> None:
        """Commit what is open, then close. While a transaction ends, the next poll closes."""
        if not self._is_ending:
            self._end_transactions(list(self._open.values()), super()._close)
