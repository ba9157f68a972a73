"""A consumer's process: its core, its connections, and the user's thread that polls, takes its time and commits.

A process can be stopped in good order, be killed, stand still, and come back. Its name stays the same over its lives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final, Literal, TypeAlias

from rejoin.client.assignors.registry import assignor_named
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import (
    CallDone,
    CallListener,
    Cancel,
    CommitDone,
    Effect,
    OffsetsFound,
    PollReturned,
    Raised,
    Send,
)
from rejoin.client.core.errors import (
    AssignorFailedError,
    CommitFailedError,
    KafkaError,
    ListenerError,
    RebalanceInProgressError,
)
from rejoin.client.core.inputs import (
    Answered,
    CallbackDone,
    Closed,
    CommitAsked,
    Elapsed,
    Failed,
    Failure,
    Input,
    Polled,
    Processed,
    RecordRange,
    Sought,
    Subscribed,
)
from rejoin.client.workload.processing_time import ProcessingTime
from rejoin.journal.events.client import ConsumerEvent
from rejoin.journal.events.simulation import ConsumerCrashed, ConsumerFailed, ConsumerStarted, ConsumerStopped
from rejoin.protocol.types import TopicPartition
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.network import ClientConnection, Exchange, Network
from rejoin.simulation.world import Actor, Millis, Order, World

CommitMode: TypeAlias = Literal["auto", "after", "after-async", "before", "none"]

GOES_ON: Final = (AssignorFailedError, ListenerError, CommitFailedError, RebalanceInProgressError)
"""What a user's loop survives besides retriable errors: the next poll rejoins."""

_PAUSE_AFTER_ERROR_MS: Final = 100
_COORDINATOR, _ANY = 0, 1


@dataclass(frozen=True, slots=True)
class UserCode:
    """What the user's code does. ``revoke_ms`` is how long its listener takes to give partitions up."""

    topics: tuple[str, ...]
    assignors: tuple[str, ...]
    commit: CommitMode
    processing: ProcessingTime
    poll_ms: Millis
    revoke_ms: Millis = 0
    revive_ms: Millis = 30_000
    """A process that died of an error is started again after this, as a supervisor would do it."""


class ConsumerActor(Actor):
    """One consumer's process. ``life`` counts its starts; it is down while ``core`` is none."""

    def __init__(
        self, world: World, network: Network, cluster: Cluster, config: ConsumerConfig, work: UserCode, name: str
    ) -> None:
        super().__init__(world, name)
        self.network = network
        self.cluster = cluster
        self.config = config
        self.work = work
        self.topics = work.topics
        self.life = 0
        self.core: ConsumerCore | None = None
        self.wanted = False
        """Whether this process shall run, whatever it does right now."""
        self.is_twin = False
        """Whether it was started beside another with the same group instance id."""
        self.stuck_until: Millis = 0
        self.busy = False
        """True while the user's code has records in hand."""
        self.stopping = False
        self.closing = False
        self.dozing = False
        self.consider_dozing: Callable[[ConsumerActor], None] | None = None
        self.wake_up: Callable[[ConsumerActor], None] | None = None
        self._connections = [
            [network.connect(self, node, kind) for kind in (_COORDINATOR, _ANY)] for node in cluster.nodes
        ]
        self._where: dict[int, ClientConnection] = {}
        self._inbox: deque[Input] = deque()
        self._draining = False
        self._queued_at: Millis | None = None
        self._hand: list[RecordRange] = []
        self.timer_lane = self.lane(Order.CONSUMER_TIMER)
        self.user_lane = self.lane(Order.USER)

    @property
    def is_up(self) -> bool:
        return self.core is not None

    # -- lives

    def start(self) -> None:
        """Begin a life: subscribe and poll."""
        self.wanted = True
        if self.core is not None:
            return
        self.life += 1
        self.stopping = self.closing = self.busy = False
        self.stuck_until = 0
        assignors = [assignor_named(name) for name in self.work.assignors]
        self.core = ConsumerCore(self.config, assignors, self.random.random, log_end=self._log_end)
        self._queued_at = None
        self._inbox.clear()
        self._hand = []
        self.emit(ConsumerStarted(client_id=self.name, group_id=self.config.group_id or "", incarnation=self.life))
        self.step(Subscribed(self.topics))
        self._poll()

    def crash(self) -> None:
        """End without a word."""
        self.disturb()
        if self.core is None:
            return
        self._end()
        self.emit(ConsumerCrashed(client_id=self.name, group_id=self.config.group_id or ""))

    def stop(self) -> None:
        """Finish the record in hand, then close."""
        self.wanted = False
        self.disturb()
        if self.core is not None and not self.stopping:
            self.stopping = True
            self._stop(self.life)

    def _stop(self, life: int) -> None:
        if life == self.life and not self.later(self._stop, life, self.user_lane) and not self.busy:
            self._close()

    def _close(self) -> None:
        self.busy = False
        if not self.closing and self.core is not None:
            self.closing = True
            self.step(Closed())

    def _end(self) -> None:
        self.life += 1
        self.core = None
        self.paused_until = 0
        self._where.clear()
        for pair in self._connections:
            for connection in pair:
                connection.drop()

    def _stopped(self) -> None:
        self._end()
        self.emit(ConsumerStopped(client_id=self.name, group_id=self.config.group_id or ""))

    def _die(self, error: KafkaError) -> None:
        """An error that the user's loop does not survive: the process ends, and is started again later."""
        self._end()
        self.emit(
            ConsumerFailed(
                client_id=self.name, group_id=self.config.group_id or "", problem=f"{type(error).__name__}: {error}"
            )
        )
        self.world.at(self.world.now + self.work.revive_ms, self.user_lane, self._revive, self.life)

    def _revive(self, life: int) -> None:
        if life == self.life and self.wanted:
            self.start()

    def pause(self, until: Millis) -> None:
        """Stand still, as in a long garbage collection: nothing is read, nothing sent, no timer rings."""
        self.disturb()
        if self.core is not None:
            self.paused_until = max(self.paused_until, until)

    def reset_connections(self) -> None:
        """Break every connection; what is on its way is lost, and what waits fails."""
        for pair in self._connections:
            for connection in pair:
                connection.break_off()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Read other topics from the next poll on."""
        self.disturb()
        self.topics = topics
        if self.core is not None and not self.stopping:
            self._when_running(lambda: self.step(Subscribed(topics)))

    def get_stuck(self, until: Millis) -> None:
        """Let the user's code hang in its next step."""
        self.disturb()
        self.stuck_until = max(self.stuck_until, until)

    def in_hand(self) -> list[RecordRange]:
        """Records that were handed to the user's code and are not processed yet."""
        return list(self._hand) if self.core is not None else []

    def disturb(self) -> None:
        """Something is about to happen to this process: its core must be as of now."""
        if self.dozing and self.wake_up is not None:
            self.wake_up(self)

    def _when_running(self, act: Callable[[], None]) -> None:
        self._user(self.world.now, lambda _: act(), None)

    # -- the core

    def step(self, what: Input) -> None:
        """Hand something in and carry out what the core wants done."""
        inbox = self._inbox
        inbox.append(what)
        if self._draining:
            return
        self._draining = True
        life = self.life
        now = self.world.now
        try:
            while inbox and life == self.life:
                assert self.core is not None, "a consumer that is down takes nothing in"
                for effect in self.core.step(inbox.popleft(), now):
                    self._apply(effect)
                    if life != self.life:
                        break
        finally:
            self._draining = False
        if self.core is not None and life == self.life:
            self._set_timer(self.core.next_deadline())
            if self.consider_dozing is not None:
                self.consider_dozing(self)

    def _set_timer(self, due: Millis | None) -> None:
        if due is not None and (self._queued_at is None or due < self._queued_at):
            self._queued_at = max(due, self.world.now)
            self.world.at(self._queued_at, self.timer_lane, self._ring, (self.life, self._queued_at))

    def _ring(self, what: tuple[int, Millis]) -> None:
        life, at = what
        if life != self.life or at != self._queued_at or self.core is None or self.dozing:
            return
        if self.paused_until > self.world.now:
            self._queued_at = self.paused_until
            self.world.at(self.paused_until, self.timer_lane, self._ring, (life, self.paused_until))
            return
        self._queued_at = None
        due = self.core.next_deadline()
        if due is not None and due <= self.world.now:
            self.step(Elapsed())
        else:
            self._set_timer(due)

    def _apply(self, effect: Effect) -> None:
        match effect:
            case ConsumerEvent():
                self.emit(effect)
            case Send():
                self._send(effect)
            case Cancel():
                connection = self._where.pop(effect.request_id, None)
                if connection is not None:
                    connection.cancel(effect.request_id)
            case PollReturned():
                self._took(effect.ranges)
            case Raised():
                self._raised(effect.error)
            case CallListener():
                self._listen(effect)
            case CommitDone():
                if callable(effect.token):
                    effect.token(effect.error)
            case CallDone():
                if self.stopping and self.core is not None and self.core.closed:
                    self._stopped()
                elif effect.error is not None:
                    self._raised(effect.error)
            case _:
                assert isinstance(effect, OffsetsFound), f"nobody knows what to do with {effect!r}"

    # -- requests

    def connection_to(self, node: int, kind: int) -> ClientConnection:
        """The connection to a node, by its index: 0 for what the coordinator is asked, 1 for the rest."""
        return self._connections[node][kind]

    def _send(self, send: Send) -> None:
        if send.to is not None:
            connection = self._connections[self.cluster.by_address(send.to.port).index][_COORDINATOR]
        else:
            connection = self._connections[self.cluster.any_node(self.number, self.world.now).index][_ANY]
        self._where[send.request_id] = connection
        connection.ask(send.request_id, send.request, send.version, send.timeout_ms)

    def answered(self, exchange: Exchange) -> None:
        """An answer arrived."""
        if self._where.pop(exchange.request_id, None) is not None and exchange.response is not None:
            self.step(Answered(exchange.request_id, exchange.response))

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        """A request will not be answered any more."""
        if self._where.pop(exchange.request_id, None) is not None and self.core is not None:
            self.step(Failed(exchange.request_id, failure))

    def _log_end(self, partition: TopicPartition, now: Millis) -> int:
        return (
            self.cluster.topics[partition.topic].end(partition.partition, now)
            if (partition.topic in self.cluster.topics)
            else 0
        )

    # -- the user's thread

    def _user(self, at: Millis, act: Callable[..., None], argument: object) -> None:
        """Have the user's thread do something, later if it hangs or the process stands still."""
        self.world.at(at, self.user_lane, self._user_goes_on, (self.life, act, argument))

    def _user_goes_on(self, what: tuple[int, Callable[..., None], object]) -> None:
        life, act, argument = what
        if life != self.life:
            return
        if self.later(self._user_goes_on, what, self.user_lane):
            return
        if self.stuck_until > self.world.now:
            self.world.at(self.stuck_until, self.user_lane, self._user_goes_on, what)
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
            self.step(Polled(self.work.poll_ms))

    def _took(self, ranges: tuple[RecordRange, ...]) -> None:
        if self.closing:
            return  # close ended the poll
        if not ranges:
            self._poll()
            return
        self.busy = True
        self._hand = list(ranges)
        if self.work.commit == "before":
            self.step(CommitAsked(self._committed_before))
        else:
            self._process()

    def _raised(self, error: KafkaError) -> None:
        if self.stopping:
            self._close()
            return
        if not error.retriable and not isinstance(error, GOES_ON):
            self._die(error)
            return
        self.busy = True
        self._user(self.world.now + _PAUSE_AFTER_ERROR_MS, self._poll, None)

    def _committed_before(self, error: KafkaError | None) -> None:
        if error is not None:
            # Not committed, so not to be processed either: whoever owns the partitions now will.
            self._put_back()
            self._raised(error)
        else:
            self._process()

    def _process(self) -> None:
        """Take the time these records take, one partition's after the other."""
        records = sum(taken.end - taken.start for taken in self._hand)
        total = self.work.processing.of(records, self.random)
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
        """What was not processed is not committed either."""
        assert self.core is not None
        owned = frozenset(self.core.assignment())
        for topic, index, start, _ in self._hand:
            partition = TopicPartition(topic, index)
            if partition in owned:
                self.step(Sought((partition,), start))
        self._hand = []

    def _finished(self) -> None:
        match self.work.commit:
            case "after":
                self.step(CommitAsked(self._committed))
            case "after-async":
                self.step(CommitAsked(None, sync=False))
                self._poll()
            case _:
                self._poll()

    def _committed(self, error: KafkaError | None) -> None:
        if self.core is None:
            return
        if error is None:
            self._poll()
        else:
            self._raised(error)

    # -- the listener

    def _listen(self, effect: CallListener) -> None:
        if effect.kind == "revoked" and effect.partitions and self.work.commit == "after-async":
            self._inbox.append(CommitAsked(partial(self._listened, self.life)))
        elif effect.kind == "revoked" and effect.partitions and self.work.revoke_ms:
            self._user(self.world.now + self.work.revoke_ms, self._listened_late, None)
        else:
            self._inbox.append(CallbackDone())

    def _listened(self, life: int, _: KafkaError | None) -> None:
        if life == self.life and self.core is not None:
            self.step(CallbackDone())

    def _listened_late(self, _: object) -> None:
        if self.core is not None:
            self.step(CallbackDone())
