"""Rebalances, sessions and findings of one group from events, in this process.

The rules are those of a report. Costs are those of the consumers' own events; without any they are upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.rules.reads import names_read_whole
from rejoin.pipeline.findings.sums import sums_of
from rejoin.pipeline.reading.usual_lines import read_usual, rows_of_events
from rejoin.pipeline.tables.groups import pauses
from rejoin.pipeline.tables.groups.rebalance_events import FOLLOWED
from rejoin.pipeline.tables.groups.rebalances import rebalances_of_group
from rejoin.pipeline.tables.groups.rows import GroupRows, RebalanceOfGroup, RunSummary, event_of
from rejoin.pipeline.vocabulary import EXACT
from rejoin.pipeline.why.story import Row

_READ_ONE_BY_ONE: Final = names_read_whole()
_OF_REBALANCES: Final = frozenset((*FOLLOWED, "group_created"))
_OF_COORDINATORS: Final = frozenset((*FOLLOWED, *_READ_ONE_BY_ONE, "static_member_restored", "group_created"))
READ_EVENTS: Final = _OF_COORDINATORS | pauses.READS.keys()
"""The events that are looked at."""
_CAME: Final = ("member_joined", "static_member_replaced")
_INHERITED: Final = (
    *("client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms", "protocols", "topics", "software"),
    "group_protocol",
)
_OF_CONSUMERS: Final = ("partitions_assigned", "revocation_completed")
_IDENTITY: Final = ("run_id", "source", "node", "seq")


def events_of(texts: Sequence[str], problems: Sequence[str | None] | None = None) -> tuple[list[Row], list[int]]:
    """Lines of journals as rows of the table ``events``; and the numbers of those that are none.

    A row that comes twice counts once.
    """
    found, others = read_usual(texts, problems or [None] * len(texts))
    rows = {tuple(map(row.get, _IDENTITY)): row for row in rows_of_events(found)}
    return sorted(rows.values(), key=lambda row: (row["at_ms"], row["node"], row["seq"])), others


def findings_of(
    group_id: str, events: Sequence[Row], rebalances: Sequence[Row], end_ms: int, progress: Sequence[Row] = ()
) -> list[Row]:
    """What the rules find in a group's events, and in how its offsets move, the worst first."""
    if not events:
        return []
    nodes = {row["node"] for row in events if row["event"] in _OF_COORDINATORS}
    run = RunContext(run_id=events[-1]["run_id"], end_ms=end_ms, brokers=len(nodes))
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "rebalance": rebalances,
        "session": sessions_of(group_id, events),
        "pauses": sums_of("pauses", pauses_of(group_id, events, rebalances)),
        "balance": list(_balances(group_id, events)),
        "owned": _first_owners(group_id, events),
        "progress": progress,
        "event": [row for row in events if row["event"] in _READ_ONE_BY_ONE and row["group_id"] in (group_id, None)],
    }
    return list(rows_of(GroupHistory.of(run, group_id, rows)))


def pauses_of(group_id: str, events: Sequence[Row], rebalances: Sequence[Row]) -> list[Row]:
    """Rows of ``pauses`` of a group: as its consumers report them, else as its rebalances show them."""
    end_ms = max((row["at_ms"] for row in events), default=0)
    of_group = [event_of(row) for row in events if row["group_id"] == group_id and row["event"] in pauses.READS]
    rebalanced = [RebalanceOfGroup._make(row.get(name) for name in RebalanceOfGroup._fields) for row in rebalances]
    return list(pauses.pauses_of_group(GroupRows(of_group, rebalanced, RunSummary(end_ms))))


def consumers_report(group_id: str, events: Iterable[Row]) -> bool:
    """Whether the group's consumers say what they were assigned, so that costs are no upper bounds."""
    return any(row["group_id"] == group_id and row["event"] in _OF_CONSUMERS for row in events)


def rebalances_of(group_id: str, events: Iterable[Row]) -> list[Row]:
    """The rebalances of a group, in the order in which they began; those that go on have no end."""
    wanted = [row for row in events if row["group_id"] == group_id and row["event"] in _OF_REBALANCES]
    found = rebalances_of_group(GroupRows(list(map(event_of, wanted)), (), RunSummary(0)))
    return sorted(found, key=lambda row: (row["prepared_at_ms"], row["number"]))


def sessions_of(group_id: str, events: Iterable[Row]) -> list[Row]:
    """The sessions of a group's members: rows of ``member_sessions``, as far as rules look at them."""
    open_ones: dict[str, Row] = {}
    ended: list[Row] = []
    for row in events:
        member = row["member_id"]
        if row["group_id"] != group_id or member is None:
            continue
        name = row["event"]
        before: Row | None = None
        if name == "static_member_replaced" and row["other_member_id"] in open_ones:
            before = open_ones.pop(row["other_member_id"])
        if before is not None:
            ended.append(_ended(before, row["at_ms"], "replaced", None))
            open_ones[member] = _session(row, before)
        elif name in _CAME:
            open_ones[member] = _session(row, None)
        elif name == "member_rejoined":
            session = open_ones.setdefault(member, _session(row, None, joined=False))
            session.update({key: row[key] for key in ("protocols", "topics") if row.get(key) is not None})
        elif name == "member_removed":
            session = open_ones.pop(member) if member in open_ones else _session(row, None, joined=False)
            ended.append(_ended(session, row["at_ms"], row["cause"], row["client_reason"]))
        elif name == "static_member_restored":
            back = next((each for each in reversed(ended) if each["member_id"] == member), None)
            if back is not None:
                ended.remove(back)
                open_ones[member] = {**back, "ended_at_ms": None, "end": "open", "leave_reason": None}
    return [*ended, *open_ones.values()]


def _session(row: Row, before: Row | None, *, joined: bool = True) -> Row:
    """A session that begins with an event; a static member's goes on with the settings of the one before."""
    made = {name: row.get(name) for name in _INHERITED}
    kind = row.get("kind") if row["event"] == "member_joined" else None
    made["group_protocol"] = kind or (row.get("member_type") if row.get("member_type") != "classic" else None)
    if before is not None:
        made = {name: before[name] if value is None else value for name, value in made.items()}
    return {
        **made,
        "member_id": row["member_id"],
        "group_instance_id": row["group_instance_id"],
        "joined_at_ms": row["at_ms"] if joined else None,
        "ended_at_ms": None,
        "end": "open",
        "leave_reason": None,
        "same_process_as": row["other_member_id"] if row["event"] == "member_joined" else None,
        "confidence": EXACT,
    }


def _ended(session: Row, at_ms: int, end: str | None, reason: str | None) -> Row:
    return {**session, "ended_at_ms": at_ms, "end": end, "leave_reason": reason}


def _balances(group_id: str, events: Sequence[Row]) -> Iterator[Row]:
    """Rows of ``balance``: how many partitions each member had in each generation."""
    done = [
        row
        for row in events
        if row["event"] == "rebalance_completed" and row["group_id"] == group_id and row["owned_after"] is not None
    ]
    for row, following in zip_longest(done, done[1:]):
        counts = dict.fromkeys(row["members"] or (), 0)
        for owned in row["owned_after"]:
            counts[owned["member_id"]] = counts.get(owned["member_id"], 0) + 1
        if counts:
            yield {
                "at_ms": row["at_ms"],
                "until_ms": None if following is None else following["at_ms"],
                "generation": row["generation"],
                "protocol": row["protocol"],
                "members": len(counts),
                "partitions": sum(counts.values()),
                "least": min(counts.values()),
                "most": max(counts.values()),
                "idle_members": sum(not number for number in counts.values()),
                "most_member_id": max(counts, key=lambda member: (counts[member], member)),
            }


def _first_owners(group_id: str, events: Iterable[Row]) -> list[Row]:
    """When each partition first had an owner."""
    first: dict[tuple[str, int], int] = {}
    for row in events:
        if row["event"] == "rebalance_completed" and row["group_id"] == group_id:
            for owned in row["owned_after"] or ():
                first.setdefault((owned["topic"], owned["partition"]), row["at_ms"])
    return [{"topic": topic, "partition": partition, "first_ms": at_ms} for (topic, partition), at_ms in first.items()]
