"""Tables that need all rows of a group: Spark's tasks make them of much data, this process of little.

Each table is one function of rows, called by both drivers. A :class:`GroupTable` follows a group event by event;
:func:`made_of_groups` calls a function of columns with all rows of some groups, for tables of which a journal has many
rows. Events without a group are those of the group ``""``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.tables.common import GROUP
from rejoin.pipeline.tables.groups.rows import (
    ALWAYS,
    EventOfGroup,
    GroupRows,
    RebalanceOfGroup,
    Row,
    RowsOfGroup,
    RowValues,
    RunSummary,
)
from rejoin.pipeline.tables.runs import Runs, runs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = "DataFrame | pa.Table"
"""A table, on Spark or in this process. What drives the functions on Spark is in ``on_spark``, of each room."""
Columns: TypeAlias = Callable[[pa.Table], Iterable[pa.RecordBatch]]
"""Rows of a table from all rows of some groups."""
ReadColumn: TypeAlias = Callable[[pa.Table], Sequence[Any]]
"""The values of a column that is not taken as it is."""

_EVENTS_AT_ONCE: Final = 20_000
_UNKNOWN: Final = RunSummary(0)
_ROWS_AT_ONCE: Final = 4_000


@dataclass(frozen=True)
class GroupTable:
    """A table whose rows are a function of one group's events and, where ``of_rebalances`` names columns, rebalances.

    ``reads`` names the events with their columns. A column of another event is not sent to Spark's tasks.
    """

    schema: pa.Schema
    reads: Mapping[str, Sequence[str]]
    rows_of: RowsOfGroup
    of_rebalances: Sequence[str] = ()
    read_otherwise: Mapping[str, ReadColumn] = field(default_factory=dict)

    def of(self, events: Rows, runs: Runs | None = None, rebalances: Rows | None = None) -> Rows:
        """The table. ``runs`` are those of the events, if they are known already."""
        runs = runs_of(events) if runs is None else runs
        columns = [*ALWAYS, *self._readers()]
        if isinstance(events, pa.Table):
            rows = events_of_groups(events, self.reads, columns)
            rebalanced = None if rebalances is None else rebalances.select([*GROUP, *self.of_rebalances])
            return pa.Table.from_batches(self._batches(rows, rebalanced, runs), self.schema)
        from rejoin.pipeline.tables import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        rows = on_spark.events_as_read(events, self._readers(), self.reads, columns)
        if rebalances is not None:
            rows = on_spark.with_rebalances(rows, rebalances, self.of_rebalances)
        return made_of_groups(rows, partial(self._made, runs=runs), self.schema, at_once=_EVENTS_AT_ONCE)

    def _readers(self) -> dict[str, list[str]]:
        """Columns that not every event has, with the events of which they are read."""
        found: dict[str, list[str]] = defaultdict(list)
        for event, columns in self.reads.items():
            for name in columns:
                if name not in (*GROUP, *ALWAYS):
                    found[name].append(event)
        return found

    def _made(self, rows: pa.Table, runs: Runs) -> Iterator[pa.RecordBatch]:
        """Rows of the table in a task: events and rebalances come as rows of one table."""
        if not self.of_rebalances:
            return self._batches(rows, None, runs)
        is_event = pc.is_null(rows["of_rebalance"])
        rebalanced = rows["of_rebalance"].filter(pc.invert(is_event)).combine_chunks()
        columns = pa.Table.from_arrays(rebalanced.flatten(), [each.name for each in rebalanced.type])
        return self._batches(rows.filter(is_event), columns, runs)

    def _batches(self, events: pa.Table, rebalances: pa.Table | None, runs: Runs) -> Iterator[pa.RecordBatch]:
        groups: dict[tuple[str, str], tuple[list[EventOfGroup], list[RebalanceOfGroup]]] = defaultdict(lambda: ([], []))
        for event in _named(EventOfGroup, events, self.read_otherwise):
            groups[event.run_id, event.group_id][0].append(event)
        for rebalance in () if rebalances is None else _named(RebalanceOfGroup, rebalances):
            groups[rebalance.run_id, rebalance.group_id][1].append(rebalance)
        made: list[Row | RowValues] = []
        for key in sorted(groups):
            made += self.rows_of(GroupRows(*groups[key], runs.get(key[0], _UNKNOWN)))
            if len(made) >= _ROWS_AT_ONCE:
                yield batch_of(made, self.schema)
                made = []
        yield batch_of(made, self.schema)


def events_of_groups(events: Rows, names: Iterable[str], columns: Sequence[str]) -> Rows:
    """The run and group, and these columns, of the events with these names."""
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.tables import on_spark  # noqa: PLC0415

        return on_spark.events_of_groups(events, names, columns)
    rows = events.filter(pc.is_in(events["event"], pa.array(list(names)))).select([*GROUP, *columns])
    return rows.set_column(1, "group_id", pc.fill_null(rows["group_id"], ""))


def made_of_groups(rows: Rows, make: Columns, schema: pa.Schema, *, at_once: int | None = None) -> Rows:
    """A table from rows with a run and a group, by a function of all rows of some groups.

    ``at_once``: so many rows are given to a call in a task of Spark's, or more if a group has more.
    """
    if isinstance(rows, pa.Table):
        return pa.Table.from_batches(make(rows), schema)
    from rejoin.pipeline.tables import on_spark  # noqa: PLC0415

    return on_spark.made_of_groups(rows, make, schema, at_once)


def made_of_batches(rows: Rows, make: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema) -> Rows:
    """A table by a function of any of its rows."""

    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(make, batches)

    if isinstance(rows, pa.Table):
        return pa.Table.from_batches(made(rows.to_batches()), schema)
    from rejoin.pipeline.tables import on_spark  # noqa: PLC0415

    return on_spark.made_in_tasks(rows, made, schema)


def made_of_streams(
    rows: Rows,
    key: Sequence[str],
    order: Sequence[str],
    make: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> Rows:
    """A table by a function of the rows of whole streams: rows with one key, in order."""
    if isinstance(rows, pa.Table):
        in_order = rows.take(pc.sort_indices(rows, [(name, "ascending", "at_start") for name in (*key, *order)]))
        return pa.Table.from_batches(make(in_order.to_batches()), schema)
    from rejoin.pipeline.tables import on_spark  # noqa: PLC0415

    return on_spark.made_of_streams(rows, key, order, make, schema)


NamedRow = TypeVar("NamedRow", EventOfGroup, RebalanceOfGroup)


def _named(
    kind: type[NamedRow], rows: pa.Table, read_otherwise: Mapping[str, ReadColumn] | None = None
) -> Iterator[NamedRow]:
    have, otherwise = set(rows.schema.names), read_otherwise or {}
    columns = [
        otherwise[name](rows)
        if name in otherwise
        else values_in(rows[name].combine_chunks())
        if name in have
        else repeat(None, rows.num_rows)
        for name in kind._fields
    ]
    return map(kind._make, zip(*columns, strict=True))


def values_of(table: pa.Table | pa.RecordBatch) -> Iterator[RowValues]:
    """Its rows, without names."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def values_in(column: pa.Array) -> list[Any]:
    """The values of a column; structs within lists as tuples, which takes a fifth of the time that dicts take."""
    if not (pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)):
        return column.to_pylist()  # type: ignore[no-any-return]
    flat = pc.list_flatten(column)
    rows = list(zip(*(part.to_pylist() for part in flat.flatten()), strict=True))
    found: list[Any] = []
    at = 0
    for length in pc.list_value_length(column).to_pylist():
        found.append(None if length is None else rows[at : at + length])
        at += length or 0
    return found


def batch_of(rows: Sequence[Row | RowValues], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a table: values in the order of all its columns, or values by the names of some."""
    if rows and isinstance(rows[0], dict):
        return pa.RecordBatch.from_pylist(rows, schema)
    columns = zip(*rows, strict=True) if rows else repeat((), len(schema))
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
