"""Helpers of several tables: columns of all events of some groups at a time.

Columns are for tables of which a journal has many rows: to follow such events one by one in Python would take longer
than Spark does, and as columns they take less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

GROUP: Final = ("run_id", "group_id")
PARTITION: Final = (*GROUP, "topic", "partition")
"""The key of a partition of a group."""

_ROWS_AT_ONCE: Final = 100_000

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def some_groups(batches: Iterable[pa.RecordBatch], at_once: int = _ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The rows of whole groups, of many at a time."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        rest = batch
        ends = _last_group(batch)
        if ends and count + ends >= at_once:
            yield pa.Table.from_batches([*waiting, batch.slice(0, ends)])
            waiting, count, rest = [], 0, batch.slice(ends)
        waiting.append(rest)
        count += rest.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _last_group(batch: pa.RecordBatch) -> int:
    """Where the last group of a batch begins: all others end in it."""
    last = batch.num_rows - 1
    if last < 0:
        return 0
    same = pc.and_(*(pc.equal(batch[name], batch[name][last]) for name in GROUP))
    return int(pc.index(same, pa.scalar(True)).as_py())


def exploded(rows: pa.Table, name: str) -> pa.Table:
    """A row for each struct of a list, whose fields are columns behind all others."""
    lists = rows[name].combine_chunks()
    each = rows.drop_columns([name]).take(pc.list_parent_indices(lists))
    structs = pc.list_flatten(lists)
    for field, values in zip(structs.type, structs.flatten(), strict=True):
        each = each.append_column(field.name, values)
    return each


def by_partition(each: pa.Table, by: Sequence[str]) -> tuple[pa.Table, Bools]:
    """Rows in the order of partitions and, within each, of these columns; which rows are the first of theirs."""
    codes = np.zeros(each.num_rows, dtype=np.int64)
    for name in PARTITION:
        column = each[name].combine_chunks().dictionary_encode(null_encoding="encode")
        # The codes so far are as few as the partitions, so that the product stays small.
        codes = np.unique(codes * len(column.dictionary) + column.indices.to_numpy(), return_inverse=True)[1]
    keys = [(name, "ascending", "at_start") for name in ("code", *by)]
    order = pc.sort_indices(each.append_column("code", pa.array(codes)), keys)
    in_order = codes[order.to_numpy()]
    fresh = np.ones(len(in_order), dtype=np.bool_)
    fresh[1:] = in_order[1:] != in_order[:-1]
    return each.take(order).combine_chunks(), fresh


def ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    """A column without nulls as numbers."""
    found: Ints = column.cast(pa.int64()).to_numpy()
    return found


def highest_before(ranks: Ints, fresh: Bools) -> Ints:
    """The highest rank before each row in its partition; -1 where there is none. Ranks below 0 do not count."""
    if not len(ranks):
        return ranks
    above = int(ranks.max()) + 2
    offsets = np.cumsum(fresh) * above
    highest = np.maximum.accumulate(np.maximum(ranks, -1) + offsets)
    before = np.concatenate(([-1], highest[:-1]))
    found: Ints = np.where(before >= offsets, before - offsets, -1)
    return found
