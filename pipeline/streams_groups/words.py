"""Tasks of a streams group in words, for the terminal and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.streams_groups.of_run import task_of

Row = Mapping[str, Any]

CAUSES: Final = {
    "join": "as a member joined",
    "leave": "as a member left",
    "crash": "as a member died",
    "restart": "over a restart",
    "rolling-restart": "in a rolling restart",
    "metadata": "as a member's description changed",
    "topics": "as topics changed",
    "settings": "as settings changed",
    "failover": "after a failover",
    "unknown": "for an unknown cause",
}


def summary(tables: Mapping[str, Sequence[Row]]) -> str:
    """Tasks of a streams group, who has them at the end, and why they moved."""
    tasks, moves = tables["tasks"], tables["task_moves"]
    if not tasks and not moves:
        return "no task was given to a member"
    has = [row for row in tasks if row["to_ms"] is None]
    active = {task_of(row) for row in has if row["role"] == "active"}
    standby = [row for row in has if row["role"] == "standby"]
    processes = {row["process_id"] or row["member_id"] for row in has}
    said = _owners(active, processes, standby) if has else "no task has an owner at the end"
    causes = Counter(row["cause"] for row in moves)
    moved = ", ".join(f"{number:,} {CAUSES[cause]}" for cause, number in causes.most_common(4))
    return f"{said}; {count(len(moves), 'move')}{f': {moved}' if moved else ''}"


def _owners(active: Collection[str], processes: Collection[str], standby: Sequence[Row]) -> str:
    said = f"{count(len(active), 'active task')} in {count(len(processes), 'process').replace('processs', 'processes')}"
    if standby:
        said += f", {len(standby):,} {'standby' if len(standby) == 1 else 'standbys'}"
    return said
