"""Summaries of whole runs, for the tables: when a run ends, and how many partitions its topics have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.tables.groups.rows import TOPIC_EVENTS, Report, RunSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Runs: TypeAlias = Mapping[str, RunSummary]
"""By run id."""

_NAMED: Final = ("run_ended", *TOPIC_EVENTS)
_KEY: Final = ("run_id", "event", "topic", "partition_count")
_SUMS: Final = (("at_ms", "min"), ("at_ms", "max"), ("records_per_second", "max"))


def runs_of(events: DataFrame | pa.Table) -> Runs:
    """The runs of these events."""
    found: dict[str, RunSummary] = {}
    reports: dict[str, list[Report]] = defaultdict(list)
    rows = _of_runs(events).select([*_KEY, "at_ms_min", "at_ms_max", "records_per_second_max"])
    for run_id, event, topic, partition_count, first_ms, last_ms, rate in zip(
        *(column.to_pylist() for column in rows.columns), strict=True
    ):
        known = found.get(run_id, RunSummary(last_ms))
        if event == "run_ended":
            known = RunSummary(max(last_ms, known.ends_at_ms if known.is_complete else last_ms), is_complete=True)
        elif not known.is_complete:
            known = RunSummary(max(last_ms, known.ends_at_ms))
        found[run_id] = known
        if event in TOPIC_EVENTS:
            reports[run_id].append((topic, partition_count, event == "topic_written", first_ms, rate))
    return {run_id: known._replace(reports=reports.get(run_id, ())) for run_id, known in found.items()}


def _of_runs(events: DataFrame | pa.Table) -> pa.Table:
    """One row for each run, with ``event`` for the end of the run and for each report about a topic."""
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.tables import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        return on_spark.sums_of_runs(events, _KEY, _NAMED, _SUMS)
    rows = events.select([*_KEY, "at_ms", "records_per_second"])
    named = pc.is_in(rows["event"], pa.array(_NAMED))
    lasts = rows.group_by("run_id").aggregate([("at_ms", "min"), ("at_ms", "max")])
    others = rows.filter(named).group_by(list(_KEY)).aggregate(list(_SUMS))
    return pa.concat_tables([lasts, others], promote_options="default")
