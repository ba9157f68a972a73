"""Brokers' logs beside the snapshots of a cluster: they are read on as they grow, and say why groups rebalance."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from rejoin.pipeline.event_fields import EVENT_COLUMNS
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import NAMING, named_topics
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.reconstruction import reconstruct_group
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import LogFile, Statement, node_of
from rejoin.pipeline.reading.request_log import LoggedExchange
from rejoin.pipeline.vocabulary import BROKER_LOG

MOST_STATEMENTS: Final = 20_000
"""Statements kept for a group; older ones are forgotten."""
AT_ONCE_BYTES: Final = 16 * 2**20
"""How much of a log is held in memory."""

Row = dict[str, Any]


class LogTail:
    """One log. It is read from its beginning, and from there again when it is rotated."""

    def __init__(self, path: Path, zone: ZoneInfo) -> None:
        self._path = path
        self._zone = zone
        self._file = LogFile(str(path), node_of(str(path)), zone)
        self._position = 0
        self._inode: int | None = None

    @property
    def node(self) -> str:
        """The broker, as far as is known by now."""
        return self._file.node

    @property
    def name(self) -> str:
        """The name of the file."""
        return str(self._path)

    def read_on(self) -> Iterator[Statement | LoggedExchange]:
        """The statements and requests of the whole lines that have come since. Raises OSError."""
        status = os.stat(self._path)
        if self._inode not in (None, status.st_ino):
            yield from self._rest_of_rotated()
            self._position = 0
        elif status.st_size < self._position:
            self._position = 0
        self._inode = status.st_ino
        yield from self._read(self._path, status.st_size)

    def _rest_of_rotated(self) -> Iterator[Statement | LoggedExchange]:
        """Statements that were written to the file before rotation renamed it, and not read yet."""
        for each in self._path.parent.iterdir():
            with suppress(OSError):
                status = each.stat()
                if status.st_ino == self._inode:
                    yield from self._read(each, status.st_size)
                    return

    def _read(self, path: Path, end: int) -> Iterator[Statement | LoggedExchange]:
        """Read on to ``end``, piece by piece. A last line without its end waits, unless it fills a piece."""
        with path.open("rb") as file:
            while self._position < end:
                file.seek(self._position)
                data = file.read(min(AT_ONCE_BYTES, end - self._position))
                whole = data[: data.rfind(b"\n") + 1]
                if not whole and len(data) == AT_ONCE_BYTES:
                    whole = data
                if not whole:
                    return
                self._position += len(whole)
                found = self._file.statements(whole.splitlines(keepends=True))
                yield from (each for each in found if not isinstance(each, BrokenLine))


class LogTails:
    """Several logs, of all brokers of a cluster."""

    def __init__(self, paths: Sequence[Path], timezone: str = "UTC") -> None:
        zone = ZoneInfo(timezone)
        self._tails = [LogTail(path, zone) for path in paths]
        self._statements: dict[str, list[Statement]] = defaultdict(list)
        self._asked: dict[str, list[SourcedExchange]] = defaultdict(list)
        self._names: dict[str, str] = {}
        """Names of topics by id, from answers of request logs."""
        self._events: dict[str, list[Row]] = {}

    def read_on(self) -> list[str]:
        """Read what was appended; returns the problems of logs that cannot be read."""
        problems = []
        for tail in self._tails:
            try:
                for found in tail.read_on():
                    self._take(tail, found)
            except OSError as problem:
                problems.append(f"{problem.filename}: {problem.strerror}; it is read again")
        return problems

    def _take(self, tail: LogTail, found: Statement | LoggedExchange) -> None:
        if isinstance(found, Statement):
            if found.group is not None:
                self._statements[found.group].append(found)
                del self._statements[found.group][:-MOST_STATEMENTS]
                self._events.pop(found.group, None)
        elif found.api in NAMING:
            self._names.update(named_topics(found.response))
        elif found.group_id is not None:
            self._asked[found.group_id].append(SourcedExchange(found, tail.node, tail.name))
            del self._asked[found.group_id][:-MOST_STATEMENTS]
            self._events.pop(found.group_id, None)

    def events(self, group_id: str) -> list[Row]:
        """Rows of the table ``events`` about a group, in the order of time."""
        if group_id not in self._statements and group_id not in self._asked:
            return []
        if group_id not in self._events:
            in_order = sorted(self._statements[group_id], key=lambda each: each.order_ms)
            said = list(reconstruct_group(group_id, in_order))
            rows = complete(said, self._asked[group_id], self._names) if self._asked[group_id] else said
            rows.sort(key=lambda row: row["order_ms"])
            none = dict.fromkeys(EVENT_COLUMNS)
            self._events[group_id] = [
                {**none, "run_id": "logs", "source": BROKER_LOG, "seq": number, **row}
                for number, row in enumerate(rows, 1)
            ]
        return self._events[group_id]
