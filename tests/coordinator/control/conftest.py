"""Nodes that can be controlled, over real HTTP on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import ControlOptions, InitialTopic, Options
from tests.coordinator.control.helpers import ControlledNode

Start = Callable[..., Awaitable[ControlledNode]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts nodes on a clock, with settings by Kafka's names with underscores."""
    async with AsyncExitStack() as stack:

        async def begin(clock: str = "virtual", token: str | None = None, **settings: Any) -> ControlledNode:
            options = Options(
                port=0,
                settings=Settings(**settings),
                topics=(InitialTopic("orders", 3),),
                control=ControlOptions(token=token, clock=clock),
            )
            app = await stack.enter_async_context(App(options))
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(30))
            )
            return ControlledNode(app, session)

        yield begin


@pytest.fixture
async def node(start: Start) -> ControlledNode:
    """A node on a virtual clock, with Kafka's default settings and a topic ``orders`` of three partitions."""
    return await start()
