"""Every committed partition: how far behind its log it was, how far it went, and whether it went back.

What the coordinator stored or refused counts. Where no coordinator of a group wrote a journal, the consumers' own
events count (``inferred``: the instant is that of the answer). The end of a log is known of synthetic topics
only, which grow as a function of time.

There are many commits in a journal, so they are not followed one by one: all of some groups are columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline.event_fields import MS_A_DAY
from rejoin.pipeline.schemas import COMMITS
from rejoin.pipeline.tables.common import (
    GROUP,
    Bools,
    Ints,
    by_partition,
    conform,
    exploded,
    highest_before,
    ints,
    of,
    some_groups,
)
from rejoin.pipeline.tables.groups.rows import Report, trusted
from rejoin.pipeline.tables.whole_groups import LOGS, by_run, reports_in_process, reports_of_runs, values_in
from rejoin.pipeline.vocabulary import INFERRED

_BY_COORDINATOR: Final = ("offsets_committed", "commit_refused")
_BY_CONSUMERS: Final = ("commit_succeeded", "commit_failed")
_STORED: Final = ("offsets_committed", "commit_succeeded")
_AS_IS: Final = (
    *("run_id", "group_id", "at_ms", "source", "node", "seq", "member_id", "group_instance_id", "generation"),
    "confidence",
)
_READS: Final = (*_AS_IS, "event", "error", "problem", "offsets", "producer_id")
_ROWS_AT_ONCE: Final = 100_000
_SCHEMA: Final = to_arrow_schema(COMMITS)


def commits(events: DataFrame) -> DataFrame:
    """:data:`rejoin.pipeline.schemas.COMMITS` from the events."""
    rows = of(events, *_BY_COORDINATOR, *_BY_CONSUMERS).where("group_id IS NOT NULL").select(*_READS)
    reported = rows.select(*GROUP).distinct().join(fn.broadcast(reports_of_runs(events)), "run_id")
    in_order = rows.unionByName(reported, allowMissingColumns=True).repartition(*GROUP).sortWithinPartitions(*GROUP)
    return conform(in_order.mapInArrow(_made, COMMITS), COMMITS)


def commits_in_process(events: pa.Table) -> pa.Table:
    """The same of events that are rows of this process."""
    wanted = pc.and_(
        pc.is_in(events["event"], pa.array((*_BY_COORDINATOR, *_BY_CONSUMERS))), pc.is_valid(events["group_id"])
    )
    rows = events.filter(wanted).select(_READS)
    reports = by_run(rows, reports_in_process(events), LOGS)
    return pa.Table.from_batches(_commits_of(rows.append_column("reports", reports)), _SCHEMA)


def _made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in some_groups(batches):
        yield from _commits_of(rows)


def _commits_of(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows of the table from all commits of some groups."""
    logs = _rates(rows)
    rows = _reported_best(rows.filter(pc.is_valid(rows["event"])))
    each, fresh = by_partition(exploded(rows.drop_columns(["reports"]), "offsets"), ("at_ms", "source", "node", "seq"))
    stored = ints(pc.is_in(each["event"], pa.array(_STORED))) > 0
    before = highest_before(np.where(stored, np.arange(len(stored)), -1), fresh)
    known, at_ms, offset = before >= 0, ints(each["at_ms"]), ints(each["offset"])
    previous, previous_ms = offset[before], at_ms[before]
    is_synthetic, end = _end_offsets(each, fresh, at_ms, logs)
    consumers = pc.is_in(each["event"], pa.array(_BY_CONSUMERS))
    made = {name: each[name] for name in (*_AS_IS, "topic", "partition", "offset")} | {
        "day": pa.array((at_ms // MS_A_DAY).astype(np.int32)).cast(pa.date32()),
        "outcome": pc.if_else(pa.array(stored), "stored", "refused"),
        "error": pc.if_else(consumers, each["problem"], each["error"]),
        "previous_offset": pa.array(previous, mask=~known),
        "advanced": pa.array(offset - previous, mask=~known),
        "since_ms": pa.array(at_ms - previous_ms, mask=~known),
        "end_offset": pa.array(end, mask=~is_synthetic),
        "lag": pa.array(np.maximum(end - offset, 0), mask=~is_synthetic),
        "transactional": pc.is_valid(each["producer_id"]),
        "confidence": pc.if_else(consumers, INFERRED, each["confidence"]),
    }
    table = pa.Table.from_arrays([made[name] for name in _SCHEMA.names], _SCHEMA.names).cast(_SCHEMA)
    yield from table.to_batches(max_chunksize=_ROWS_AT_ONCE)


def _reported_best(rows: pa.Table) -> pa.Table:
    """Commits as the coordinator saw them; those of consumers where no coordinator of the group wrote a journal."""
    keys = pc.binary_join_element_wise(rows["run_id"], rows["group_id"], "\0")
    by_coordinator = pc.is_in(rows["event"], pa.array(_BY_COORDINATOR))
    known = pc.is_in(keys, value_set=keys.filter(by_coordinator).unique())
    return rows.filter(pc.or_(by_coordinator, pc.invert(known)))


def _rates(rows: pa.Table) -> dict[tuple[str, str, int], tuple[int, float]]:
    """Since when the partitions of synthetic topics exist, and how many records they get a second.

    Such a partition grows from its creation; nodes report it again after a restart.
    """
    known = rows.filter(pc.is_valid(rows["reports"])).select(["run_id", "reports"]).combine_chunks()
    runs: Mapping[str, Sequence[Report]] = dict(
        zip(*(values_in(column.combine_chunks()) for column in known.columns), strict=True)
    )
    found: dict[tuple[str, str, int], tuple[int, float]] = {}
    for run_id, reports in runs.items():
        for topic, partition_count, _, since_ms, rate in trusted(reports):
            for partition in range(partition_count):
                key = run_id, topic, partition
                at_ms, known_rate = found.get(key, (since_ms, 0.0))
                found[key] = min(at_ms, since_ms), max(known_rate, rate or 0.0)
    return {key: value for key, value in found.items() if value[1] > 0}


def _end_offsets(
    each: pa.Table, fresh: Bools, at_ms: Ints, logs: Mapping[tuple[str, str, int], tuple[int, float]]
) -> tuple[Bools, Ints]:
    """Whether the log of each row is synthetic, and where it ends then.

    As ``coordinator.core.topics.topics.SyntheticLog`` counts it.
    """
    firsts = each.select(["run_id", "topic", "partition"]).filter(pa.array(fresh))
    keys = zip(*(column.to_pylist() for column in firsts.columns), strict=True)
    found = np.array([logs.get(key, (0, 0.0)) for key in keys], dtype=np.float64).reshape(-1, 2)
    of_partition = found[np.cumsum(fresh) - 1] if len(found) else found
    since_ms, rate = of_partition[:, 0].astype(np.int64), of_partition[:, 1]
    grown = np.floor((at_ms - since_ms).astype(np.float64) * rate / 1000.0).astype(np.int64)
    return rate > 0, np.maximum(grown, 0)
