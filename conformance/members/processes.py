"""Clients in processes of their own, and a real cluster behind proxies that record their requests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from conformance.kafka.broker import JAVA, Cluster
from conformance.members.proxy import LostAnswer, ProxiedExchange, Proxy

END_SECONDS: Final = 40
COMMAND_SECONDS: Final = 60


class Processes:
    """Processes by name, each with commands on its standard input."""

    def __init__(self, jars: str) -> None:
        self._jars = jars
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(
        self, name: str, program: Path | str, arguments: list[str], settings: Mapping[str, str], *, answers: bool
    ) -> None:
        """Start a Java source file, or a module of Python, which may answer its commands on standard output."""
        java = [*JAVA, "-cp", self._jars, str(program)]
        command = java if isinstance(program, Path) else [sys.executable, "-m", program]
        self._running[name] = await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            *(f"{key}={value}" for key, value in settings.items()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE if answers else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    def send(self, name: str, command: str) -> None:
        stdin = self._running[name].stdin
        assert stdin is not None, "its input is a pipe"
        stdin.write(f"{command}\n".encode())

    async def do(self, name: str, command: str) -> str:
        """Send a command, and return the line that the process prints."""
        self.send(name, command)
        stdout = self._running[name].stdout
        assert stdout is not None, "its output is a pipe"
        async with asyncio.timeout(COMMAND_SECONDS):
            return (await stdout.readline()).decode().strip()

    async def ended(self, name: str) -> None:
        """Wait until a process has ended by itself."""
        await asyncio.wait_for(self._running[name].wait(), END_SECONDS)

    async def kill(self, name: str) -> None:
        self._running[name].kill()
        await self._running[name].wait()

    async def close(self) -> None:
        """Kill every process that still runs."""
        for name, process in self._running.items():
            if process.returncode is None:
                await self.kill(name)


@asynccontextmanager
async def proxied_cluster(
    jars: str,
    brokers: int,
    settings: dict[str, str],
    exchanges: list[ProxiedExchange],
    losing: list[LostAnswer] | None = None,
) -> AsyncIterator[tuple[Cluster, list[Proxy]]]:
    """A cluster of so many brokers that advertises the proxies before them."""
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(Proxy(0, exchanges, losing)) for _ in range(brokers)]
        advertised = {number: proxy.port for number, proxy in enumerate(proxies, 1)}
        cluster = await stack.enter_async_context(Cluster(jars, brokers, settings, advertised=advertised))
        for number, proxy in enumerate(proxies, 1):
            proxy.port_of_broker = cluster.ports[number]
        yield cluster, proxies
