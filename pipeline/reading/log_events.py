"""The events of logs, from the rows that files have about each subject: a group, a topic, a producer, a broker."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from rejoin.pipeline.reading.broker_logs.brokers import topic_events
from rejoin.pipeline.reading.broker_logs.exchanges.log_ends import end_event
from rejoin.pipeline.reading.broker_logs.exchanges.producers import producer_events
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, request_event
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.reconstruction import partition_events, reconstruct_group
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.broker_logs.transactions import transaction_events
from rejoin.pipeline.reading.client_logs.consumers import consumer_events
from rejoin.pipeline.reading.client_logs.groups import ClientHistory, complete_from_clients
from rejoin.pipeline.reading.client_logs.late_polls import with_members
from rejoin.pipeline.reading.client_logs.owners import UNNAMED, named_groups
from rejoin.pipeline.reading.request_log import OF_PRODUCERS, LoggedExchange
from rejoin.pipeline.vocabulary import BROKER_LOG, BUG_SIGN, EXACT, SOFTWARE_VERSION

RUN: Final = "logs"
"""The run of events that logs show."""
_ORDER: Final = ("order_ms", "node", "file", "line")
_SAID_OF_SOFTWARE: Final = (BUG_SIGN, SOFTWARE_VERSION)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final = (
    ("not JSON", "not-json"),
    ("no JSON", "not-json"),
    ("no request of a request log", "not-json"),
    ("is missing", "half-line"),
    ("cut short", "half-line"),
    ("no text", "encoding"),
    ("cannot be read", "unreadable"),
    ("not in the format of", "unreadable"),
    ("layout is not known", "unknown-layout"),
)


def events_of_files(rows: Iterable[Mapping[str, Any]]) -> list[EventRow]:
    """The events of all files, from their rows, in the order of their times.

    They lack columns that are null, and ``schema_version``.
    """
    by_subject: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    rows = list(rows)
    names = names_of_topics(rows)
    for row in rows:
        if row.get("about") is not None:
            by_subject[with_name(row["about"], names)].append(row)
    unnamed = [about for about in by_subject if about.startswith(UNNAMED)]
    of_groups = ((about, row["body"]) for about in by_subject if about.startswith("g:") for row in by_subject[about])
    groups = named_groups([about.removeprefix(UNNAMED) for about in unnamed], of_groups if unnamed else ())
    for about in unnamed:
        by_subject[groups[about]] += by_subject.pop(about)
    made: list[EventRow] = []
    for about in sorted(by_subject):
        found = sorted(by_subject[about], key=lambda row: tuple(row[name] for name in _ORDER))
        made += (of_logs(event, nth) for nth, event in enumerate(events_of_subject(about, found, names)))
    made.sort(key=lambda row: (row["order_ms"], row["file"], row["line"], row["nth"]))
    streams: Counter[tuple[str, str]] = Counter()
    for row in made:
        streams[row["source"], row["node"]] += 1
        row |= {"run_id": RUN, "seq": streams[row["source"], row["node"]], "day": _day(row["at_ms"])}
    return made


def of_logs(event: EventRow, nth: int) -> EventRow:
    """An event of a subject, with its place among the subject's events."""
    return {"source": BROKER_LOG, "confidence": EXACT} | event | {"nth": nth}


def _day(at_ms: int) -> Any:
    return (_EPOCH + timedelta(milliseconds=at_ms)).date()


def names_of_topics(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of topics by id, from all rows of files."""
    return dict(orjson.loads(row["body"]) for row in rows if row["what"] == "name")


def with_name(about: str, names: TopicNames) -> str:
    """A subject, by its name where it was a topic's id."""
    return f"t:{names.get(about[2:], about[2:])}" if about.startswith("t:") else about


def counts_of_files(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Counts of each file's lines, by how they were used."""
    return (orjson.loads(row["body"]) for row in rows if row["what"] == "file")


def broken_of_files(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the quarantine: lines that could not be used."""
    for row in rows:
        if row["what"] == "broken":
            body = orjson.loads(row["body"])
            kind = next((kind for words, kind in _KINDS if words in body["reason"]), "unknown-line")
            yield {"file": row["file"], "line": row["line"] or None, "kind": kind, **body}


def events_of_subject(
    about: str, rows: Iterable[Mapping[str, Any]], names: TopicNames | None = None
) -> Iterator[EventRow]:
    """Events from rows of :mod:`~rejoin.pipeline.reading.log_files`, which are in the order of their times.

    ``names``: those of topics, by id.
    """
    names = {} if names is None else names
    asked: list[SourcedExchange] = []
    of_clients: list[Statement] = []
    statements = _statements(about[2:], rows, asked, of_clients)
    if about.startswith("t:"):
        rows = list(rows)
        yield from topic_events(_statements("", [row for row in rows if row["what"] != "end"], asked, of_clients))
        yield from (end_event(row, about[2:], orjson.loads(row["body"])) for row in rows if row["what"] == "end")
        return
    if about.startswith("x:"):
        yield from transaction_events(statements)
        yield from producer_events(asked)
        yield from map(request_event, (each for each in asked if each.exchange.api in OF_PRODUCERS))
        return
    if about.startswith("p:"):
        yield from partition_events(statements)
        yield from map(request_event, asked)
        return
    events = list(reconstruct_group(about[2:], statements))
    if not of_clients:
        yield from complete(events, asked, names)
    elif events or asked:
        events = list(complete_from_clients(complete(events, asked, names), of_clients))
        yield from events
    else:
        yield from ClientHistory(about[2:]).events(each for each in of_clients if each.kind not in _SAID_OF_SOFTWARE)
    yield from with_members(consumer_events(of_clients, with_requests=bool(asked)), events)
    yield from map(request_event, asked)


def _statements(
    group: str, rows: Iterable[Mapping[str, Any]], asked: list[SourcedExchange], of_clients: list[Statement]
) -> Iterator[Statement]:
    """The brokers' statements among rows; requests are appended to ``asked``, what consumers say to the last."""
    for row in rows:
        body = orjson.loads(row["body"])
        if row["what"] == "statement":
            yield Statement(**body)
        elif row["what"] == "client":
            of_clients.append(Statement(**body | {"group": group}))
        else:
            asked.append(SourcedExchange(LoggedExchange(**body), row["node"], row["file"]))
