"""Answers that are held back from a client, each until it is released."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import Delivery, OnAnswer, PendingReply
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST


class HeldAnswer(NamedTuple):
    """An answer that is ready: its API, and what sends it."""

    api: str
    send: Callable[[], None]


class AnswerHolder:
    """Holds answers in the order in which they became ready, as long as it is closed.

    A connection has one request at a time, as in Kafka, so its answers keep their order. What comes by HTTP or from
    within the process is no client's, and passes.
    """

    def __init__(self) -> None:
        self.held: list[HeldAnswer] = []
        self.count = 0
        """Requests, and answers that became ready."""

        self._is_closed = False

    def gate(self, pending: PendingReply, request: Request, context: Context) -> PendingReply:
        """The reply to a request, which comes when it is released."""
        if context.listener == HTTP:
            return pending
        self.count += 1
        return _GatedReply(pending, partial(self._answered, BY_REQUEST[type(request)].name))

    def close(self) -> None:
        """Hold every answer from now on."""
        self._is_closed = True

    def open(self) -> None:
        """Release everything, and hold nothing any more."""
        self._is_closed = False
        while self.held:
            self.release(self.held[0])

    def release(self, answer: HeldAnswer) -> None:
        """Send an answer."""
        self.held.remove(answer)
        answer.send()

    def first_of(self, api: str) -> HeldAnswer | None:
        """The oldest held answer of an API."""
        return next((each for each in self.held if each.api == api), None)

    def _answered(self, api: str, on_answer: OnAnswer, response: Response | None) -> None:
        self.count += 1
        answer = HeldAnswer(api, partial(on_answer, response))
        if self._is_closed and response is not None:
            self.held.append(answer)
        else:
            answer.send()


class _GatedReply(PendingReply):
    """A reply that passes a holder."""

    def __init__(self, pending: PendingReply, answered: Callable[[OnAnswer, Response | None], None]) -> None:
        self._pending = pending
        self._answered = answered

    @property
    def delivery(self) -> Delivery | None:
        return self._pending.delivery

    def when_answered(self, on_answer: OnAnswer) -> None:
        self._pending.when_answered(partial(self._answered, on_answer))
