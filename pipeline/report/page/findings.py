"""Findings and violations on the page, with their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from rejoin.pipeline.findings.formatting import count
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.data import GroupReport, Row, cost_of
from rejoin.pipeline.report.page.markup import escaped, grouped, moment, place, table
from rejoin.pipeline.vocabulary import AFTER_REMOVAL, EXACT

VIOLATIONS: Final = {
    "two-owners": "two owners at the same time",
    AFTER_REMOVAL: "a removed member went on",
    "unexplained-gap": "no owner for longer than a rebalance explains",
    "generation-went-back": "the generation went back",
    "commit-not-seen": "an acknowledged commit was not read later",
    "static-member-rebalanced": "a static member caused a rebalance that it should not have",
    "hanging-transaction": "a transaction is open in a log, and its coordinator does not know of it",
    "fenced-producer-wrote": "a log took a batch of a fenced producer",
    "stable-offset-held": "the last stable offset stood for longer than the transaction timeout explains",
    "timeout-not-kept": "a transaction was open for longer than its timeout",
}
"""The text of each kind of violation, and of overlaps that are none."""

MOST_VIOLATIONS: Final = 50
_INFERRED: Final = (
    "Inferred: no line states it, or lines were recognised by their text alone, without the name of a logger."
)
FEW: Final = 5
"""Up to so many findings of a group, the worst is open."""
STEPPED: Final = "laboratory.html"
"""The page beside the report on which groups are stepped through."""


def step_link(group: GroupReport, at_ms: int, words: str) -> str:
    """A link to an instant of a group on the page that is stepped through."""
    if group.drawn is None:
        return ""
    name, origin = group.drawn
    place = urlencode({"at": max(0, at_ms - origin), "group": name}, quote_via=quote)
    return f' <a href="{escaped(f"{STEPPED}#{place}")}">{words}</a>'


def findings_html(findings: Sequence[Row], index: int | None = None, group: GroupReport | None = None) -> Iterable[str]:
    """A line for each, the worst first, that opens; ``index`` is that of the group's chart."""
    if not findings:
        yield '<p><span class="good">No findings</span>: no rule found a cause that a change of settings would fix.</p>'
        return
    yield f"<h4>{count(len(findings), 'finding')}</h4>"
    for nth, row in enumerate(sorted(findings, key=order)):
        yield _finding(index, row, group, is_open=nth == 0 and len(findings) <= FEW)


def inferred(row: Row) -> str:
    """A mark where the input does not state what a finding says."""
    return "" if row.get("confidence") == EXACT else ' <span class="soft">(inferred)</span>'


def _finding(index: int | None, row: Row, group: GroupReport | None, *, is_open: bool) -> str:
    severity = str(row["severity"])
    cost = f"cost {known}" if (known := cost_of(row)) else ""
    shared = row.get("groups") or ()
    about = f"{len(shared)} groups: {', '.join(shared)}" if row.get("group_id") is None and len(shared) > 1 else ""
    sure = f'<p class="soft">{_INFERRED}</p>' if inferred(row) else ""
    button = ""
    if index is not None and row.get("from_ms") is not None and row.get("to_ms") is not None:
        span_of = f'data-from="{row["from_ms"]}" data-to="{row["to_ms"]}"'
        step = "" if group is None else step_link(group, row["from_ms"], "step through it")
        button = f'<div class="tools"><button data-show="{index}" {span_of}>on the chart</button>{step}</div>'
    do = ""
    if row.get("advice"):
        setting = f"<code>{escaped(row['setting'])}</code> " if row.get("setting") else ""
        what = "What to change" if row.get("setting") else "What to do"
        do = f'<p class="do"><b>{what}</b> {setting}{escaped(row["advice"])}</p>'
    more = "; ".join(filter(None, (about, cost)))
    return (
        f'<details class="finding {severity}"{" open" * is_open}>'
        f'<summary><span class="chip {severity}">{severity}</span> '
        f'<b>{escaped(row["title"])}</b>{inferred(row)} <span class="soft">{escaped(more)}</span></summary>'
        f"<p>{escaped(row['text'])}</p>{do}{sure}{_evidence(row)}{button}</details>"
    )


def _evidence(row: Row) -> str:
    rows = list(row.get("evidence") or ())
    if not rows:
        return ""
    body = [
        [escaped(each["event"]), escaped(f"{each['source']} {each['node'] or ''}"), grouped(each["seq"]), place(each)]
        for each in rows
    ]
    return (
        f"<details><summary>{count(len(rows), 'row')} of evidence</summary>"
        f"{table(('event', 'source', '#number', 'where'), body)}</details>"
    )


def violations_html(rows: Sequence[Row]) -> Iterable[str]:
    yield f'<h4 class="high">{count(len(rows), "violation")}</h4>'
    yield from table_of_violations(rows)


def table_of_violations(rows: Sequence[Row]) -> Iterable[str]:
    body = [
        [
            escaped(moment(row["at_ms"])),
            escaped(VIOLATIONS.get(row["kind"], row["kind"])),
            escaped("" if row.get("topic") is None else f"{row['topic']}-{row['partition']}"),
            escaped(row.get("text")),
            ", ".join(place(each) for each in (row.get("evidence") or ())[:3] if each.get("file")),
        ]
        for row in rows[:MOST_VIOLATIONS]
    ]
    yield table(("when", "what", "partition", ":in words", "where"), body)
    if rows[MOST_VIOLATIONS:]:
        yield f'<p class="soft">and {len(rows) - MOST_VIOLATIONS:,} more: see the table violations.</p>'
