"""Drives consumers' cores on an event loop: many of them over one transport, with one wakeup for all.

A driver is its core's only caller. It keeps a queue of what happened, so that a listener may call its consumer while
its consumer is calling the listener.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol, TypeAlias

from rejoin.client.config import ConsumerConfig
from rejoin.client.core.effects import (
    AcknowledgementCallback,
    AcknowledgementsCommitted,
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
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Answered, CallbackDone, Elapsed, Failed, Millis, Polled
from rejoin.client.transports.base import Transport, TransportError
from rejoin.journal.events.base import Event
from rejoin.journal.wall_clock import WallClock
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest
from rejoin.protocol.messages.groups.leave_group import LeaveGroupRequest
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest

Publish: TypeAlias = Callable[[Event, Millis], None]
"""Called with each event and its instant."""

_WAITED_FOR: tuple[type[Request], ...] = (OffsetCommitRequest, LeaveGroupRequest)


class ClientClock:
    """Milliseconds since 1970 that follow the machine's clock and never go back.

    Timers run by it, too. Kafka: a Java client's are by System.currentTimeMillis, so that after a sleep of the machine
    its session and its poll interval have ended.
    """

    def __init__(self) -> None:
        self.now: Callable[[], Millis] = WallClock().stamp


class ListenerCaller(Protocol):
    """Finds what to call for a rebalance, or for acknowledgements; see :mod:`rejoin.client.consumer`."""

    def __call__(self, effect: Any) -> Any: ...


class Core(Protocol):
    """A consumer without I/O: :class:`~rejoin.client.core.consumer.ConsumerCore` or one of a share group."""

    config: ConsumerConfig

    def step(self, what: Any, now: Millis) -> list[Effect]: ...

    def next_deadline(self) -> Millis | None: ...


class ConsumerRuntime:
    """Drivers that share a transport, a clock and one wakeup."""

    def __init__(self, transport: Transport, publish: Publish | None = None) -> None:
        self.transport = transport
        self.clock = ClientClock()
        self.publish = publish
        self._queue: list[tuple[Millis, int, Driver]] = []
        self._count = count()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Millis | None = None

    def wake_at(self, at: Millis, driver: Driver) -> None:
        """Wake a driver at ``at``; it then looks whether anything is due."""
        heappush(self._queue, (at, next(self._count), driver))
        self._set_alarm()

    def _set_alarm(self) -> None:
        if not self._queue:
            return
        at = self._queue[0][0]
        if self._alarm_at is not None and self._alarm_at <= at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        delay = max(0, at - self.clock.now()) / 1_000
        self._alarm = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        now = self.clock.now()
        due: list[Driver] = []
        while self._queue and self._queue[0][0] <= now:
            due.append(heappop(self._queue)[2])
        for driver in due:
            driver.ring(now)
        self._set_alarm()

    def stop(self) -> None:
        """Wake no driver any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_at = None
        self._queue.clear()


class Driver:
    """One consumer's core and all that it waits for. ``transport`` is the consumer's own, or that of the runtime."""

    def __init__(
        self, runtime: ConsumerRuntime, core: Core, call_listener: ListenerCaller, transport: Transport
    ) -> None:
        self.core = core
        self._runtime = runtime
        self._transport = transport
        self._call_listener = call_listener
        self._inbox: deque[Any] = deque()
        self._draining = False
        self._queued_at: Millis | None = None
        self._requests: dict[int, asyncio.Future[Response]] = {}
        self._callbacks: set[asyncio.Task[None]] = set()
        self._in_order: asyncio.Future[Response] | None = None
        self._poll: asyncio.Future[PollReturned] | None = None
        self._tokens: set[asyncio.Future[Any]] = set()
        self.broken: BaseException | None = None
        """The error that ends the consumer: a fault in the core, or a node that does not understand requests."""

    # -- calls

    async def call(self, make: Callable[[asyncio.Future[Any]], Any]) -> Any:
        """Hand in the input that ``make`` makes with a token, and wait for its answer; raises the answer's error."""
        if self.broken is not None:
            raise self.broken
        token: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tokens.add(token)
        self.step(make(token))
        try:
            return await token
        finally:
            self._tokens.discard(token)

    async def poll(self, polled: Polled) -> PollReturned:
        """Hand in a ``Polled`` and wait for its end."""
        if self.broken is not None:
            raise self.broken
        if self._poll is not None:
            raise KafkaError("another task is polling this consumer")
        poll: asyncio.Future[PollReturned] = asyncio.get_running_loop().create_future()
        self._poll = poll
        self.step(polled)
        try:
            if poll.done():
                # Records were there already: let other tasks, and our own heartbeats, run.
                await asyncio.sleep(0)
            return await poll
        finally:
            self._poll = None

    @property
    def polling(self) -> bool:
        return self._poll is not None

    # -- driving

    def ring(self, now: Millis) -> None:
        """Something may be due."""
        self._queued_at = None
        deadline = self.core.next_deadline()
        if deadline is None:
            return
        if deadline <= now:
            self.step(Elapsed())
        else:
            self._queue(deadline)

    def step(self, what: Any) -> None:
        """Hand in an input of the core's, and carry out the core's effects."""
        self._inbox.append(what)
        if self._draining or self.broken is not None:
            return
        self._draining = True
        try:
            while self._inbox:
                now = self._runtime.clock.now()
                for effect in self.core.step(self._inbox.popleft(), now):
                    self._apply(effect, now)
        except Exception as error:
            self._break(error)
        finally:
            self._draining = False
        deadline = self.core.next_deadline()
        if deadline is not None:
            self._queue(deadline)

    def _queue(self, deadline: Millis) -> None:
        # A wakeup that comes too early finds the later deadline; only an earlier one needs another entry.
        if self._queued_at is None or deadline < self._queued_at:
            self._queued_at = deadline
            self._runtime.wake_at(deadline, self)

    def _apply(self, effect: Effect, now: Millis) -> None:
        match effect:
            case Event():
                if self._runtime.publish is not None:
                    self._runtime.publish(effect, now)
            case Send():
                self._send(effect)
            case Cancel():
                request = self._requests.pop(effect.request_id, None)
                if request is not None:
                    request.cancel()
            case Disconnect():
                self._transport.disconnect(effect.to)
            case PollReturned():
                if self._poll is not None and not self._poll.done():
                    self._poll.set_result(effect)
            case PollFailed():
                if self._poll is not None and not self._poll.done():
                    self._poll.set_exception(effect.error)
            case CallListener():
                self._listen(effect)
            case CommitDone() | CallDone():
                self._resolve(effect.token, None, effect.error)
            case OffsetsFound():
                self._resolve(effect.token, effect, effect.error)
            case AcknowledgementsCommitted():
                self._resolve(effect.token, effect.results, None)
            case AcknowledgementCallback():
                self._call_listener(effect)

    @staticmethod
    def _resolve(token: object, value: object, error: KafkaError | None) -> None:
        if isinstance(token, asyncio.Future):
            if token.done():
                return
            if error is None:
                token.set_result(value)
            else:
                token.set_exception(error)
        elif callable(token):
            token(error)

    # -- requests

    def _send(self, send: Send) -> None:
        keeps_order = self._transport.keeps_order
        awaitable = self._carried(send) if keeps_order else self._in_turn(send, self._in_order)
        request = asyncio.ensure_future(awaitable)
        self._requests[send.request_id] = request
        if not keeps_order and isinstance(send.request, _WAITED_FOR):
            self._in_order = request
        request.add_done_callback(partial(self._answered, send.request_id))

    def _carried(self, send: Send) -> Awaitable[Response]:
        client_id = self.core.config.client_id
        return self._transport.send(
            send.to, send.request, send.version, timeout_ms=send.timeout_ms, client_id=client_id
        )

    async def _in_turn(self, send: Send, after: asyncio.Future[Response] | None) -> Response:
        """Ask, after what must be answered before.

        Kafka's client sends everything to the coordinator over one connection. Requests over HTTP can overtake one
        another, so commits, leaving and joining wait until the commit or leave before them is answered.
        """
        if after is not None and not after.done() and isinstance(send.request, (JoinGroupRequest, *_WAITED_FOR)):
            await asyncio.wait([after])
        return await self._carried(send)

    def _answered(self, request_id: int, request: asyncio.Future[Response]) -> None:
        """Hand in what came of a request."""
        error = None if request.cancelled() else request.exception()
        if self._requests.pop(request_id, None) is None:
            return  # Cancelled.
        match error:
            case None:
                self.step(Answered(request_id, request.result()))
            case TransportError():
                self.step(Failed(request_id, error.failure, error.detail))
            case _:
                self._break(error)

    # -- the listener

    def _listen(self, effect: CallListener) -> None:
        try:
            result = self._call_listener(effect)
        except Exception as error:
            self._inbox.append(CallbackDone(error))
            return
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(self._await_listener(result))
            self._callbacks.add(task)
            task.add_done_callback(self._callbacks.discard)
        else:
            self._inbox.append(CallbackDone())

    async def _await_listener(self, awaitable: Any) -> None:
        try:
            await awaitable
        except Exception as error:
            self.step(CallbackDone(error))
        else:
            self.step(CallbackDone())

    # -- the end

    def _break(self, error: BaseException) -> None:
        self.broken = error
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(error)
        for token in list(self._tokens):
            if not token.done():
                token.set_exception(error)

    async def stop(self) -> None:
        """Give up on everything that is in flight."""
        waiting: list[asyncio.Future[Any]] = [*self._requests.values(), *self._callbacks]
        self._requests.clear()
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if self._transport is not self._runtime.transport:
            await self._transport.close()
