"""Annotations on the charts of groups and in their findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from rejoin.pipeline.findings.annotations import Annotation, rows_of_rollouts
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.parquet_tables import write_rows
from rejoin.pipeline.schemas import ANNOTATIONS
from rejoin.pipeline.tables.groups.rows import date_of

MOST: Final = 2_000
"""Annotations of a chart."""


def annotate(report: Report, annotations: Sequence[Annotation]) -> None:
    """Give each group the annotations of its time, and the finding about rollouts."""
    for group in report.groups:
        mine = [each for each in annotations if group.from_ms <= each.at_ms <= group.to_ms]
        group.annotations = [(each.at_ms, each.text) for each in mine[:MOST]]
        watched = (group.from_ms, group.to_ms)
        found = rows_of_rollouts(group.run_id, group.group_id, group.rebalances, annotations, watched)
        group.findings = sorted([*group.findings, *found], key=order)


def keep_annotations(annotations: Sequence[Annotation], folder: Path) -> None:
    """Write the table ``annotations``, by day like all others."""
    rows = [{"day": date_of(each.at_ms), **each._asdict()} for each in annotations]
    write_rows(pa.Table.from_pylist(rows, ANNOTATIONS), ANNOTATIONS, folder, ("day",))
