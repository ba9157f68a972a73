"""Rows of tables about the groups that a page shows, from Spark or, of little data, from this process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rejoin.pipeline.report.data import Row
from rejoin.pipeline.report.tables import Tables
from rejoin.pipeline.tables.common import GROUP

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ShownGroups:
    """The groups to show, and when each of them was."""

    spans: dict[Key, tuple[int, int]]

    def of(self, table: DataFrame) -> DataFrame:
        """The rows of these groups."""
        if not self.spans:
            return table.limit(0)
        wanted = fn.array(*[_struct(key) for key in self.spans])
        return table.where(fn.array_contains(wanted, fn.struct(*GROUP)))

    def rows(
        self, tables: Mapping[str, DataFrame], name: str, columns: Sequence[str] = ()
    ) -> dict[Key, list[dict[str, Any]]]:
        """The rows of these groups in a table, by group, with these columns or with all."""
        found = collected(tables, name)
        if found is None:
            table = self.of(tables[name])
            return by_group(rows_of(table.select(*columns) if columns else table))
        groups = by_group(rows_of(found.select(columns) if columns else found))
        return {key: groups[key] for key in self.spans if key in groups}

    def value(self, values: Mapping[Key, int]) -> Column:
        """A number of each group as a column."""
        pairs = [part for key in self.spans for part in (_struct(key), fn.lit(values[key]))]
        return fn.element_at(fn.create_map(*pairs), fn.struct(*GROUP))


def _struct(key: Key) -> Column:
    return fn.struct(*[fn.lit(value).alias(name) for name, value in zip(GROUP, key, strict=True)])


def collected(tables: Mapping[str, DataFrame], name: str) -> pa.Table | None:
    """The rows of a table if they are in this process."""
    return tables.collected(name) if isinstance(tables, Tables) else None


def all_rows(tables: Mapping[str, DataFrame], name: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    rows = collected(tables, name)
    return rows_of(tables[name] if rows is None else rows)


def rows_of(table: DataFrame | pa.Table) -> list[dict[str, Any]]:
    rows = table.toArrow() if isinstance(table, DataFrame) else table
    found: list[dict[str, Any]] = rows.to_pylist()
    for row in found:
        for name, value in row.items():
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                row[name] = dict(value)
    return found


def by_group(rows: Iterable[dict[str, Any]]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[key_of(row)].append(row)
    return dict(found)


def key_of(row: Row) -> Key:
    return row["run_id"], row["group_id"]
