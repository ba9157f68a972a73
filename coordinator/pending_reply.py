"""A requester that waits: the token that the core keeps and the transports await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from rejoin.protocol.message import Response

OnAnswer: TypeAlias = Callable[[Response | None], None]


class NoReply(Exception):
    """A request that is never answered: its client sees a lost connection."""


class Delivery(Protocol):
    """Writes an answer to its connection in place of the listener."""

    @property
    def is_cut(self) -> bool:
        """Whether the connection ends with the answer."""

    async def write(self, answer: bytes, transport: asyncio.WriteTransport) -> bool:
        """Write it; returns whether the connection goes on. Raises :class:`NoReply` when the node stops meanwhile."""


class PendingReply:
    """A reply that comes one day. The future is there only once it is awaited.

    When the requester goes away the future is cancelled, and a reply that comes later is dropped.
    """

    # Defaults of the class: most replies are there at once, and set nothing but their response.
    response: Response | None = None
    future: asyncio.Future[None] | None = None
    failed = False
    is_lost = False
    """Whether there will never be a reply: its client sees a lost connection."""
    is_of_client = False
    """Under control: whether a client sent the request, and not the control itself or another broker."""
    is_awaited = False
    """Whether a reply has to be passed on when it comes."""
    _on_answer: OnAnswer | None = None

    @property
    def delivery(self) -> Delivery | None:
        """Delivery of the answer, where a fault decides that."""
        return None

    def when_answered(self, on_answer: OnAnswer) -> None:
        """Call with the reply when it comes, once; with none when there will never be one."""
        if self.response is not None or self.failed or self.is_lost:
            on_answer(self.response)
        else:
            self._on_answer = on_answer
            self.is_awaited = True

    async def answer(self) -> Response | None:
        """The reply, when it comes; none when the core broke over the request. Raises :class:`NoReply`."""
        if self.response is None and not self.failed and not self.is_lost:
            self.future = asyncio.get_running_loop().create_future()
            self.is_awaited = True
            await self.future
        if self.is_lost:
            raise NoReply
        return self.response

    def lose(self) -> None:
        """There will never be a reply: the broker is gone."""
        self.is_lost = True
        self.settle()

    def settle(self) -> None:
        """Wake the requester."""
        if self._on_answer is not None:
            self._on_answer(self.response)
        elif self.future is not None and not self.future.done():
            self.future.set_result(None)
