"""Refusals and moves that requests of any group show: ids handed out, fenced members, coordinators that change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rejoin.journal.kafka_logs.request_lines import api_name
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import objects
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, event_row
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, EventRow


def refusals(asked: Iterable[SourcedExchange]) -> Iterator[EventRow]:
    """Events of one group from single exchanges, and from changes of its coordinator."""
    coordinator: int | None = None
    is_lost = False
    for each in sorted(asked, key=lambda one: (one.exchange.answered_at_ms, one.exchange.line)):
        exchange = each.exchange
        who: dict[str, Any] = {
            "group_id": exchange.group_id,
            "member_id": exchange.member_id,
            "client_id": exchange.client_id,
            "client_host": exchange.client_host,
        }
        if exchange.api == "FIND_COORDINATOR":
            found = _coordinator(exchange.response)
            if found is None or exchange.group_id is None or (found["node_id"] == coordinator and not is_lost):
                continue
            is_move, coordinator = coordinator not in (None, found["node_id"]), found["node_id"]
            yield _row(each, "coordinator_found", EXACT, who | found)
            if is_move:
                yield _row(each, "group_loaded", INFERRED, {"group_id": exchange.group_id})
            is_lost = False
        elif exchange.error == "NOT_COORDINATOR":
            if not is_lost:
                yield _row(each, "coordinator_lost", EXACT, who | {"cause": exchange.error})
            # The answer of the next FindCoordinator counts, whichever broker it names.
            is_lost = True
        elif exchange.error == "MEMBER_ID_REQUIRED":
            about = {
                "session_timeout_ms": exchange.request.get("sessionTimeoutMs"),
                "client_reason": exchange.request.get("reason") or None,
            }
            yield _row(each, "member_id_handed_out", EXACT, who | about)
        elif exchange.error == "FENCED_INSTANCE_ID":
            instance = exchange.request.get("groupInstanceId") or exchange.request.get("instanceId")
            about = {"group_instance_id": instance, "api": api_name(exchange.api)}
            yield _row(each, "member_fenced", EXACT, who | about)


def _coordinator(response: Mapping[str, Any]) -> dict[str, Any] | None:
    """The one coordinator that an answer names."""
    several = list(objects(response.get("coordinators")))
    if len(several) > 1:
        return None
    named = several[0] if several else response
    node, host, port = (named.get(name) for name in ("nodeId", "host", "port"))
    if named.get("errorCode") or type(node) is not int or node < 0:
        return None
    return {"node_id": node, "host": host, "port": port}


def _row(each: SourcedExchange, name: str, confidence: str, columns: Mapping[str, Any]) -> EventRow:
    row = event_row(each, name, confidence, each.exchange.answered_at_ms)
    return row | {column: value for column, value in columns.items() if value is not None}
