"""Commits of a group, from OffsetCommit, TxnOffsetCommit and OffsetDelete with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames, objects, topic_of
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, event_row
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, EventRow
from rejoin.pipeline.reading.request_log import error_name

_COMMITS: Final = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT")


class _Partition(NamedTuple):
    """A partition of a request, with the error that it was answered with."""

    row: dict[str, Any]
    error: str | None


def commit_events(asked: Iterable[SourcedExchange], names: TopicNames) -> Iterator[EventRow]:
    """Offsets that were committed, refused or deleted. Each outcome of a request's partitions has its event."""
    for each in asked:
        api = each.exchange.api
        if api in _COMMITS:
            yield from _commit(each, names)
        elif api == "OFFSET_DELETE":
            deleted = [row for row, error in _partitions(each, names) if error is None]
            if deleted and each.exchange.error is None:
                event = event_row(each, "offsets_deleted", EXACT, each.exchange.answered_at_ms)
                yield event | {"group_id": each.exchange.group_id, "reason": "requested", "offsets": deleted}


def _commit(each: SourcedExchange, names: TopicNames) -> Iterator[EventRow]:
    exchange, request = each.exchange, each.exchange.request
    generation = next(
        (request[name] for name in ("generationIdOrMemberEpoch", "generationId") if isinstance(request.get(name), int)),
        -1,
    )
    about = {
        "group_id": exchange.group_id,
        "member_id": str(request.get("memberId") or ""),
        "group_instance_id": request.get("groupInstanceId"),
        "generation": generation,
        "client_id": exchange.client_id,
        "producer_id": request.get("producerId"),
    }
    about = {name: value for name, value in about.items() if value is not None}
    by_error: dict[str | None, list[dict[str, Any]]] = {}
    for row, error in _partitions(each, names):
        by_error.setdefault(error, []).append(row)
    for error, rows in by_error.items():
        name = "offsets_committed" if error is None else "commit_refused"
        event = event_row(each, name, EXACT, exchange.answered_at_ms) | about | {"offsets": rows}
        yield event if error is None else event | {"error": error}


def _partitions(each: SourcedExchange, names: TopicNames) -> Iterator[_Partition]:
    """The partitions of a request with their results; one that has no result is left out."""
    results = {
        (topic_of(topic, names), part.get("partitionIndex")): part.get("errorCode")
        for topic in objects(each.exchange.response.get("topics"))
        for part in objects(topic.get("partitions"))
    }
    for topic in objects(each.exchange.request.get("topics")):
        name = topic_of(topic, names)
        for part in objects(topic.get("partitions")):
            number, offset = part.get("partitionIndex"), part.get("committedOffset", -1)
            code = results.get((name, number))
            if type(number) is int and type(offset) is int and type(code) is int:
                yield _Partition({"topic": name, "partition": number, "offset": offset}, error_name(code))
