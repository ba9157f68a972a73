"""A broker whose answers a test scripts, over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.cluster.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rejoin.protocol.registry import Api
from rejoin.protocol.wire.codec import codec_of, read_request_header, unsupported_api_versions_frame

LARGEST_FRAME = 1 << 20


class Asked(NamedTuple):
    """A request as it arrived, and the number of its connection."""

    api: Api
    version: int
    request: Request
    connection: int


class HangUp(Exception):
    """Raised by a script to end the connection."""


Script: TypeAlias = Callable[[Asked], Response | None]


class ScriptedBroker:
    """Answers each request with what ``script`` returns; None leaves it without an answer."""

    def __init__(self, script: Script, versions: Mapping[int, tuple[int, int]] | None = None) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.open_connections = 0
        self._script = script
        self._versions = {**offered(), **(versions or {})}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._serving: set[asyncio.Task[None]] = set()
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, self.connections = self.connections, self.connections + 1
        self.open_connections += 1
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                if length > LARGEST_FRAME:
                    raise HangUp
                self._answer(await reader.readexactly(length), number, writer)
        except (asyncio.IncompleteReadError, ConnectionError, HangUp):
            pass
        finally:
            self.open_connections -= 1
            writer.close()

    def _answer(self, frame: bytes, connection: int, writer: asyncio.StreamWriter) -> None:
        header = read_request_header(frame)
        oldest, newest = self._versions[header.api_key]
        if not oldest <= header.api_version <= newest:
            writer.write(unsupported_api_versions_frame(header.correlation_id, oldest, newest))
            return
        codec = codec_of(header.api_key, header.api_version)
        assert codec is not None
        request = codec.read_request(frame, header.body_at)
        response: Response | None
        if isinstance(request, ApiVersionsRequest):
            keys = (
                ApiVersion(api_key=k, min_version=low, max_version=high) for k, (low, high) in self._versions.items()
            )
            response = ApiVersionsResponse(api_keys=tuple(keys))
        else:
            asked = Asked(codec.api, header.api_version, request, connection)
            self.asked.append(asked)
            response = self._script(asked)
        if response is not None:
            writer.write(codec.response_frame(header.correlation_id, response))
