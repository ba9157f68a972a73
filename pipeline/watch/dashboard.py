"""The dashboard of ``watch``: groups, their last rebalances, findings, and the state of the services."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rejoin.pipeline.findings.formatting import count, span
from rejoin.pipeline.watch.shown_rows import MOST_FINDINGS, MOST_GROUPS, clock, finding, through
from rejoin.pipeline.watch.tables import TableSummary
from rejoin.protocol.printable import printable

LAST: Final = 12
"""Rebalances that are shown."""

_STATE: Final = {
    "Stable": "green",
    **dict.fromkeys(("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"), "yellow"),
    "Dead": "dim",
}
_OUTCOME: Final = {"completed": "green", "superseded": "yellow", "aborted": "red", "emptied": "dim"}

Row = dict[str, Any]


@dataclass(slots=True)
class Dashboard:
    """The rows to show. ``notes`` are for a while: a service that is down, tables being made."""

    title: str
    groups: Sequence[Row] = ()
    """Each group at each of its coordinators."""
    last: deque[Row] = field(default_factory=lambda: deque(maxlen=LAST))
    ended: int = 0
    findings: Sequence[Row] = ()
    events: str = ""
    notes: list[str] = field(default_factory=list)

    def take(self, made: TableSummary) -> None:
        """Show these tables, and the rebalances that ended after those shown."""
        self.groups, self.findings = made.groups, made.findings
        self.last.extend(made.ended)
        self.ended += len(made.ended)
        bad = f", {count(made.quarantined, 'line')} in quarantine" if made.quarantined else ""
        self.events = f"{count(made.rebalances, 'rebalance')}, {count(len(made.findings), 'finding')}{bad}"

    def standing(self) -> list[Row]:
        """One row for each group: what its newest coordinator says, the newest first."""
        newest: dict[str, Row] = {}
        for row in self.groups:
            known = newest.get(row["group_id"])
            if known is None or _newer(row) >= _newer(known):
                newest[row["group_id"]] = row
        return sorted(newest.values(), key=lambda row: (-(row["at_ms"] or 0), row["group_id"]))

    def shown(self) -> RenderableType:
        """All of it."""
        parts: list[RenderableType] = [Text.assemble((self.title, "bold"), ("   " + self.events, "dim"))]
        parts += [Text(note, "yellow") for note in self.notes]
        parts += ["", self._groups(), "", self._rebalances()]
        if self.findings:
            parts += ["", *self._findings()]
        return Group(*parts)

    def _groups(self) -> RenderableType:
        table = _table("group", "state", "members", "generation", "since", "going on")
        rows = self.standing()
        for row in rows[:MOST_GROUPS]:
            state = row["state"] or "?"
            going_on = f"{row['cause']}, attempt {row['attempt']}" if row["attempt"] else ""
            table.add_row(
                Text(printable(row["group_id"])),
                Text(state, _STATE.get(state, "")),
                str(row["members"]),
                _number(row["generation"]),
                clock(row["since_ms"]),
                going_on,
            )
        if not rows:
            return Text("no events of any group yet", "dim")
        return Group(table, Text(f"and {len(rows) - MOST_GROUPS} more groups", "dim")) if rows[MOST_GROUPS:] else table

    def _rebalances(self) -> RenderableType:
        if not self.last:
            return Text("no rebalance has ended yet", "dim")
        table = _table("ended", "group", "why", "through", "took", "moved", "outcome")
        for row in reversed(self.last):
            table.add_row(
                clock(row["ended_at_ms"]),
                Text(printable(row["group_id"])),
                row["cause"],
                Text(printable(through(row))),
                span(row["unavailable_ms"]),
                _number(row["moved"]),
                Text(row["outcome"], _OUTCOME.get(row["outcome"], "")),
            )
        more = self.ended - len(self.last)
        return Group(table, Text(f"and {more} before", "dim")) if more else table

    def _findings(self) -> Iterator[RenderableType]:
        for row in self.findings[:MOST_FINDINGS]:
            yield finding(row)
        if self.findings[MOST_FINDINGS:]:
            yield Text(f"and {len(self.findings) - MOST_FINDINGS} more findings", "dim")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        justify: Any = "right" if name in ("members", "generation", "took", "moved") else "left"
        table.add_column(name, justify=justify, no_wrap=name not in ("group", "through", "going on"))
    return table


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _newer(row: Row) -> tuple[int, int]:
    return row["at_ms"] or 0, row["since_ms"] or 0
