"""Publishes the core's events to the journal, the feed, the metrics and the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from rejoin.coordinator.core.effects import DeferredEvents
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.service.feed import Feed, FeedRow
from rejoin.coordinator.service.log_lines.load_summaries import LOADING_EVENTS, Loads
from rejoin.coordinator.service.logs import LEVELS, is_level_fixed, level_of, shortened
from rejoin.coordinator.service.metrics import Metrics
from rejoin.coordinator.storage.log_throttle import LogThrottle, counted
from rejoin.journal.envelope import RowEncoder
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import JournalRowsLost
from rejoin.journal.writer import JournalWriter

FLUSH_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 1.0


class Publisher:
    """Numbers each event and publishes it. Without a journal the numbers start anew with each process."""

    def __init__(self, run_id: str, node: str, metrics: Metrics, journal: JournalWriter | None = None) -> None:
        self.journal = journal
        self.stream = {"source": "coordinator", "node": node, "run_id": run_id, "journal": journal is not None}
        """Source, node and run of the rows, and whether a journal keeps them; for readers that follow the stream."""
        self.feed = Feed(after=journal.seq if journal is not None else 0)
        self.journal_problem = ""
        """Why the journal cannot be written, while it cannot."""
        self._metrics = metrics
        self._encoder = RowEncoder(run_id, "coordinator", node)
        self._log: Any = structlog.get_logger("coordinator").bind()
        self._logged = {level for level, number in LEVELS.items() if self._log.is_enabled_for(number)}
        self._unlogged: set[type[Event]] = set()
        """Classes of events that are below the levels that are logged, as far as any came."""
        self._flush_ordered = False
        self._newest_at: Millis = 0
        self._at_debug_level = False
        self._loads = Loads(self._log)
        self._throttle = LogThrottle(self._log)

    @contextmanager
    def at_debug_level(self) -> Iterator[None]:
        """Log events at debug level meanwhile: a node that starts or stops changes every partition at once.

        Their loading ends later and gets one line for all of them.
        """
        self._at_debug_level = True
        try:
            yield
        finally:
            self._at_debug_level = False
            self._loads.all_elected()

    def publish(self, event: Event, now: Millis) -> None:
        """Number an event and hand it to journal, feed, metrics and log."""
        self._newest_at = now
        feed = self.feed
        if self.journal is not None:
            row = self.journal.record(event, now)
            assert self.journal.seq == feed.head + 1, "the feed has every row of the journal"
            if not self._flush_ordered:
                self._order_flush(FLUSH_SECONDS)
        else:
            row = self._encoder.encode(feed.head + 1, now, event)
        feed.add(row, event)
        self._metrics.count_event(event)
        if type(event) not in self._unlogged:
            self._write_log_line(event)

    def publish_deferred(self, events: DeferredEvents, now: Millis) -> None:
        """Publish events; without a journal or a log line they are made when the feed's reader comes to them."""
        if self.journal is not None or not events.counts.keys() <= self._unlogged:
            for event in events.make():
                self.publish(event, now)
            return
        self._newest_at = now
        first = self.feed.head + 1

        def rows() -> list[FeedRow]:
            made = enumerate(events.make(), first)
            encode = self._encoder.encode
            return [FeedRow(seq, each.name, events.group_id, encode(seq, now, each)) for seq, each in made]

        self.feed.add_deferred(sum(events.counts.values()), events.group_id, rows)
        self._metrics.count_unread(events.counts)

    def _write_log_line(self, event: Event) -> None:
        is_in_summary = type(event) in LOADING_EVENTS and self._loads.take_in(event, together=self._at_debug_level)
        level = "debug" if self._at_debug_level or is_in_summary else level_of(event)
        if level not in self._logged:
            if is_level_fixed(event) and not self._at_debug_level and type(event) not in LOADING_EVENTS:
                self._unlogged.add(type(event))
            return
        times = 1
        if level == "warning":
            times = self._throttle.due(event.name)
            level = "warning" if times else "debug"
        if level in self._logged:
            getattr(self._log, level)(event.name, **shortened(event), **counted(times))

    def flush(self) -> None:
        """Write the journal. A failure is logged and retried; rows stay in memory meanwhile, as many as fit there."""
        self._flush_ordered = False
        if self.journal is None:
            return
        try:
            self.journal.flush()
        except OSError as problem:
            self._metrics.journal_failures += 1
            waiting = self.journal.unflushed_bytes
            self.journal_problem = problem.strerror or str(problem)
            self._throttle.failed("journal_not_written", str(problem), waiting_bytes=waiting)
            self._order_flush(_RETRY_SECONDS)
        else:
            self.journal_problem = ""
            self._throttle.recovered("journal_not_written", "journal_written_again")
            if lost := self.journal.take_lost():
                self._metrics.journal_rows_lost += lost
                self.publish(JournalRowsLost(rows_lost=lost), self._newest_at)

    def close(self) -> None:
        """Close the feed and the journal."""
        self.feed.close()
        self._loads.stop()
        if self.journal is not None:
            try:
                self.journal.flush()
                if lost := self.journal.take_lost():
                    self.journal.append(JournalRowsLost(rows_lost=lost), self._newest_at)
                self.journal.close()
            except OSError as problem:
                self._log.error("journal_not_closed", problem=str(problem))

    def _order_flush(self, seconds: float) -> None:
        self._flush_ordered = True
        asyncio.get_running_loop().call_later(seconds, self.flush)
