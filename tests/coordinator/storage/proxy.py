"""A wire between a client and its server that can be cut at the moment that matters."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum, auto
from typing import Self


class Cut(Enum):
    """What the next bytes from the client meet."""

    NOTHING = auto()
    REQUEST = auto()
    """They never arrive, and the connection breaks."""
    HALF_REQUEST = auto()
    """Half of them arrive, and the connection breaks."""
    ANSWER = auto()
    """They arrive and are worked on; then the connection breaks, before the answer."""


class Wire:
    """A port on 127.0.0.1 behind which the server is."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: list[asyncio.Task[None]] = []
        self.cut = Cut.NOTHING
        self.cuts = 0
        self.is_closed = False
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._serving)
        await self._server.wait_closed()
        # Whatever was aborted just now is closed in the loop's next turn.
        await asyncio.sleep(0)

    def break_all(self) -> None:
        """Cut whatever is connected now; with ``is_closed`` nothing gets through any more."""
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_closed:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._serving.append(task)
        self._writers.append(writer)
        with suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", self._server_port)
            self._writers.append(back)
            await asyncio.gather(self._forward(reader, back, writer), self._return(there, writer, back))
        writer.close()

    async def _forward(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(2**20):
                if self.cut in (Cut.REQUEST, Cut.HALF_REQUEST) and len(data) > 100:
                    if self.cut is Cut.HALF_REQUEST:
                        server.write(data[: len(data) // 2])
                        await server.drain()
                    self.cut = Cut.NOTHING
                    self.cuts += 1
                    client.transport.abort()
                    break
                server.write(data)
                await server.drain()
        server.close()

    async def _return(
        self, reader: asyncio.StreamReader, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(2**20):
                if self.cut is Cut.ANSWER and len(data) > 30:
                    self.cut = Cut.NOTHING
                    self.cuts += 1
                    client.transport.abort()
                    break
                client.write(data)
                await client.drain()
        client.close()
