"""Screen of a watch of a cluster: a table that is redrawn on a terminal, lines elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rejoin.error_lines import print_error
from rejoin.pipeline.findings.cause_texts import SHORT_CAUSES
from rejoin.pipeline.findings.formatting import count, span
from rejoin.pipeline.kafka_cluster.watching import ClusterWatch, PollResult
from rejoin.pipeline.watch.shown_rows import MOST_FINDINGS, MOST_GROUPS, clock, finding, line, through
from rejoin.protocol.printable import printable

_LAST: Final = 12


class Screen:
    """A terminal's table, redrawn after each poll; lines where the output is no terminal."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._last: deque[dict[str, Any]] = deque(maxlen=_LAST)
        self._notes: list[str] = []
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.__enter__()

    def __exit__(self, *problem: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*problem)

    def once(self, watch: ClusterWatch, found: PollResult) -> None:
        """Print everything once."""
        self._notes = found.problems
        self._console.print(self._board(watch))

    def update(self, watch: ClusterWatch, found: PollResult) -> None:
        """Show what is new since the last snapshot."""
        notes = [*found.problems, *(f"there is no group {group_id!r}" for group_id in found.missing)]
        self._last.extend(found.rebalances)
        if self._live is None:
            for row in found.rebalances:
                self._console.print(printable(line(row)), soft_wrap=True, markup=False)
            for row in found.new_findings:
                self._console.print(finding(row))
            for note in notes:
                if note not in self._notes:
                    print_error(note)
        self._notes = notes
        self._draw(watch)

    def note(self, watch: ClusterWatch, problem: str) -> None:
        """Show a problem that may pass."""
        if self._live is None and problem not in self._notes:
            print_error(f"{problem}; it is asked again")
        self._notes = [problem]
        self._draw(watch)

    def _draw(self, watch: ClusterWatch) -> None:
        if self._live is not None:
            self._live.update(self._board(watch), refresh=True)

    def _board(self, watch: ClusterWatch) -> RenderableType:
        findings = watch.findings()
        parts: list[RenderableType] = [Text(self._title, "bold"), *(Text(note, "yellow") for note in self._notes), ""]
        parts.append(_groups(watch))
        if self._last:
            parts += ["", _rebalances(self._last)]
        parts += ["", *map(finding, findings[:MOST_FINDINGS])] if findings else []
        if findings[MOST_FINDINGS:]:
            parts.append(Text(f"and {count(len(findings) - MOST_FINDINGS, 'more finding')}", "dim"))
        return Group(*parts)


def _groups(watch: ClusterWatch) -> RenderableType:
    rows = watch.statuses()
    if not rows:
        return Text("no groups", "dim")
    numbers = ("members", "epoch", "lag", "behind", "rebalances")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("group", "state", "members", "epoch", "assignor", "lag", "behind", "rebalances", "since"):
        table.add_column(name, justify="right" if name in numbers else "left")
    for row in rows[:MOST_GROUPS]:
        table.add_row(
            Text(printable(row.group_id)),
            row.state or "?",
            _number(row.members),
            _number(row.generation),
            Text(printable(row.protocol or "")),
            _number(row.lag),
            "" if row.lag_ms is None else span(row.lag_ms),
            _number(row.rebalances),
            clock(row.since_ms),
        )
    more = len(rows) - MOST_GROUPS
    return Group(table, Text(f"and {count(more, 'more group')}", "dim")) if more > 0 else table


def _rebalances(rows: Sequence[dict[str, Any]] | deque[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("ended", "group", "why", "through", "took", "moved"):
        table.add_column(name, justify="right" if name in ("took", "moved") else "left")
    for row in reversed(rows):
        table.add_row(
            clock(row["ended_at_ms"]),
            Text(printable(row["group_id"])),
            SHORT_CAUSES.get(row["cause"], row["cause"]),
            Text(printable(through({"cause_group_instance_id": None, "cause_client_id": None, **row}))),
            "" if row["unavailable_ms"] is None else span(row["unavailable_ms"]),
            _number(row["moved"]),
        )
    return table


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
