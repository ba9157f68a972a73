"""A server that is closed loses no connection that it has just accepted."""

from __future__ import annotations

import asyncio
import socket

from rejoin.coordinator.service.arrivals import close_servers

CLIENTS = 20


async def test_connections_that_were_just_accepted_get_their_protocol() -> None:
    loop = asyncio.get_running_loop()
    made: list[asyncio.BaseTransport] = []

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    server = await loop.create_server(Protocol, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    clients = [socket.create_connection(address) for _ in range(CLIENTS)]
    accepting: set[asyncio.Task[object]] = set()
    while not accepting:
        await asyncio.sleep(0)
        accepting = asyncio.all_tasks() - {asyncio.current_task()}
    assert not made
    await close_servers([server])
    for client in clients:
        client.close()
    for transport in made:
        transport.close()
    await asyncio.sleep(0)
    assert accepting
    assert len(made) == len(accepting)
