"""The connection of an admin client: asks nodes, and asks again where one does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pydantic import ValidationError

from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import CodedError, KafkaTimeoutError
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.addresses import open_transport, split_servers
from rejoin.client.transports.base import Transport, TransportError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import BY_NAME, Api
from rejoin.protocol.validation import sentence

CLIENT_ID: Final = "adminclient-1"
BACKOFF_SECONDS: Final = 0.1
DEFAULT_SERVERS: Final = "http://127.0.0.1:9095"

R = TypeVar("R", bound=Response)
K = TypeVar("K")


class Outcomes(dict[K, CodedError | None]):
    """The outcome of each part of a request: the error that the cluster answered, or none."""

    @classmethod
    def of(cls, found: dict[K, tuple[ErrorCode, str | None]]) -> Self:
        """Outcomes from codes and messages."""
        return cls((key, coded(error, message)) for key, (error, message) in found.items())

    def check(self) -> None:
        """Raise the first error, if there is one."""
        for problem in self.values():
            if problem is not None:
                raise problem


def coded(error: ErrorCode, message: str | None) -> CodedError | None:
    """The exception for a code, or none for NONE."""
    return None if error is ErrorCode.NONE else CodedError(error, message or "")


class AdminConnection:
    """The part of an admin client that all of its calls need.

    It is given a transport, which its owner closes, or opens one to ``bootstrap_servers``: ``HOST:PORT`` for Kafka's
    protocol, ``http://HOST:PORT`` for HTTP, several with commas. Then ``security`` are settings of the connection, such
    as ``sasl_mechanism``, and the client is closed by ``close`` or as an async context manager. Raises ValueError for
    servers or settings that make no sense.
    """

    def __init__(
        self,
        transport: Transport | None = None,
        timeout_ms: int = 5_000,
        *,
        bootstrap_servers: str = DEFAULT_SERVERS,
        **security: Any,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._owns_transport = transport is None
        self._transport = _opened(bootstrap_servers, security) if transport is None else transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that this client has opened."""
        if self._owns_transport:
            await self._transport.close()

    async def ask(self, request: Request | Callable[[int], Request], kind: type[R]) -> R:
        """Ask any node. A request that depends on the version is given as what makes it."""
        return await self._ask(request, kind)

    def _version(self, api: Api) -> int:
        return min(self._transport.versions.get(api, api.default_version), api.default_version)

    async def _ask(
        self,
        request: Request | Callable[[int], Request],
        kind: type[R],
        to: Endpoint | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        api = BY_NAME[kind.__name__.removesuffix("Response")]
        until = monotonic() + (self._timeout_ms if timeout_ms is None else timeout_ms) / 1_000
        while True:
            left = max(0, int((until - monotonic()) * 1_000))
            if to is None:
                # Any node can answer. If this one hangs, there is time left to ask another.
                left //= 2
            version = self._version(api)
            made = request(version) if callable(request) else request
            try:
                response = await self._transport.send(to, made, version, timeout_ms=left, client_id=CLIENT_ID)
            except TransportError as error:
                if monotonic() + BACKOFF_SECONDS >= until:
                    raise KafkaTimeoutError(f"{api.name}: {error.detail}") from error
                await asyncio.sleep(BACKOFF_SECONDS)
                continue
            assert isinstance(response, kind), "an API has one kind of answer"
            return response


def _opened(servers: str, security: dict[str, Any]) -> Transport:
    try:
        config = ClientSecurityConfig.model_validate(security)
    except ValidationError as problem:
        raise ValueError(sentence(problem, ClientSecurityConfig, kind="setting")) from None
    return open_transport(split_servers(servers), security=config)
