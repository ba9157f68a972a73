"""Why a group rebalances: rules over the tables, each naming what is wrong and which setting to change.

Each rule is a function of one group's :class:`~pipeline.findings.history.GroupHistory`: the rows of the tables that are
about it. :mod:`~rejoin.pipeline.findings.table` gathers those rows, on Spark for much data and in this process for
little. Nothing here needs Spark or Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.rules import judge


def rows_of(history: GroupHistory) -> Iterable[dict[str, Any]]:
    """The table's rows for one group, the worst first."""
    for finding in judge(history):
        row = finding.row()
        at_ms = row["from_ms"]
        day = None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC).date()
        about = {"run_id": history.run.run_id, "group_id": history.group_id, "groups": [history.group_id]}
        yield {**about, "day": day, **row}
