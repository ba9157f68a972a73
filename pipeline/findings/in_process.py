"""The table ``findings`` of little data: Spark collects what the rules look at, and they run in this process.

What :func:`rejoin.pipeline.findings.findings` gives, without a worker of Spark's, which takes seconds to start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from rejoin.pipeline import schemas
from rejoin.pipeline.findings import rows_of, rows_of_groups
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ROWS, RunContext
from rejoin.pipeline.findings.rules.brokers import SHARED, one_for_each_event


def findings_in_process(tables: Mapping[str, DataFrame], events: DataFrame) -> DataFrame:
    """The table ``findings`` from the tables of ``READS`` and the events."""
    rows = rows_of_groups(tables, events)
    runs: dict[tuple[str, str], RunContext] = {}
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.collect():
        if row.group_id is None:
            continue
        key = (row.run_id, row.group_id)
        runs[key] = RunContext(**{each.name: row[each.name] for each in fields(RunContext)})
        for kind in ROWS:
            if row[kind] is not None:
                groups[key][kind].append(row[kind].asDict(recursive=True))
    joined: dict[tuple[str, str | None], list[dict[str, Any]]] = defaultdict(list)
    for key, found in groups.items():
        for finding in rows_of(GroupHistory.of(runs[key], key[1], found)):
            joined[key[0], None if finding["finding"] in SHARED else key[1]].append(finding)
    judged = [row for found_together in joined.values() for row in one_for_each_event(found_together)]
    made = pa.Table.from_pylist(judged, schema=to_arrow_schema(schemas.FINDINGS))
    return rows.sparkSession.createDataFrame(made, schemas.FINDINGS)
