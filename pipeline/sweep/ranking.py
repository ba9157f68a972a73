"""The answer of a sweep: settings in order, best first, in plain words and with the spread over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median
from typing import Any, Final, TypeAlias

from rejoin.pipeline.sweep.grid import RANKED_BY, Grid, Point
from rejoin.pipeline.sweep.store import SweepStore
from rejoin.pipeline.sweep.tables import FAILED, MEASURES
from rejoin.pipeline.sweep.tradeoffs import RESPECTS, Interaction, columns_compared, interactions, unbeaten

Row: TypeAlias = dict[str, Any]

NOT_BEATEN: Final = "* No other setting is as good in every respect (" + ", ".join(RESPECTS) + ") and better in one."

MANY_SEEDS: Final = 10
"""From so many runs on the spread is the tenth to the ninetieth percentile, else the extremes."""

ALWAYS: Final = ("rebalances", "stopped_ms")
"""Columns in every answer; the others only where they are not zero everywhere."""

SAID: Final = {
    "rebalances": "rebalances",
    "stopped_ms": "consumer-seconds stopped",
    "unowned_ms": "partition-seconds unowned",
    "worst_unowned_ms": "seconds without an owner at the longest",
    "moved": "partitions moved",
    "late": "records late",
    "twice": "records twice",
    "lost": "records lost",
    "out_twice": "records written twice",
    "out_lost": "records never written",
}
"""Measures as people say them; columns in ms are said in seconds."""

_KEYS: Final = {
    "session_timeout": "session {}",
    "heartbeat_interval": "heartbeat {}",
    "max_poll_interval": "max.poll.interval {}",
    "consumers": "{} consumers",
    "partitions": "{} partitions",
    "assignor": "{}",
    "down": "down for {}",
    "restart": "restart after {}",
    "commit": "commit {}",
}
_STATIC: Final = {"true": "static membership", "false": "dynamic membership"}


@dataclass(frozen=True, slots=True)
class Spread:
    """A measure over the seeds, in its column's unit."""

    median: float
    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Setting:
    """A point of the grid and what came of it. ``spreads`` is empty if no run came to its end."""

    point: Point
    rank: int
    name: str
    runs: int
    failed: int
    never_owned: int
    """Runs in which no partition ever had an owner: few rebalances mean nothing there."""
    spreads: dict[str, Spread]
    unbeaten: bool = False
    """Whether no other setting is as good in every respect and better in one."""
    good: list[Row] = field(default_factory=list, repr=False, compare=False)
    """The runs that came to their end."""


def brackets(runs: int) -> str:
    """Meaning of the two numbers in brackets behind the median of so many runs."""
    if runs >= MANY_SEEDS:
        return "from the tenth to the ninetieth percentile"
    return "from the least to the most"


def spread_of(values: Iterable[float]) -> Spread:
    """Median, tenth and ninetieth percentile (nearest rank; the extremes of few values), least and most."""
    ordered = sorted(values)
    last = len(ordered) - 1
    many = len(ordered) >= MANY_SEEDS
    low, high = (round(last * 0.1), round(last * 0.9)) if many else (0, last)
    return Spread(median(ordered), ordered[low], ordered[high], ordered[0], ordered[-1])


def rank(grid: Grid, store: SweepStore) -> list[Setting]:
    """Every point of the grid, best first: by the medians of what the grid ranks by, then of the other measures.

    Points with equal numbers have the same rank. Last come those of which no run did what it should.
    """
    first = [RANKED_BY[name] for name in grid.rank_by]
    order = [*first, *(column for column in RANKED_BY.values() if column not in first)]
    keys: dict[int, list[str]] = {}
    for run in grid.runs():
        keys.setdefault(run.point, []).append(run.key)
    judged = []
    for point in grid.points:
        rows = [store.rows[key] for key in keys[point.number] if key in store.rows]
        good = [row for row in rows if row["status"] != FAILED]
        never = sum(row["first_owned_ms"] == 0 for row in good)
        spreads = {each.name: spread_of(row[each.name] for row in good) for each in MEASURES} if good else {}
        useless = not good or never * 2 > len(good)
        score = (useless, *(spreads[column].median for column in order)) if good else (True, float("inf"))
        name = name_of(grid, point)
        setting = Setting(point, 0, name, len(rows), len(rows) - len(good), never, spreads, good=good)
        judged.append((score, setting))
    useful = [setting for score, setting in judged if not score[0]]
    best = unbeaten({each.point.number: [each.spreads[c].median for c in columns_compared()] for each in useful})
    judged.sort(key=lambda each: (each[0], each[1].point.number))
    ranked: list[Setting] = []
    for _, equal in groupby(judged, key=lambda each: each[0]):
        number = len(ranked) + 1
        ranked += [replace(each, rank=number, unbeaten=each.point.number in best) for _, each in equal]
    return ranked


def name_of(grid: Grid, point: Point) -> str:
    """A setting in words: ``static membership + cooperative-sticky + session 45s``."""
    said = [
        words(axis.name, label)
        for axis, label in zip(grid.axes, grid.labels(point), strict=True)
        if len(axis.values) > 1
    ]
    return " + ".join(said) or "as the scenario has it"


def words(name: str, label: str) -> str:
    """One value of a parameter in words."""
    owner, _, key = name.rpartition(".")
    if key == "static" and label in _STATIC:
        said = _STATIC[label]
    else:
        said = _KEYS.get(key, "{} {}").format(label) if key in _KEYS else f"{key} {label}"
    group = owner.removeprefix("groups.")
    plain = owner in ("", "deploy", "crash", "stop") or owner.startswith(("events", "topics", "coordinator", "network"))
    return said if plain else f"{group}: {said}"


def format_answer(grid: Grid, ranked: list[Setting], most: int = 12) -> list[str]:
    """The answer as lines: the best settings, the last one, and what each parameter does by itself."""
    columns = said_columns(grid, ranked)
    lines = [line(setting, columns) for setting in ranked[:most]]
    if len(ranked) > most:
        lines.append(f"    ... {len(ranked) - most - 1} more in settings.csv ...")
        lines.append(line(ranked[-1], columns))
    by_itself = effects(grid, ranked, columns)
    if len([axis for axis in grid.axes if len(axis.values) > 1]) > 1 and by_itself:
        # Many more runs than a setting has seeds, and so other brackets.
        widest = max(len(axis.values) for axis in grid.axes)
        around = brackets(sum(len(setting.good) for setting in ranked) // widest)
        lines += ["", f"Each parameter by itself, median of all runs that have it ({around}):", *by_itself]
    for pair in pairs(grid, ranked):
        lines += ["", *pair_lines(pair, RANKED_BY[grid.rank_by[0]])]
    return lines


def criterion(grid: Grid) -> str:
    """The criteria of the ranking, in a sentence."""
    names = [SAID[RANKED_BY[name]] for name in grid.rank_by]
    return f"Ranked by {', then by '.join(names)}; --by chooses another of {', '.join(RESPECTS)}."


def pairs(grid: Grid, ranked: list[Setting]) -> list[Interaction]:
    """The pairs of parameters that depend on each other in what the settings are ranked by."""
    runs = [(setting.point, setting.good) for setting in ranked]
    return interactions(grid, runs, RANKED_BY[grid.rank_by[0]])


def pair_title(pair: Interaction, column: str) -> str:
    return f"{pair.first.name} and {pair.second.name} depend on each other, median of {SAID[column]}:"


def pair_lines(pair: Interaction, column: str) -> list[str]:
    """A pair of parameters as a table: the first one's values down, the second one's across."""
    table = [["", *(pair.second.label(number) for number in range(len(pair.second.values)))]]
    for number, cells in enumerate(pair.cells):
        table.append([pair.first.label(number), *(amount(column, value) for value in cells)])
    widths = [max(len(line[index]) for line in table) for index in range(len(table[0]))]
    lines = []
    for first, *rest in table:
        aligned = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
        lines.append("    " + "  ".join([first.ljust(widths[0]), *aligned]))
    return [pair_title(pair, column), *lines]


def said_columns(grid: Grid, ranked: list[Setting]) -> list[str]:
    """The measures that an answer names: those it ranks by, and the others that are not zero everywhere."""
    first = [RANKED_BY[name] for name in grid.rank_by]
    others = [
        column
        for column in ("unowned_ms", "late", "twice", "lost", "out_twice", "out_lost")
        if any(setting.spreads and setting.spreads[column].most > 0 for setting in ranked)
    ]
    return list(dict.fromkeys([*first, *ALWAYS, *others]))


def line(setting: Setting, columns: list[str]) -> str:
    """One setting: ``1. static membership: 0 rebalances, 0 consumer-seconds stopped``."""
    if not setting.spreads:
        text = f"all {setting.failed} runs failed" if setting.runs else "not played"
    else:
        text = ", ".join(shown(column, setting.spreads[column]) for column in columns)
        if setting.never_owned:
            text += f"; in {setting.never_owned} of {setting.runs} runs no member ever owned a partition"
        if setting.failed:
            text += f"; {setting.failed} of {setting.runs} runs failed"
    return f"{setting.rank:>3}{'*' if setting.unbeaten else '.'} {setting.name}: {text}"


def effects(grid: Grid, ranked: list[Setting], columns: list[str]) -> list[str]:
    """For each value of each parameter the spread over all runs that have it, as the page draws it."""
    lines = []
    for order, axis in enumerate(grid.axes):
        if len(axis.values) < 2:
            continue
        for number in range(len(axis.values)):
            of = [row for setting in ranked if setting.point.chosen[order] == number for row in setting.good]
            if of:
                text = ", ".join(shown(c, spread_of(row[c] for row in of)) for c in columns[:2])
                lines.append(f"    {axis.name} = {axis.label(number)}: {text}")
    return lines


def shown(column: str, spread: Spread) -> str:
    """``12 rebalances (11 to 13)``; without a spread only the number."""
    text = f"{amount(column, spread.median)} {SAID[column]}"
    low, high = amount(column, spread.low), amount(column, spread.high)
    return text if low == high == amount(column, spread.median) else f"{text} ({low} to {high})"


def amount(column: str, value: float) -> str:
    """A number of a column; ms as seconds."""
    if not column.endswith("_ms"):
        return f"{value:g}" if value < 1e6 else f"{value:,.0f}"
    seconds = value / 1000
    if seconds < 1:
        return f"{seconds:.2g}"
    return f"{seconds:.1f}" if seconds < 100 else f"{seconds:.0f}"
