"""Lines of a broker outside its group coordinator: its starts and stops, and new partitions of topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.vocabulary import REQUEST_LOG

BURST_MS: Final = 10_000
"""Partitions that are created closer together than this come from one change of the topic, or one start."""


PARTITIONS_COUNTED: Final = "partitions_counted"
"""Kind of a statement that is no line of a log: an answer to Metadata has another number of partitions than before."""


def topic_events(statements: Iterable[Statement]) -> Iterator[EventRow]:
    """Growth of one topic, from the partitions that brokers created or answers counted, in the order of ``order_ms``.

    A broker that starts creates all its partitions again: only numbers that no line had before are new. Where the log
    begins after the topic did, the lowest new number says how many there were.
    """
    known = 0
    burst: list[Statement] = []
    for statement in [*statements, None]:
        is_counted = statement is not None and statement.kind == PARTITIONS_COUNTED
        if burst and (statement is None or is_counted or statement.order_ms - burst[-1].order_ms > BURST_MS):
            lowest = min(_number(each) for each in burst)
            now, before = max(_number(each) for each in burst) + 1, known or lowest
            if 0 < before < now:
                yield _grown(next(each for each in burst if _number(each) >= before), before, now, known=known > 0)
            known, burst = max(known, now), []
        if statement is None:
            return
        if is_counted:
            count = int(statement.values["count"])
            if 0 < known < count:
                # The topic grew before the client that asked could see it.
                yield _grown(statement, known, count, known=False) | {"source": REQUEST_LOG}
            known = max(known, count)
        else:
            burst.append(statement)


def _number(statement: Statement) -> int:
    return int(statement.values["number"])


def _grown(statement: Statement, before: int, now: int, *, known: bool) -> EventRow:
    return {
        "event": "topic_grown",
        "at_ms": statement.at_ms,
        "order_ms": statement.order_ms,
        "node": statement.node,
        "file": statement.file,
        "line": statement.line,
        "confidence": EXACT if known else INFERRED,
        "topic": statement.values["topic"],
        "partition_count": now,
        "previous_partition_count": before,
    }


class BrokerRuns:
    """The starts and stops of brokers. One that was killed has no line for it: its last line before the next start
    stands for that."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    def events(self, statement: Statement) -> Iterator[EventRow]:
        """The events that one statement brings about."""
        kind, node = statement.kind, statement.node
        if kind == "broker_stopping":
            self._running.discard(node)
            yield _broker_event(statement, "broker_stopped", statement.at_ms, EXACT)
        elif kind == "broker_starting":
            since = statement.values.get("silent_since_ms")
            if node in self._running and since is not None:
                yield _broker_event(statement, "broker_stopped", since, INFERRED)
            self._running.discard(node)
        elif kind == "broker_started":
            self._running.add(node)
            yield _broker_event(statement, "broker_started", statement.at_ms, EXACT)
        elif statement.partition is not None:
            self._running.add(node)


def _broker_event(statement: Statement, event: str, at_ms: int, confidence: str) -> EventRow:
    return {
        "event": event,
        "at_ms": at_ms,
        "order_ms": statement.order_ms - (statement.at_ms - at_ms),
        "node": statement.node,
        "file": statement.file,
        "line": statement.line,
        "confidence": confidence,
    }
