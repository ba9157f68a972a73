"""Replays a recording against a whole node over real HTTP, on a clock that moves only on command."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
import pytest

from conformance.replay.replay import Emulator, Ids, Recording, is_served, planned_producer_ids, settings_of
from rejoin.conform.comparison.compare import REFUSED, RecordedAnswer, RecordedExchange
from rejoin.coordinator.core.effects import Effect
from rejoin.coordinator.core.inputs import Input, Received
from rejoin.coordinator.service import app as app_module
from rejoin.coordinator.service.app import App
from rejoin.coordinator.service.options import InitialTopic, Options
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.service.helpers import START, ManualClock

PATIENCE_SECONDS: Final = 10.0


class DrawnId(str):
    """An id that is handed out where a UUID is expected."""

    __slots__ = ()

    @property
    def hex(self) -> str:
        return str(self)


class OverHttp:
    """One node, one recording."""

    def __init__(self, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
        self._recording = recording
        self._ids = Ids()
        self._clock = ManualClock()
        self._due = {number: answer.at for number, answer in Emulator(recording).play().items()}
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._taken = asyncio.Event()
        self.answers: dict[int, RecordedAnswer] = {}
        drawing = SimpleNamespace(uuid4=lambda: DrawnId(self._ids()))
        monkeypatch.setattr(app_module, "uuid", drawing)

    async def play(self) -> dict[int, RecordedAnswer]:
        """Every request of the recording; the answers by number."""
        topics = tuple(InitialTopic(name, count) for name, count in self._recording.topics.items())
        options = Options(settings=settings_of(self._recording), port=0, topics=topics, clock=self._clock)
        app = App(options)
        self._ids.plan_topics(list(self._recording.topics))
        self._watch(app)
        asked = [one for one in self._recording.exchanges if is_served(one)]
        connector = aiohttp.TCPConnector(limit=0)
        async with app, aiohttp.ClientSession(app.url, connector=connector) as session:
            moments = sorted({one.at for one in asked} | set(self._due.values()))
            for moment in moments:
                self._clock.advance(START + moment - self._clock.now())
                for one in asked:
                    if one.at == moment:
                        await self._send(session, one)
                await self._collect(moment)
            for task in self._tasks.values():
                task.cancel()
        return self.answers

    def _watch(self, app: App) -> None:
        """Know when a request has reached the core."""
        node = app.runtime.node
        self._hand_in = app.runtime.hand_in
        step = node.step

        def watched(what: Input, now: int, **late: bool) -> list[Effect]:
            if isinstance(what, Received):
                self._taken.set()
            return step(what, now, **late)

        node.step = watched  # type: ignore[method-assign]

    async def _send(self, session: aiohttp.ClientSession, asked: RecordedExchange) -> None:
        self._ids.plan(asked)
        planned = planned_producer_ids(asked)
        if planned is not None:
            self._hand_in(planned)
        self._taken.clear()
        task = asyncio.create_task(self._ask(session, asked))
        taken = asyncio.create_task(self._taken.wait())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait({task, taken}, return_when=asyncio.FIRST_COMPLETED)
        taken.cancel()
        self._tasks[asked.number] = task

    async def _collect(self, moment: int) -> None:
        """Take in what is answered by now."""
        for number in [number for number in self._tasks if self._due.get(number, moment + 1) <= moment]:
            async with asyncio.timeout(PATIENCE_SECONDS):
                body = await self._tasks.pop(number)
            self.answers[number] = RecordedAnswer(self._clock.now() - START, body)

    async def _ask(self, session: aiohttp.ClientSession, asked: RecordedExchange) -> Any:
        headers = {
            "Content-Type": "application/json",
            "Kafka-Client-Id": asked.client,
            "Kafka-Api-Version": str(asked.version),
        }
        data = json.dumps(asked.request).encode()
        async with session.post(BY_NAME[asked.api].path, data=data, headers=headers) as answer:
            return await answer.json() if answer.status == 200 else REFUSED
