"""Exchanges by the group or the producer that they are about, and the events that are concluded from them.

The conclusions are those of ``rejoin why`` and ``rejoin report``: one implementation reads journals and this.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.exchanges.producers import producer_events, transactional_id_of
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import NAMING, named_topics
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement
from rejoin.pipeline.reading.request_log import OF_PRODUCERS, LoggedExchange

MOST_OF_ONE: Final = 2_000
"""Exchanges that are kept of one group or producer."""
MOST_EXCHANGES: Final = 40_000
"""Exchanges that are kept of all; then the group or producer that was quiet for longest is forgotten."""
_MOST_NAMES: Final = 100_000
_FILE: Final = "kafka-request.log"

EventFields = dict[str, Any]
"""An event as a row of the table ``events``."""
Subject = tuple[str, str]
"""``group`` or ``producer``, and its id."""


class SeenExchanges:
    """The newest exchanges of each group and of each producer."""

    def __init__(self, node: str) -> None:
        """``node`` stands for the broker, as it does for those that logs do not name."""
        self._file = LogFile(_FILE, node)
        self._node = node
        self._asked: OrderedDict[Subject, list[SourcedExchange]] = OrderedDict()
        self._names: dict[str, str] = {}
        self._kept = 0
        self.changed: set[Subject] = set()
        """Groups and producers with exchanges that :meth:`events` has not seen."""
        self.cut: set[Subject] = set()
        """Groups and producers of which older exchanges were forgotten since :meth:`events` was called."""

    def read(self, lines: Iterable[str]) -> None:
        """Take lines of a request log."""
        for found in self._file.statements([f"{line}\n".encode() for line in lines]):
            if not isinstance(found, Statement | BrokenLine):
                self._take(found)

    def _take(self, found: LoggedExchange) -> None:
        if found.api in NAMING:
            if len(self._names) < _MOST_NAMES:
                self._names.update(named_topics(found.response))
            return
        transactional_id = transactional_id_of(found.request)
        if found.api in OF_PRODUCERS or transactional_id is not None:
            self._keep(("producer", transactional_id or ""), found)
        if found.api not in OF_PRODUCERS and found.group_id is not None:
            self._keep(("group", found.group_id), found)

    def _keep(self, subject: Subject, found: LoggedExchange) -> None:
        asked = self._asked.setdefault(subject, [])
        self._asked.move_to_end(subject)
        asked.append(SourcedExchange(found, self._node, _FILE))
        self._kept += 1
        self.changed.add(subject)
        if len(asked) > MOST_OF_ONE:
            # A quarter at a time, so that most events are concluded from the same exchanges as before.
            forgotten = MOST_OF_ONE // 4
            del asked[:forgotten]
            self._kept -= forgotten
            self.cut.add(subject)
        while self._kept > MOST_EXCHANGES:
            oldest, left = self._asked.popitem(last=False)
            self._kept -= len(left)
            self.changed.discard(oldest)
            self.cut.discard(oldest)

    def events(self, subject: Subject) -> list[EventFields]:
        """The events of a group or of a producer, in the order of time."""
        self.changed.discard(subject)
        self.cut.discard(subject)
        asked = self._asked.get(subject, [])
        rows = complete([], asked, self._names) if subject[0] == "group" else list(producer_events(asked))
        return sorted(rows, key=lambda row: row["order_ms"])
