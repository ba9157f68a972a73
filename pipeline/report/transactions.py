"""The page's part about transactions: producers, what is wrong, and the last stable offset against the end of each log.

The charts are SVG with the page's own colours: they need no script, and print as they are.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rejoin.pipeline.findings.formatting import clock, count, is_simulated, period, span
from rejoin.pipeline.report.data import LogChart, Row, TransactionsReport
from rejoin.pipeline.report.shown import StoredTables, all_rows

MOST_LOGS: Final = 12
"""Charts on a page: the partitions whose readers waited longest."""
MOST_PRODUCERS: Final = 100
MOST_SAMPLES: Final = 600
MOST_SPANS: Final = 300
MOST_LANES: Final = 4
"""Producers with a lane of their own below a chart; the others share the last."""
WIDTH, HEIGHT, LANE = 1000, 120, 10


# --- from the tables


def collect_transactions(tables: StoredTables, findings: Sequence[Row]) -> list[TransactionsReport]:
    """Transactions of each run that has any, as the page shows them."""
    producers = sorted(
        all_rows(tables, "producers"),
        key=lambda row: (row["run_id"], -(row["fenced_requests"] or 0), -(row["transactions"] or 0)),
    )
    if not producers:
        return []
    samples, spans = _samples(tables), _spans(tables)
    violations = sorted(
        (row for row in all_rows(tables, "violations") if row["group_id"] is None), key=order_of_violations
    )
    ends: dict[str, int] = {}
    for row in all_rows(tables, "streams"):
        ends[row["run_id"]] = max(row["last_at_ms"] or 0, ends.get(row["run_id"], 0))
    made = []
    for run_id in dict.fromkeys(row["run_id"] for row in producers):
        of_run = [row for row in producers if row["run_id"] == run_id]
        found = TransactionsReport(
            run_id,
            min(row["first_at_ms"] for row in of_run),
            max([ends.get(run_id) or 0, *(row["last_at_ms"] for row in of_run)]),
            of_run,
            [row for row in findings if row["run_id"] == run_id],
            [row for row in violations if row["run_id"] == run_id],
        )
        found.logs = charts(found, samples.get(run_id, {}), spans.get(run_id, {}))
        found.more_logs = max(0, len(samples.get(run_id, {})) - MOST_LOGS)
        made.append(found)
    return made


def order_of_violations(row: Row) -> tuple[Any, ...]:
    """The key by which rows of violations are in order."""
    partition = -1 if row["partition"] is None else row["partition"]
    return row["at_ms"], row["kind"], row["topic"] or "", partition


ByLog = dict[str, dict[tuple[str, int], list[Row]]]


def _samples(tables: StoredTables) -> ByLog:
    found: ByLog = defaultdict(lambda: defaultdict(list))
    in_order = [(name, "ascending") for name in ("at_ms", "source", "node", "seq")]
    for row in tables["stable_offsets"].to_table().sort_by(in_order).to_pylist():
        found[row["run_id"]][row["topic"], row["partition"]].append(row)
    return found


def _spans(tables: StoredTables) -> ByLog:
    """Run to log to the transactions that were open in it, the longest of very many."""
    columns = ("run_id", "transactional_id", "producer_id", "outcome", "coordinated", "started_at_ms")
    rows = tables["transactions"].to_table(columns=[*columns, "logs"]).to_pylist()
    logs = ({**{name: row[name] for name in columns}, **log} for row in rows for log in row["logs"] or ())
    opened = (row for row in logs if row["opened_at_ms"] is not None)
    found: ByLog = defaultdict(lambda: defaultdict(list))
    for row in sorted(opened, key=lambda row: row["opened_at_ms"]):
        found[row["run_id"]][row["topic"], row["partition"]].append(row)
    return found


def charts(
    report: TransactionsReport,
    samples: Mapping[tuple[str, int], Sequence[Row]],
    spans: Mapping[tuple[str, int], Sequence[Row]],
) -> list[LogChart]:
    """The logs whose readers waited longest, from samples and transactions by partition."""
    made = []
    for (topic, partition), rows in samples.items():
        open_in = [
            {**row, "length_ms": (row["marker_at_ms"] or report.to_ms) - row["opened_at_ms"]}
            for row in spans.get((topic, partition), ())
        ]
        longest = sorted(open_in, key=lambda row: -row["length_ms"])[:MOST_SPANS]
        step = max(1, len(rows) // MOST_SAMPLES)
        kept = [row for number, row in enumerate(rows) if number % step == 0 or number == len(rows) - 1]
        held = max((row["length_ms"] for row in longest), default=0)
        made.append(LogChart(topic, partition, kept, longest, held))
    made.sort(key=lambda log: (-log.held_ms, log.topic, log.partition))
    return made[:MOST_LOGS]


# --- as HTML


def section(report: TransactionsReport, several: bool, findings: str, violations: str) -> Iterator[str]:
    """All about the transactions of one run; findings and violations are HTML already."""
    yield '<section class="card group transactions">'
    run = f'<span class="soft">{_text(report.run_id)}</span>' if several else ""
    when = period(report.from_ms, report.to_ms)
    name = count(len(report.producers), "producer")
    yield f'<div class="top"><h3>{name}</h3>{run}<span class="soft">{_text(when)}</span></div>'
    yield findings
    yield violations
    yield "<h4>Transactions by producer</h4>"
    yield _producers(report.producers)
    if report.logs:
        yield "<h4>Last stable offset against the end</h4>"
        yield _LEGEND
    for log in report.logs:
        yield _chart(report, log)
    if report.more_logs:
        yield f'<p class="soft">and {count(report.more_logs, "more log")}: see the table stable_offsets.</p>'
    yield "</section>"


_LEGEND: Final = (
    '<div class="legend"><span><i class="l-end"></i>end of the log</span>'
    '<span><i class="l-lso"></i>last stable offset: read_committed ends here</span>'
    '<span><i class="l-gap"></i>not to be read yet</span>'
    '<span><b>below, by producer:</b> transactions <i class="t-committed"></i>committed '
    '<i class="t-aborted"></i>aborted <i class="t-open"></i>open <i class="t-hanging"></i>hanging</span></div>'
)


def _producers(rows: Sequence[Row]) -> str:
    head = (
        *("producer", "#transactions", "#committed", "#aborted", "#timed out", "#fenced out", "#open"),
        *("#refused", "#half within", "#longest", "#markers", "groups"),
    )
    top = "".join(f"<th{' class=n' if name[0] == '#' else ''}>{name.lstrip('#')}</th>" for name in head)
    body = "".join(_producer(row) for row in rows[:MOST_PRODUCERS])
    more = f'<p class="soft">and {len(rows) - MOST_PRODUCERS:,} more: see the table producers.</p>'
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
        f"{more if len(rows) > MOST_PRODUCERS else ''}"
    )


def _producer(row: Row) -> str:
    name = row["transactional_id"] or "idempotent only"
    numbers = [
        *(f"{row[each]:,}" for each in ("transactions", "committed", "aborted", "timed_out", "fenced_out", "open")),
        f"{row['fenced_requests']:,}",
        *("" if row[each] is None else span(row[each]) for each in ("p50_ms", "longest_ms", "longest_markers_ms")),
    ]
    about = f'<span class="soft">id {row["producer_id"]}, epochs {row["first_epoch"]} to {row["last_epoch"]}</span>'
    cells = "".join(f'<td class="n">{each}</td>' for each in numbers)
    return f"<tr><td>{_text(name)} {about}</td>{cells}<td>{_text(', '.join(row['groups'] or ()))}</td></tr>"


@dataclass(frozen=True, slots=True)
class LogScale:
    """Instants and offsets to places in the drawing."""

    from_ms: int
    to_ms: int
    least: int
    most: int

    def x(self, at_ms: int) -> str:
        return f"{WIDTH * (at_ms - self.from_ms) / max(1, self.to_ms - self.from_ms):.1f}"

    def y(self, offset: int) -> str:
        return f"{4 + (HEIGHT - 8) * (1 - (offset - self.least) / max(1, self.most - self.least)):.1f}"


def _chart(report: TransactionsReport, log: LogChart) -> str:
    rows = log.samples
    least = min(row["last_stable_offset"] for row in rows)
    most = max(row["end_offset"] for row in rows)
    scale = LogScale(report.from_ms, report.to_ms, least, most)
    stable = list(_stable(rows, report.to_ms))
    ends = [(row["at_ms"], row["end_offset"]) for row in rows]
    ends.append((report.to_ms, ends[-1][1]))
    area = [*stable, *reversed(ends)]
    worst = f", held for up to {span(log.held_ms)}" if log.held_ms >= 1_000 else ""
    name = f"{log.topic}-{log.partition}"
    lanes: dict[int, int] = {}
    for row in log.spans:
        lanes.setdefault(row["producer_id"], min(len(lanes), MOST_LANES - 1))
    height = HEIGHT + 4 + LANE * len(set(lanes.values()))
    label = f"{name}: last stable offset {rows[-1]['last_stable_offset']:,} of {rows[-1]['end_offset']:,}{worst}"
    return (
        f'<figure class="lso"><figcaption><b>{_text(name)}</b> <span class="soft">LSO '
        f"{rows[-1]['last_stable_offset']:,} of {rows[-1]['end_offset']:,} at the end{worst}</span></figcaption>"
        f'<div class="axis"><span>{most:,}</span><span>{least:,}</span></div>'
        f'<svg viewBox="0 0 {WIDTH} {height}" style="height:{height}px" preserveAspectRatio="none" role="img" '
        f'aria-label="{_text(label)}"><line x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}"/>'
        f'<polygon class="gap" points="{points(area, scale)}"/>'
        f'<polyline class="end" points="{points(ends, scale)}"/>'
        f'<polyline class="stable" points="{points(stable, scale)}"/>'
        f"{''.join(_span(row, report.to_ms, scale, lanes[row['producer_id']]) for row in log.spans)}</svg>"
        f'<div class="times"><span>{_moment(report.from_ms)}</span><span>{_moment(report.to_ms)}</span></div></figure>'
    )


def _stable(rows: Sequence[Row], to_ms: int) -> Iterator[tuple[int, int]]:
    """The last stable offset over time: while a transaction is open it stands, else it goes with the end."""
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        at, offset = row["at_ms"], row["last_stable_offset"]
        yield at, offset
        until = to_ms if after is None else after["at_ms"]
        if offset < row["high_watermark"] or after is None:
            yield until, offset


def _span(row: Row, to_ms: int, scale: LogScale, lane: int) -> str:
    begin, end = row["opened_at_ms"], row["marker_at_ms"] or to_ms
    kind = "hanging" if row["coordinated"] is False else row["outcome"]
    kind = "open" if kind == "preparing" or (row["marker_at_ms"] is None and kind != "hanging") else kind
    width = max(1.5, float(scale.x(end)) - float(scale.x(begin)))
    who = row["transactional_id"] or f"producer {row['producer_id']}"
    text = f"{who}: {kind}, from offset {row['first_offset']}, {span(row['length_ms'])} {period(begin, end)}"
    return (
        f'<rect class="t-{kind}" x="{scale.x(begin)}" y="{HEIGHT + 4 + LANE * lane}" width="{width:.1f}" '
        f'height="{LANE - 2}">'
        f"<title>{_text(text)}</title></rect>"
    )


def points(places: Iterable[tuple[int, int]], scale: LogScale) -> str:
    """Instants and offsets as the points of a line."""
    return " ".join(f"{scale.x(at)},{scale.y(offset)}" for at, offset in places)


def _moment(at_ms: int) -> str:
    return clock(at_ms) if is_simulated(at_ms) else _text(period(at_ms, at_ms).removeprefix("on "))


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))
