"""Answers that are held back from a client, each until it is released."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rejoin.coordinator.core.inputs import Context
from rejoin.coordinator.pending_reply import Delivery, OnAnswer, PendingReply
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST


class HeldAnswer(NamedTuple):
    """An answer that is ready, with its request; ``on_answer`` sends it, or closes the connection without one."""

    api: str
    request: Request
    version: int
    response: Response | None
    on_answer: OnAnswer


class AnswerHolder:
    """Holds answers in the order in which they became ready, as long as it is closed.

    A connection has one request at a time, as in Kafka, so its answers keep their order. What comes by HTTP or from
    within the process is no client's, and passes.
    """

    def __init__(self) -> None:
        self.held: list[HeldAnswer] = []
        self.replaced: list[Request] = []
        """Requests whose answers the client never saw."""

        self.count = 0
        """Requests, and answers that became ready."""

        self._is_closed = False

    def gate(self, pending: PendingReply, request: Request, context: Context) -> PendingReply:
        """The reply to a request, which comes when it is released."""
        if context.listener == HTTP:
            return pending
        self.count += 1
        return _GatedReply(pending, partial(self._answered, request, context.api_version))

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
        answer.on_answer(answer.response)

    def refuse(self, answer: HeldAnswer, error: ErrorCode) -> None:
        """Send an error in place of an answer; what the request did stays done."""
        self._replace(answer, answer.request.error_response(answer.version, error))

    def drop(self, answer: HeldAnswer) -> None:
        """Close the connection in place of an answer; what the request did stays done."""
        self._replace(answer, None)

    def first_of(self, api: str) -> HeldAnswer | None:
        """The oldest held answer of an API."""
        return next((each for each in self.held if each.api == api), None)

    def _replace(self, answer: HeldAnswer, response: Response | None) -> None:
        self.held.remove(answer)
        self.replaced.append(answer.request)
        answer.on_answer(response)

    def _answered(self, request: Request, version: int, on_answer: OnAnswer, response: Response | None) -> None:
        self.count += 1
        if self._is_closed and response is not None:
            self.held.append(HeldAnswer(BY_REQUEST[type(request)].name, request, version, response, on_answer))
        else:
            on_answer(response)


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
