"""TLS and SASL for the player's connections, from the settings that every client command takes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Final, cast

from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Failure
from rejoin.client.security_config import ClientSecurityConfig
from rejoin.client.transports.base import TransportError
from rejoin.client.transports.security import SaslLogin
from rejoin.conform.player.connection import MOST_BYTES, BrokerAccess
from rejoin.protocol.message import Request, Response
from rejoin.protocol.registry import Api
from rejoin.protocol.wire.codec import codec_of
from rejoin.protocol.wire.errors import SchemaError

CLIENT: Final = "rejoin-conform"


class LoginRefused(PermissionError):
    """The broker does not let this client in."""


class _LoginConnection:
    """A new connection, as a login asks on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._correlation_ids = itertools.count()
        host, port, *_ = writer.get_extra_info("peername")
        self.address = f"{host}:{port}"

    async def ask(self, api: Api, request: Request, version: int) -> Response:
        codec = codec_of(api.key, version)
        assert codec is not None, f"{api.name} v{version} has no codec"
        self._writer.write(codec.request_frame(next(self._correlation_ids), CLIENT, request))
        try:
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            if length > MOST_BYTES:
                raise ConnectionResetError(f"{length} as the length of an answer")
            return codec.read_response_frame(await self._reader.readexactly(length))[1]
        except (asyncio.IncompleteReadError, ConnectionError, SchemaError) as problem:
            text = f"{self.address}: no answer to {api.name} ({problem})"
            raise TransportError(Failure.DISCONNECT, text) from None


def access_by(config: ClientSecurityConfig) -> BrokerAccess:
    """The way to brokers with these settings. Raises ``ValueError`` for files that cannot be used."""
    login = SaslLogin(config) if config.has_sasl else None

    async def log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert login is not None
        try:
            await login(cast(Any, _LoginConnection(reader, writer)))
        except (KafkaError, TransportError) as problem:
            raise LoginRefused(str(problem)) from None

    return BrokerAccess(config.tls_context(), None if login is None else log_in)
