"""Drives a producer's core on an event loop: over one transport, with one wakeup.

The token of a record is the future of its metadata; the driver is the core's only caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rejoin.client.core.effects import CallDone, Endpoint, Send
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Answered, Elapsed, Failed, Millis
from rejoin.client.core.producer.core import ProducerCore
from rejoin.client.core.producer.effects import BatchDone, ProducerEffect, RecordFailed, SendBlocked, SendUnblocked
from rejoin.client.core.producer.inputs import Disconnected, Produced, ProducerInput
from rejoin.client.driver import ClientClock
from rejoin.client.transports.base import Transport, TransportError
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.produce import ProduceRequest


class RecordMetadata(NamedTuple):
    """Where a record is. The offset is -1 where the broker did not name it, as with acks of 0."""

    topic: str
    partition: int
    offset: int
    timestamp: Millis
    """The record's own, or the time of its append where the topic wants that. Ms since 1970."""


class ProducerDriver:
    """One producer's core and all that it waits for."""

    def __init__(self, core: ProducerCore, transport: Transport, client_id: str) -> None:
        self.core = core
        self._is_transactional = core.config.transactional_id is not None
        self._transport = transport
        transport.on_disconnect = self._disconnected
        self._client_id = client_id
        self._now = ClientClock().now
        self._requests: dict[int, asyncio.Future[Response]] = {}
        self._last_to: dict[Endpoint | None, asyncio.Future[Response]] = {}
        """The last Produce to each node, where the transport does not keep their order."""
        self._blocked: dict[object, asyncio.Future[None]] = {}
        self._calls: set[asyncio.Future[Any]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Millis = 0
        self.broken: BaseException | None = None
        """The error that ends the producer: a fault in the core, or a node that does not understand requests."""

    # -- calls

    def produce(self, produced: Produced) -> bool:
        """Hand in a record; true when there was more to do than to add it to a batch."""
        try:
            effects = self.core.step(produced, self._now())
        except Exception as error:
            self._break(error)
            raise
        if not effects:
            at = self.core.next_deadline()
            if at is not None and (self._alarm is None or at < self._alarm_at):
                self._set_alarm()
            return False
        self._apply_all(effects)
        return True

    def blocked(self, token: object) -> asyncio.Future[None] | None:
        """The future to await for a record that waits for metadata or memory."""
        return self._blocked.get(token)

    async def call(self, make: Callable[[asyncio.Future[Any]], ProducerInput]) -> None:
        """Hand in what ``make`` makes with a token, and wait for its end."""
        if self.broken is not None:
            raise self.broken
        token: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.add(token)
        self.step(make(token))
        try:
            await token
        finally:
            self._calls.discard(token)

    # -- driving

    def step(self, what: ProducerInput) -> None:
        """Hand in an input, and carry out the core's effects."""
        if self.broken is not None:
            return
        try:
            effects = self.core.step(what, self._now())
        except Exception as error:
            self._break(error)
            return
        self._apply_all(effects)

    def _apply_all(self, effects: list[ProducerEffect]) -> None:
        for effect in effects:
            self._apply(effect)
        self._set_alarm()

    def _apply(self, effect: ProducerEffect) -> None:
        match effect:
            case BatchDone():
                _resolve(effect, self._is_transactional)
            case Send():
                self._send(effect)
            case SendBlocked():
                self._blocked[effect.token] = asyncio.get_running_loop().create_future()
            case SendUnblocked():
                self._unblock(effect.token)
            case RecordFailed():
                self._unblock(effect.token)
                _fail(effect.token, effect.error, self._is_transactional)
            case CallDone():
                _end_call(effect)

    def _unblock(self, token: object) -> None:
        blocked = self._blocked.pop(token, None)
        if blocked is not None and not blocked.done():
            blocked.set_result(None)

    def _set_alarm(self) -> None:
        # An alarm that rings too early finds the later deadline; only an earlier one needs another.
        at = self.core.next_deadline()
        if at is None or (self._alarm is not None and self._alarm_at <= at):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        delay = max(0, at - self._now()) / 1_000
        self._alarm = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        deadline = self.core.next_deadline()
        if deadline is not None and deadline <= self._now():
            self.step(Elapsed())
        self._set_alarm()

    # -- requests

    def _send(self, send: Send) -> None:
        if self._transport.keeps_order or not isinstance(send.request, ProduceRequest):
            request = asyncio.ensure_future(self._carried(send))
        else:
            request = asyncio.ensure_future(self._in_turn(send, self._last_to.get(send.to)))
            self._last_to[send.to] = request
        self._requests[send.request_id] = request
        request.add_done_callback(partial(self._answered, send.request_id))

    def _carried(self, send: Send) -> Any:
        return self._transport.send(
            send.to, send.request, send.version, timeout_ms=send.timeout_ms, client_id=self._client_id
        )

    async def _in_turn(self, send: Send, after: asyncio.Future[Response] | None) -> Response:
        """Ask once the Produce before is answered: requests over HTTP can overtake one another."""
        if after is not None and not after.done():
            await asyncio.wait([after])
        response: Response = await self._carried(send)
        return response

    def _answered(self, request_id: int, request: asyncio.Future[Response]) -> None:
        """Hand in what came of a request."""
        error = None if request.cancelled() else request.exception()
        if self._requests.pop(request_id, None) is None:
            return  # The producer was stopped.
        match error:
            case None:
                self.step(Answered(request_id, request.result()))
            case TransportError():
                self.step(Failed(request_id, error.failure, error.detail))
            case _:
                self._break(error)

    def _disconnected(self) -> None:
        self.step(Disconnected())

    # -- the end

    def _break(self, error: BaseException) -> None:
        self.broken = error
        problem = error if isinstance(error, KafkaError) else KafkaError(f"the producer has failed: {error!r}")
        for effect in self.core.abandon(problem):
            self._apply(effect)
        for token in list(self._calls):
            if not token.done():
                token.set_exception(problem)

    async def stop(self) -> None:
        """Give up on everything that is in flight."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        waiting = list(self._requests.values())
        self._requests.clear()
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _resolve(done: BatchDone, is_transactional: bool) -> None:
    topic, partition = done.partition
    if done.error is not None:
        for index, token in enumerate(done.tokens):
            _fail(token, done.record_errors.get(index, done.error), is_transactional)
        return
    append_time = done.log_append_time
    base_offset = done.base_offset
    offset = base_offset
    for token, timestamp in zip(done.tokens, done.timestamps, strict=True):
        assert isinstance(token, asyncio.Future)
        if not token.done():
            token.set_result(RecordMetadata(topic, partition, offset, timestamp if append_time < 0 else append_time))
        if base_offset >= 0:
            offset += 1


def _fail(token: object, error: KafkaError, is_transactional: bool) -> None:
    assert isinstance(token, asyncio.Future)
    if not token.done():
        token.set_exception(error)
        if is_transactional:
            token.exception()  # The call that ends the transaction raises it: asyncio need not warn as well.


def _end_call(done: CallDone) -> None:
    token = done.token
    assert isinstance(token, asyncio.Future)
    if token.done():
        return
    if done.error is None:
        token.set_result(None)
    else:
        token.set_exception(done.error)
