"""What happened around groups, on their charts and in their findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rejoin.pipeline.findings.annotations import Annotation, rows_of_rollouts
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.data import Report

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
