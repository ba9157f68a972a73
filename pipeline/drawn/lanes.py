"""Names the consumers of clients' logs, whose lines may lack the client id or share it with other processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from rejoin.journal.events.client import ConsumerEvent, MemberEvent
from rejoin.pipeline.drawn.drawn_event import DrawnEvent
from rejoin.pipeline.vocabulary import CLIENT_LOG


def with_lanes(events: Sequence[DrawnEvent]) -> list[DrawnEvent]:
    """Events of one group in the order of time, with the name of its lane as the client id of each consumer."""
    clients = _clients(events)
    name_of = _names({(each.node, client) for each, client in zip(events, clients, strict=True) if client is not None})
    return [
        each
        if client is None
        else each._replace(event=each.event.model_copy(update={"client_id": name_of(each.node, client)}))
        for each, client in zip(events, clients, strict=True)
    ]


def _clients(events: Sequence[DrawnEvent]) -> list[str | None]:
    """The client id of each event of a log, or of the line before or after it; None for other events."""
    found: list[str | None] = [None] * len(events)
    known: dict[str, str] = {}
    of_member: dict[str, str] = {}
    for backwards in (True, False):
        order = reversed(range(len(events))) if backwards else range(len(events))
        known.clear()
        for index in order:
            node, event = events[index].node, events[index].event
            if events[index].source != CLIENT_LOG or not isinstance(event, ConsumerEvent):
                continue
            member_id = event.member_id if isinstance(event, MemberEvent) else ""
            client = event.client_id or of_member.get(member_id) or found[index] or known.get(node, "")
            found[index] = client
            if client:
                known[node] = client
                if member_id:
                    of_member.setdefault(member_id, client)
    return found


def _names(consumers: set[tuple[str, str]]) -> Callable[[str, str], str]:
    """Client ids, where each is of one process. Processes that share one, or have none, are named by their logs."""
    nodes, clients, tails = defaultdict(set), defaultdict(set), defaultdict(set)
    for node, client in consumers:
        nodes[client].add(node)
        clients[node].add(client)
        tails[_tail(node)].add(node)

    def name(node: str, client: str) -> str:
        if client and len(nodes[client]) == 1:
            return client
        process = _tail(node) if len(tails[_tail(node)]) == 1 else node
        return process if len(clients[node]) == 1 else f"{client} {process}".strip()

    return name


def _tail(node: str) -> str:
    return node.rsplit("/", 1)[-1]
