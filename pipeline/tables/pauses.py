"""Drivers of the table ``pauses``, on Spark and in this process; what a pause is, is in ``groups/pauses.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from rejoin.pipeline.schemas import PAUSES
from rejoin.pipeline.tables import whole_groups
from rejoin.pipeline.tables.groups.pauses import READS, pauses_of_group
from rejoin.pipeline.tables.groups.rows import EventOfGroup, RebalanceOfGroup, RowValues

_COLUMNS: Final = PAUSES.fieldNames()


def pauses(events: DataFrame, rebalances: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.PAUSES` from the events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    return whole_groups.on_spark(_rows, PAUSES, events, READS, rebalances)


def pauses_in_process(events: pa.Table, rebalances: pa.Table) -> pa.Table:
    """The same of rows of this process."""
    return whole_groups.in_process(_rows, PAUSES, events, READS, rebalances)


def _rows(events: list[EventOfGroup], rebalances: list[RebalanceOfGroup]) -> Iterator[RowValues]:
    for row in pauses_of_group(events, rebalances):
        yield tuple(map(row.get, _COLUMNS))
