"""Events of the cluster's groups and producers as a feed, which pages follow as they follow a node's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final

import orjson
import structlog

from rejoin.coordinator.service.feed import Feed
from rejoin.journal.envelope import SCHEMA_VERSION, Envelope, JournalRow
from rejoin.pipeline.drawn.row_events import fields_of, filled
from rejoin.pipeline.event_fields import EVENT_CLASSES
from rejoin.proxy.live.exchanges import EventFields, SeenExchanges, Subject
from rejoin.proxy.live.lines import NewestLines

NODE: Final = "coordinator"
"""The node of all events, which stands for the one that is not known: lines of requests do not name their broker."""
LOOKED_SECONDS: Final = 30.0
"""How long events are concluded after a page has asked for something."""
SETTLED_MS: Final = 700
"""The age of an event that is published: what follows within it may say more about it."""
EVERY_SECONDS: Final = 0.3
_BUSY_SHARE: Final = 0.1
"""The share of the time that conclusions may take."""
_LINES_AT_ONCE: Final = 100

EventKey = tuple[Any, ...]


class SeenEvents:
    """Publishes each event once. Nothing is concluded while no page is open."""

    def __init__(self, run_id: str, now_ms: Callable[[], float]) -> None:
        self.lines = NewestLines()
        self.feed = Feed()
        self.stream = {"source": "coordinator", "node": NODE, "run_id": run_id, "journal": False}
        self.of_groups: dict[str, list[EventFields]] = {}
        """The events of each group that are known by now."""
        self._exchanges = SeenExchanges(NODE)
        self._now_ms = now_ms
        self._published: dict[Subject, set[EventKey]] = {}
        self._floor_ms: dict[Subject, int] = {}
        """Events up to this instant were concluded when more was known."""
        self._unsettled: set[Subject] = set()
        self._looked_at = -LOOKED_SECONDS
        self._task: asyncio.Task[None] | None = None
        self._log: Any = structlog.get_logger("proxy").bind()

    def looked(self) -> None:
        """A page has asked for something."""
        self._looked_at = monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._follow())

    @property
    def _is_looked_at(self) -> bool:
        return bool(self.feed.streams) or monotonic() - self._looked_at < LOOKED_SECONDS

    async def _follow(self) -> None:
        try:
            while self._is_looked_at and not self.feed.closed:
                began = monotonic()
                await self.update()
                await asyncio.sleep(max(EVERY_SECONDS, (monotonic() - began) / _BUSY_SHARE))
        except Exception as problem:
            self._log.error("proxy_page_failed", problem=repr(problem), exc_info=problem)

    async def update(self) -> None:
        """Read the lines that have come, and publish the events that they show. Requests pass in between."""
        while lines := self.lines.take(_LINES_AT_ONCE):
            self._exchanges.read(lines)
            await asyncio.sleep(0)
        fresh: list[tuple[Subject, EventFields]] = []
        for subject in sorted(self._exchanges.changed | self._unsettled):
            fresh += ((subject, row) for row in self._new_of(subject))
            await asyncio.sleep(0)
        for _, row in sorted(fresh, key=lambda each: each[1]["order_ms"]):
            self._publish(row)

    def _new_of(self, subject: Subject) -> Iterable[EventFields]:
        """The events that are settled, and were not published."""
        published = self._published.get(subject, set())
        if subject in self._exchanges.cut and published:
            self._floor_ms[subject] = max(key[1] for key in published)
        rows = self._exchanges.events(subject)
        if subject[0] == "group":
            self.of_groups[subject[1]] = rows
        floor, settled = self._floor_ms.get(subject, 0), self._now_ms() - SETTLED_MS
        found = [row for row in rows if floor < row["at_ms"] <= settled]
        keys = {_key(row) for row in found}
        self._published[subject] = keys | {key for key in published if key[1] > floor}
        if any(row["at_ms"] > settled for row in rows):
            self._unsettled.add(subject)
        else:
            self._unsettled.discard(subject)
        return [row for row in found if _key(row) not in published]

    def _publish(self, row: EventFields) -> None:
        event = EVENT_CLASSES.get(row["event"])
        if event is None:
            return
        head = {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.stream["run_id"],
            "source": "coordinator",
            "node": NODE,
            "seq": self.feed.head + 1,
            "at_ms": row["at_ms"],
            "event": row["event"],
            "confidence": row.get("confidence"),
        }
        text = orjson.dumps({**head, **fields_of(event, row)})
        about: dict[str, Any] = {"group_id": row.get("group_id")}
        self.feed.add(text, event.model_construct(None, **about))

    async def stop(self) -> None:
        """End all streams."""
        self.feed.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _key(row: EventFields) -> EventKey:
    """The identity of an event, also when it is concluded anew; its instant is the second part."""
    return row["event"], row["at_ms"], row.get("member_id"), row.get("generation"), row.get("producer_id")


def read_row(text: bytes) -> JournalRow:
    """A row of the feed as one that is drawn: what is not known is empty."""
    row = orjson.loads(text)
    event = EVENT_CLASSES[row["event"]]
    envelope = Envelope.model_construct(**{name: row[name] for name in Envelope.model_fields})
    values = {name: row.get(name) for name in event.model_fields}
    return JournalRow(envelope, filled(event, values))
