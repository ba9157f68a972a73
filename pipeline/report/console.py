"""The report in the terminal: what was read, the findings, and where the rest is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.findings.phrases import probably
from rejoin.pipeline.report.data import (
    GroupReport,
    Report,
    Row,
    about,
    cost_of,
    count_after_removal,
    in_order,
    naming,
    silent_files,
    unread_files,
)
from rejoin.pipeline.vocabulary import EXACT
from rejoin.protocol.printable import printable

STYLES: Final = {"high": "bold red", "medium": "yellow", "low": "dim"}
MOST: Final = 10
"""Findings in the terminal; the page has all."""


def show(
    report: Report, console: Console, *, page: Path | None, tables: Path | None, steps: Path | None = None
) -> None:
    """Print it."""
    console.print(_read(report))
    found = in_order(report)
    several = naming(report)
    # Groups without a chart are only named in the index, with the worst that was found in them.
    unshown = sum(row.get("worst") is not None for row in report.others)
    if not found and not unshown:
        console.print(Text("\nNo findings: no rule found a cause that a setting would change.", "green"))
    for group, row in found[:MOST]:
        console.print()
        console.print(_finding(group, row, several))
    if found[MOST:]:
        console.print(f"\nand {count(len(found) - MOST, 'more finding')}: see the page")
    if unshown:
        console.print(f"\nand findings in {count(unshown, 'more group')}: see the page, or --group")
    bad = sum(len(each.violations) for each in report.parts)
    if bad:
        console.print(Text(f"\n{count(bad, 'violation')} of what must never happen: see the page", "bold red"))
    allowed = count_after_removal(report.groups)
    if allowed:
        console.print(f"\n{allowed}")
    console.print()
    for name, path in (("page", page), ("steps", steps), ("tables", tables)):
        if path is not None:
            # A path is to be copied whole, so it is never folded.
            console.print(Text(f"{name:<7}{path}"), soft_wrap=True)


def _read(report: Report) -> Text:
    groups = len(report.groups) + len(report.others)
    number = sum(group.inferred for group in report.groups)
    inferred = f" ({number:,} inferred)" if number else ""
    text = Text(
        f"{count(report.rows_read, 'row')} from {count(report.files, 'file')}, {count(groups, 'group')}, "
        f"{count(report.rebalances, 'rebalance')}{inferred}"
        + ("; times are in UTC" if report.has_times_of_the_world else "")
    )
    for note in report.coverage:
        text.append(f"\n{printable(note)}")
    for missing_files in filter(None, (unread_files(report), silent_files(report))):
        text.append(f"\n{printable(missing_files)}", "yellow")
    if report.quarantined:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in report.quarantine_kinds)
        text.append(f"\n{count(report.quarantined, 'line')} in quarantine: {kinds}", "yellow")
    missing = sum(row.get("missing") or 0 for row in report.streams)
    if missing:
        text.append(f"\n{count(missing, 'row')} missing between others: see what was read, on the page", "yellow")
    return text


def _finding(group: GroupReport, row: Row, several: Callable[[GroupReport], str] | None) -> RenderableType:
    style = STYLES.get(row["severity"], "")
    head = Text.assemble((f"{row['severity']:<7}", style), (printable(row["title"]), "bold"))
    where: list[str] = [printable(about(group, row, several))] if several else []
    if cost := cost_of(row):
        where.append(cost)
    if row.get("confidence") != EXACT and not row["title"].startswith(probably(exact=False)):
        where.append("inferred")
    if where:
        head.append(f"  {', '.join(where)}", "dim")
    head.overflow = "fold"
    parts: list[RenderableType] = [head, Padding(Text(printable(row["text"])), (0, 0, 0, 7))]
    if row.get("advice"):
        parts.append(_advice(row))
    return Group(*parts)


def _advice(row: Row) -> RenderableType:
    setting = [(f"{row['setting']}  ", "cyan")] if row.get("setting") else []
    return Padding(Text.assemble(("→ ", "cyan"), *setting, printable(row["advice"])), (0, 0, 0, 7))


def brief(report: Report, console: Console, most: int) -> None:
    """The findings' titles and what to do, a few lines each."""
    found: Sequence[tuple[GroupReport, Row]] = in_order(report)
    if not found:
        console.print(Text("No findings: no rule found a cause that a setting would change.", "green"))
    several = naming(report)
    for group, row in found[:most]:
        where = printable(f"{several(group)}: ") if several else ""
        console.print(
            Text.assemble(
                (f"{row['severity']:<7}", STYLES.get(row["severity"], "")), f"{where}{printable(row['title'])}"
            )
        )
        if row.get("advice"):
            console.print(_advice(row))
    if found[most:]:
        console.print(f"and {count(len(found) - most, 'more finding')} on the page")
