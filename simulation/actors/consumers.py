"""A consumer's user: a thread that polls, takes its time with records, commits, and runs the listener."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil

from rejoin.client.assignors.registry import assignor_named
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import CallListener, Effect, PollReturned
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import (
    CallbackDone,
    CommitAsked,
    Elapsed,
    Processed,
    RebalanceEnforced,
    RecordRange,
    Sought,
)
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked, ShareInput
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.kernel import Millis


class ConsumerActor(ConsumerProcess):
    """One consumer, with the user's code that polls, processes and commits."""

    core: ConsumerCore | None

    def start(self) -> None:
        if self.core is None:
            self._hand: list[RecordRange] = []
        super().start()

    def _new_core(self) -> ConsumerCore:
        assignors = [assignor_named(name) for name in self.config.partition_assignment_strategy]
        # A member of a consumer group makes its own id.
        member_id = "" if self.config.group_protocol == "classic" else self._own_member_id()
        return ConsumerCore(self.config, assignors, self.random.random, log_end=self._log_end, member_id=member_id)

    def _core_step(self, what: ShareInput, now: Millis) -> list[Effect]:
        assert self.core is not None, "a consumer that is down takes nothing in"
        assert not isinstance(what, RecordAcknowledged | ShareCommitAsked), "only share consumers acknowledge"
        return self.core.step(what, now)

    def _log_end(self, partition: TopicPartition, now: Millis) -> int | None:
        topic = self.cluster.topics.get(partition.topic)
        if topic is None:
            return 0
        return None if topic.is_gone else topic.end(partition.partition, now)

    def topic_deleted(self, topic: str) -> None:
        """Go on with the poll that waits for records of a topic: nodes answer a waiting Fetch of one that is gone."""
        if self.core is not None and any(each.topic == topic for each in self.core.assignment()):
            self._user(self.world.now, self._fetch_failed, None)

    def _fetch_failed(self, _: object) -> None:
        self.catch_up()
        self.step(Elapsed())

    def enforce_rebalance(self, reason: str) -> None:
        """Join again with the next poll, as the application wants it."""
        self._ask_core(RebalanceEnforced(reason))

    def in_hand(self) -> list[RecordRange]:
        """Records that the user's code has and has not processed yet."""
        return list(self._hand) if self.core is not None else []

    def resume_hand(self, ranges: list[RecordRange]) -> None:
        """The user's code is at these records, and has processed those before them."""
        self.busy = True
        self._hand = ranges

    def commit_token(self) -> Callable[[KafkaError | None], None]:
        """Callback for the end of a commit of the user's code."""
        return self._committed_before if self.user_code.commit == "before" else self._committed

    def process_resumed(self, incarnation: int, taken: RecordRange) -> None:
        """Records of a resumed hand are processed now."""
        self._run_user((incarnation, self._processed, taken))

    # -- the user's thread

    def _on_poll(self, returned: PollReturned) -> None:
        self._on_records(returned.ranges)

    def _on_records(self, ranges: tuple[RecordRange, ...]) -> None:
        if self.closing:
            return  # close ended the poll
        if not ranges:
            self._poll()
            return
        self.busy = True
        self._hand = list(ranges)
        if self.user_code.commit == "before":
            self.step(CommitAsked(self._committed_before))
        else:
            self._process()

    def _committed_before(self, error: KafkaError | None) -> None:
        if error is not None:
            # Not committed, so not to be processed either: the new owner of the partitions does it.
            self._put_back()
            self._raised(error)
        else:
            self._process()

    def _process(self) -> None:
        """Process the records in hand: one partition after the other, each in its time."""
        records = sum(taken.end - taken.start for taken in self._hand)
        total = self.user_code.processing.of(records, self.random)
        done = 0
        for taken in self._hand:
            done += taken.end - taken.start
            self._user(self.world.now + ceil(total * done / records), self._processed, taken)

    def _processed(self, taken: RecordRange) -> None:
        if not self._hand or self._hand[0] != taken:
            return  # put back meanwhile
        self._hand.pop(0)
        self.step(Processed((taken,)))
        if self.core is None:
            return
        if self.stopping and self._hand:
            self._put_back()
        if not self._hand:
            self._finished()

    def _put_back(self) -> None:
        """Seek back to the records that were not processed, so that they are not committed."""
        assert self.core is not None
        owned = frozenset(self.core.assignment())
        for topic, index, start, _ in self._hand:
            partition = TopicPartition(topic, index)
            if partition in owned:
                self.step(Sought((partition,), start))
        self._hand = []

    def _finished(self) -> None:
        if self.user_code.commit == "after":
            self.step(CommitAsked(self._committed))
            return
        if self.user_code.commit == "after-async":
            self.step(CommitAsked(None, sync=False))
        self._poll()

    def _committed(self, error: KafkaError | None) -> None:
        if self.core is None:
            return
        if error is None:
            self._poll()
        else:
            self._raised(error)

    # -- the listener

    def _call_listener(self, effect: CallListener) -> None:
        code, kind = self.user_code, effect.kind if effect.partitions else None
        if kind == "revoked" and code.commit == "after-async":
            self.step(CommitAsked(partial(self._listener_done, self.incarnation)))
        elif takes := {"revoked": code.revoke_ms, "assigned": code.assign_ms}.get(kind or "lost"):
            self._user(self.world.now + takes, self._listener_done, self.incarnation)
        else:
            self.step(CallbackDone())

    def _listener_done(self, incarnation: int, _: object = None) -> None:
        if incarnation == self.incarnation and self.core is not None:
            self.step(CallbackDone())
