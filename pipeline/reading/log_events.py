"""The events of one subject of logs, a group or a topic, from the rows that files have about the subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from rejoin.pipeline.reading.broker_logs.brokers import topic_events
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, request_event
from rejoin.pipeline.reading.broker_logs.groups.membership import EventRow
from rejoin.pipeline.reading.broker_logs.reconstruction import partition_events, reconstruct_group
from rejoin.pipeline.reading.broker_logs.requests import complete
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.broker_logs.transactions import transaction_events
from rejoin.pipeline.reading.client_logs.consumers import consumer_events
from rejoin.pipeline.reading.client_logs.groups import ClientHistory, complete_from_clients
from rejoin.pipeline.reading.client_logs.late_polls import with_members
from rejoin.pipeline.reading.request_log import LoggedExchange


def events_of_subject(about: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[EventRow]:
    """Events from rows of :mod:`~rejoin.pipeline.reading.log_files`, which are in the order of their times."""
    asked: list[SourcedExchange] = []
    of_clients: list[Statement] = []
    statements = _statements(about[2:], rows, asked, of_clients)
    if about.startswith("t:"):
        yield from topic_events(statements)
        return
    if about.startswith("x:"):
        yield from transaction_events(statements)
        return
    if about.startswith("p:"):
        yield from partition_events(statements)
        yield from map(request_event, asked)
        return
    events = list(reconstruct_group(about[2:], statements))
    if not of_clients:
        yield from complete(events, asked)
    elif events or asked:
        events = list(complete_from_clients(complete(events, asked), of_clients))
        yield from events
    else:
        yield from ClientHistory(about[2:]).events(of_clients)
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
