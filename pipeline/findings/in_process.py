"""The table ``findings`` of little data: all that the rules look at are rows of this process.

What :func:`rejoin.pipeline.findings.findings` gives, without a plan of Spark's and a worker, which take seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import COUNTS_BROKERS, OF_ALL_GROUPS, rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import (
    COMMIT_APIS,
    FAILED_APIS,
    MINUTE_MS,
    READ_ONE_BY_ONE,
    ROWS,
    RunContext,
)
from rejoin.pipeline.findings.rules.brokers import SHARED, one_for_each_event
from rejoin.pipeline.findings.rules.offsets_log import SLOW_LOAD_MS
from rejoin.pipeline.tables.common import ends_of_runs_in_process
from rejoin.pipeline.vocabulary import BROKER_LOG, EXACT, REQUEST, REQUEST_LOG

_GROUP: Final = ("run_id", "group_id")
_PARTITION: Final = (*_GROUP, "topic", "partition")

Key = tuple[str, str]
Row = dict[str, Any]


def findings_in_process(table: Callable[[str], pa.Table], events: pa.Table) -> pa.Table:
    """The table ``findings`` from the tables of ``READS``, by name, and the events."""
    return joined(judged(table, events, _runs(events)))


def judged(
    table: Callable[[str], pa.Table],
    events: pa.Table,
    runs: Mapping[str, RunContext],
    sums: Mapping[str, pa.Table] | None = None,
) -> Iterator[Row]:
    """The findings of each group. ``sums``: what is known of ``commits`` or ``owned`` without events and tables."""
    groups: dict[Key, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for kind, row in rows_of_groups_in_process(table, events, sums):
        if row["group_id"] is not None:
            groups[row["run_id"], row["group_id"]][kind].append(row)
    for (run_id, group_id), found in groups.items():
        yield from rows_of(GroupHistory.of(runs[run_id], group_id, found))


def joined(findings: Iterable[Row]) -> pa.Table:
    """The table, in which those of several groups about one event of a broker are one."""
    together: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for finding in findings:
        together[finding["run_id"], None if finding["finding"] in SHARED else finding["group_id"]].append(finding)
    rows = [row for found_together in together.values() for row in one_for_each_event(found_together)]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(schemas.FINDINGS))


def rows_of_groups_in_process(
    table: Callable[[str], pa.Table], events: pa.Table, sums: Mapping[str, pa.Table] | None = None
) -> Iterator[tuple[str, Row]]:
    """What the rules look at, by kind."""
    sums = sums or {}
    sessions = table("member_sessions")
    parts = {
        "rebalance": table("rebalances"),
        "session": sessions,
        "balance": table("balance"),
        "pauses": pauses_by_generation_here(table("pauses")),
        "owned": sums["owned"] if "owned" in sums else first_owned(table("ownership")),
        "loss": _losses(table("records")),
        "commits": sums["commits"] if "commits" in sums else commits_by_minute(events),
    }
    for kind, rows in parts.items():
        names = dict.fromkeys((*_GROUP, *(each.name for each in fields(ROWS[kind]))))
        yield from ((kind, row) for row in rows.select(list(names)).to_pylist())
    yield from (("event", row) for row in _events(events, sessions))


def first_owned(ownership: pa.Table) -> pa.Table:
    """When each partition first had an owner."""
    return _summed(_of_kind(ownership, "owned"), _PARTITION, {"first_ms": ("from_ms", "min")})


def _runs(events: pa.Table) -> dict[str, RunContext]:
    """What holds for all groups of a run, as :func:`rejoin.pipeline.findings.rows_of_groups` has it."""
    from_logs = pc.is_in(events["source"], pa.array([BROKER_LOG, REQUEST_LOG]))
    joins = _all(pc.equal(events["event"], "member_joined"), from_logs, pc.equal(events["confidence"], EXACT))
    with_joins = set(events.filter(joins)["run_id"].unique().to_pylist())
    with_requests = set(events.filter(pc.equal(events["event"], REQUEST))["run_id"].unique().to_pylist())
    of_brokers = events.filter(pc.is_in(events["event"], pa.array(COUNTS_BROKERS)))
    brokers = _summed(of_brokers, ("run_id",), {"brokers": ("node", "count_distinct")}).to_pylist()
    numbers = {row["run_id"]: row["brokers"] for row in brokers}
    return {
        run_id: RunContext(run_id, end_ms, numbers.get(run_id, 0), run_id in with_joins, run_id in with_requests)
        for run_id, end_ms in ends_of_runs_in_process(events).items()
    }


def pauses_by_generation_here(pauses: pa.Table) -> pa.Table:
    """What :func:`rejoin.pipeline.findings.pauses_by_generation` gives."""
    assigned = _all(
        pc.is_valid(pauses["generation_to"]), pc.is_valid(pauses["ended_at_ms"]), pc.equal(pauses["end"], "assigned")
    )
    inferred = pc.not_equal(pauses["confidence"], EXACT)
    return _summed(
        pauses.append_column("inferred", inferred).filter(assigned),
        (*_GROUP, "generation_to", "kind"),
        {
            "pauses": ("began_at_ms", "count_all"),
            "stopped_ms": ("stopped_ms", "sum"),
            "ended_at_ms": ("ended_at_ms", "max"),
            "guessed": ("inferred", "min"),
        },
    )


def _losses(records: pa.Table) -> pa.Table:
    return _summed(
        _of_kind(records, "lost"),
        _PARTITION,
        {
            "records": ("records", "sum"),
            "ranges": ("records", "count_all"),
            "first_ms": ("at_ms", "min"),
            "last_ms": ("at_ms", "max"),
        },
    )


def are_commits(events: pa.Table) -> pa.ChunkedArray:
    """Which events are commits of a group that were stored."""
    of_requests = _all(
        pc.equal(events["event"], REQUEST),
        pc.is_in(events["api"], pa.array(COMMIT_APIS)),
        pc.equal(events["error"], "NONE"),
    )
    stored = pc.or_kleene(pc.equal(events["event"], "offsets_committed"), of_requests)
    return _all(pc.fill_null(stored, False), pc.is_valid(events["group_id"]))


def commits_by_minute(events: pa.Table) -> pa.Table:
    """Commits that were stored, by minute."""
    rows = events.filter(are_commits(events))
    known = {
        **{name: rows[name] for name in _GROUP},
        "minute": pc.divide(rows["at_ms"], MINUTE_MS),
        "size": pc.list_value_length(rows["offsets"]),
        "committer": pc.coalesce(rows["member_id"], rows["client_id"]),
    }
    sums = {
        "commits": ("minute", "count_all"),
        "offsets": ("size", "sum"),
        "committers": ("committer", "count_distinct"),
    }
    return _summed(pa.table(known), (*_GROUP, "minute"), sums)


def _events(events: pa.Table, sessions: pa.Table) -> Iterator[Row]:
    """Events about a group, and those of topics and brokers for each group that they may concern."""
    names = dict.fromkeys((*_GROUP, *(each.name for each in fields(ROWS["event"]))))
    read: dict[Key, set[str]] = defaultdict(set)
    for run_id, group_id, topics in zip(*(sessions[name].to_pylist() for name in (*_GROUP, "topics")), strict=True):
        read[run_id, group_id].update(topics or ())
    event = events["event"]
    for row in events.filter(are_read_one_by_one(events)).select(list(names)).to_pylist():
        if row["group_id"] is not None:
            yield row
        elif row["topic"] is not None:
            concerned = (key for key, topics in read.items() if not topics or row["topic"] in topics)
            yield from _of_each(row, concerned)
    slow = _all(pc.equal(event, "partition_loaded"), pc.greater_equal(events["load_ms"], SLOW_LOAD_MS))
    of_brokers = pc.or_kleene(pc.is_in(event, pa.array(OF_ALL_GROUPS)), slow)
    for row in events.filter(_all(of_brokers, pc.is_null(events["group_id"]))).select(list(names)).to_pylist():
        yield from _of_each(row, read)


def are_read_one_by_one(events: pa.Table) -> pa.ChunkedArray:
    """Which events the rules see as they are."""
    event = events["event"]
    not_stored = _all(pc.equal(event, "rebalance_started"), pc.equal(events["cause"], "store-failure"))
    failed = _all(
        pc.equal(event, REQUEST),
        pc.is_in(events["api"], pa.array(FAILED_APIS)),
        pc.not_equal(events["error"], "NONE"),
    )
    wanted = pc.or_kleene(pc.or_kleene(pc.is_in(event, pa.array(READ_ONE_BY_ONE)), not_stored), failed)
    return pc.fill_null(wanted, False)


def _of_each(row: Row, groups: Iterable[Key]) -> Iterator[Row]:
    """An event as one of each group of its run."""
    return ({**row, "group_id": group_id} for run_id, group_id in groups if run_id == row["run_id"])


def _of_kind(table: pa.Table, kind: str) -> pa.Table:
    return table.filter(pc.equal(table["kind"], kind))


def _all(*conditions: pa.ChunkedArray) -> pa.ChunkedArray:
    found = conditions[0]
    for condition in conditions[1:]:
        found = pc.and_(found, condition)
    return found


def _summed(table: pa.Table, keys: Iterable[str], sums: dict[str, tuple[str, str]]) -> pa.Table:
    """Rows by keys; each sum has a column and one of Arrow's aggregations."""
    keys = list(keys)
    made = table.group_by(keys).aggregate(
        [([] if how == "count_all" else column, how) for column, how in sums.values()]
    )
    columns = ["count_all" if how == "count_all" else f"{column}_{how}" for column, how in sums.values()]
    return made.select([*keys, *columns]).rename_columns([*keys, *sums])
