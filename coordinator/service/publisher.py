"""Where an event goes once the core has emitted it: journal, feed, metrics, log line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.service.feed import Feed
from rejoin.coordinator.service.load_summaries import Loads
from rejoin.coordinator.service.logs import LEVELS, level_of, shortened
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.storage.log_throttle import LogThrottle, counted
from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events import coordinator as events
from rejoin.journal.events.base import Event
from rejoin.journal.schema import JournalSchema, events_in
from rejoin.journal.writer import JournalWriter

FLUSH_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 1.0


def journal_schema() -> JournalSchema:
    """The rows that a coordinator writes."""
    return JournalSchema(events_in(events))


class Publisher:
    """Gives each event its number and hands it round. Without a journal the numbers live as long as the process."""

    def __init__(self, run_id: str, node: str, metrics: Metrics, journal: JournalWriter | None = None) -> None:
        self.journal = journal
        self.stream = {"source": "coordinator", "node": node, "run_id": run_id, "journal": journal is not None}
        """Whose rows these are now, and whether all are kept on disk; for readers elsewhere that follow them."""
        self.feed = Feed(after=journal.seq if journal is not None else 0)
        self._metrics = metrics
        self._encoder = RowEncoder(run_id, "coordinator", node)
        self._log: Any = structlog.get_logger("coordinator").bind()
        self._flush_ordered = False
        self._quiet = False
        self._loads = Loads(self._log)
        self._throttle = LogThrottle(self._log)

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Log what happens meanwhile at debug: a node that starts or stops takes or leaves every partition at once.

        The end of their loading comes later; it is one line for all of them.
        """
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False
            self._loads.all_taken()

    def publish(self, event: Event, now: Millis) -> None:
        """Make an event known."""
        if self.journal is not None:
            line = self.journal.record(event, now)
            if not self._flush_ordered:
                self._order_flush(FLUSH_SECONDS)
        else:
            line = self._encoder.encode(self.feed.head + 1, now, event)
        self.feed.add(line, event)
        self._metrics.count_event(event)
        is_in_summary = self._loads.take_in(event, together=self._quiet)
        level = "debug" if self._quiet or is_in_summary else level_of(event)
        times = 1
        if level == "warning":
            times = self._throttle.due(event.name)
            level = "warning" if times else "debug"
        if self._log.is_enabled_for(LEVELS[level]):
            getattr(self._log, level)(event.name, **shortened(event), **counted(times))

    def flush(self) -> None:
        """Write the journal. A failure is logged and tried again; rows wait in memory meanwhile."""
        self._flush_ordered = False
        if self.journal is None:
            return
        try:
            self.journal.flush()
        except OSError as problem:
            self._metrics.journal_failures += 1
            waiting = self.journal.unflushed_bytes
            self._throttle.failed("journal_not_written", str(problem), waiting_bytes=waiting)
            self._order_flush(_RETRY_SECONDS)
        else:
            self._throttle.recovered("journal_not_written", "journal_written_again")

    def close(self) -> None:
        """Send listeners home and close the journal."""
        self.feed.close()
        self._loads.stop()
        if self.journal is not None:
            try:
                self.journal.close()
            except OSError as problem:
                self._log.error("journal_not_closed", problem=str(problem))

    def _order_flush(self, seconds: float) -> None:
        self._flush_ordered = True
        asyncio.get_running_loop().call_later(seconds, self.flush)
