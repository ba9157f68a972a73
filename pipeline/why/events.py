"""Rebalances, sessions and findings of one group from events, in this process.

The rules are those of a report. Costs are those of the consumers' own events; without any they are upper bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.reads import matches, names_read_whole, read_events, with_more
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.findings.sums import sums_of
from rejoin.pipeline.reading.unusual_lines import LineMistake
from rejoin.pipeline.reading.usual_lines import read_rows, rows_of_events
from rejoin.pipeline.share_groups.findings import share_findings
from rejoin.pipeline.share_groups.histories import READ as OF_SHARE_GROUPS
from rejoin.pipeline.share_groups.histories import tables_of as share_tables
from rejoin.pipeline.streams_groups.findings import streams_findings
from rejoin.pipeline.streams_groups.histories import READ as OF_STREAMS_GROUPS
from rejoin.pipeline.streams_groups.histories import tables_of as streams_tables
from rejoin.pipeline.tables.groups import balance, member_sessions, ownership, pauses
from rejoin.pipeline.tables.groups.rebalance_events import FOLLOWED
from rejoin.pipeline.tables.groups.rebalances import EVENTS_READ, rebalances_of_group
from rejoin.pipeline.tables.groups.rows import GroupRows, RebalanceOfGroup, RunSummary, TopicPartition, event_of
from rejoin.pipeline.why.story import Row

_READ_ONE_BY_ONE: Final = names_read_whole()
_OF_COORDINATORS: Final = frozenset((*FOLLOWED, *_READ_ONE_BY_ONE, "static_member_restored", "group_created"))
READ_EVENTS: Final = _OF_COORDINATORS | pauses.READS.keys() | frozenset(OF_SHARE_GROUPS) | frozenset(OF_STREAMS_GROUPS)
"""The events that are looked at."""
_OF_CONSUMERS: Final = ("partitions_assigned", "revocation_completed")
_IDENTITY: Final = ("run_id", "source", "node", "seq")


def events_of(
    texts: Sequence[str], problems: Sequence[str | None] | None = None
) -> tuple[list[Row], list[tuple[int, LineMistake]]]:
    """Lines of journals as rows of the table ``events``; the numbers of those that are none, with their mistakes.

    A row that comes twice counts once.
    """
    found, others = read_rows(texts, problems or [None] * len(texts))
    rows = {tuple(map(row.get, _IDENTITY)): row for row in rows_of_events(found)}
    return sorted(rows.values(), key=lambda row: (row["at_ms"], row["node"], row["seq"])), others


def findings_of(
    group_id: str, events: Sequence[Row], rebalances: Sequence[Row], end_ms: int, progress: Sequence[Row] = ()
) -> list[Row]:
    """Findings about a group's events, and about how its offsets move, the worst first."""
    if not events:
        return []
    nodes = {row["node"] for row in events if row["event"] in _OF_COORDINATORS}
    run = RunContext(run_id=events[-1]["run_id"], end_ms=end_ms, brokers=len(nodes))
    group = _group(group_id, events, rebalances)
    sessions, waits, balances, owned = (
        group._replace(events=[event for event in group.events if event.event in reads])
        for reads in (member_sessions.READS, pauses.READS, balance.READS, ownership.READS)
    )
    seen = read_events()
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "rebalance": rebalances,
        "session": member_sessions.sessions_of_group(sessions),
        "pauses": sums_of("pauses", pauses.pauses_of_group(waits)),
        "balance": list(balance.balance_of_group(balances)),
        "owned": _first_owners(owned),
        "progress": progress,
        "event": with_more(row for row in events if row["group_id"] in (group_id, None) and matches(row, seen)),
    }
    found = [
        *rows_of(GroupHistory.of(run, group_id, rows)),
        *share_findings(share_tables_of(group_id, events, end_ms)),
        *streams_findings(streams_tables_of(group_id, events, end_ms)),
    ]
    return sorted(found, key=order)


def share_tables_of(group_id: str, events: Iterable[Row], end_ms: int) -> dict[str, list[Row]]:
    """Rows of the tables of share groups, of one group."""
    ours = [row for row in events if row["group_id"] == group_id and row["event"] in OF_SHARE_GROUPS]
    return share_tables(ours, {row["run_id"]: end_ms for row in ours})


def streams_tables_of(group_id: str, events: Iterable[Row], end_ms: int) -> dict[str, list[Row]]:
    """Rows of the tables of streams groups, of one group."""
    ours = [row for row in events if row["group_id"] == group_id and row["event"] in OF_STREAMS_GROUPS]
    return streams_tables(ours, {row["run_id"]: end_ms for row in ours})


def consumers_report(group_id: str, events: Iterable[Row]) -> bool:
    """Whether the group's consumers say what they were assigned, so that costs are no upper bounds."""
    return any(row["group_id"] == group_id and row["event"] in _OF_CONSUMERS for row in events)


def rebalances_of(group_id: str, events: Sequence[Row]) -> list[Row]:
    """The rebalances of a group, in the order in which they began; those that go on have no end."""
    found = rebalances_of_group(_group(group_id, events, reads=EVENTS_READ))
    return sorted(found, key=lambda row: (row["prepared_at_ms"], row["number"]))


def sessions_of(group_id: str, events: Sequence[Row]) -> list[Row]:
    """Rows of ``member_sessions`` of a group."""
    return member_sessions.sessions_of_group(_group(group_id, events, reads=member_sessions.READS))


def _group(
    group_id: str, events: Sequence[Row], rebalances: Iterable[Row] = (), reads: Collection[str] | None = None
) -> GroupRows:
    """The rows of a group from which tables are made; ``reads`` are the events to read, if not all are."""
    wanted = READ_EVENTS if reads is None else reads
    of_group = [event_of(row) for row in events if row["group_id"] == group_id and row["event"] in wanted]
    rebalanced = [RebalanceOfGroup._make(map(row.get, RebalanceOfGroup._fields)) for row in rebalances]
    return GroupRows(of_group, rebalanced, RunSummary(max((row["at_ms"] for row in events), default=0)))


def _first_owners(group: GroupRows) -> list[Row]:
    """When each partition first had an owner."""
    first: dict[TopicPartition, int] = {}
    for at, interval in ownership.intervals_of_group(group.events, group.run.ends_at_ms):
        first[at] = min(interval.from_ms, first.get(at, interval.from_ms))
    return [{"topic": topic, "partition": partition, "first_ms": at_ms} for (topic, partition), at_ms in first.items()]
