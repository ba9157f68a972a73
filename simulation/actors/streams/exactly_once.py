"""A thread with ``processing.guarantee=exactly_once_v2``: results and offsets of a commit interval are one transaction.

Its requests are real, with the member's epoch among the offsets; the results are counted when the transaction is
committed, which is when readers of committed records see them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rejoin.client.core.errors import KafkaError, KafkaTimeoutError
from rejoin.client.core.group.streams.tasks import StreamsTasks
from rejoin.client.core.inputs import GroupMetadata, OffsetAndMetadata, Processed, RecordRange, Sought
from rejoin.client.core.producer.inputs import TransactionCall, TransactionCalled
from rejoin.client.producer_config import checked_producer_config
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.streams.thread import StreamsThread
from rejoin.simulation.actors.transformers import PAUSE_AFTER_ERROR_MS, OnEnd, TransformProducer
from rejoin.simulation.kernel import Millis

TRANSACTION_TIMEOUT_MS: Final = 10_000
"""``transaction.timeout.ms`` of an application's producers, unless it sets another."""


class ExactlyOnceThread(StreamsThread):
    """A thread with one transactional producer. Its first poll waits until that has its producer id."""

    def start(self) -> None:
        was_up = self.core is not None
        if not was_up:
            self._is_ready = self._is_open = False
            self._done: list[RecordRange] = []
            self._producer = self._new_producer()
        super().start()
        if not was_up:
            self._initialise()

    def _new_producer(self) -> TransformProducer:
        settings = {
            "client_id": self.name,
            "transactional_id": self.name,
            "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
        }
        return TransformProducer(
            self.world, self.network, self.cluster, checked_producer_config(settings), f"{self.name}-producer"
        )

    def _end(self) -> None:
        super()._end()
        self._producer.kill()

    def pause(self, until: Millis) -> None:
        super().pause(until)
        self._producer.paused_until = self.paused_until

    def reset_connections(self) -> None:
        super().reset_connections()
        self._producer.reset_connections()

    def in_hand(self) -> list[RecordRange]:
        return [*self._done, *super().in_hand()] if self.core is not None else []

    def _call(self, call: TransactionCall, on_end: OnEnd, **more: object) -> None:
        incarnation = self.incarnation

        def ended(error: KafkaError | None) -> None:
            if incarnation == self.incarnation and self.core is not None:
                on_end(error)

        self._producer.step(TransactionCalled(ended, call, **more))  # type: ignore[arg-type]

    def _initialise(self) -> None:
        self._call(TransactionCall.INIT, self._initialised)

    def _initialised(self, error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._initialise()
        elif error is not None:
            self._die(error)
        else:
            self._is_ready = True
            self._poll()

    def _poll(self, _: object = None) -> None:
        if self._is_ready or self.stopping:
            super()._poll()

    # -- transactions

    def _process(self) -> None:
        if self._is_open:
            super()._process()
        else:
            self._call(TransactionCall.BEGIN, self._begun)

    def _begun(self, error: KafkaError | None) -> None:
        if error is not None:
            self._die(error)
            return
        self._is_open = True
        super()._process()

    def _processed(self, taken: RecordRange) -> None:
        if not self._hand or self._hand[0] != taken:
            return  # put back meanwhile
        self._hand.pop(0)
        self._done.append(taken)
        if self.stopping and self._hand:
            self._put_back()
        if not self._hand:
            self._finished()

    def _commit(self, then: Callable[[], None]) -> None:
        self._commit_at = self.world.now + self.application.code.commit_interval_ms
        if not self._is_open:
            self.tasks.checkpoint()
            self.measure()
            then()
            return
        assert self.core is not None, "a thread that is up commits"
        generation, config = self.core.group_generation, self.config
        self._call(
            TransactionCall.SEND_OFFSETS,
            partial(self._offsets_sent, then),
            offsets={TopicPartition(each.topic, each.partition): OffsetAndMetadata(each.end) for each in self._done},
            group=GroupMetadata(
                config.group_id or "", generation.generation_id, generation.member_id, config.group_instance_id
            ),
        )

    def _offsets_sent(self, then: Callable[[], None], error: KafkaError | None) -> None:
        if error is not None:
            self._abort_after(then, error)
        else:
            self._call(TransactionCall.COMMIT, partial(self._committed_all, then))

    def _committed_all(self, then: Callable[[], None], error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._call(TransactionCall.COMMIT, partial(self._committed_all, then))
            return
        if error is not None:
            self._abort_after(then, error)
            return
        done, self._done, self._is_open = self._done, [], False
        self.write(*self.results_of(done))
        self.step(Processed(tuple(done)))
        self.tasks.checkpoint()
        self.measure()
        then()

    def _abort_after(self, then: Callable[[], None], error: KafkaError) -> None:
        if self._producer.can_abort:
            self._call(TransactionCall.ABORT, partial(self._aborted, then))
        else:
            self._die(error)

    def _aborted(self, then: Callable[[], None], error: KafkaError | None) -> None:
        if isinstance(error, KafkaTimeoutError):
            self._call(TransactionCall.ABORT, partial(self._aborted, then))
        elif error is not None:
            self._die(error)
        else:
            self._forget_transaction()
            self._user(self.world.now + PAUSE_AFTER_ERROR_MS, lambda _: then(), None)

    def _forget_transaction(self) -> None:
        """Read again what was processed, here or in the thread that has its task then."""
        assert self.core is not None, "a thread that is up aborts"
        owned = frozenset(self.core.assignment())
        first: dict[TopicPartition, int] = {}
        for each in self._done:
            partition = TopicPartition(each.topic, each.partition)
            first[partition] = min(each.start, first.get(partition, each.start))
        self._done, self._is_open = [], False
        for partition, start in first.items():
            if partition in owned:
                self.step(Sought((partition,), start))

    def _lose(self, tasks: StreamsTasks) -> None:
        super()._lose(tasks)
        if self._is_open:
            self._done = []
            self._call(TransactionCall.ABORT, lambda _: None)
            self._is_open = False
