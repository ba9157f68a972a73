"""A node over real HTTP, for the tests that need sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options

Serve = Callable[..., Awaitable[App]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts nodes: topics as name to partitions, a rate for all of them, settings by names with underscores."""
    async with AsyncExitStack() as stack:

        async def start(
            topics: dict[str, int] | None = None, rate: float = 1_000.0, port: int = 0, **settings: Any
        ) -> App:
            settings.setdefault("group_initial_rebalance_delay_ms", 0)
            wanted = tuple(InitialTopic(name, count, rate) for name, count in (topics or {"orders": 4}).items())
            options = Options(port=port, settings=Settings(**settings), topics=wanted)
            return await stack.enter_async_context(App(options))

        yield start
