"""Start the coordinator of a test, and stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal

import structlog
from pydantic import ValidationError

from rejoin.coordinator.config import Settings
from rejoin.coordinator.in_process_brokers.cluster import BrokerCluster
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App, ControlOptions, InitialTopic, Options, StartFailed
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.coordinator.testing.coordinator import GroupCoordinator
from rejoin.protocol.validation import sentence

_HIGHEST_PORT: Final = 65_535


@asynccontextmanager
async def running(
    *,
    clock: Literal["real", "virtual"] | str = "real",
    topics: Mapping[str, int] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    socket: bool = True,
    port: int = 0,
    brokers: int = 1,
) -> AsyncIterator[GroupCoordinator]:
    """A coordinator on the running event loop, on a free port unless another is given, with no state on disk.

    ``topics`` maps names to partition counts, and ``settings`` are Kafka's, by their dotted names. With ``brokers``
    there are several, on ports of their own. Raises ValueError for arguments that make no sense, and RuntimeError at
    the end if a call was not awaited.
    """
    if not structlog.is_configured():
        logs.configure("critical")
    options = Options(
        settings=_settings(settings or {}),
        port=_port(port),
        kafka_port=0,
        topics=_topics({} if topics is None else topics),
        log=MemoryLog(),
        control=ControlOptions(clock=_clock(clock)),
        listen=socket,
    )
    async with AsyncExitStack() as stack:
        try:
            app: App | BrokerCluster = App(options) if brokers == 1 else BrokerCluster(options, _count(brokers))
            await stack.enter_async_context(app)
        except StartFailed as problem:
            raise ValueError(str(problem).removeprefix("--")) from None
        coordinator = GroupCoordinator(app, asyncio.get_running_loop(), socket)
        try:
            yield coordinator
        except BaseException as error:
            if forgotten := coordinator.calls.take_forgotten():
                error.add_note(forgotten)
            raise
        if forgotten := coordinator.calls.take_forgotten():
            raise RuntimeError(forgotten)


def _settings(given: Settings | Mapping[str, Any]) -> Settings:
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"settings: expected values by name, as {{'group.max.size': 3}}, not {given!r}")
    try:
        return Settings.model_validate(dict(given))
    except ValidationError as problem:
        raise ValueError(f"settings: {sentence(problem, Settings, kind='setting')}") from None


def _clock(clock: str) -> str:
    if not isinstance(clock, str):
        raise ValueError(f"clock: expected real, virtual, or fast:SPEED, as text, not {clock!r}")
    return clock


def _port(port: int) -> int:
    if not isinstance(port, int) or not 0 <= port <= _HIGHEST_PORT:
        raise ValueError(f"port: expected 0 to {_HIGHEST_PORT}, not {port!r}")
    return port


def _count(brokers: int) -> int:
    if type(brokers) is not int:
        raise ValueError(f"brokers: expected a number, not {brokers!r}")
    return brokers


def _topics(given: Mapping[str, int]) -> tuple[InitialTopic, ...]:
    pairs = given.items() if isinstance(given, Mapping) else ((None, None),)
    if not all(isinstance(name, str) and type(count) is int for name, count in pairs):
        raise ValueError(f"topics: expected partition counts by name, as {{'orders': 3}}, not {given!r}")
    return tuple(InitialTopic(name, partitions) for name, partitions in given.items())
