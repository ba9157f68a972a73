"""Drivers of the table ``rebalances`` for whole journals: on Spark, and in this process.

What a rebalance is, and how it ends, is in :mod:`rejoin.pipeline.tables.groups.rebalances`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline.schemas import REBALANCES
from rejoin.pipeline.tables.common import conform, of
from rejoin.pipeline.tables.groups.rebalance_events import READS, RebalanceEvent
from rejoin.pipeline.tables.groups.rebalances import CHAIN_GAP_MS, EVENTS_READ, rebalances_of_group

_GROUP: Final = ("run_id", "group_id")
_ORDER: Final = (*_GROUP, "source", "node", "seq")
_OWNERS: Final = ("owned_before", "owned_after")
_ROWS_AT_ONCE: Final = 1_000

Row = dict[str, Any]


def rebalances(events: DataFrame, chain_gap_ms: int = CHAIN_GAP_MS) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.REBALANCES` from :data:`rejoin.pipeline.schemas.EVENTS`."""
    rows = of(events, *EVENTS_READ).select(*READS).repartition(*_GROUP).sortWithinPartitions(*_ORDER)
    return conform(rows.mapInArrow(partial(_made, chain_gap_ms), REBALANCES), REBALANCES)


def rebalances_in_process(events: pa.Table, chain_gap_ms: int = CHAIN_GAP_MS) -> pa.Table:
    """The same of events that are rows of this process."""
    rows = events.filter(pc.is_in(events["event"], pa.array(EVENTS_READ))).select(READS)
    in_order = rows.sort_by([(name, "ascending") for name in _ORDER])
    return pa.Table.from_batches(_made(chain_gap_ms, in_order.to_batches()), to_arrow_schema(REBALANCES))


def _made(chain_gap_ms: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the table from events of whole groups, in order."""
    schema = to_arrow_schema(REBALANCES)
    rows: list[Row] = []
    for _, group in groupby((event for batch in batches for event in _events_of(batch)), attrgetter(*_GROUP)):
        rows += rebalances_of_group(group, chain_gap_ms)
        if len(rows) >= _ROWS_AT_ONCE:
            yield pa.RecordBatch.from_pylist(rows, schema)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema)


def _events_of(batch: pa.RecordBatch) -> Iterator[RebalanceEvent]:
    """Its rows; lists of partitions of which only the length matters have no more than that."""
    known = pc.and_(pc.is_valid(batch["moved"]), pc.is_valid(batch["regained"]))
    columns = []
    for name in READS:
        column = batch[name]
        if name == "partitions":
            columns.append(_lengths(column))
        elif name in _OWNERS:
            whole = pc.if_else(known, pa.scalar(None, column.type), column).to_pylist()
            columns.append(
                [length if rows is None else rows for length, rows in zip(_lengths(column), whole, strict=True)]
            )
        else:
            columns.append(column.to_pylist())
    return map(RebalanceEvent._make, zip(*columns, strict=True))


def _lengths(column: pa.Array) -> list[range | None]:
    return [None if length is None else range(length) for length in pc.list_value_length(column).to_pylist()]
