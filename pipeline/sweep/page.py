"""One self-contained HTML page of a sweep: settings in order, and every measure against every parameter."""

from __future__ import annotations

import html
from typing import Any, Final, TypeAlias

from rejoin import pages
from rejoin.pages import Markup
from rejoin.pipeline.sweep.grid import RANKED_BY, Axis, Grid
from rejoin.pipeline.sweep.ranking import (
    NOT_BEATEN,
    SAID,
    Setting,
    Spread,
    amount,
    brackets,
    criterion,
    pair_title,
    pairs,
    said_columns,
    shown,
    spread_of,
)
from rejoin.pipeline.sweep.tables import FAILED

Row: TypeAlias = dict[str, Any]

HEIGHT: Final = 210
TOP: Final = 16
BOTTOM: Final = 26
LEFT: Final = 52
SLOT: Final = 116
DOTS: Final = 240
"""Runs that are drawn for one value; of more every so many-th is taken."""
FAILURES: Final = 100
SETTINGS: Final = 2_000
"""Rows of the page's tables; the files have them all."""


def render(grid: Grid, ranked: list[Setting], rows: list[Row]) -> str:
    """The page."""
    failed = [row for row in rows if row["status"] == FAILED]
    good = [row for row in rows if row["status"] != FAILED]
    columns = said_columns(grid, ranked)
    size = f"{len(grid.points)} settings x {len(grid.seeds)} seeds: {len(rows)} runs"
    if failed:
        size += f", {len(failed)} failed"
    return pages.render(
        __package__,
        "page.html",
        title=grid.question or "A sweep",
        size=size,
        spread=brackets(len(grid.seeds)),
        settings=Markup(_settings(grid, ranked, columns)),
        criterion=criterion(grid),
        not_beaten=NOT_BEATEN,
        pairs=Markup(_pairs(grid, ranked)),
        charts=Markup(_charts(grid, good, list(dict.fromkeys([*columns, "twice"])))),
        failed=Markup(_failed(grid, failed)),
    )


def _settings(grid: Grid, ranked: list[Setting], columns: list[str]) -> str:
    head = "".join(f"<th>{html.escape(axis.name)}</th>" for axis in grid.axes)
    head += "".join(f'<th class="n">{html.escape(SAID[column])}</th>' for column in columns)
    body = []
    for setting in ranked[:SETTINGS]:
        mark = "*" if setting.unbeaten else ""
        cells = f'<td class="n" data-by="{setting.rank}">{setting.rank}{mark}</td>'
        cells += "".join(f"<td>{html.escape(label)}</td>" for label in grid.labels(setting.point))
        for column in columns:
            cells += _cell(column, setting.spreads.get(column))
        kind = "failed" if not setting.spreads else ("first" if setting.rank == 1 else "")
        notes = [f"{setting.failed} of {setting.runs} failed"] if setting.failed else []
        if setting.never_owned:
            notes.append(f"no owner in {setting.never_owned}")
        body.append(f'<tr class="{kind}">{cells}<td>{"; ".join(notes)}</td></tr>')
    more = f"<p>{len(ranked) - SETTINGS} more in settings.csv</p>" if len(ranked) > SETTINGS else ""
    return (
        f'<table class="sortable"><thead><tr><th class="n">rank</th>{head}<th></th></tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>{more}"
    )


def _pairs(grid: Grid, ranked: list[Setting]) -> str:
    """The pairs of parameters that depend on each other, a table for each."""
    column = RANKED_BY[grid.rank_by[0]]
    cards = []
    for pair in pairs(grid, ranked):
        head = "".join(
            f'<th class="n">{html.escape(pair.second.label(n))}</th>' for n in range(len(pair.second.values))
        )
        body = "".join(
            f"<tr><td>{html.escape(pair.first.label(n))}</td>"
            + "".join(f'<td class="n">{amount(column, value)}</td>' for value in cells)
            + "</tr>"
            for n, cells in enumerate(pair.cells)
        )
        cards.append(
            f'<div class="card"><h3>{html.escape(pair_title(pair, column))}</h3><div class="wide">'
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
        )
    return "".join(cards)


def _cell(column: str, spread: Spread | None) -> str:
    if spread is None:
        return '<td class="n" data-by="1e99">-</td>'
    low, middle, high = (amount(column, value) for value in (spread.low, spread.median, spread.high))
    around = "" if low == middle == high else f' <span class="spread">({low} to {high})</span>'
    return f'<td class="n" data-by="{spread.median:g}">{middle}{around}</td>'


def _charts(grid: Grid, rows: list[Row], columns: list[str]) -> str:
    axes = [(number, axis) for number, axis in enumerate(grid.axes) if len(axis.values) > 1]
    if not axes or not rows:
        return '<div class="card soft">Nothing varies, or nothing was played to its end.</div>'
    cards = []
    for column in columns:
        top = max(row[column] for row in rows)
        if top == 0:
            cards.append(f'<div class="card"><h3>{html.escape(SAID[column])}</h3>None, in any run.</div>')
            continue
        figures = []
        for number, axis in axes:
            chosen: list[list[float]] = [[] for _ in axis.values]
            for row in rows:
                chosen[grid.points[row["point"]].chosen[number]].append(row[column])
            caption = f"<figcaption>{html.escape(axis.name)}</figcaption>"
            figures.append(f"<figure>{chart(axis, column, chosen, top)}{caption}</figure>")
        cards.append(
            f'<div class="card"><h3>{html.escape(SAID[column])}</h3><div class="charts">{"".join(figures)}</div></div>'
        )
    return "".join(cards)


def chart(axis: Axis, column: str, chosen: list[list[float]], top: float) -> str:
    """One measure against one parameter: a dot a run, a bar for the spread, a line at the median."""
    step = _step(max(top, 1))
    highest = -(-max(top, 1) // step) * step
    width = LEFT + SLOT * len(axis.values) + 14

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / highest), 1)

    parts = []
    tick = 0.0
    while tick <= highest * 1.0001:
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{width}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4}" text-anchor="end">{_tick(column, tick)}</text>')
        tick += step
    for number, values in enumerate(chosen):
        middle = LEFT + SLOT * number + SLOT / 2
        label = axis.label(number)
        short = label if len(label) <= 20 else f"{label[:18]}..."
        parts.append(
            f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(short)}'
            f"<title>{html.escape(label)}</title></text>"
        )
        if values:
            parts.append(_value(column, values, middle, y, f"{axis.name} = {label}"))
    name = f"{SAID[column]} against {axis.name}"
    return f'<svg width="{width}" height="{HEIGHT}" role="img" aria-label="{html.escape(name)}">{"".join(parts)}</svg>'


def _value(column: str, values: list[float], middle: float, y: Any, name: str) -> str:
    spread = spread_of(values)
    every = -(-len(values) // DOTS)
    # Side by side in the order of the runs: the same plot each time, and equal values do not hide one another.
    dots = "".join(
        f"M{round(middle - 24 + 48 * ((n * 0.618034) % 1), 1)} {y(value)}h0" for n, value in enumerate(values[::every])
    )
    high, low = y(spread.high), y(spread.low)
    at = y(spread.median)
    title = html.escape(
        f"{name}: median {shown(column, spread)}, from {amount(column, spread.least)} to "
        f"{amount(column, spread.most)} in {len(values)} runs"
    )
    return (
        f"<g><title>{title}</title>"
        f'<rect class="spread" x="{middle - 28}" width="56" y="{high - 1}" height="{round(low - high + 2, 1)}" rx="3"/>'
        f'<path class="runs" stroke-width="5" d="{dots}"/>'
        f'<line class="middle" x1="{middle - 28}" x2="{middle + 28}" y1="{at}" y2="{at}"/>'
        f'<text class="median" x="{middle + 32}" y="{at + 4}">{amount(column, spread.median)}</text></g>'
    )


def _failed(grid: Grid, failed: list[Row]) -> str:
    if not failed:
        return ""
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(label)}</td>' for label in grid.labels(grid.points[row['point']]))}"
        f'<td class="n">{row["seed"]}</td><td class="text">{html.escape(row["error"] or "")}</td></tr>'
        for row in failed[:FAILURES]
    )
    head = "".join(f"<th>{html.escape(axis.name)}</th>" for axis in grid.axes)
    more = f"<p>{len(failed) - FAILURES} more in runs.csv</p>" if len(failed) > FAILURES else ""
    return (
        f'<h2>Runs that failed</h2><div class="card"><div class="wide"><table><thead><tr>{head}<th class="n">seed</th>'
        f"<th>error</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</div>"
    )


def _step(highest: float) -> float:
    """A round step that gives three to six lines."""
    step = 1.0
    while highest / step > 5:
        step *= 2.5 if str(step)[0] == "2" else 2
    return step


def _tick(column: str, value: float) -> str:
    return f"{value / 1000:g}" if column.endswith("_ms") else f"{value:g}"
