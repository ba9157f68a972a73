"""Processes behind members, recognized by their connections.

A process keeps its connection to the coordinator while it is paused, and while a slow handler keeps it from polling; a
process that restarts has another one. So a member that joins by a connection that an earlier member id used is the same
process, and one that left by it had not polled in time: a client that is closed sends nothing more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rejoin.pipeline.reading.broker_logs.exchanges.coordinators import NOT_THERE
from rejoin.pipeline.reading.broker_logs.generations import SourcedExchange, event_row
from rejoin.pipeline.reading.broker_logs.groups.membership import INFERRED, EventRow
from rejoin.pipeline.reading.request_log import LoggedExchange, leaving

AWAY_MS: Final = 2_000
"""A coordinator that answered nothing for this long before it loaded a group was away."""
LOADING_MS: Final = 30_000
"""A coordinator that answers for longer than this before it has loaded a group was not away."""
FIRST_REQUESTS: Final = 20
"""A new process has sent no more requests before its first JoinGroup; none of a member is so soon afterwards."""
FURTHER_REQUESTS: Final = 2_000
"""A process that was paused or cut off has not sent more requests in between."""
ANOTHER_PROCESS: Final = ""
MODERN: Final = ("CONSUMER_GROUP_HEARTBEAT", "SHARE_GROUP_HEARTBEAT", "STREAMS_GROUP_HEARTBEAT")
"""Requests of the newer group protocols, by which members join, go on and leave."""


def joined_as(exchange: LoggedExchange) -> str | None:
    """The member id of a member that joins with this request, and did not have it before."""
    if exchange.error is not None:
        return None
    if exchange.api == "JOIN_GROUP" or (exchange.api in MODERN and exchange.request.get("memberEpoch") == 0):
        return exchange.member_id
    return None


def former_ids(asked: Iterable[SourcedExchange]) -> dict[str, str]:
    """Member ids to those that the same process had before; empty where the process is a new one.

    A process that connects anew goes on counting its requests, a new process begins to count.
    """
    by_connection: dict[str, str] = {}
    last: dict[tuple[str | None, str | None], dict[str, int]] = defaultdict(dict)
    former: dict[str, str] = {}
    for each in _by_arrival(asked):
        exchange, joined = each.exchange, joined_as(each.exchange)
        counts, number = last[exchange.client_id, exchange.client_host], exchange.correlation_id
        if joined is not None and exchange.connection is not None:
            before = by_connection.get(exchange.connection)
            if before is not None:
                counts.pop(before, None)
            elif number <= FIRST_REQUESTS:
                before = ANOTHER_PROCESS
            else:
                near = [
                    member
                    for member, count in counts.items()
                    if member != joined and 0 < number - count <= FURTHER_REQUESTS
                ]
                before = near[0] if len(near) == 1 else None
            if before is not None and before != joined:
                former.setdefault(joined, before)
            by_connection[exchange.connection] = joined
        if exchange.member_id is not None:
            counts[exchange.member_id] = number
    return former


def poll_timeouts(asked: Iterable[SourcedExchange]) -> Iterator[EventRow]:
    """Members that left without a reason, and whose process joined again by the same connection: not closed, but late
    with a poll. The Java client says so itself (KIP-800), librdkafka and Python's clients do not."""
    left: dict[str, tuple[SourcedExchange, str, str | None]] = {}
    # A member that keeps its id over a failover has a connection by which it never joined.
    joined_at: dict[str, int] = {}
    limits: dict[str, int] = {}
    for each in _by_arrival(asked):
        exchange, connection = each.exchange, each.exchange.connection
        if connection is None:
            continue
        joined_at.setdefault(connection, exchange.arrived_at_ms)
        member = joined_as(exchange)
        if member is not None:
            gone = left.pop(connection, None)
            if gone is not None:
                yield _late(gone, limits.get(gone[1]))
            joined_at[connection] = exchange.answered_at_ms
            limit = exchange.request.get("rebalanceTimeoutMs")
            if isinstance(limit, int) and limit > 0:
                limits[member] = limit
            continue
        for who, instance, reason in _leaving(exchange):
            since = exchange.arrived_at_ms - joined_at.get(connection, exchange.arrived_at_ms)
            if not reason and since >= limits.get(who, 0) > 0:
                left[connection] = each, who, instance


def _leaving(exchange: LoggedExchange) -> list[tuple[str, str | None, str | None]]:
    if exchange.api == "LEAVE_GROUP":
        return leaving(exchange)
    if exchange.api in MODERN and exchange.request.get("memberEpoch") == -1 and exchange.error is None:
        return [(str(exchange.request.get("memberId") or ""), exchange.request.get("instanceId"), None)]
    return []


def _late(gone: tuple[SourcedExchange, str, str | None], limit: int | None) -> EventRow:
    asked, member, instance = gone
    exchange = asked.exchange
    columns = {
        "group_id": exchange.group_id,
        "member_id": member,
        "group_instance_id": instance,
        "client_id": exchange.client_id,
        "timeout_ms": limit,
    }
    event = event_row(asked, "poll_timeout_exceeded", INFERRED, exchange.arrived_at_ms)
    return event | {name: value for name, value in columns.items() if value is not None}


def last_answers(events: Iterable[EventRow], asked: Iterable[SourcedExchange]) -> Iterator[EventRow]:
    """When a coordinator answered a group's last request before it was away, for each time that it loaded the group."""
    ordered = sorted(asked, key=lambda one: one.exchange.answered_at_ms)
    for event in events:
        if event["event"] != "group_loaded":
            continue
        # A broker that loads answers heartbeats already: what it was asked since it is back does not count.
        following: int = event["at_ms"]
        for each in reversed([one for one in ordered if one.exchange.answered_at_ms < event["at_ms"]]):
            answered = each.exchange.answered_at_ms
            if each.exchange.error not in NOT_THERE and following - answered >= AWAY_MS:
                stopped = event_row(each, "broker_stopped", INFERRED, answered)
                yield stopped | {"group_id": event["group_id"], "node": event["node"]}
                break
            if event["at_ms"] - answered > LOADING_MS:
                break
            following = answered


def complete_modern(events: Iterable[EventRow], asked: Iterable[SourcedExchange]) -> None:
    """Give members of the newer protocols, whose ids say nothing, what their first heartbeats say of them."""
    first: dict[str, dict[str, Any]] = {}
    for each in _by_arrival(asked):
        exchange = each.exchange
        member = exchange.member_id
        if exchange.api in MODERN and member is not None and member not in first and joined_as(exchange):
            request = exchange.request
            columns = {
                "group_instance_id": request.get("instanceId"),
                "client_id": exchange.client_id,
                "client_host": exchange.client_host,
                "rebalance_timeout_ms": request.get("rebalanceTimeoutMs"),
                "topics": request.get("subscribedTopicNames"),
                "software": exchange.software,
            }
            first[member] = {name: value for name, value in columns.items() if value is not None}
    for event in events:
        if event["event"] in ("member_joined", "member_removed", "static_member_replaced"):
            for name, value in first.get(event.get("member_id", ""), {}).items():
                if event["event"] == "member_joined" or name in ("client_id", "client_host"):
                    event.setdefault(name, value)


def _by_arrival(asked: Iterable[SourcedExchange]) -> list[SourcedExchange]:
    return sorted(asked, key=lambda one: one.exchange.arrived_at_ms)
