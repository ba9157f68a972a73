"""Nodes over real HTTP for the tests here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.storage.memory import MemoryLog
from tests.coordinator.faulty_log import FaultyLog
from tests.coordinator.service.helpers import Harness, ManualClock

Serve = Callable[..., Awaitable[Harness]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts nodes: settings by Kafka's names with underscores, and any of the service's options."""
    async with AsyncExitStack() as stack:

        async def start(options: dict[str, Any] | None = None, **settings: Any) -> Harness:
            clock, log = ManualClock(), FaultyLog(MemoryLog())
            given = {"port": 0, "clock": clock, "log": log, "settings": Settings(**settings), **(options or {})}
            app = await stack.enter_async_context(App(Options(**given)))
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(30))
            )
            return Harness(app, clock, log, session)

        yield start


@pytest.fixture
async def node(serve: Serve) -> Harness:
    """A node with Kafka's default settings."""
    return await serve()
