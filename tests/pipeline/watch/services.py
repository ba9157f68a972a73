"""A real service in a thread of its own, whose events a test chooses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rejoin.coordinator.config import Settings
from rejoin.coordinator.service import logs
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import Options
from rejoin.coordinator.storage.memory import MemoryLog
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import GroupCreated
from tests.coordinator.service.helpers import ManualClock

logs.configure("critical")


class RunningService:
    """A running service. Its clock stands still, so it emits only the events that it is given."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self._loop = loop

    @property
    def url(self) -> str:
        return self.app.url

    @property
    def head(self) -> int:
        return self.app.publisher.feed.head

    @property
    def run_id(self) -> str:
        return str(self.app.publisher.stream["run_id"])

    def publish(self, events: Iterable[tuple[Event, int]]) -> None:
        """Emit events, each with its instant."""
        emitted = list(events)

        def close_feed() -> None:
            for event, at_ms in emitted:
                self.app.publisher.publish(event, at_ms)

        _on(self._loop, close_feed)

    def chatter(self, count: int) -> None:
        """So many events about nothing."""
        self.publish(
            (GroupCreated(group_id=f"g{number % 7}", offsets_partition=0, simple=True), 1) for number in range(count)
        )

    def keep_only(self, rows: int) -> None:
        """Let the service forget all but the newest rows."""

        def forget() -> None:
            self.app.publisher.feed._retained_rows = rows

        _on(self._loop, forget)
        self.chatter(1)


@contextmanager
def serving(journal: Path | None = None, port: int = 0, broker_id: int = 1) -> Iterator[RunningService]:
    """A service on loopback."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    options: dict[str, Any] = {"port": port, "journal": journal, "clock": ManualClock(), "log": MemoryLog()}

    async def start() -> App:
        app = App(Options(settings=Settings.model_validate({"broker.id": broker_id}), **options))
        await app.start()
        return app

    try:
        app = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
        try:
            yield RunningService(app, loop)
        finally:
            asyncio.run_coroutine_threadsafe(app.stop(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _on(loop: asyncio.AbstractEventLoop, call: Any) -> None:
    done: Future[None] = Future()

    def run() -> None:
        call()
        done.set_result(None)

    loop.call_soon_threadsafe(run)
    done.result(60)
