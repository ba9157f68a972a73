"""The interface of transports: over Kafka's protocol, over HTTP, or within one process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Protocol, Self

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Failure
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import Api


class TransportError(Exception):
    """A request has no answer: the connection was lost, or it took too long. ``detail`` does not name the request."""

    def __init__(self, failure: Failure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


class Transport(Protocol):
    """Carries the requests of clients of one event loop."""

    keeps_order: bool
    """Whether requests to one endpoint arrive in the order in which they were sent."""
    on_disconnect: Callable[[], object] | None
    """Called when a node has ended a connection; for clients that wait for no answer, as with acks of 0."""
    carries_records: bool
    """Whether records are read by Fetch. Otherwise records are synthetic, and only the ends of logs are asked for."""

    @property
    def versions(self) -> Mapping[Api, int]:
        """The newest version of each API that the nodes speak, where that is not the newest of all.

        It may fall with each new connection, so clients look at it before they make a request.
        """
        ...

    def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Awaitable[Response]:
        """Ask the node at ``to``, or any node, and wait for its answer. Cancelling gives up on the answer alone.

        Raises TransportError when there is none, and KafkaError when asking again cannot help: the request was refused
        as malformed, the node speaks no version of it, or another protocol.
        """
        ...

    def disconnect(self, to: Endpoint) -> None:
        """Give up the connection to a node, with all that waits there."""
        ...

    def for_client(self) -> Transport:
        """The transport of one client. Requests that wait at a node hold up those behind them, but for other clients.

        The client closes it, unless it is this one.
        """
        ...

    async def close(self) -> None:
        """Give up all connections."""
        ...


class SharedTransport:
    """The part of a transport that any number of clients can share: no request waits behind another."""

    keeps_order = False
    carries_records = False
    on_disconnect: Callable[[], object] | None = None
    versions: Mapping[Api, int] = MappingProxyType({})

    def for_client(self) -> Self:
        """Itself."""
        return self

    def disconnect(self, to: Endpoint) -> None:
        """Nothing to do."""
