"""Reads one log file of brokers and clients into rows that are dealt out by subject. Spark is not needed.

A row has ``what`` (statement, request, client, end, name, broken or file), ``about`` (its subject: g: and a group, c:
and a client of a group that is not known, t: and a topic, x: and a transactional id, or p: and a node for offsets
partitions; none where a line has the name of a topic's id),
``order_ms``, ``node``, ``file``, ``line`` and ``body``, which is JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import orjson

from rejoin.journal.kafka_logs.bug_signs import SIGNS_OF_CLIENTS, STATES_VERSION, words_in
from rejoin.pipeline.reading.broker_logs.brokers import PARTITIONS_COUNTED
from rejoin.pipeline.reading.broker_logs.exchanges.log_ends import OF_ENDS, EndChooser
from rejoin.pipeline.reading.broker_logs.exchanges.producers import transactional_id_of
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import NAMING, counted_topics, named_topics
from rejoin.pipeline.reading.broker_logs.lines import BrokenLine
from rejoin.pipeline.reading.broker_logs.statements import MARKS, PARTITION_CREATED, LogFile, Statement, node_of
from rejoin.pipeline.reading.broker_logs.transactions import OF_TRANSACTIONS
from rejoin.pipeline.reading.client_logs.layouts import ClientLines, first_unplaced
from rejoin.pipeline.reading.client_logs.signed import MARKS as SIGNED
from rejoin.pipeline.reading.client_logs.statements import ClientLogFile
from rejoin.pipeline.reading.client_logs.unsigned import MARKS as UNSIGNED
from rejoin.pipeline.reading.coverage import MARKS as OF_FILES
from rejoin.pipeline.reading.limits import TOO_LARGE
from rejoin.pipeline.reading.packed.opening import ENDING, UNREADABLE, opened, size_of
from rejoin.pipeline.reading.peeling.order import LARGEST, LineOrder, OldestFirst, look_at_order
from rejoin.pipeline.reading.request_log import OF_PRODUCERS, LoggedExchange

COUNTS: Final = (
    *("lines", "statements", "requests", "other", "continuations", "broken", "not_utf8", "clock_steps"),
    *("guessed", *OF_FILES),
)
"""Counters of each file, in the order of the columns of ``READ``."""
_ROTATED: Final = re.compile(r"(?:\.(?:log|out|txt))?(?:\.\d[\d-]*|[.-]\d{4}-\d\d-\d\d[\d.-]*)*" + ENDING + "$")
"""The suffix that rotation and packing add to the name of a process's log; its own name may end in a number."""
_LOOK_BYTES: Final = 2**20
_MARKS_OF_BROKERS: Final = (
    *(each for each in MARKS if each not in (b"oordinator", STATES_VERSION)),
    b"[GroupCoordinator ",
    b"kafka.coordinator.",
)
_LONGEST_MARK: Final = 300
_MARKS_OF_CLIENTS: Final = (SIGNED, UNSIGNED, SIGNS_OF_CLIENTS)


def read_file(path: str, problem: str | None = None, timezone: str = "UTC") -> Iterator[dict[str, Any]]:
    """Rows of one file; the last one has its counts. Never raises for what is in it."""
    if problem is not None:
        yield _broken(path, BrokenLine(0, problem, ""))
        yield {"what": "file", "file": path, "body": _json({"file": path, **dict.fromkeys(COUNTS, 0), "broken": 1})}
        return
    zone = ZoneInfo(timezone)
    counts = dict.fromkeys(COUNTS, 0)
    try:
        of_brokers, of_clients = _written_by(path)
        with opened(path) as file:
            order = look_at_order(file)
        with opened(path) as file:
            words = words_in(iter(lambda: file.read(_LOOK_BYTES), b""))
        counts["turned_round"] = int(order is LineOrder.NEWEST_FIRST and size_of(path) <= LARGEST)
        said: set[int] = set()
        if of_clients:
            yield from _read_clients(path, zone, counts, said, words, is_untimed=order is LineOrder.NO_TIMES)
        if of_brokers or not of_clients:
            yield from _read_brokers(path, zone, counts, said, words)
    except UNREADABLE as trouble:
        counts["broken"] += 1
        yield _broken(path, BrokenLine(counts["lines"], f"cannot be read to its end: {trouble}", ""))
    yield {"what": "file", "file": path, "body": _json({"file": path, **counts})}


def _written_by(path: str) -> tuple[bool, bool]:
    """Whether a file has lines of brokers, and whether it has lines of clients."""
    of_brokers = of_clients = False
    before = b""
    try:
        with opened(path) as file:
            while not (of_brokers and of_clients) and (chunk := file.read(_LOOK_BYTES)):
                text = before + chunk
                of_clients = of_clients or any(marks.search(text) is not None for marks in _MARKS_OF_CLIENTS)
                of_brokers = of_brokers or any(mark in text for mark in _MARKS_OF_BROKERS)
                before = text[-_LONGEST_MARK:]
    except UNREADABLE:
        # What can be read of it is read below, and the rest reported.
        pass
    return of_brokers, of_clients


def _read_clients(
    path: str, zone: ZoneInfo, counts: dict[str, int], said: set[int], words: tuple[str, ...], *, is_untimed: bool
) -> Iterator[dict[str, Any]]:
    """Rows of the consumers' lines in a file; the numbers of these lines are added to ``said``."""
    log = ClientLogFile(path, _process_of(path), zone, is_untimed=is_untimed, words=words)
    lines = log.lines
    try:
        with opened(path) as file:
            for found in log.statements(OldestFirst(file) if counts["turned_round"] else file):
                said.add(found.line)
                if isinstance(found, BrokenLine):
                    yield _broken(path, found)
                    continue
                about = f"g:{found.group}" if found.group is not None else f"c:{found.values.get('client_id')}"
                row = {"what": "client", "about": about, "order_ms": found.order_ms, "node": found.node}
                body = _kept(found)
                if isinstance(body, BrokenLine):
                    log.counts.broken += 1
                    log.counts.statements -= 1
                    yield _broken(path, body)
                else:
                    yield row | {"file": path, "line": found.line, "body": body}
        if lines.counts.records == 0 and lines.counts.unplaced:
            yield from _unplaced(path, counts)
    finally:
        counts["lines"] = lines.counts.lines
        counts["statements"] += log.counts.statements
        counts["other"] += log.counts.other + lines.counts.others + lines.counts.unplaced + lines.counts.blank
        counts["continuations"] += lines.counts.continuations
        counts["broken"] += log.counts.broken
        counts["not_utf8"] += lines.counts.not_utf8
        counts["guessed"] += log.counts.guessed
        counts["untimed"] = int(is_untimed and log.counts.statements > 0)
        counts["year_guessed"] = int(lines.is_date_guessed and log.counts.statements > 0)


def _read_brokers(
    path: str, zone: ZoneInfo, counts: dict[str, int], said: set[int], words: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Rows of a broker's lines in a file, except for lines that a client wrote (``said``)."""
    log = LogFile(path, node_of(path), zone, words=words)
    exchanges = _Exchanges()
    try:
        with opened(path) as file:
            for found in log.statements(OldestFirst(file) if counts["turned_round"] else file):
                if isinstance(found, BrokenLine) and found.line in said:
                    log.counts.broken -= 1
                    log.counts.other += 1
                elif isinstance(found, LoggedExchange):
                    yield from exchanges.rows(log, found)
                else:
                    yield _row(log, found)
        if log.read.records == 0 and log.read.unrelated and not said and not _is_placed(path):
            yield from _unplaced(path, counts)
    finally:
        counts["lines"] = log.read.lines
        counts["statements"] += log.counts.statements
        counts["requests"] += log.counts.requests
        counts["broken"] += log.counts.broken
        # Each line counts once, where a file has lines of both.
        rest = max(0, counts["lines"] - counts["statements"] - counts["requests"] - counts["broken"])
        counts["continuations"] = min(rest, log.read.continuations)
        counts["other"] = rest - counts["continuations"]
        counts["not_utf8"] = log.read.not_utf8
        counts["clock_steps"] = log.counts.clock_set_back


def _is_placed(path: str) -> bool:
    """Whether a file has a line of any layout that clients have, of whatever software."""
    with opened(path) as file:
        return next(iter(ClientLines().records(file)), None) is not None


def _unplaced(path: str, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The first line of a file of no known layout: it is reported, and all others are passed over."""
    counts["broken"] += 1
    counts["other"] -= 1
    with opened(path) as file:
        yield _broken(path, first_unplaced(file))


def _process_of(path: str) -> str:
    """A process from the names of its log and of the directory."""
    file = Path(path)
    name = _ROTATED.sub("", file.name) or file.name
    return f"{file.parent.name}/{name}"


def _row(log: LogFile, found: Statement | BrokenLine) -> dict[str, Any]:
    if isinstance(found, BrokenLine):
        return _broken(log.file, found)
    body = _kept(found)
    if isinstance(body, BrokenLine):
        log.counts.broken += 1
        log.counts.statements -= 1
        return _broken(log.file, body)
    row = {"what": "statement", "about": _about(found), "order_ms": found.order_ms, "node": found.node}
    return row | {"file": log.file, "line": found.line, "body": body}


class _Exchanges:
    """Rows of the requests of one file, by the subjects that each is about."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._ends = EndChooser()

    def rows(self, log: LogFile, found: LoggedExchange) -> Iterator[dict[str, Any]]:
        """A request's own rows; what it says of topics are rows of their own."""
        if found.api in NAMING:
            for topic_id, name in named_topics(found.response):
                if self._names.get(topic_id) != name:
                    self._names[topic_id] = name
                    yield {"what": "name", "file": log.file, "line": found.line, "body": _json([topic_id, name])}
            yield from self._counted(log, found)
            return
        at = {"order_ms": found.answered_at_ms, "node": log.node, "file": log.file, "line": found.line}
        if found.api in OF_ENDS:
            for end in self._ends.new(found, self._names):
                seen = {"client_id": found.client_id, **end._asdict()}
                yield {"what": "end", "about": f"t:{end.topic}", **at, "body": _json(seen)}
            return
        body = _kept(found)
        if isinstance(body, BrokenLine):
            log.counts.broken += 1
            log.counts.requests -= 1
            yield _broken(log.file, body)
            return
        for about in _subjects(found, log.node):
            yield {"what": "request", "about": about, **at, "body": body}

    def _counted(self, log: LogFile, found: LoggedExchange) -> Iterator[dict[str, Any]]:
        """Rows of topics whose number of partitions was not known, or another one."""
        for name, count in counted_topics(found.response):
            if self._counts.get(name) != count:
                self._counts[name] = count
                at, where = found.answered_at_ms, (log.node, log.file, found.line)
                counted = Statement(PARTITIONS_COUNTED, None, at, at, *where, values={"topic": name, "count": count})
                row = {"what": "statement", "about": f"t:{name}", "order_ms": at, "node": log.node}
                yield row | {"file": log.file, "line": found.line, "body": _json(counted)}


def _subjects(found: LoggedExchange, node: str) -> Iterator[str]:
    """The group, the transactional id, or the broker that a request is about."""
    transactional_id = transactional_id_of(found.request)
    if found.api in OF_PRODUCERS or transactional_id is not None:
        yield f"x:{transactional_id or ''}"
    if found.api not in OF_PRODUCERS:
        yield f"g:{found.group_id}" if found.group_id is not None else f"p:{node}"


_OF_32_BITS: Final = frozenset(
    (
        *("generation", "number", "partition", "members", "count", "epoch", "plain_epoch", "previous", "member_epoch"),
        *("local_epoch", "before", "after", "producer_epoch", "current_epoch", "coordinator_epoch", "static_members"),
    )
)
_MOST_DIGITS: Final = 10
"""With a sign: a thousand million, which is the most in journals as well."""
_OF_64_BITS: Final = frozenset(("waited_ms", "took_ms", "late_ms", "limit_ms", "load_ms", "offset", "producer_id"))
_MOST_DIGITS_OF_64_BITS: Final = 18


def _kept(found: Statement | LoggedExchange) -> str | BrokenLine:
    """A line as JSON; a broken line where its numbers are too large, or it is nested too deeply."""
    if isinstance(found, Statement):
        values = found.values
        if any(name in _OF_32_BITS and len(str(values[name])) > _MOST_DIGITS for name in values):
            return BrokenLine(found.line, TOO_LARGE, "")
        if any(name in _OF_64_BITS and len(str(values[name])) > _MOST_DIGITS_OF_64_BITS for name in values):
            return BrokenLine(found.line, TOO_LARGE, "")
    try:
        # The dataclass itself: asdict takes twice the time of all the rest.
        return _json(found)
    except (TypeError, RecursionError) as problem:
        return BrokenLine(found.line, f"cannot be kept: {problem}", "")


def _about(statement: Statement) -> str:
    if statement.kind == PARTITION_CREATED:
        return f"t:{statement.values['topic']}"
    if statement.kind.startswith(OF_TRANSACTIONS):
        return f"x:{statement.values.get('transactional_id', '')}"
    return f"g:{statement.group}" if statement.group is not None else f"p:{statement.node}"


def _broken(path: str, found: BrokenLine) -> dict[str, Any]:
    # Text of a JSON layout may hold half a character.
    body = _json({"reason": found.reason, "text": found.text.encode(errors="replace").decode()})
    return {"what": "broken", "file": path, "line": found.line, "body": body}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
