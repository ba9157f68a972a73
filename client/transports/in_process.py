"""A coordinator and consumers in one process, without a socket between them.

Neither knows the other: ``client.transports.base`` says what a consumer needs of a transport, and
``coordinator.testing`` what a test can do with a coordinator. This module, which may import both, puts the two
together, and nothing else may import it.

    async with running(socket=False, topics={"orders": 3}) as coordinator:
        async with Consumer("orders", group_id="billing", transport=InProcessTransport(coordinator)) as consumer:
            ...
"""

from __future__ import annotations

import asyncio

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.inputs import Failure
from rejoin.client.transports.base import SharedTransport, TransportError
from rejoin.coordinator.testing import GroupCoordinator, NoAnswer
from rejoin.protocol.message import Request, Response


class InProcessTransport(SharedTransport):
    """Carries requests to a coordinator in the same process. Consumers may share it."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def send(
        self, to: Endpoint | None, request: Request, version: int, *, timeout_ms: int, client_id: str
    ) -> Response:
        """See :class:`rejoin.client.transports.base.Transport`. There is one node, whatever ``to`` says."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1_000):
                return await self._coordinator.call(request, version, client_id)
        except TimeoutError:
            raise TransportError(Failure.TIMEOUT, f"no answer within {timeout_ms} ms") from None
        except NoAnswer as problem:
            raise TransportError(Failure.DISCONNECT, str(problem)) from None

    async def close(self) -> None:
        """Nothing to do."""
