"""Limits of connections, brought about at a broker: which connections are answered, closed, or wait.

Clients come from several addresses of this machine's loopback network, so that each limit by address has its own.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from conformance.kafka.broker import HOST

_API_VERSIONS: Final = struct.pack(">hhih", 18, 0, 1, 4) + b"test"
_AT_ONCE_SECONDS: Final = 1.0
IDLE_MS: Final = 3_000
"""connections.max.idle.ms of the scenario about idle connections."""
FREE, LIMITED, OVERRIDDEN, SLOW = HOST, "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""Addresses of clients: the broker's own, one under the default limit, one with its own, one with a rate."""


class Client:
    """One connection from a local address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.opened_at = time.monotonic()

    @classmethod
    async def of(cls, port: int, address: str = FREE) -> Self:
        return cls(*await asyncio.open_connection(HOST, port, local_addr=(address, 0)))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    def request(self, frame: bytes) -> None:
        """Send a request."""
        self.send(struct.pack(">i", len(frame)) + frame)

    async def outcome(self, seconds: float = _AT_ONCE_SECONDS) -> str:
        """The outcome within so many seconds: ``answered``, ``closed`` or ``waits``."""
        try:
            async with asyncio.timeout(seconds):
                size = await self._reader.read(4)
                if len(size) == 4:
                    await self._reader.readexactly(struct.unpack(">i", size)[0])
        except TimeoutError:
            return "waits"
        except OSError:
            return "closed"
        return "answered" if size else "closed"

    async def ask(self, seconds: float = _AT_ONCE_SECONDS) -> str:
        """The outcome of an ApiVersions."""
        try:
            self.request(_API_VERSIONS)
        except OSError:
            return "closed"
        return await self.outcome(seconds)

    async def closed_after(self, seconds: float) -> float | None:
        """Seconds from now to the end of the connection, or none within so many."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                while await self._reader.read(65_536):
                    pass
        except TimeoutError:
            return None
        except OSError:
            pass
        return time.monotonic() - began

    def close(self) -> None:
        self._writer.close()


class Ports(NamedTuple):
    """Where a broker listens."""

    plain: int
    """The listener that brokers use among each other."""
    other: int
    """A further one."""


Play = Callable[[Ports], Awaitable[dict[str, Any]]]


class Scenario(NamedTuple):
    """The steps of a scene, at a broker with these settings."""

    settings: dict[str, str]
    play: Play
    ip_rates: Mapping[str | None, float] = MappingProxyType({})
    """connection_creation_rate by address; none: the default."""


async def _of_a_broker(ports: Ports) -> dict[str, Any]:
    """Ten connections by the further listener, an eleventh, and one by the brokers' own."""
    clients = [await Client.of(ports.other) for _ in range(10)]
    outcomes = [await client.ask() for client in clients]
    eleventh = await Client.of(ports.other)
    before = await eleventh.ask()
    clients.pop(3).close()
    after = await eleventh.outcome()
    still = [await client.ask() for client in clients]
    protected = await Client.of(ports.plain)
    protected_outcome = await protected.ask()
    await asyncio.sleep(1.0)
    pushed_out = [await client.ask() for client in (*clients, eleventh)]
    for client in (*clients, eleventh, protected):
        client.close()
    return {
        "ten": outcomes,
        "eleventh": before,
        "eleventh after one was closed": after,
        "others": still,
        "by the brokers' listener": protected_outcome,
        "others after that, least recently used first": pushed_out,
    }


async def _of_an_address(ports: Ports) -> dict[str, Any]:
    """Connections of two addresses, one more than each may have, and after one was closed."""
    found: dict[str, Any] = {}
    for name, address, most in (("default", LIMITED, 3), ("override", OVERRIDDEN, 5)):
        clients = [await Client.of(ports.plain, address) for _ in range(most)]
        found[f"{name}: within"] = [await client.ask() for client in clients]
        found[f"{name}: one more"] = await (await Client.of(ports.plain, address)).ask()
        found[f"{name}: others"] = [await client.ask() for client in clients]
        clients[0].close()
        await asyncio.sleep(0.3)
        again = await Client.of(ports.plain, address)
        found[f"{name}: after one was closed"] = await again.ask()
        for client in (*clients, again):
            client.close()
    return found


async def _of_a_rate(ports: Ports) -> dict[str, Any]:
    """A burst of connections from an address with a rate of 1/s, another 3 s later, and one from another address."""
    found: dict[str, Any] = {}

    async def burst(count: int) -> tuple[list[str], list[float]]:
        clients = [await Client.of(ports.plain, SLOW) for _ in range(count)]
        outcomes = await asyncio.gather(*(client.ask(0.3) for client in clients))
        waits = [client for client, said in zip(clients, outcomes, strict=True) if said == "waits"]
        ends = await asyncio.gather(*(client.closed_after(5.0) for client in waits))
        for client in clients:
            client.close()
        return outcomes, [round(end + 0.3, 1) for end in ends if end is not None]

    for name in ("first", "second"):
        outcomes, ends = await burst(16)
        found[f"{name} burst"] = outcomes
        found[f"{name} burst: closed after seconds"] = [min(ends, default=None), max(ends, default=None)]
        other = await Client.of(ports.plain, FREE)
        found[f"{name} burst: another address"] = await other.ask()
        other.close()
        if name == "first":
            await asyncio.sleep(1.0)
    return found


async def _of_all(ports: Ports) -> dict[str, Any]:
    """A burst of connections at a listener that accepts 4 a second."""
    began = time.monotonic()
    clients = [await Client.of(ports.other) for _ in range(60)]

    async def answered_after(client: Client) -> float:
        said = await client.ask(30.0)
        assert said == "answered", said
        return time.monotonic() - began

    ends = sorted(await asyncio.gather(*(answered_after(client) for client in clients)))
    for client in clients:
        client.close()
    return {"answered after seconds": [round(end, 1) for end in ends]}


def _join_group() -> bytes:
    """JoinGroup 0 of a member that waits for others, as its group has a long initial delay."""
    protocols = struct.pack(">i", 1) + struct.pack(">h", 5) + b"range" + struct.pack(">i", 0)
    body = struct.pack(">h", 1) + b"g" + struct.pack(">i", 30_000) + struct.pack(">h", 0)
    head = struct.pack(">hhih", 11, 0, 2, 4) + b"test"
    return head + body + struct.pack(">h", 8) + b"consumer" + protocols


async def _idle(ports: Ports) -> dict[str, Any]:
    """When connections are closed that are idle, wait for an answer, or send a request byte by byte."""
    silent, asked, parked, dribbles = [await Client.of(ports.plain) for _ in range(4)]
    await asked.ask()
    parked.request(_join_group())
    frame = struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS

    async def dribble() -> str:
        for at in range(len(frame)):
            dribbles.send(frame[at : at + 1])
            await asyncio.sleep(0.4)
        return await dribbles.outcome()

    most = IDLE_MS / 1_000 + 4.0
    *ends, dribbled = await asyncio.gather(
        silent.closed_after(most), asked.closed_after(most), parked.closed_after(most), dribble()
    )
    named = zip(("silent", "asked once", "waits in a JoinGroup"), ends, strict=True)
    # An end is at the time or a look later.
    found: dict[str, Any] = {
        name: None if end is None else IDLE_MS / 1_000 <= end < IDLE_MS / 1_000 + 1.5 for name, end in named
    }
    for client in (silent, asked, parked, dribbles):
        client.close()
    return {**found, "a byte each 0.4 s": dribbled}


SCENARIOS: Final[dict[str, Scenario]] = {
    "max.connections": Scenario({"max.connections": "10"}, _of_a_broker),
    "max.connections.per.ip": Scenario(
        {
            "max.connections.per.ip": "3",
            "max.connections.per.ip.overrides": f"{FREE}:100,{OVERRIDDEN}:5",
        },
        _of_an_address,
    ),
    "connection_creation_rate": Scenario({}, _of_a_rate, {SLOW: 1.0}),
    "max.connection.creation.rate": Scenario({"listener.name.other.max.connection.creation.rate": "4"}, _of_all),
    "connections.max.idle.ms": Scenario(
        {
            "connections.max.idle.ms": str(IDLE_MS),
            "group.initial.rebalance.delay.ms": "20000",
            "offsets.topic.num.partitions": "1",
        },
        _idle,
    ),
}
