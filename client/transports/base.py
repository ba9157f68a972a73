"""What a consumer's driver needs of a transport: over HTTP, or within one process."""

from __future__ import annotations

from typing import Protocol

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Failure
from rejoin.protocol.message import Request, Response


class TransportError(Exception):
    """A request has no answer: the connection was lost, or it took too long. ``detail`` does not name the request."""

    def __init__(self, failure: Failure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


class Transport(Protocol):
    """Carries requests. Safe to share between consumers of one event loop."""

    async def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Response:
        """Ask the node at ``to``, or any node, and wait for its answer.

        Raises TransportError when there is none, and ProblemError when the request was refused as malformed.
        """
        ...

    async def close(self) -> None:
        """Give up all connections."""
        ...
