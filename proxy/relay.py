"""One client's connection and the broker's behind it.

Requests go out in the order in which they came, and answers come back in that order. What neither a rule nor the watch
wants to see passes as it arrives, piece by piece. Where one side does not read, the other is not read either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rejoin.proxy.answers import BrokerSide
from rejoin.proxy.exchange import ProxiedRequest
from rejoin.proxy.requests import ClientSide

if TYPE_CHECKING:
    from rejoin.proxy.broker_table import BrokerRoute
    from rejoin.proxy.listeners.client_login import ClientLogin
    from rejoin.proxy.service import Proxy


class Relay:
    """Both ends, the requests between them, and what is known of the client."""

    __slots__ = (
        "broker",
        "client",
        "client_host",
        "client_port",
        "is_connecting",
        "is_draining",
        "is_raw_login",
        "kept_bytes",
        "login",
        "name",
        "pending",
        "principal",
        "proxy",
        "route",
        "software",
    )

    def __init__(self, proxy: Proxy, route: BrokerRoute, name: str) -> None:
        self.proxy = proxy
        self.route = route
        self.name = name
        self.pending: deque[ProxiedRequest] = deque()
        self.client = ClientSide(self)
        self.broker = BrokerSide(self)
        self.client_host = ""
        self.client_port = 0
        self.software = ""
        """The client's software with its version, once ApiVersions has said it."""
        self.principal: str | None = None
        """The user who logged in at the proxy; none where the proxy checks no login."""
        self.is_raw_login = False
        self.is_connecting = False
        """Whether a connection to the broker may still come about."""
        self.is_draining = False
        self.kept_bytes = 0
        """Bytes of the requests that are kept until their answers come."""
        self.login: ClientLogin | None = proxy.new_login(self)
        """The login that the client has to do first."""

    def end(self, reason: str = "") -> None:
        """Close both ends; answers that are ready are still written."""
        self.client.close()
        self.broker.close()
        if reason:
            self.proxy.refused(self, reason)

    def abort(self) -> None:
        """Reset both ends."""
        for side in (self.client, self.broker):
            if side.transport is not None:
                side.transport.abort()

    def part(self) -> None:
        """Have both ends let go of the relay once neither has a connection.

        Python frees them at once then: its collector of cycles comes to a process of many connections late.
        """
        if self.is_connecting or self.client.transport is not None or self.broker.transport is not None:
            return
        self.login = None
        self.client.let_go()
        self.broker.let_go()

    def settle(self) -> None:
        """Write the answers that are ready in front of those that are awaited, and go on with the broker's."""
        pending = self.pending
        while pending and pending[0].ready is not None:
            exchange = pending.popleft()
            assert exchange.ready is not None, "looked at above"
            self.client.write(exchange.ready)
            self.finish(exchange)
        self.broker.go_on()

    def when_first(self, exchange: ProxiedRequest, call: Callable[[], None]) -> None:
        """Call once all answers in front of this one are with the client."""
        if self.pending[0] is exchange:
            call()
        else:
            exchange.on_turn = call

    def finish(self, exchange: ProxiedRequest) -> None:
        """An exchange is over."""
        if exchange.plan.is_kept:
            exchange.answered_ms = self.proxy.now_ms()
            self.kept_bytes -= len(exchange.request)
            self.proxy.watch.exchanged(self, exchange)
        if self.pending:
            if (on_turn := self.pending[0].on_turn) is not None:
                self.pending[0].on_turn = None
                on_turn()
        elif self.is_draining:
            self.end()
        elif self.client.at_eof:
            # Later: a finished exchange may be in front of requests that came in the same piece.
            self.proxy.call_later(0, self.client.go_on)

    def drain(self) -> None:
        """Take no more requests, and end once all are answered."""
        self.is_draining = True
        if not self.pending and not self.client.splitter.has_part:
            self.end()
        elif self.client.transport is not None:
            self.client.transport.pause_reading()
