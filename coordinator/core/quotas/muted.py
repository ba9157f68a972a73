"""Muted connections: a client that was throttled is answered at once, and its next request is looked at later.

Kafka: ThrottledChannel, ClientQuotaManager.ThrottledChannelReaper. Differs: Kafka does not read from the connection;
here the request is read and kept, which its client cannot know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Final, TypeAlias

from rejoin.coordinator.core.inputs import Context, Millis, Received, Token
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.types import TopicPartition


class MuteTimer(IntEnum):
    """Due when the first of the muted connections may go on."""

    UNMUTE = 8_000


_UNMUTE: Final = TimerKey(MuteTimer.UNMUTE, TopicPartition("", -1))

_Connection: TypeAlias = tuple[str, str, str]


class MutedConnections:
    """Connections that are muted, each with the requests that have come since."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx
        self.handle: Callable[[Received], None] | None = None
        """Handles a request that was kept."""
        self.until: dict[_Connection, Millis] = {}
        """When each connection may go on; empty where none is muted."""
        self._kept: dict[_Connection, deque[Received]] = {}

    def mute(self, context: Context, length_ms: Millis) -> None:
        """Keep the next requests of a connection, no shorter than it is muted already."""
        connection = _connection(context)
        until = max(self.until.get(connection, 0), self._ctx.now + length_ms)
        self.until[connection] = until
        due = self._ctx.deadlines.at(_UNMUTE)
        if due is None or until < due:
            self._ctx.deadlines.set(_UNMUTE, until)

    def keeps(self, what: Received) -> bool:
        """Keep a request whose connection is muted; returns whether it is."""
        connection = _connection(what.context)
        if what.context.by_operator or connection not in self.until:
            return False
        self._kept.setdefault(connection, deque()).append(what)
        return True

    def postpone(self, by_ms: Millis) -> None:
        """The clock has stepped forward by so much: nothing goes on earlier for it."""
        self.until = {connection: until + by_ms for connection, until in self.until.items()}

    def kept_tokens(self) -> list[Token]:
        """The token of every request that is kept."""
        return [what.token for kept in self._kept.values() for what in kept]

    def fire(self) -> None:
        """Let connections go on whose time has come."""
        now = self._ctx.now
        for connection in [connection for connection, until in self.until.items() if until <= now]:
            del self.until[connection]
            kept = self._kept.pop(connection, deque())
            while kept and connection not in self.until:
                assert self.handle is not None, "a node handles requests"
                self.handle(kept.popleft())
            if kept:
                self._kept[connection] = kept
        if self.until:
            self._ctx.deadlines.set(_UNMUTE, min(self.until.values()))


def _connection(context: Context) -> _Connection:
    """Who is muted: a connection, or where it is not known a client with its host."""
    if context.connection:
        return context.connection, "", ""
    return context.client_host, context.principal, context.client_id
