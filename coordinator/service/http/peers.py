"""Reaches the other nodes of a cluster by their HTTP listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import aiohttp
import structlog

from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.service.driver import Runtime
from rejoin.coordinator.service.security.listener_security import ListenerSecurity
from rejoin.protocol.brokers.listener_address import HTTP
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_REQUEST

TIMEOUT_SECONDS: Final = 10.0


class HttpPeers:
    """Sends the requests of a node to others, by TLS and with a login if its own listener has them.

    Raises ``ValueError`` for a login or files that cannot be used.
    """

    def __init__(self, runtime: Runtime, security: ListenerSecurity) -> None:
        self._client_id = f"node-{runtime.node.settings.broker_id}"
        self._runtime = runtime
        self._context = security.peer_tls()
        self._authorization = security.peer_authorization()
        runtime.reach(self)
        self._session: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._logger: Any = structlog.get_logger("coordinator").bind()
        if security.protocol(HTTP).has_sasl and self._authorization is None:
            self._logger.warning("peers_without_login", expected="emulator.peers.username, a user of the other nodes")

    def send(
        self, node_id: int, request: Request, api_version: int, on_answer: Callable[[Response | None], None]
    ) -> None:
        """Send a request to a node."""
        broker = self._runtime.brokers.get(node_id)
        if broker is None:
            on_answer(None)
            return
        task = asyncio.get_running_loop().create_task(self._ask(broker, request, api_version, on_answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self, broker: Broker, request: Request, api_version: int, on_answer: Callable[[Response | None], None]
    ) -> None:
        api = BY_REQUEST[type(request)]
        response: Response | None = None
        try:
            headers = {
                "Content-Type": "application/json",
                "Kafka-Client-Id": self._client_id,
                "Kafka-Api-Version": str(api_version),
            }
            if self._authorization is not None:
                headers["Authorization"] = self._authorization
            scheme = "http" if self._context is None else "https"
            url = f"{scheme}://{broker.host}:{broker.port}{api.path}"
            async with self._opened().post(url, data=request.to_json(api_version), headers=headers) as answer:
                if answer.status == 200:
                    response = api.response.from_json(await answer.read())
                else:
                    self._logger.warning("node_refused", node_id=broker.node_id, api=api.name, status=answer.status)
        except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as problem:
            self._logger.debug("node_unreachable", node_id=broker.node_id, api=api.name, problem=repr(problem))
        on_answer(response)

    def _opened(self) -> aiohttp.ClientSession:
        """The session, opened with the first request: a node alone needs none."""
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=True if self._context is None else self._context)
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session

    async def close(self) -> None:
        """Cancel the requests under way."""
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._session is not None:
            await self._session.close()
            self._session = None
