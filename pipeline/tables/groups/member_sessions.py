"""Every session of a member in a group: how long, how it ended, what it cost.

A member id is handed out once, so a session is all events about one id, from any coordinator; in the consumer protocol
a member that was removed joins again with the same id (KIP-848), and that is another session. A static member that
restarts has another id and so another session, which names the one it ``replaces``. If that could not be stored, the
old one goes on (``static_member_restored``).
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from rejoin.pipeline.tables.groups.rows import EventOfGroup, GroupRows, RebalanceOfGroup, Row, date_of
from rejoin.pipeline.vocabulary import EXACT, INFERRED

EVENTS_READ: Final = (
    *("member_joined", "member_rejoined", "member_removed", "static_member_replaced", "static_member_restored"),
)
_REPLACED: Final = "replaced"
"""The event, and its cause, of a member that another one replaced."""
_JOINS: Final = ("member_joined", "static_member_replaced")
_INHERITED: Final = (
    *("client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms", "protocols", "topics", "software"),
    "group_protocol",
)
"""Columns that a replacement of a static member shares with the one before, and that no event repeats."""
_OF_THE_NEW_ONE: Final = (
    *("client_id", "client_host", "client_reason", "session_timeout_ms", "rebalance_timeout_ms", "protocols", "topics"),
    *("software", "kind", "member_type"),
)
"""Columns of a replacement that are about the member that came, and not about the one that it replaces."""
READS: Final = dict.fromkeys(
    EVENTS_READ, (*_OF_THE_NEW_ONE, "member_id", "other_member_id", "group_instance_id", "cause", "confidence")
)


def sessions_of_group(group: GroupRows) -> list[Row]:
    """Rows of the table from all events about members of one group, and its rebalances."""
    of_members: dict[str, list[EventOfGroup]] = defaultdict(list)
    for event in group.events:
        if event.member_id is not None:
            of_members[event.member_id].append(event)
        if event.event == "static_member_replaced" and event.other_member_id is not None:
            of_members[event.other_member_id].append(_of_the_replaced(event))
    generations, caused = _generations(group.rebalances)
    rows = []
    for member_id, changes in of_members.items():
        sessions = list(_sessions(sorted(changes, key=attrgetter("at_ms", "seq"))))
        begins = [session[0].at_ms for session in sessions[1:]]
        rows += [
            _session(
                session,
                group.run.ends_at_ms,
                {generation for at_ms, generation in generations[member_id] if bisect(begins, at_ms) == number},
                sum(bisect(begins, at_ms) == number for at_ms in caused[member_id]),
            )
            for number, session in enumerate(sessions)
        ]
    return _with_the_ones_before(rows)


def _of_the_replaced(event: EventOfGroup) -> EventOfGroup:
    """A replacement as it happened to the member that was replaced."""
    unknown: dict[str, Any] = dict.fromkeys(_OF_THE_NEW_ONE)
    theirs = {"member_id": event.other_member_id, "other_member_id": event.member_id}
    return event._replace(event=_REPLACED, cause=_REPLACED, **unknown | theirs)


def _generations(
    rebalances: Iterable[RebalanceOfGroup],
) -> tuple[Mapping[str, list[tuple[int, int]]], Mapping[str | None, list[int]]]:
    """By member, each with its instant: the generations that it took part in, and the rebalances that it caused."""
    generations: dict[str, list[tuple[int, int]]] = defaultdict(list)
    caused: dict[str | None, list[int]] = defaultdict(list)
    for rebalance in rebalances:
        began_ms, ended_ms = rebalance.prepared_at_ms, rebalance.ended_at_ms
        caused[rebalance.cause_member_id].append(began_ms)
        if rebalance.generation_to is not None:
            for member in rebalance.members_after or ():
                at_ms = began_ms if ended_ms is None else ended_ms
                generations[member].append((at_ms, rebalance.generation_to))
    return generations, caused


def _sessions(events: Iterable[EventOfGroup]) -> Iterator[list[EventOfGroup]]:
    """The events of each session of one member id."""
    session: list[EventOfGroup] = []
    removed = False
    for event in events:
        if event.event == "member_joined" and removed:
            yield session
            session = []
        if event.event in ("member_joined", "member_removed"):
            removed = event.event == "member_removed"
        session.append(event)
    yield session


def _session(events: list[EventOfGroup], ends_at_ms: int, generations: set[int], caused: int) -> Row:
    """A row without what other sessions say."""

    def of_them(*names: str) -> list[EventOfGroup]:
        return [event for event in events if event.event in names]

    came = next(iter(of_them(*_JOINS)), None)
    over = next(iter(of_them("member_removed", _REPLACED)), None)
    restored = of_them("static_member_restored")
    if over is not None and restored and restored[-1].at_ms >= over.at_ms:
        over = None
    seen_at_ms = events[0].at_ms
    from_ms = seen_at_ms if came is None else came.at_ms
    protocols = [
        event.kind if event.event == "member_joined" and event.kind is not None else _modern(event)
        for event in of_them(*_JOINS)
    ]
    return {
        "run_id": events[0].run_id,
        "day": date_of(from_ms),
        "group_id": events[0].group_id,
        "member_id": events[0].member_id,
        **{
            name: _most(getattr(event, name) for event in events)
            for name in ("group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")
        },
        "software": _most(event.software for event in events),
        "node": came and came.node,
        "join_reason": came and came.client_reason,
        "joined_at_ms": came and came.at_ms,
        "ended_at_ms": over and over.at_ms,
        "session_ms": (ends_at_ms if over is None else over.at_ms) - from_ms,
        "end": (over and over.cause) or "open",
        "replaced_by": over and over.other_member_id,
        "leave_reason": over and over.client_reason,
        "replaces": _most(event.other_member_id for event in of_them("static_member_replaced")),
        "same_process_as": _most(event.other_member_id for event in of_them("member_joined")),
        "rejoins": len(of_them("member_rejoined")),
        "protocols": _newest(event.protocols for event in events),
        "topics": _newest(event.topics for event in events),
        "group_protocol": _most(protocols),
        "first_generation": min(generations, default=None),
        "last_generation": max(generations, default=None),
        "generations": len(generations),
        "caused": caused,
        "confidence": EXACT if _least(event.confidence for event in events) == EXACT else INFERRED,
        "seen_at_ms": seen_at_ms,
    }


def _modern(event: EventOfGroup) -> str | None:
    return None if event.member_type == "classic" else event.member_type


def _with_the_ones_before(rows: list[Row]) -> list[Row]:
    """With how the same consumer's session before ended: the same by what is configured, not by the member id."""
    rows.sort(key=lambda row: (row["seen_at_ms"], row["member_id"]))
    before: dict[str, Row] = {}
    known: dict[str, Row] = defaultdict(dict)
    for row in rows:
        instance = row["group_instance_id"]
        parts = (row["client_id"], row["client_host"])
        who = instance if instance is not None else "@".join(part for part in parts if part is not None)
        last, settings = before.get(who, {}), known[who]
        if instance is not None:
            settings.update({name: row[name] for name in _INHERITED if row[name] is not None})
        row.update({name: settings.get(name) for name in _INHERITED if row[name] is None})
        row["previous_end"] = last.get("end")
        joined_at, ended_at = row["joined_at_ms"], last.get("ended_at_ms")
        away = joined_at is not None and ended_at is not None and joined_at >= ended_at
        row["away_ms"] = joined_at - ended_at if away else None
        before[who] = row
        del row["seen_at_ms"]
    return rows


def _of_those_known(choose: Callable[[list[Any]], Any]) -> Callable[[Iterable[Any]], Any]:
    def chosen(values: Iterable[Any]) -> Any:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return chosen


_most, _least = _of_those_known(max), _of_those_known(min)
_newest = _of_those_known(lambda known: known[-1])
