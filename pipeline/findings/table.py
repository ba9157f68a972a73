"""The table ``findings``: the rows of each group brought together and judged, on Spark or in this process.

Both drivers select rows by :data:`~rejoin.pipeline.findings.sums.KINDS`, hand those of one group at a time to its sums,
and judge groups by the same functions. ``watch`` calls these with sums that it keeps between steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Any, Final, get_args, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import rows_of
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext
from rejoin.pipeline.findings.reads import (
    AnyBut,
    AtLeast,
    Condition,
    Where,
    matches,
    names_of,
    read_events,
    read_of_all_groups,
    with_more,
)
from rejoin.pipeline.findings.rules.brokers import SHARED, one_for_each_event
from rejoin.pipeline.findings.sums import KINDS, SIGNS, RowKind, contexts_of
from rejoin.pipeline.tables.common import GROUP
from rejoin.pipeline.tables.whole_groups import values_in, values_of

Key = tuple[str, str]
Row = dict[str, Any]

_SCHEMAS: Final = schemas.TABLES | {"events": schemas.EVENTS}
_TYPES: Final = {int: pa.int64(), str: pa.string(), bool: pa.bool_()}
_ROWS_AT_ONCE: Final = 16_384


# -- what all drivers call


@dataclass(frozen=True)
class RunRows:
    """A run's context, and its events that are about no group."""

    context: RunContext
    of_all: list[Row] = field(default_factory=list)
    """Events that concern every group."""
    of_topics: dict[str, list[Row]] = field(default_factory=dict)
    """Events without a group, by their topic."""

    def concerning(self, sessions: Iterable[Mapping[str, Any]]) -> list[Row]:
        """Events that may concern a group whose members have these sessions."""
        topics: set[str] = set()
        for session in sessions:
            topics.update(session["topics"] or ())
        # A group whose topics are not known may read any.
        named = [self.of_topics.get(topic, ()) for topic in sorted(topics)] if topics else self.of_topics.values()
        return [*self.of_all, *(row for rows in named for row in rows)]


def runs_of(contexts: Mapping[str, RunContext], events: pa.Table) -> dict[str, RunRows]:
    """The runs, with events that are about no group and are seen by rules."""
    runs = {run_id: RunRows(context) for run_id, context in contexts.items()}
    of_all_groups = read_of_all_groups()
    for row in events.select(["run_id", *KINDS["event"].columns]).to_pylist():
        run = runs[row["run_id"]]
        if matches(row, of_all_groups):
            run.of_all.append(row)
        elif row["topic"] is not None:
            run.of_topics.setdefault(row["topic"], []).append(row)
    return runs


def rows_of_groups(parts: Mapping[str, pa.Table], runs: Mapping[str, RunRows]) -> Iterator[GroupHistory]:
    """The groups that have rows in these tables, which are as :func:`rows_of_kind` gives them."""
    groups: dict[Key, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for kind, table in parts.items():
        for row in table.to_pylist():
            if row["group_id"] is not None:
                groups[row["run_id"], row["group_id"]][kind].append(row)
    for (run_id, group_id), rows in groups.items():
        yield history_of(runs[run_id], group_id, rows)


def history_of(run: RunRows, group_id: str, rows: dict[str, list[Row]]) -> GroupHistory:
    """One group from its rows by kind, and from the events of its run that may concern it."""
    sessions = rows.get("session")
    rows["event"] = [*rows.get("event", ()), *(run.concerning(sessions) if sessions else run.of_all)]
    return GroupHistory.of(run.context, group_id, {**rows, "event": with_more(rows.get("event", ()))})


def judged(parts: Mapping[str, pa.Table], runs: Mapping[str, RunRows]) -> Iterator[Row]:
    """The findings of each group."""
    return (row for history in rows_of_groups(parts, runs) for row in rows_of(history))


def joined(findings: Iterable[Row]) -> pa.Table:
    """The table, in which findings of several groups about one event of a broker are one."""
    together: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for finding in findings:
        together[finding["run_id"], None if finding["finding"] in SHARED else finding["group_id"]].append(finding)
    rows = [row for found_together in together.values() for row in one_for_each_event(found_together)]
    return pa.Table.from_pylist(rows, schema=schemas.FINDINGS)


def rows_of_kind(kind: str, table: pa.Table) -> pa.Table:
    """The rows of one kind that rules see, from the rows of whole groups of the kind's table."""
    seen = KINDS[kind]
    read = [*GROUP, *(seen.columns if seen.sums is None else seen.reads)]
    rows = (table if seen.where is None else _only(table, seen.where, read)).select(read)
    if seen.sums is None:
        return rows
    for name in seen.lengths:
        rows = rows.set_column(rows.schema.get_field_index(name), name, pc.list_value_length(rows[name]))
    in_order = rows.sort_by([(name, "ascending") for name in GROUP])
    return pa.Table.from_batches(summed(seen, in_order.to_batches(_ROWS_AT_ONCE)), schema_of_sums(seen))


def _only(table: pa.Table, where: Where, columns: Iterable[str]) -> pa.Table:
    """These columns of the rows that are selected, and the columns that the conditions read.

    Most events are of no interest by their names: other conditions are tried on the rest.
    """
    rows = table.select(list(dict.fromkeys((*columns, *(name for each in where for name in each)))))
    if all("event" in each for each in where):
        events = {name for each in where for name in names_of(each)}
        rows = rows.filter(pc.is_in(rows["event"], pa.array(sorted(events))))
    return rows.filter(selected(rows, where))


def rows_by_kind(tables: Mapping[str, pa.Table], sums: Mapping[str, pa.Table] | None = None) -> dict[str, pa.Table]:
    """All rows that rules see of some groups, by kind. ``sums``: those of kinds that are made already."""
    known = sums or {}
    return {
        kind: known[kind] if kind in known else rows_of_kind(kind, tables[seen.table]) for kind, seen in KINDS.items()
    }


def summed(seen: RowKind, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sums of each group. All rows of a group come one after the other."""
    assert seen.sums is not None
    pieces = (piece for batch in batches for piece in _pieces(batch))
    made: list[tuple[Any, ...]] = []
    for key, group in groupby(pieces, key=itemgetter(0)):
        made += [(*key, *sums) for sums in seen.sums(chain.from_iterable(rows for _, rows in group))]
        if len(made) >= _ROWS_AT_ONCE:
            yield _batch(made, schema_of_sums(seen))
            made = []
    yield _batch(made, schema_of_sums(seen))


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[Key, Iterator[tuple[Any, ...]]]]:
    """A batch cut where the group changes: each group with its rows, without the columns of the key."""
    ends = sorted({end for name in GROUP for end in pc.run_end_encode(batch[name]).run_ends.to_pylist()})
    columns = [values_in(column) for column in batch.select(batch.schema.names[len(GROUP) :]).columns]
    for start, end in pairwise((0, *ends)):
        run_id, group_id = (batch[name][start].as_py() for name in GROUP)
        yield (run_id, group_id), zip(*(column[start:end] for column in columns), strict=True)


def _batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, each.type) for values, each in zip(columns, schema, strict=True)], schema=schema
    )


def schema_of_sums(seen: RowKind) -> pa.Schema:
    """Columns of sums: as in the table that they are made of or, where it has no such column, of the field's type."""
    known, hints = _SCHEMAS[seen.table], get_type_hints(seen.row)
    as_known = [name for name in known.names if name not in seen.lengths]
    return pa.schema(
        [
            (name, known.field(name).type if name in as_known else _type_of(hints[name]))
            for name in (*GROUP, *seen.columns)
        ]
    )


def _type_of(hint: Any) -> pa.DataType:
    return next(_TYPES[each] for each in (get_args(hint) or (hint,)) if each in _TYPES)


def findings(table: Callable[[str], Any], events: Any) -> Any:
    """The table ``findings`` from the tables of :data:`KINDS`, by name, and the events; all are Spark's or Arrow's."""
    if isinstance(events, pa.Table):
        return _of_rows(table, events)
    from rejoin.pipeline.findings.on_spark import table as on_spark  # noqa: PLC0415 (only where rows are Spark's)

    return on_spark.findings(table, events)


# -- rows of this process


def _of_rows(table: Callable[[str], pa.Table], events: pa.Table) -> pa.Table:
    signs = events.group_by(list(SIGNS)).aggregate([("at_ms", "max")]).select([*SIGNS, "at_ms_max"])
    tables = {seen.table: events if seen.table == "events" else table(seen.table) for seen in KINDS.values()}
    of_no_group = events.filter(pc.is_null(events["group_id"]))
    runs = runs_of(contexts_of(values_of(signs)), of_no_group.filter(are_read_one_by_one(of_no_group)))
    return joined(judged(rows_by_kind(tables), runs))


def selected(table: pa.Table, where: Where) -> pa.ChunkedArray:
    """Which rows of an Arrow table are selected."""
    found = [
        reduce(pc.and_, (pc.fill_null(_meets(table[name], condition), False) for name, condition in each.items()))
        for each in where
    ]
    return reduce(pc.or_, found)


def _meets(values: pa.ChunkedArray, condition: Condition) -> pa.ChunkedArray:
    if isinstance(condition, AnyBut):
        return pc.is_valid(values) if condition.value is None else pc.not_equal(values, condition.value)
    if isinstance(condition, AtLeast):
        return pc.greater_equal(values, condition.value)
    return pc.is_in(values, pa.array(condition, pa.string()))


def are_commits(events: pa.Table) -> pa.ChunkedArray:
    """Which events are commits of a group that were stored."""
    return selected(events, KINDS["commits"].where or ())


def are_read_one_by_one(events: pa.Table) -> pa.ChunkedArray:
    """Which events rules see as they are."""
    return selected(events, read_events())


def without_group(events: pa.Table) -> pa.ChunkedArray:
    """Which events are about no group, and are seen by rules."""
    return pc.and_(pc.is_null(events["group_id"]), are_read_one_by_one(events))
