"""Synchronizes a node's core with the topics log: stores its changes and reads those of other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import structlog

from rejoin.coordinator.core.effects import AppendTopics
from rejoin.coordinator.core.inputs import Input, TopicsRecords, TopicsStored
from rejoin.coordinator.storage.topics_log.base import TopicsLog, TopicsNotStored
from rejoin.protocol.errors import ErrorCode

COMPACT_EVERY: Final = 500
"""Number of changes after which one row replaces them all."""


class TopicsState(Protocol):
    """The parts of a node's core that this module reads."""

    @property
    def topics_version(self) -> int:
        """The version of the log that the core has applied."""

    def topics_records(self) -> TopicsRecords:
        """All topics, as records."""


class TopicsSync:
    """The topics log as a runtime needs it."""

    def __init__(self, log: TopicsLog, node: Callable[[], TopicsState], hand_in: Callable[[Input], None]) -> None:
        self._log = log
        self._node = node
        self._hand_in = hand_in
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._catching_up: asyncio.Task[None] | None = None
        self._stale = False
        self._logger: Any = structlog.get_logger("coordinator").bind()

    async def catch_up(self) -> None:
        """Read the changes from the log. Raises :class:`TopicsNotStored` where it cannot be read."""
        async with self._one_at_a_time:
            try:
                changes = await self._log.read(self._node().topics_version)
            except ValueError as problem:
                text = f"{next(iter(str(problem).splitlines()), '')}; rejoin log verify says what to do"
                raise TopicsNotStored(ErrorCode.KAFKA_STORAGE_ERROR, text) from problem
            self._hand_in(changes)

    def catch_up_soon(self) -> None:
        """The log may have changed: catch up soon. A failure is left to the next call."""
        self._stale = True
        if self._catching_up is None:
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up_quietly())

    async def _catch_up_quietly(self) -> None:
        try:
            while self._stale:
                self._stale = False
                await self.catch_up()
        except TopicsNotStored as problem:
            self._logger.warning("topics_not_read", problem=str(problem))
        finally:
            self._catching_up = None

    def append(self, wanted: AppendTopics) -> None:
        """Store a change, and hand in how that ended."""
        self._spawn(self._append(wanted))

    async def _append(self, wanted: AppendTopics) -> None:
        try:
            stored = await self._log.append(wanted.version, wanted.records)
            if stored is None:
                await self.catch_up()
        except TopicsNotStored as problem:
            self._logger.warning("topics_not_stored", problem=str(problem))
            self._hand_in(TopicsStored(wanted.append_id, error=problem.error))
            return
        except Exception as problem:
            self._logger.error("topics_not_stored", problem=repr(problem), exc_info=problem)
            self._hand_in(TopicsStored(wanted.append_id, error=ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._hand_in(TopicsStored(wanted.append_id, stored or 0, overtaken=stored is None))
        if stored is not None and stored % COMPACT_EVERY == 0 and self._node().topics_version == stored:
            self._spawn(self._compact(stored, self._node().topics_records()))

    async def _compact(self, version: int, records: TopicsRecords) -> None:
        try:
            await self._log.compact(version, records)
        except TopicsNotStored as problem:
            self._logger.warning("topics_not_compacted", problem=str(problem))

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Finish the appends in flight, with a short timeout."""
        tasks = [*self._tasks, *([self._catching_up] if self._catching_up is not None else [])]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=2.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
