"""The report as one HTML page that needs nothing else: words and tables are HTML, charts are drawn from its data.

The words come first, so that they are there before any script has run.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from rejoin import pages
from rejoin.pages import Markup
from rejoin.pipeline.findings.cause_texts import CAUSES, DEFAULT_REASONS, SHORT_CAUSES
from rejoin.pipeline.findings.formatting import clock, count, is_simulated, period, seconds, span
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from rejoin.pipeline.report import readers
from rejoin.pipeline.report.data import GroupReport, Report, Row, naming, silent_files, unread_files, why_after_removal
from rejoin.pipeline.report.transactions import section
from rejoin.pipeline.vocabulary import AFTER_REMOVAL

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

Naming = Callable[[GroupReport], str] | None

_STOPPED: Final = "consumer-seconds stopped in rebalances"
_COSTS: Final = (
    "The cost of a finding counts the time that consumers were stopped and, for a consumer that died, the time until "
    "the coordinator noticed. Several findings may count the same time. The figure above counts only time stopped in "
    "rebalances, each second once: a consumer is stopped while it owns nothing, until it has its partitions. How "
    "long a partition was not read, up to the first record, is longer; the demo's closing table counts that."
)
MOST_VIOLATIONS: Final = 50
STEPPED: Final = "laboratory.html"
"""The page beside the report on which groups are stepped through."""
_REASON_CHARS: Final = 160


def render(report: Report) -> str:
    """The page."""
    causes = [[name, words, SHORT_CAUSES[name]] for name, words in CAUSES.items()]
    data = {"causes": causes, "groups": [_chart(group) for group in report.groups]}
    return pages.render(
        __package__,
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
    read += "".join(f"; {text}" for text in (unread_files(report), silent_files(report)) if text)
    return read + ("; all times are in UTC" if report.has_times_of_the_world else "")


def _body(report: Report) -> Iterable[str]:
    parts = report.parts
    transactions = sum(row["transactions"] for each in report.transactions for row in each.producers)
    yield _tiles(
        [
            _counted(len(report.groups) + len(report.others), "group"),
            _counted(report.rebalances, "rebalance"),
            (seconds(sum(group.stopped_ms for group in report.groups)), _STOPPED),
            *([_counted(transactions, "transaction")] if report.transactions else []),
            _counted(sum(len(each.findings) for each in parts), "finding"),
            _counted(sum(len(each.violations) for each in parts), "violation"),
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
        yield "<h2>Timeline</h2>"
    for index, group in enumerate(report.groups):
        yield from _group(index, group, several)
    if report.readers:
        yield "<h2>What came out of transforms</h2>"
        yield from readers.section(report.readers)
    if report.transactions:
        yield "<h2>Transactions</h2>"
    for each in report.transactions:
        violations = "".join(_violations(each.violations)) if each.violations else ""
        yield from section(each, len(report.transactions) > 1, "".join(_findings(each.findings)), violations)
    if any(row.get("score") for each in parts for row in each.findings):
        yield f'<p class="soft">{_COSTS}</p>'
    yield "<h2>Input</h2>"
    yield from _read(report)


def _step(group: GroupReport, at_ms: int, words: str) -> str:
    """A link to an instant of a group on the page that is stepped through."""
    if group.drawn is None:
        return ""
    name, origin = group.drawn
    place = urlencode({"at": max(0, at_ms - origin), "group": name}, quote_via=quote)
    return f' <a href="{_text(f"{STEPPED}#{place}")}">{words}</a>'


def _findings(findings: Sequence[Row], index: int | None = None, group: GroupReport | None = None) -> Iterable[str]:
    """A line for each, the worst first, that opens; ``index`` is that of the group's chart."""
    if not findings:
        yield '<p><span class="good">No findings</span>: no rule found a cause that a change of settings would fix.</p>'
        return
    yield f"<h4>{count(len(findings), 'finding')}</h4>"
    for row in sorted(findings, key=order):
        yield _finding(index, row, group)


def _finding(index: int | None, row: Row, group: GroupReport | None) -> str:
    severity = str(row["severity"])
    cost = f"cost {seconds((row['score'] or 0) * 1_000)} consumer-seconds" if row.get("score") else ""
    shared = row.get("groups") or ()
    about = f"{len(shared)} groups: {', '.join(shared)}" if row.get("group_id") is None and len(shared) > 1 else ""
    sure = "" if row.get("confidence") == "exact" else '<p class="soft">Inferred, not in the input.</p>'
    button = ""
    if index is not None and row.get("from_ms") is not None and row.get("to_ms") is not None:
        span_of = f'data-from="{row["from_ms"]}" data-to="{row["to_ms"]}"'
        step = "" if group is None else _step(group, row["from_ms"], "step through it")
        button = f'<div class="tools"><button data-show="{index}" {span_of}>on the chart</button>{step}</div>'
    do = ""
    if row.get("advice"):
        setting = f"<code>{_text(row['setting'])}</code> " if row.get("setting") else ""
        what = "What to change" if row.get("setting") else "What to do"
        do = f'<p class="do"><b>{what}</b> {setting}{_text(row["advice"])}</p>'
    more = "; ".join(filter(None, (about, cost)))
    return (
        f'<details class="finding {severity}"><summary><span class="chip {severity}">{severity}</span> '
        f'<b>{_text(row["title"])}</b> <span class="soft">{_text(more)}</span></summary>'
        f"<p>{_text(row['text'])}</p>{do}{sure}{_evidence(row)}{button}</details>"
    )


def _evidence(row: Row) -> str:
    rows = list(row.get("evidence") or ())
    if not rows:
        return ""
    body = [
        [_text(each["event"]), _text(f"{each['source']} {each['node'] or ''}"), _number(each["seq"]), _place(each)]
        for each in rows
    ]
    return (
        f"<details><summary>{count(len(rows), 'row')} of evidence</summary>"
        f"{_table(('event', 'source', '#number', 'where'), body)}</details>"
    )


def _place(row: Mapping[str, Any]) -> str:
    if not row.get("file"):
        return ""
    name = str(row["file"]).rsplit("/", 1)[-1]
    return f'<span title="{_text(row["file"])}">{_text(name)}</span>' + (f":{row['line']}" if row.get("line") else "")


def _index(report: Report) -> str:
    body = [
        [
            f'<a href="#group-{index}">{_text(group.group_id)}</a>',
            _text(group.run_id),
            f"{len(group.rebalances):,}",
            seconds(group.stopped_ms),
            f"{len(group.violations):,}",
            _worst(group.findings),
        ]
        for index, group in enumerate(report.groups)
    ]
    shown = _table(("group", "run", "#rebalances", "#consumer-seconds stopped", "#violations", ":worst finding"), body)
    rest = ""
    if report.others:
        rows = [
            [_text(row["group_id"]), _text(row["run_id"]), f"{row['rebalances']:,}", _text(row.get("worst") or "")]
            for row in report.others
        ]
        rest = (
            f"<details><summary>{count(len(rows), 'more group')} without a chart (--group shows one)</summary>"
            f"{_table(('group', 'run', '#rebalances', ':worst finding'), rows)}</details>"
        )
    return f'<div class="card">{shown}{rest}</div>'


def _worst(findings: Sequence[Row]) -> str:
    if not findings:
        return '<span class="good">none</span>'
    row = findings[0]
    return f'<span class="{row["severity"]}">{_text(row["severity"])}</span> {_text(row["title"])}'


_NAMELESS: Final = "Consumers whose logs name no group"


def _group(index: int, group: GroupReport, several: Naming) -> Iterable[str]:
    yield f'<section class="card group" id="group-{index}" data-group="{index}">'
    run = f'<span class="soft">{_text(group.run_id)}</span>' if several else ""
    when = period(group.from_ms, group.to_ms)
    name = _NAMELESS if group.group_id == NO_GROUP else group.group_id
    yield f'<div class="top"><h3>{_text(name)}</h3>{run}<span class="soft">{_text(when)}</span></div>'
    yield _tiles(_numbers(group))
    # Nothing to draw of a consumer of which only a late poll is known.
    hidden = "" if group.rebalances or group.partitions or group.sessions else " hidden"
    yield (
        f'<div class="tools"{hidden}><span class="soft">Drag to zoom in; point at the chart for details.</span>'
        f"<button data-all>Show all</button>{_step(group, group.from_ms, 'step through it')}</div>"
    )
    yield f'<div class="chart"{hidden}></div><div data-legend{hidden}></div>'
    if group.closed_ms:
        yield (
            f'<p class="soft">Gaps of up to {span(group.closed_ms)} with the same owner on both sides are not drawn. '
            "The table ownership has them.</p>"
        )
    if not group.partitions and not hidden:
        lanes = "the lanes are members" if group.sessions else "there is no chart of owners"
        yield f'<p class="soft">The input does not say who owned which partition: {lanes}.</p>'
    yield from _findings(group.findings, index, group)
    if group.rebalances:
        total = count(len(group.rebalances), "rebalance")
        yield f"<details data-rebalances><summary>{total}, one by one</summary></details>"
    else:
        yield '<p class="soft">No rebalance.</p>'
    if group.pauses:
        body = [
            [
                _text(row["owner"]),
                f"{row['pauses']:,}",
                seconds(row["stopped_ms"]),
                span(row["longest_ms"]),
                f"{row['incremental']:,}",
            ]
            for row in group.pauses
        ]
        head = ("consumer", "#pauses", "#stopped, s", "#longest", "#with a part only")
        yield f"<details><summary>Pauses by consumer</summary>{_table(head, body)}</details>"
    if group.requests:
        yield f"<details><summary>Requests</summary>{_requests(group.requests)}</details>"
    if group.violations:
        yield from _violations(group.violations)
    if group.after_removal:
        yield f"<h4>{count(len(group.after_removal), 'overlap')} after a removal</h4>"
        yield f'<p class="soft">{_text(why_after_removal(group))}</p>'
        yield from _table_of_violations(group.after_removal)
    yield "</section>"


def _numbers(group: GroupReport) -> list[tuple[str, str]]:
    completed = [row for row in group.rebalances if row.get("outcome") == "completed"]
    longest = max((int(row.get("unavailable_ms") or 0) for row in group.rebalances), default=0)
    tiles = [
        (f"{len(group.rebalances):,}", f"rebalances, {len(completed):,} completed"),
        (span(longest), "the longest"),
        (seconds(group.stopped_ms), _STOPPED),
    ]
    moved = [row["moved"] for row in group.rebalances if row.get("moved") is not None]
    if moved:
        tiles.append((f"{sum(moved):,}", "partitions moved"))
    if group.counts.get("members"):
        tiles.append((f"{group.counts['members']:,}", "members at most"))
    if group.partitions:
        tiles.append((f"{len(group.partitions):,}", "partitions"))
    for name, words in (("duplicates", "records processed twice"), ("lost", "records lost")):
        if group.counts.get(name) is not None:
            tiles.append((f"{group.counts[name]:,}", words))
    return tiles


def _violations(rows: Sequence[Row]) -> Iterable[str]:
    yield f'<h4 class="high">{count(len(rows), "violation")}</h4>'
    yield from _table_of_violations(rows)


def _table_of_violations(rows: Sequence[Row]) -> Iterable[str]:
    body = [
        [
            _text(_moment(row["at_ms"])),
            _text(VIOLATIONS.get(row["kind"], row["kind"])),
            _text("" if row.get("topic") is None else f"{row['topic']}-{row['partition']}"),
            _text(row.get("text")),
            ", ".join(_place(each) for each in (row.get("evidence") or ())[:3] if each.get("file")),
        ]
        for row in rows[:MOST_VIOLATIONS]
    ]
    yield _table(("when", "what", "partition", ":in words", "where"), body)
    if rows[MOST_VIOLATIONS:]:
        yield f'<p class="soft">and {len(rows) - MOST_VIOLATIONS:,} more: see the table violations.</p>'


def _requests(rows: Sequence[Row]) -> str:
    def ms(value: Any) -> str:
        return "" if value is None else f"{value:,.1f}"

    body = [
        [
            _text(row["api"]),
            f"{row['requests']:,}",
            f"{row['failed'] or 0:,}",
            *(ms(row.get(name)) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms", "parked_max_ms")),
            _text(", ".join(f"{name} {number:,}" for name, number in sorted((row.get("errors") or {}).items()))),
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
    return _table(head, body)


def _read(report: Report) -> Iterable[str]:
    yield '<div class="card">'
    if report.streams:
        body = [
            [
                _text(row["source"]),
                _text(row["node"]),
                _text(row["run_id"]),
                _number(row["rows"]),
                _number(row["missing"]),
                _number(row["out_of_order"]),
                _number(row["clock_steps"]),
            ]
            for row in report.streams
        ]
        yield _table(("source", "written by", "run", "#rows", "#missing", "#out of order", "#clock went back"), body)
    if report.unread:
        yield f'<h4 class="medium">{count(len(report.unread), "file")} could not be read</h4>'
        yield _table(("file", ":why"), [[_text(each.path), _text(each.reason)] for each in report.unread])
    if report.silent:
        yield f'<h4 class="medium">{count(len(report.silent), "file")} with nothing about a group</h4>'
        yield _table(("file",), [[_text(each)] for each in report.silent])
    if report.quarantine_kinds:
        kinds = ", ".join(f"{_text(kind)} {number:,}" for kind, number in report.quarantine_kinds)
        yield f'<h4 class="medium">{count(report.quarantined, "line")} in quarantine: {kinds}</h4>'
        body = [
            [_place(row), _text(row["reason"]), _text(str(row.get("text") or "")[:300])] for row in report.quarantine
        ]
        yield _table(("where", ":why", "!the line"), body)
        if report.quarantined > len(report.quarantine):
            yield f'<p class="soft">The first {len(report.quarantine)} lines; the table quarantine has all.</p>'
    elif report.unread or report.silent:
        yield '<p class="soft">Every line of the other files could be read.</p>'
    else:
        yield '<p class="soft">Every line could be read; the quarantine is empty.</p>'
    yield "</div>"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of ready HTML. A column whose name begins with # is of numbers, with : of prose, with ! of raw text.

    Prose has no room beside other columns on a phone: there each row of such a table is a block.
    """
    kinds = [{"#": "n", ":": "text", "!": "line"}.get(name[:1], "") for name in head]
    names = [_text(name.lstrip("#:!")) for name in head]
    of_class = [f' class="{kind}"' if kind else "" for kind in kinds]
    stacks = "text" in kinds or "line" in kinds
    of_cell = [f'{c} data-head="{name}"' if stacks else c for c, name in zip(of_class, names, strict=True)]
    top = "".join(f"<th{c}>{name}</th>" for c, name in zip(of_class, names, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{c}>{cell}</td>" for c, cell in zip(of_cell, row, strict=True)) + "</tr>" for row in body
    )
    kind = ' class="stacks"' if stacks else ""
    return f'<div class="wide"><table{kind}><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'


def _tiles(tiles: Iterable[tuple[str, str]]) -> str:
    inside = "".join(
        f'<div class="tile"><b>{_text(value)}</b><span class="soft">{_text(words)}</span></div>'
        for value, words in tiles
    )
    return f'<div class="tiles">{inside}</div>'


def _counted(number: int, noun: str) -> tuple[str, str]:
    """A tile of so many."""
    value, words = count(number, noun).split(" ", 1)
    return value, words


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,}"


def _moment(at_ms: int | None) -> str:
    if at_ms is None:
        return ""
    return clock(at_ms) if is_simulated(at_ms) else period(at_ms, at_ms).removeprefix("on ")


# -- charts


def _chart(group: GroupReport) -> dict[str, Any]:
    """The data of one group's chart, as the script reads it."""
    causes = list(CAUSES)
    names: dict[str, int] = {}
    reasons: dict[str, int] = {}
    rebalances = []
    for row in group.rebalances:
        cause = row["cause"] if row["cause"] in CAUSES else "unknown"
        reason = str(row.get("client_reason") or "")[:_REASON_CHARS]
        if reason.startswith(DEFAULT_REASONS):
            reason = ""
        who = row.get("who") or ""
        end = row.get("ended_at_ms")
        rebalances.append(
            [
                row["prepared_at_ms"],
                row["prepared_at_ms"] if end is None else end,
                causes.index(cause),
                names.setdefault(who, len(names)) if who else -1,
                row.get("outcome"),
                row.get("moved"),
                row.get("regained"),
                row.get("stopped_ms"),
                row.get("generation_to"),
                reasons.setdefault(reason, len(reasons)) if reason else -1,
                row.get("given_up"),
            ]
        )
    return {
        "name": group.group_id,
        "label": f"{count(len(group.rebalances), 'rebalance')} {period(group.from_ms, group.to_ms)}, "
        f"{count(len(group.partitions), 'partition')}, {count(len(group.owners), 'owner')}",
        "from": group.from_ms,
        "to": max(group.to_ms, group.from_ms + 1),
        "simulated": is_simulated(group.from_ms),
        "owners": list(group.owners),
        "short": _without_beginning(group.owners, group.group_id),
        "names": list(names),
        "reasons": list(reasons),
        "partitions": [list(each) for each in group.partitions],
        "held": group.held.encoded(group.from_ms),
        "members": list(group.members),
        "sessions": [list(each) for each in group.sessions],
        "overlaps": [list(each) for each in group.overlaps],
        "rebalances": rebalances,
        "annotations": [list(each) for each in group.annotations],
        "stops": [list(each) for each in group.stops],
        "lag": [list(point) for point in group.lag],
        "balance": [
            [
                row["at_ms"],
                group.to_ms if row["until_ms"] is None else row["until_ms"],
                row["least"],
                row["most"],
                round(row["partitions"] / row["members"], 2),
            ]
            for row in group.balance
            if row["least"] is not None and row["most"] is not None and row["members"]
        ],
    }


def _without_beginning(owners: Sequence[str], group_id: str) -> list[str]:
    """Owners as they fit into a bar: without what all of them begin with."""
    begins = (f"{group_id}-", f"consumer-{group_id}-")
    found = []
    for owner in owners:
        name = owner.rsplit("/", 1)[-1]
        begin = next((each for each in begins if name.startswith(each) and len(name) > len(each)), "")
        found.append(name[len(begin) :])
    return found if len(set(found)) == len(found) else list(owners)
