"""A consumer's process: its core, its connections, and the thread of its user. Of a group of any protocol.

A process can be stopped cleanly, be killed, be paused, and be started again. Its name is the same in every incarnation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.consumer import ConsumerCore
from rejoin.client.core.effects import (
    CallDone,
    CallListener,
    Cancel,
    CommitDone,
    Disconnect,
    Effect,
    OffsetsFound,
    PollFailed,
    PollReturned,
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
    Closed,
    Elapsed,
    Failed,
    Failure,
    Input,
    Polled,
    RecordRange,
    Subscribed,
)
from rejoin.client.core.share.core import ShareConsumerCore
from rejoin.client.core.share.inputs import ShareInput
from rejoin.client.workload.processing_time import ProcessingTime
from rejoin.coordinator.core.groups.consumer.regex_resolution import matching
from rejoin.journal.events.client import ConsumerEvent
from rejoin.journal.events.simulation import ConsumerCrashed, ConsumerFailed, ConsumerStarted, ConsumerStopped
from rejoin.simulation.actors.cluster import Cluster
from rejoin.simulation.kernel import Millis, Order, World
from rejoin.simulation.network import ClientConnection, Exchange, Network, NetworkClient
from rejoin.simulation.node_connections import NodeConnections

CommitMode: TypeAlias = Literal["auto", "after", "after-async", "before", "none", "transaction"]

SURVIVABLE: Final = (AssignorFailedError, ListenerError, CommitFailedError, RebalanceInProgressError)
"""Errors that a user's loop survives besides retriable ones: the next poll rejoins."""

_PAUSE_AFTER_ERROR_MS: Final = 100


@dataclass(frozen=True, slots=True)
class UserCode:
    """The user's code. Its listener takes ``revoke_ms`` and ``assign_ms`` for what it gives up and gets."""

    topics: tuple[str, ...]
    commit: CommitMode
    processing: ProcessingTime
    poll_ms: Millis
    revoke_ms: Millis = 0
    assign_ms: Millis = 0
    revive_ms: Millis = 30_000
    """How long after a fatal error the process is started again, as a supervisor does it."""
    regex: str | None = None
    """In place of topics: what the coordinator matches."""


class ConsumerProcess(NetworkClient):
    """One consumer's process. ``incarnation`` counts its starts and ends; it is down while ``core`` is none."""

    def __init__(
        self, world: World, network: Network, cluster: Cluster, config: ConsumerConfig, user_code: UserCode, name: str
    ) -> None:
        super().__init__(world, name)
        self.network = network
        self.cluster = cluster
        self.config = config
        self.next_config: ConsumerConfig | None = None
        """Configuration from the next start on, if it changes."""
        self.user_code = user_code
        self.subscribed = Subscribed(user_code.topics, regex=user_code.regex)
        self.incarnation = 0
        self.core: ConsumerCore | ShareConsumerCore | None = None
        self.wanted = False
        """Whether this process should run, whatever it does right now."""
        self.is_duplicate = False
        """Whether the process was started beside another with the same group instance id."""
        self.stuck_until: Millis = 0
        self.busy = False
        """True while the user's code has records in hand."""
        self.stopping = False
        self.closing = False
        self.is_skipped = False
        """True in an interval in which nothing new happens to it, and none of its messages is played."""
        self.on_step: Callable[[Any], None] | None = None
        self.on_resume: Callable[[Any], None] | None = None
        self._connections = NodeConnections(self, network, cluster)
        self._connection_of: dict[int, ClientConnection] = {}
        self._inbox: deque[ShareInput] = deque()
        self._draining = False
        timer_lane = self.lane(Order.CONSUMER_TIMER)
        self.timer = world.new_timer(self, timer_lane, self._next_deadline, lambda: self.step(Elapsed()))
        self.user_lane = self.lane(Order.USER)

    @property
    def is_up(self) -> bool:
        return self.core is not None

    # -- starting and ending

    def start(self) -> None:
        """Start the process: subscribe and poll."""
        self.wanted = True
        if self.core is not None:
            return
        self.incarnation += 1
        self.stopping = self.closing = self.busy = False
        self.stuck_until = 0
        if self.next_config is not None:
            self.config, self.next_config = self.next_config, None
        self.core = self._new_core()
        self.core.number_requests_from(self.world.first_request)
        self.timer.reset()
        self._inbox.clear()
        self.emit(
            ConsumerStarted(client_id=self.name, group_id=self.config.group_id or "", incarnation=self.incarnation)
        )
        self.step(self.subscribed)
        self._poll()

    def _new_core(self) -> ConsumerCore | ShareConsumerCore:
        """A core for this incarnation."""
        raise NotImplementedError

    def _own_member_id(self) -> str:
        """A member id that the client makes, anew with each start."""
        return f"{self.client_id}-{UUID(int=self.random.getrandbits(128), version=4)}"

    def reads(self, topic: str) -> bool:
        """Whether the consumer is subscribed to a topic."""
        regex = self.subscribed.regex
        return topic in self.subscribed.topics if regex is None else bool(matching(regex, [topic]))

    def crash(self) -> None:
        """Kill the process; no request is sent."""
        self.catch_up()
        if self.core is None:
            return
        self._end()
        self.emit(ConsumerCrashed(client_id=self.name, group_id=self.config.group_id or ""))

    def _end(self) -> None:
        self.incarnation += 1
        self.core = None
        self.paused_until = 0
        self._connection_of.clear()
        self._connections.drop()

    def _stopped(self) -> None:
        self._end()
        self.emit(ConsumerStopped(client_id=self.name, group_id=self.config.group_id or ""))

    def _die(self, error: Exception) -> None:
        """A fatal error for the user's loop: the process ends, and is started again later."""
        self._end()
        self.emit(
            ConsumerFailed(
                client_id=self.name, group_id=self.config.group_id or "", problem=f"{type(error).__name__}: {error}"
            )
        )
        self.world.at(self.world.now + self.user_code.revive_ms, self.user_lane, self._revive, self.incarnation)

    def _revive(self, incarnation: int) -> None:
        if incarnation == self.incarnation and self.wanted:
            self.start()

    def pause(self, until: Millis) -> None:
        """Pause the process, as a long garbage collection does: it reads nothing, sends nothing, fires no timer."""
        self.catch_up()
        if self.core is not None:
            self.paused_until = max(self.paused_until, until)

    def reset_connections(self) -> None:
        """Break every connection; messages in flight are lost, and waiting requests fail."""
        self._connections.break_off()

    def catch_up(self) -> None:
        """Bring the core to the present before something happens to this process."""
        if self.is_skipped and self.on_resume is not None:
            self.on_resume(self)

    # -- the core

    def step(self, what: ShareInput) -> None:
        """Hand an input to the core and apply the effects."""
        inbox = self._inbox
        inbox.append(what)
        if self._draining:
            return
        self._draining = True
        incarnation = self.incarnation
        now = self.world.now
        try:
            while inbox and incarnation == self.incarnation:
                assert self.core is not None, "a consumer that is down takes nothing in"
                for effect in self._core_step(inbox.popleft(), now):
                    self._apply(effect)
                    if incarnation != self.incarnation:
                        break
        finally:
            self._draining = False
        if self.core is not None and incarnation == self.incarnation:
            self.timer.update()
            if self.on_step is not None:
                self.on_step(self)

    def _core_step(self, what: ShareInput, now: Millis) -> list[Effect]:
        """Hand an input to the core of this process's kind."""
        raise NotImplementedError

    def restart_timer(self) -> None:
        """Set the timer anew after the core has skipped an interval."""
        self.timer.reset()
        self.timer.update()

    def _next_deadline(self) -> Millis | None:
        return None if self.core is None or self.is_skipped else self.core.next_deadline()

    def _apply(self, effect: Effect) -> None:
        match effect:
            case ConsumerEvent():
                self.emit(effect)
            case Send():
                self._send(effect)
            case Cancel():
                connection = self._connection_of.pop(effect.request_id, None)
                if connection is not None:
                    connection.cancel(effect.request_id)
            case Disconnect():
                pass  # The connection gives up each request when that is cancelled.
            case PollReturned():
                self._on_poll(effect)
            case PollFailed():
                self._raised(effect.error)
            case CallListener():
                self._call_listener(effect)
            case CommitDone():
                if callable(effect.token):
                    effect.token(effect.error)
            case CallDone():
                if self.stopping and self.core is not None and self.core.closed:
                    self._stopped()
                elif effect.error is not None:
                    self._raised(effect.error)
            case _:
                assert isinstance(effect, OffsetsFound), f"there is no rule for {effect!r}"

    # -- requests

    def connection_to(self, node: int, kind: int) -> ClientConnection:
        """The connection to a node by its index; ``kind`` is 0 for requests to the coordinator and 1 for all others."""
        return self._connections.to(node, kind)

    def _send(self, send: Send) -> None:
        self._connection_of[send.request_id] = self._connections.send(send)

    def expect_answer(self, request_id: int, connection: ClientConnection) -> None:
        """A request of the core waits on a connection."""
        self._connection_of[request_id] = connection

    def answered(self, exchange: Exchange) -> None:
        """A response arrived."""
        if self._connection_of.pop(exchange.request_id, None) is not None and exchange.response is not None:
            self.step(Answered(exchange.request_id, exchange.response))

    def failed(self, exchange: Exchange, failure: Failure) -> None:
        """A request has failed: no response will come."""
        if self._connection_of.pop(exchange.request_id, None) is not None and self.core is not None:
            self.step(Failed(exchange.request_id, failure))

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

    def _ask_core(self, what: Input) -> None:
        self.catch_up()
        if self.core is not None and not self.stopping:
            self._user(self.world.now, lambda _: self.step(what), None)

    def get_stuck(self, until: Millis) -> None:
        """Make the user's code hang in its next step."""
        self.catch_up()
        self.stuck_until = max(self.stuck_until, until)

    def in_hand(self) -> list[RecordRange]:
        """Records that the user's code has and has not processed yet, where they are not the coordinator's to know."""
        return []

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

    def _raised(self, error: KafkaError) -> None:
        if self.stopping:
            self._close()
            return
        if not error.retriable and not isinstance(error, SURVIVABLE):
            self._die(error)
            return
        self.busy = True
        self._user(self.world.now + _PAUSE_AFTER_ERROR_MS, self._poll, None)

    def _on_poll(self, returned: PollReturned) -> None:
        """A poll has returned."""
        raise NotImplementedError

    def _call_listener(self, effect: CallListener) -> None:
        """The user's listener is called."""
        raise NotImplementedError
