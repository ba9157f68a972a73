"""Base of both ends of a relay: bytes that are cut into frames, and a transport that may have enough."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from rejoin.protocol.wire.errors import SchemaError
from rejoin.proxy.broker_table import WrongBrokers
from rejoin.proxy.frames import FrameSplitter

if TYPE_CHECKING:
    from rejoin.proxy.relay import Relay

MOST_HELD_BYTES: Final = 64 << 20
"""The largest frame that is held until it is whole."""
MOST_KEPT_BYTES: Final = 4 << 20
"""The largest frame that is kept to be looked at; larger ones pass unseen, and are counted."""
LINGER_SECONDS: Final = 30.0
"""How long an end that is closed has to take what was written to it."""


class ConnectionRefused(Exception):
    """Bytes that are no frame of Kafka's protocol, or that the proxy cannot hold."""


class Side(asyncio.Protocol):
    """Base of both ends: bytes that are taken in turns, and a transport that may have enough."""

    __slots__ = ("is_full", "is_paused", "relay", "splitter", "transport")

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.transport: asyncio.Transport | None = None
        self.splitter = FrameSplitter(cast(Any, self))
        self.is_full = False
        """Whether the transport takes no more for now."""
        self.is_paused = False
        """Whether this end is not read for now."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes to this end."""
        if self.transport is not None and data:
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.is_full = True
        self._peer().read_or_not()

    def resume_writing(self) -> None:
        self.is_full = False
        self._peer().read_or_not()

    def _peer(self) -> Side:
        relay = self.relay
        return relay.broker if self is relay.client else relay.client

    @property
    def is_blocked(self) -> bool:
        """Whether no further frame of this end may be taken."""
        return self.transport is None

    def read_or_not(self) -> None:
        """Read from this end, where what comes can be taken."""
        if self.transport is None or self.transport.is_closing():
            return
        self.is_paused = self._peer().is_full or self.is_blocked
        if self.is_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def abort(self) -> None:
        """Reset this end."""
        if self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        """Close this end once what is written has left; an end that reads nothing is reset after a while."""
        transport = self.transport
        if transport is not None and not transport.is_closing():
            is_behind = transport.get_write_buffer_size() > 0
            transport.close()
            if is_behind:
                self.relay.proxy.call_later(LINGER_SECONDS, transport.abort)

    def let_go(self) -> None:
        """Forget the relay: nothing comes from this end any more, and nothing can be sent to it."""
        self.splitter.let_go()
        self.relay = cast(Any, None)

    def go_on(self) -> None:
        """Take what waits, and read again, where that is possible now."""
        if self.splitter.has_part and not self.is_blocked:
            self.data_received(b"")
        self.read_or_not()

    def data_received(self, data: bytes) -> None:
        try:
            self.splitter.feed(data)
        except WrongBrokers as problem:
            self.relay.proxy.counters.brokers_refused += 1
            self.relay.end(str(problem))
        except (ConnectionRefused, SchemaError) as problem:
            self.relay.end(str(problem))
        if self.is_blocked:
            self.read_or_not()

    def refuse(self, size: int, beginning: bytes) -> None:
        raise ConnectionRefused(f"a frame of {size} bytes; expected a length of 0 or more")
