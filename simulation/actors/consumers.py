"""A consumer's user: a thread that polls, takes its time with records, commits, and runs the listener."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Final

from rejoin.client.core.effects import (
    CallListener,
)
from rejoin.client.core.errors import (
    AssignorFailedError,
    CommitFailedError,
    KafkaError,
    ListenerError,
    RebalanceInProgressError,
)
from rejoin.client.core.inputs import (
    CallbackDone,
    Closed,
    CommitAsked,
    Input,
    Polled,
    Processed,
    RebalanceEnforced,
    RecordRange,
    Sought,
    Subscribed,
)
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.consumer_process import ConsumerProcess
from rejoin.simulation.kernel import Millis

SURVIVABLE: Final = (AssignorFailedError, ListenerError, CommitFailedError, RebalanceInProgressError)
"""Errors that a user's loop survives besides retriable ones: the next poll rejoins."""

_PAUSE_AFTER_ERROR_MS: Final = 100


class ConsumerActor(ConsumerProcess):
    """One consumer, with the user's code that polls, processes and commits."""

    # -- from outside

    def stop(self) -> None:
        """Finish the record in hand, then close."""
        self.wanted = False
        self.catch_up()
        if self.core is not None and not self.stopping:
            self.stopping = True
            self._stop(self.incarnation)

    def _stop(self, incarnation: int) -> None:
        if (
            incarnation == self.incarnation
            and not self.later(self._stop, incarnation, self.user_lane)
            and not self.busy
        ):
            self._close()

    def _close(self) -> None:
        self.busy = False
        if not self.closing and self.core is not None:
            self.closing = True
            self.step(Closed())

    def subscribe(self, topics: tuple[str, ...], regex: str | None = None) -> None:
        """Subscribe to other topics from the next poll on."""
        self.subscribed = Subscribed(topics, regex=regex)
        self._ask_core(self.subscribed)

    def enforce_rebalance(self, reason: str) -> None:
        """Join again with the next poll, as the application wants it."""
        self._ask_core(RebalanceEnforced(reason))

    def _ask_core(self, what: Input) -> None:
        self.catch_up()
        if self.core is not None and not self.stopping:
            self._user(self.world.now, lambda _: self.step(what), None)

    def get_stuck(self, until: Millis) -> None:
        """Make the user's code hang in its next step."""
        self.catch_up()
        self.stuck_until = max(self.stuck_until, until)

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

    def _user(self, at: Millis, act: Callable[..., None], argument: object) -> None:
        """Run something in the user's thread, later if that hangs or the process is paused."""
        self.world.at(at, self.user_lane, self._run_user, (self.incarnation, act, argument))

    def _run_user(self, what: tuple[int, Callable[..., None], object]) -> None:
        incarnation, act, argument = what
        if incarnation != self.incarnation:
            return
        if self.later(self._run_user, what, self.user_lane):
            return
        if self.stuck_until > self.world.now:
            self.world.at(self.stuck_until, self.user_lane, self._run_user, what)
            return
        act(argument)

    def _poll(self, _: object = None) -> None:
        if self.core is None:
            return
        if self.stopping:
            self._close()
        elif self.stuck_until > self.world.now:
            self.busy = True
            self._user(self.world.now, self._poll, None)
        else:
            self.busy = False
            self.step(Polled(self.user_code.poll_ms))

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

    def _raised(self, error: KafkaError) -> None:
        if self.stopping:
            self._close()
            return
        if not error.retriable and not isinstance(error, SURVIVABLE):
            self._die(error)
            return
        self.busy = True
        self._user(self.world.now + _PAUSE_AFTER_ERROR_MS, self._poll, None)

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
