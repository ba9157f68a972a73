"""The report as one HTML page that needs nothing else: words and tables are HTML, charts are drawn from its data.

The words come first, so that they are there before any script has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rejoin import pages
from rejoin.pages import Markup
from rejoin.pipeline.findings.cause_texts import CAUSES, SHORT_CAUSES
from rejoin.pipeline.findings.formatting import count, period, seconds, span
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from rejoin.pipeline.report import readers
from rejoin.pipeline.report.data import (
    GroupReport,
    Report,
    Row,
    about,
    in_order,
    naming,
    silent_files,
    unread_files,
    why_after_removal,
)
from rejoin.pipeline.report.page import client_metrics, share_groups, streams_groups
from rejoin.pipeline.report.page.chart import chart_of
from rejoin.pipeline.report.page.findings import (
    findings_html,
    inferred,
    step_link,
    table_of_violations,
    violations_html,
)
from rejoin.pipeline.report.page.markup import counted, escaped, grouped, place, table, tiles
from rejoin.pipeline.report.transactions import section
from rejoin.pipeline.vocabulary import LOGS

Naming = Callable[[GroupReport], str] | None

MOST_ANSWERS: Final = 3
"""Findings at the top of the page."""
_STOPPED: Final = "consumer-seconds stopped in rebalances"
_COSTS: Final = (
    "The cost of a finding counts the time that consumers were stopped and, for a consumer that died, the time until "
    "the coordinator noticed. Several findings may count the same time. The figure above counts only time stopped in "
    "rebalances, each second once: a consumer is stopped while it owns nothing, until it has its partitions. How "
    "long a partition was not read, up to the first record, is longer; the demo's closing table counts that."
)


def render(report: Report) -> str:
    """The page."""
    causes = [[name, words, SHORT_CAUSES[name]] for name, words in CAUSES.items()]
    data = {"causes": causes, "groups": [chart_of(group) for group in report.groups]}
    return pages.render(
        "rejoin.pipeline.report",
        "page.html",
        title=report.title,
        head=_head(report),
        body=Markup("\n".join(_body(report))),
        foot=report.made,
        data=pages.script_data(data),
    )


def _head(report: Report) -> str:
    read = f"{count(report.rows_read, 'row')} from {count(report.files, 'file')}"
    bad = report.quarantined
    read += f", {count(bad, 'line')} in quarantine" if bad else ""
    read += "".join(f"; {text}" for text in report.coverage)
    read += "".join(f"; {text}" for text in (unread_files(report), silent_files(report)) if text)
    return read + ("; all times are in UTC" if report.has_times_of_the_world else "")


def _body(report: Report) -> Iterable[str]:
    yield from _answer(report)
    parts = report.parts
    transactions = sum(row["transactions"] for each in report.transactions for row in each.producers)
    stopped = sum(group.stopped_ms for group in report.groups)
    yield tiles(
        [
            counted(len(report.groups) + len(report.others), "group"),
            counted(report.rebalances, "rebalance"),
            *([(seconds(stopped), _STOPPED)] if stopped or (report.rebalances and not _is_untimed(report)) else []),
            *([counted(transactions, "transaction")] if report.transactions else []),
            counted(sum(len(each.findings) for each in parts), "finding"),
            counted(sum(len(each.violations) for each in parts), "violation"),
            (f"{report.quarantined:,}", "lines in quarantine"),
        ]
    )
    several = naming(report)
    if not parts:
        yield '<div class="card soft">No group in the input.</div>'
    if several or report.others:
        yield "<h2>Groups, worst first</h2>"
        yield _index(report)
    if not several and report.groups:
        yield f"<h2>{'Timeline' if has_chart(report.groups[0]) else 'Group'}</h2>"
    for index, group in enumerate(report.groups):
        yield from _group(index, group, several)
    if report.readers:
        yield "<h2>What came out of transforms</h2>"
        yield from readers.section(report.readers)
    if report.transactions:
        yield '<h2 id="transactions">Transactions</h2>'
    for each in report.transactions:
        violations = "".join(violations_html(each.violations)) if each.violations else ""
        yield from section(each, len(report.transactions) > 1, "".join(findings_html(each.findings)), violations)
    if any(row.get("score") for each in parts for row in each.findings):
        yield f'<p class="soft">{_COSTS}</p>'
    yield "<h2>Input</h2>"
    yield from _read(report)


def _answer(report: Report) -> Iterable[str]:
    """The worst findings, before all figures."""
    found = in_order(report)
    if not found and not report.others:
        return
    several = naming(report)
    yield '<div class="card answer">'
    for group, row in found[:MOST_ANSWERS]:
        link = f"group-{report.groups.index(group)}" if group in report.groups else "transactions"
        where = f' <span class="soft">{escaped(about(group, row, several))}</span>' if several else ""
        chip = f'<span class="chip {row["severity"]}">{row["severity"]}</span>'
        yield f'<p>{chip} <a href="#{link}">{escaped(row["title"])}</a>{inferred(row)}{where}</p>'
    if found[MOST_ANSWERS:]:
        yield f'<p class="soft">and {count(len(found) - MOST_ANSWERS, "more finding")} below</p>'
    if not found:
        yield '<p><span class="good">No findings</span> in the groups that have a chart.</p>'
    yield "</div>"


def _index(report: Report) -> str:
    body = [
        [
            f'<a href="#group-{index}">{escaped(group.group_id)}</a>',
            escaped(group.run_id),
            f"{len(group.rebalances):,}",
            "" if group.is_untimed else seconds(group.stopped_ms),
            f"{len(group.violations):,}",
            _worst(group.findings),
        ]
        for index, group in enumerate(report.groups)
    ]
    shown = table(("group", "run", "#rebalances", "#consumer-seconds stopped", "#violations", ":worst finding"), body)
    rest = ""
    if report.others:
        rows = [
            [
                escaped(row["group_id"]),
                escaped(row["run_id"]),
                f"{row['rebalances']:,}",
                escaped(row.get("worst") or ""),
            ]
            for row in report.others
        ]
        rest = (
            f"<details><summary>{count(len(rows), 'more group')} without a chart (--group shows one)</summary>"
            f"{table(('group', 'run', '#rebalances', ':worst finding'), rows)}</details>"
        )
    return f'<div class="card">{shown}{rest}</div>'


def _worst(findings: Sequence[Row]) -> str:
    if not findings:
        return '<span class="good">none</span>'
    row = findings[0]
    return f'<span class="{row["severity"]}">{escaped(row["severity"])}</span> {escaped(row["title"])}'


_NAMELESS: Final = "Consumers whose logs name no group"


def has_chart(group: GroupReport) -> bool:
    """Whether there is something to draw: not of a consumer of which only a late poll is known."""
    return bool(group.rebalances or group.partitions or group.sessions)


def _group(index: int, group: GroupReport, several: Naming) -> Iterable[str]:
    is_drawn = has_chart(group)
    drawn = f' data-group="{index}"' if is_drawn else ""
    yield f'<section class="card group" id="group-{index}"{drawn}>'
    run = f'<span class="soft">{escaped(group.run_id)}</span>' if several else ""
    when = period(group.from_ms, group.to_ms)
    name = _NAMELESS if group.group_id == NO_GROUP else group.group_id
    yield f'<div class="top"><h3>{escaped(name)}</h3>{run}<span class="soft">{escaped(when)}</span></div>'
    if numbers := _numbers(group):
        yield tiles(numbers)
    if is_drawn:
        yield (
            '<div class="tools"><span class="soft">Drag to zoom in; point at the chart for details.</span>'
            f"<button data-all>Show all</button>{step_link(group, group.from_ms, 'step through it')}</div>"
        )
        yield '<div class="chart"></div><div data-legend></div>'
    if group.closed_ms and not group.is_untimed:
        yield (
            f'<p class="soft">Gaps of up to {span(group.closed_ms)} with the same owner on both sides are not drawn. '
            "The table ownership has them.</p>"
        )
    if not group.partitions and is_drawn:
        lanes = "the lanes are members" if group.sessions else "there is no chart of owners"
        yield f'<p class="soft">The input does not say who owned which partition: {lanes}.</p>'
    yield from findings_html(group.findings, index if is_drawn else None, group)
    if group.shares is not None:
        yield from share_groups.section(group, group.shares)
    if group.streams is not None:
        yield from streams_groups.section(group, group.streams)
    if group.rebalances:
        total = count(len(group.rebalances), "rebalance") + (
            f" ({group.inferred:,} inferred)" if group.inferred else ""
        )
        yield f"<details data-rebalances><summary>{total}, one by one</summary></details>"
    elif group.shares is None and group.streams is None:
        yield '<p class="soft">No rebalance.</p>'
    if group.pauses:
        body = [
            [
                escaped(row["owner"]),
                f"{row['pauses']:,}",
                *(("", "") if group.is_untimed else (seconds(row["stopped_ms"]), span(row["longest_ms"]))),
                f"{row['incremental']:,}",
            ]
            for row in group.pauses
        ]
        head = ("consumer", "#pauses", "#stopped, s", "#longest", "#with a part only")
        yield f"<details><summary>Pauses by consumer</summary>{table(head, body)}</details>"
    if group.measured:
        yield from client_metrics.section(group.measured)
    if group.requests:
        yield f"<details><summary>Requests</summary>{_requests(group.requests)}</details>"
    if group.violations:
        yield from violations_html(group.violations)
    if group.after_removal:
        yield f"<h4>{count(len(group.after_removal), 'overlap')} after a removal</h4>"
        yield f'<p class="soft">{escaped(why_after_removal(group))}</p>'
        yield from table_of_violations(group.after_removal)
    yield "</section>"


def _is_untimed(report: Report) -> bool:
    """Whether no group in the report has times."""
    return bool(report.groups) and all(group.is_untimed for group in report.groups)


def _numbers(group: GroupReport) -> list[tuple[str, str]]:
    completed = [row for row in group.rebalances if row.get("outcome") == "completed"]
    longest = max((int(row.get("unavailable_ms") or 0) for row in group.rebalances), default=0)
    tiles: list[tuple[str, str]] = []
    if group.rebalances:
        tiles.append(counted(len(group.rebalances), "rebalance", f", {len(completed):,} completed"))
    if longest and not group.is_untimed:
        tiles.append((span(longest), "the longest"))
    if (group.rebalances and not group.is_untimed) or group.stopped_ms:
        tiles.append((seconds(group.stopped_ms), _STOPPED))
    moved = [row["moved"] for row in group.rebalances if row.get("moved") is not None]
    if moved:
        tiles.append(counted(sum(moved), "partition", " moved"))
    if group.counts.get("members"):
        tiles.append(counted(group.counts["members"], "member", " at most"))
    if group.partitions:
        tiles.append(counted(len(group.partitions), "partition"))
    for name, words in (("duplicates", " processed twice"), ("lost", " lost")):
        if group.counts.get(name) is not None:
            tiles.append(counted(group.counts[name], "record", words))
    return tiles


def _requests(rows: Sequence[Row]) -> str:
    def ms(value: Any) -> str:
        return "" if value is None else f"{value:,.1f}"

    body = [
        [
            escaped(row["api"]),
            f"{row['requests']:,}",
            f"{row['failed'] or 0:,}",
            *(ms(row.get(name)) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms", "parked_max_ms")),
            escaped(", ".join(f"{name} {number:,}" for name, number in sorted((row.get("errors") or {}).items()))),
        ]
        for row in rows
    ]
    head = (
        "request",
        "#answered",
        "#with an error",
        "#median, ms",
        "#95 %",
        "#99 %",
        "#slowest",
        "#longest parked",
        "errors",
    )
    return table(head, body)


def _read(report: Report) -> Iterable[str]:
    yield '<div class="card">'
    if report.streams:
        body = [
            [
                escaped(row["source"]),
                escaped(row["node"]),
                escaped(row["run_id"]),
                grouped(row["rows"]),
                grouped(row["missing"]),
                # Rows of logs are in the order that was made of their lines.
                "" if row["source"] in LOGS else grouped(row["out_of_order"]),
                grouped(row["clock_steps"]),
            ]
            for row in report.streams
        ]
        yield table(("source", "written by", "run", "#rows", "#missing", "#out of order", "#clock went back"), body)
    if report.unread:
        yield f'<h4 class="medium">{count(len(report.unread), "file")} could not be read</h4>'
        yield table(("file", ":why"), [[escaped(each.path), escaped(each.reason)] for each in report.unread])
    if report.silent:
        yield f'<h4 class="medium">{count(len(report.silent), "file")} with nothing about a group</h4>'
        yield table(("file",), [[escaped(each)] for each in report.silent])
    if report.quarantine_kinds:
        kinds = ", ".join(f"{escaped(kind)} {number:,}" for kind, number in report.quarantine_kinds)
        yield f'<h4 class="medium">{count(report.quarantined, "line")} in quarantine: {kinds}</h4>'
        body = [
            [place(row), escaped(row["reason"]), escaped(str(row.get("text") or "")[:300])] for row in report.quarantine
        ]
        yield table(("where", ":why", "!the line"), body)
        if report.quarantined > len(report.quarantine):
            yield f'<p class="soft">The first {len(report.quarantine)} lines; the table quarantine has all.</p>'
    elif report.unread or report.silent:
        yield '<p class="soft">Every line of the other files could be read.</p>'
    else:
        yield '<p class="soft">Every line could be read; the quarantine is empty.</p>'
    yield "</div>"
