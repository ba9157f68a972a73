"""Findings and rebalances as a watch shows them, of coordinators and of clusters. Nothing here needs Spark or Arrow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rejoin.pipeline.findings.formatting import span

MOST_GROUPS: Final = 15
MOST_FINDINGS: Final = 8


_SEVERITY: Final = {"high": "bold red", "medium": "yellow", "low": "dim"}

Row = dict[str, Any]


def finding(row: Row) -> RenderableType:
    """A finding in a line, with the setting to change in another."""
    about = row["group_id"] or ", ".join(row["transactional_ids"] or row["groups"] or ())
    head = Text.assemble(
        (f"{row['severity']:<7}", _SEVERITY.get(row["severity"], "")),
        f"{about}: {row['title']}" if about else row["title"],
    )
    if not row["setting"]:
        return head
    advice = Text.assemble(("→ ", "cyan"), (f"{row['setting']}  ", "cyan"), row["advice"] or "")
    return Group(head, Padding(advice, (0, 0, 0, 7)))


def line(row: Row) -> str:
    """A finished rebalance in one line, for a terminal that is none."""
    who = through(row)
    took = f"took {span(row['unavailable_ms'])}"
    moved = f", {row['moved']} moved" if row["moved"] is not None else ""
    generation = f", generation {row['generation_to']}" if row["generation_to"] is not None else ""
    return (
        f"{clock(row['ended_at_ms'])}  {row['group_id']}  {row['cause']}{f' ({who})' if who else ''}: "
        f"{row['outcome']}, {took}{moved}{generation}"
    )


def through(row: Row) -> str:
    """The member that began a rebalance, by the name a user knows."""
    member = row["cause_member_id"] or ""
    return row["cause_group_instance_id"] or row["cause_client_id"] or (member[:24] + "…" if member[24:] else member)


def clock(at_ms: int | None) -> str:
    """The time of day of an instant, UTC."""
    return "" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"
