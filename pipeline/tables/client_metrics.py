"""The table of clients' metrics: :mod:`rejoin.pipeline.tables.groups.client_metrics`, with Spark or in this process."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline import schemas
from rejoin.pipeline.event_fields import MEASURES
from rejoin.pipeline.tables.groups import client_metrics as of_clients
from rejoin.pipeline.tables.runs import Runs
from rejoin.pipeline.tables.whole_groups import GroupTable, Rows, values_of


def client_metrics(events: Rows, rebalances: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.CLIENT_METRICS` from events and :data:`rejoin.pipeline.schemas.REBALANCES`."""
    return _CLIENT_METRICS.of(in_their_groups(events), runs, rebalances)


def in_their_groups(events: Rows) -> Rows:
    """Events in which a report without a group stands in each group with a member of its client.id."""
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.tables import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        return on_spark.in_groups_of_clients(events, of_clients.REPORTED, of_clients.JOINS)
    is_alone = pc.and_(pc.equal(events["event"], of_clients.REPORTED), pc.is_null(events["group_id"]))
    if not pc.any(is_alone).as_py():
        return events
    joins = events.filter(pc.is_in(events["event"], pa.array(of_clients.JOINS)))
    groups: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for run_id, group_id, client_id in values_of(joins.select(["run_id", "group_id", "client_id"])):
        if client_id is not None and group_id is not None:
            groups[run_id, client_id][group_id] = None
    alone = events.filter(is_alone)
    keys = zip(alone["run_id"].to_pylist(), alone["client_id"].to_pylist(), strict=True)
    found = [(number, group_id) for number, key in enumerate(keys) for group_id in groups.get(key, ())]
    placed = alone.take(pa.array([number for number, _ in found], pa.int64()))
    at = events.schema.get_field_index("group_id")
    placed = placed.set_column(at, events.schema.field(at), pa.array([group_id for _, group_id in found], pa.string()))
    return pa.concat_tables([events.filter(pc.invert(is_alone)), placed])


def _measured(rows: pa.Table) -> list[tuple[object, ...] | None]:
    """The metrics of each report; none of other events."""
    columns = (rows[name].to_pylist() for name in MEASURES)
    return [None if values[0] is None else values for values in zip(*columns, strict=True)]


_CLIENT_METRICS: Final = GroupTable(
    schemas.CLIENT_METRICS,
    of_clients.READS,
    of_clients.client_metrics_of_group,
    of_rebalances=of_clients.OF_REBALANCES,
    read_otherwise={"measured": _measured},
)
