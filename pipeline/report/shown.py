"""Rows of tables about the groups that a page shows.

A table is a dataset of Arrow, in this process or in Parquet below the report's folder: reading it needs no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rejoin.pipeline.report.data import Row

Key: TypeAlias = tuple[str, str]
StoredTables: TypeAlias = Mapping[str, ds.Dataset]
"""The tables by their names."""


@dataclass(frozen=True, slots=True)
class ShownGroups:
    """The groups to show, and when each of them was."""

    spans: dict[Key, tuple[int, int]]

    def batches(
        self, tables: StoredTables, name: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these groups in a table. Where several runs are shown, some of other groups may be among them."""
        # Without a group to show, the type is not that of the values.
        runs, groups = (pa.array(sorted({key[number] for key in self.spans}), pa.string()) for number in (0, 1))
        wanted = pc.field("run_id").isin(runs) & pc.field("group_id").isin(groups)
        yield from tables[name].to_batches(columns=list(columns), filter=wanted if where is None else wanted & where)

    def rows(
        self, tables: StoredTables, name: str, columns: Sequence[str] = (), where: pc.Expression | None = None
    ) -> dict[Key, list[dict[str, Any]]]:
        """The rows of these groups in a table, by group, with these columns or with all."""
        batches = self.batches(tables, name, columns or tables[name].schema.names, where)
        groups = by_group(row for batch in batches for row in rows_of(batch))
        return {key: groups[key] for key in self.spans if key in groups}


def all_rows(tables: StoredTables, name: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    return rows_of(tables[name].to_table())


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_pylist()
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
