"""The page beside a report on which its groups are stepped through, from the same events."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rejoin.pipeline.drawn.events import DRAWN, events_of
from rejoin.pipeline.drawn.page import origin_of, recorded, render
from rejoin.pipeline.report.data import Report
from rejoin.pipeline.report.page.findings import STEPPED

MOST_EVENTS: Final = 100_000
"""Of more the page would be large and slow to open; then there is none."""


def events_to_draw(events: ds.Dataset, report: Report) -> pa.Table:
    """The events of the report's groups that are drawn; one too many where they are too many."""
    groups = sorted({group.group_id for group in report.groups})
    of_groups = pc.field("group_id").is_null() | pc.field("group_id").isin(pa.array(groups, pa.string()))
    return events.head(MOST_EVENTS + 1, filter=pc.field("event").isin(list(DRAWN)) & of_groups)


def draw(report: Report, rows: pa.Table, out: Path) -> None:
    """Write the page, and give the report's groups their places on it."""
    page = out / STEPPED
    page.unlink(missing_ok=True)
    # Without times there is nothing to play: the steps would last as long as the log has lines.
    by_key = {(group.run_id, group.group_id): group for group in report.groups if not group.is_untimed}
    events = events_of(rows, by_key.keys(), MOST_EVENTS)
    if not events:
        return
    several = len({run_id for run_id, _ in events}) > 1
    names = {key: f"{key[1]} ({key[0]})" if several else key[1] for key in by_key if key in events}
    for key, name in names.items():
        by_key[key].drawn = name, origin_of(events[key])
    groups = {name: recorded(events[key], by_key[key].to_ms) for key, name in names.items()}
    page.write_text(render(report.title, groups), encoding="utf-8")
