"""Ends of logs as Fetch and ListOffsets answer them, and where readers were then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames, objects, topic_of
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, EventRow
from rejoin.pipeline.reading.request_log import LoggedExchange
from rejoin.pipeline.vocabulary import LOG_END_SEEN, REQUEST_LOG

OF_ENDS: Final = ("FETCH", "LIST_OFFSETS")
EVERY_MS: Final = 5_000
"""An end that has moved on is looked at again after this long, so that a busy log does not fill the table of events."""
_LATEST: Final = -1
_READ_COMMITTED: Final = 1
_ENDS: Final = ("high_watermark", "last_stable_offset")


class SeenEnd(NamedTuple):
    """The end of a partition's log, and the position from which a client asked."""

    topic: str
    partition: int
    high_watermark: int | None
    last_stable_offset: int | None
    position: int | None


class EndChooser:
    """Chooses among the answers of one file those that say something new of the end of a log."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, int | None, int | None]] = {}

    def new(self, exchange: LoggedExchange, names: TopicNames) -> Iterator[SeenEnd]:
        """Ends that differ from those that were seen before."""
        for end in ends_of(exchange, names):
            key, now = (end.topic, end.partition), exchange.answered_at_ms
            before = self._seen.get(key)
            if before is not None and (
                before[1:] == (end.high_watermark, end.last_stable_offset) or now - before[0] < EVERY_MS
            ):
                continue
            self._seen[key] = (now, end.high_watermark, end.last_stable_offset)
            yield end


def ends_of(exchange: LoggedExchange, names: TopicNames) -> Iterator[SeenEnd]:
    """All ends that an answer has; replicas that follow a leader are no readers."""
    request, response = exchange.request, exchange.response
    if exchange.api == "FETCH":
        state = request.get("replicaState")
        if (state if isinstance(state, dict) else request).get("replicaId", -1) != -1:
            return
        positions = _parts(request.get("topics"), "partition", "fetchOffset", names)
        for topic in objects(response.get("responses")):
            name = topic_of(topic, names)
            for part in objects(topic.get("partitions")):
                number, ends = part.get("partitionIndex"), [_offset(part.get(each)) for each in _IN_FETCH]
                if type(number) is int and part.get("errorCode") == 0 and ends[0] is not None:
                    yield SeenEnd(name, number, ends[0], ends[1], positions.get((name, number)))
    elif exchange.api == "LIST_OFFSETS":
        asked = _parts(request.get("topics"), "partitionIndex", "timestamp", names)
        is_stable = request.get("isolationLevel") == _READ_COMMITTED
        for topic in objects(response.get("topics")):
            name = topic_of(topic, names)
            for part in objects(topic.get("partitions")):
                number, end = part.get("partitionIndex"), _offset(part.get("offset"))
                if type(number) is int and end is not None and asked.get((name, number)) == _LATEST:
                    yield SeenEnd(name, number, None if is_stable else end, end if is_stable else None, None)


_IN_FETCH: Final = ("highWatermark", "lastStableOffset")


def _offset(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _parts(topics: object, number: str, value: str, names: TopicNames) -> dict[tuple[str, int], int]:
    return {
        (topic_of(topic, names), part[number]): part[value]
        for topic in objects(topics)
        for part in objects(topic.get("partitions"))
        if type(part.get(number)) is int and type(part.get(value)) is int
    }


def end_event(row: Mapping[str, Any], topic: str, body: Mapping[str, Any]) -> EventRow:
    """The event of an end of a topic's log, from the row of a file."""
    where = {"topic": topic, "partition": body["partition"]}
    event = {
        "event": LOG_END_SEEN,
        "at_ms": row["order_ms"],
        "order_ms": row["order_ms"],
        "node": row["node"],
        "file": row["file"],
        "line": row["line"],
        "confidence": EXACT,
        "source": REQUEST_LOG,
        **where,
        **{name: body[name] for name in _ENDS if body[name] is not None},
    }
    if body["client_id"] is not None:
        event["client_id"] = body["client_id"]
    if body["position"] is not None:
        event["offsets"] = [where | {"offset": body["position"]}]
    return event
