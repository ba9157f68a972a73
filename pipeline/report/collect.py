"""From the tables to a :class:`~pipeline.report.data.Report`: a few small queries; none reads the events again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rejoin.pipeline.findings import pauses_by_generation
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext, short
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.report.data import FINEST, MOST_INTERVALS, GroupReport, Intervals, Report, Row
from rejoin.pipeline.report.defaults import MOST_GROUPS
from rejoin.pipeline.report.tables import AT_ONCE, Tables
from rejoin.pipeline.report.transactions import collect_transactions

MOST_LINES: Final = 20
"""Lines of the quarantine that the page shows."""
MOST_STREAMS: Final = 50
MOST_LANES: Final = 200
"""Members of a group with a lane; those that came first have one."""
LAG_POINTS: Final = 400
STOP_STEPS: Final = 4_000

Key = tuple[str, str]
_KEY: Final = ("run_id", "group_id")
_RANK: Final = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class ShownGroups:
    """The groups to show, and when each of them was."""

    spans: dict[Key, tuple[int, int]]

    def of(self, table: DataFrame) -> DataFrame:
        """The rows of these groups."""
        if not self.spans:
            return table.limit(0)
        wanted = fn.array(*[_struct(key) for key in self.spans])
        return table.where(fn.array_contains(wanted, fn.struct(*_KEY)))

    def rows(self, tables: Mapping[str, DataFrame], name: str) -> dict[Key, list[dict[str, Any]]]:
        """The rows of these groups in a table, by group."""
        found = collected(tables, name)
        if found is None:
            return _by_group(_rows(self.of(tables[name])))
        groups = _by_group(_rows(found))
        return {key: groups[key] for key in self.spans if key in groups}

    def value(self, values: Mapping[Key, int]) -> Column:
        """A number of each group as a column."""
        pairs = [part for key in self.spans for part in (_struct(key), fn.lit(values[key]))]
        return fn.element_at(fn.create_map(*pairs), fn.struct(*_KEY))


def collect(
    tables: Mapping[str, DataFrame],
    quarantine: DataFrame,
    *,
    title: str,
    groups: Sequence[str] = (),
    most_groups: int = MOST_GROUPS,
    on_step: Callable[[str], None] = lambda _: None,
) -> Report:
    """The report over all tables. ``groups`` are those to show if given; else the worst ones are."""
    on_step("findings")
    findings = _by_group(_all(tables, "findings"))
    for rows in findings.values():
        rows.sort(key=order)
    known = _spans(tables)
    rebalanced = {key: each.rows for key, each in _extents(tables, "rebalances", "prepared_at_ms").items()}
    ranked = sorted(known, key=lambda key: (_weight(findings.get(key, ())), -rebalanced.get(key, 0), key))
    keys = [key for key in ranked if not groups or key[1] in groups][:most_groups]
    shown = ShownGroups({key: known[key] for key in keys})
    on_step("charts")
    made = {key: GroupReport(*key, *span) for key, span in shown.spans.items()}
    _fill(made, shown, tables)
    for key, group in made.items():
        group.findings = findings.get(key, [])
    _place_shared(made, [row for (_, group_id), rows in findings.items() if group_id is None for row in rows])
    on_step("transactions")
    about_producers = [row for rows in findings.values() for row in rows if row["transactional_ids"] is not None]
    transactions = collect_transactions(tables, sorted(about_producers, key=order))
    on_step("quarantine")
    kinds = _rows(quarantine.groupBy("kind").agg(fn.count("*").alias("n")).orderBy(fn.desc("n"), "kind"))
    streams = sorted(_all(tables, "streams"), key=lambda row: (row["run_id"], row["source"], row["node"]))
    return Report(
        title,
        list(made.values()),
        [_other(key, rebalanced.get(key, 0), findings.get(key, ())) for key in ranked if key not in made],
        streams[:MOST_STREAMS],
        [(row["kind"], row["n"]) for row in kinds],
        _rows(quarantine.orderBy("file", "line").limit(MOST_LINES)),
        sum(row["rows"] or 0 for row in streams),
        transactions=transactions,
        readers=sorted(_all(tables, "readers"), key=lambda row: (row["run_id"], row["reader"])),
    )


def _place_shared(made: Mapping[Key, GroupReport], rows: Iterable[Row]) -> None:
    """Put findings about several groups beside those of the first of them that is shown."""
    for row in rows:
        if row["transactional_ids"] is not None:
            continue
        shown = [group for key, group in made.items() if key[0] == row["run_id"] and key[1] in row["groups"]]
        if shown:
            shown[0].findings = sorted([*shown[0].findings, row], key=order)


def _fill(made: dict[Key, GroupReport], shown: ShownGroups, tables: Mapping[str, DataFrame]) -> None:
    """All that is drawn of the groups: some queries at a time, as most of each is planning."""
    parts: tuple[Callable[[], None], ...] = (
        lambda: _fill_rebalances(made, shown, tables),
        lambda: _fill_lanes(made, shown, tables),
        lambda: _fill_pauses(made, shown, tables["pauses"]),
        lambda: _fill_lag(made, shown, tables["commits"]),
        lambda: _fill_lists(made, shown, tables),
        lambda: _fill_counts(made, shown, tables["progress"]),
    )
    with ThreadPoolExecutor(AT_ONCE, "charts") as pool:
        for part in [pool.submit(each) for each in parts]:
            part.result()
    for group in made.values():
        members = [len(row["members_after"] or ()) for row in group.rebalances]
        group.counts = {"members": max(members, default=0), **group.counts}


def _fill_lanes(made: dict[Key, GroupReport], shown: ShownGroups, tables: Mapping[str, DataFrame]) -> None:
    _fill_owners(made, shown, tables["ownership"])
    fill_members(made, shown, tables)


def _fill_lists(made: dict[Key, GroupReport], shown: ShownGroups, tables: Mapping[str, DataFrame]) -> None:
    for key, rows in shown.rows(tables, "balance").items():
        made[key].balance = sorted(rows, key=lambda row: (row["at_ms"], row["generation"]))
    for key, rows in shown.rows(tables, "violations").items():
        made[key].violations = sorted(rows, key=_order_of_violations)
    for key, rows in shown.rows(tables, "requests").items():
        known = [row for row in rows if row["api"] is not None]
        made[key].requests = sorted(known, key=lambda row: (-row["requests"], row["api"], row["day"]))


def _order_of_violations(row: Row) -> tuple[Any, ...]:
    partition = -1 if row["partition"] is None else row["partition"]
    return row["at_ms"], row["kind"], row["topic"] or "", partition


def _fill_counts(made: dict[Key, GroupReport], shown: ShownGroups, progress: DataFrame) -> None:
    sums = progress.groupBy(*_KEY).agg(fn.sum("twice").alias("duplicates"), fn.sum("lost").alias("lost"))
    for row in _rows(shown.of(sums)):
        made[_key(row)].counts = {name: row[name] for name in ("duplicates", "lost")}


def _fill_rebalances(made: dict[Key, GroupReport], shown: ShownGroups, tables: Mapping[str, DataFrame]) -> None:
    rebalances = shown.rows(tables, "rebalances")
    pauses = _by_group(_rows(shown.of(pauses_by_generation(tables["pauses"]))))
    for key, group in made.items():
        rows = sorted(rebalances.get(key, ()), key=lambda row: (row["prepared_at_ms"], row["rebalance_id"]))
        history = GroupHistory.of(
            RunContext(key[0], shown.spans[key][1]), key[1], {"rebalance": rows, "pauses": pauses.get(key, ())}
        )
        cost = history.stopped_ms if history.pauses else {}
        group.rebalances = [
            {
                **row,
                "stopped_ms": cost.get(row["rebalance_id"]),
                "who": row["cause_group_instance_id"]
                or row["cause_client_id"]
                or (short(row["cause_member_id"]) if row["cause_member_id"] else ""),
            }
            for row in rows
        ]


def _fill_owners(made: dict[Key, GroupReport], shown: ShownGroups, ownership: DataFrame) -> None:
    owned = shown.of(ownership.where("kind = 'owned' AND from_ms IS NOT NULL AND to_ms IS NOT NULL"))
    numbers = {_key(row): row["n"] for row in _rows(owned.groupBy(*_KEY).agg(fn.count("*").alias("n")))}
    if not numbers:
        return
    # Where there are very many, the shortest gaps are closed before anything is collected.
    gaps = {
        key: (to_ms - from_ms) // FINEST if numbers.get(key, 0) > 4 * MOST_INTERVALS else 0
        for key, (from_ms, to_ms) in shown.spans.items()
    }
    slim = owned.select(*_KEY, "topic", "partition", "owner", "from_ms", "to_ms", "overlap_ms")
    if any(gaps.values()):
        slim = _closed(slim, shown.value(gaps))
    columns = slim.toArrow().to_pydict()
    by_group: dict[Key, list[int]] = defaultdict(list)
    for index, key in enumerate(zip(columns["run_id"], columns["group_id"], strict=True)):
        by_group[key].append(index)
    # Each group may have its share, and what small ones leave goes to those that come after them.
    left = MOST_INTERVALS
    for number, key in enumerate(sorted(by_group, key=lambda key: (len(by_group[key]), key))):
        ours = {name: [values[index] for index in by_group[key]] for name, values in columns.items()}
        _draw_owners(made[key], ours, left // (len(by_group) - number))
        left -= len(made[key].held)


def _draw_owners(group: GroupReport, columns: Mapping[str, list[Any]], most: int) -> None:
    partitions = sorted(set(zip(columns["topic"], columns["partition"], strict=True)))
    row_of = {each: number for number, each in enumerate(partitions)}
    owners = sorted({owner or "" for owner in columns["owner"]}, key=_natural)
    number_of = {owner: number for number, owner in enumerate(owners)}
    rows = [row_of[each] for each in zip(columns["topic"], columns["partition"], strict=True)]
    ends = [max(start, end) for start, end in zip(columns["from_ms"], columns["to_ms"], strict=True)]
    group.partitions = partitions
    group.owners = _labels(owners)
    held = Intervals.of(
        zip(rows, (number_of[owner or ""] for owner in columns["owner"]), columns["from_ms"], ends, strict=True)
    )
    group.held, group.closed_ms = held.reduced(most)
    group.overlaps = [
        (row, start, start + overlap)
        for row, start, overlap in zip(rows, columns["from_ms"], columns["overlap_ms"], strict=True)
        if overlap
    ]
    group.from_ms = min(group.from_ms, int(held.start.min()))
    group.to_ms = max(group.to_ms, int(held.end.max()))


def fill_members(made: dict[Key, GroupReport], shown: ShownGroups, tables: Mapping[str, DataFrame]) -> None:
    """A lane for each member of the groups whose owners are not known."""
    without = {key: shown.spans[key] for key, group in made.items() if not group.partitions}
    if not without:
        return
    for key, found in ShownGroups(without).rows(tables, "member_sessions").items():
        group = made[key]
        rows = [row | {"who": _first_known(row["group_instance_id"], row["client_id"])} for row in found]
        rows.sort(key=lambda row: (row["joined_at_ms"] or group.from_ms, row["member_id"]))
        shared = _shared_names(rows, group)
        lane_of: dict[str, int] = {}
        lanes = []
        for row in rows:
            name = row["who"] if row["who"] and row["who"] not in shared else row["member_id"]
            lane = lane_of.setdefault(name, len(lane_of))
            if lane < MOST_LANES:
                lanes.append((lane, *_span(row, group), str(row["end"] or "")))
        group.members, group.sessions = list(lane_of)[:MOST_LANES], lanes


def _first_known(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _span(row: Row, group: GroupReport) -> tuple[int, int]:
    begin = group.from_ms if row["joined_at_ms"] is None else row["joined_at_ms"]
    return begin, max(begin, group.to_ms if row["ended_at_ms"] is None else row["ended_at_ms"])


def _shared_names(rows: Sequence[Row], group: GroupReport) -> set[str]:
    """Names of which two members were in the group at a time."""
    until: dict[str, int] = {}
    shared = set()
    for row in rows:
        begin, end = _span(row, group)
        if until.get(row["who"], begin) > begin:
            shared.add(row["who"])
        until[row["who"]] = max(end, until.get(row["who"], end))
    return shared


def _closed(owned: DataFrame, gap_ms: Column) -> DataFrame:
    """Intervals of one owner drawn together where at most so much lies between them."""
    place = Window.partitionBy(*_KEY, "topic", "partition").orderBy("from_ms", "to_ms", "owner")
    follows = (fn.col("owner") == fn.lag("owner").over(place)) & (
        fn.col("from_ms") - fn.lag("to_ms").over(place) <= gap_ms
    )
    numbered = owned.withColumn("fresh", fn.coalesce(~follows, fn.lit(True)).cast("int"))
    islands = numbered.withColumn("island", fn.sum("fresh").over(place))
    return islands.groupBy(*_KEY, "topic", "partition", "owner", "island").agg(
        fn.min("from_ms").alias("from_ms"), fn.max("to_ms").alias("to_ms"), fn.max("overlap_ms").alias("overlap_ms")
    )


def _fill_pauses(made: dict[Key, GroupReport], shown: ShownGroups, pauses: DataFrame) -> None:
    ours = shown.of(pauses.where("end != 'gone'"))
    who = fn.coalesce("group_instance_id", "client_id", "member_id")
    stopped = fn.col("kind") == "stop-the-world"
    sums = ours.groupBy(*_KEY, who.alias("owner")).agg(
        fn.count(fn.when(stopped, 1)).alias("pauses"),
        fn.coalesce(fn.sum("stopped_ms"), fn.lit(0)).alias("stopped_ms"),
        fn.coalesce(fn.max("stopped_ms"), fn.lit(0)).alias("longest_ms"),
        fn.count(fn.when(~stopped, 1)).alias("incremental"),
    )
    for key, rows in _by_group(_rows(sums)).items():
        made[key].pauses = sorted(rows, key=lambda row: (-row["stopped_ms"], _natural(row["owner"] or "")))
    lengths = ours.where("began_at_ms IS NOT NULL AND ended_at_ms > began_at_ms").select(
        *_KEY, "began_at_ms", "ended_at_ms", stopped.cast("int").alias("all")
    )
    steps: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    columns = lengths.toArrow().to_pydict()
    for run, group, begin, end, everything in zip(*columns.values(), strict=True):
        steps[run, group] += [(begin, 1, everything), (end, -1, -everything)]
    for key, found in steps.items():
        made[key].stops = _running(found, *shown.spans[key])


def _running(steps: list[tuple[int, int, int]], from_ms: int, to_ms: int) -> list[tuple[int, int, int]]:
    """Sums at each instant at which they change; of very many, the highest ones in each small piece of time."""
    steps.sort()
    found: list[tuple[int, int, int]] = []
    waiting = stopped = 0
    for at, one, everything in steps:
        waiting, stopped = waiting + one, stopped + everything
        if found and found[-1][0] == at:
            found.pop()
        found.append((at, waiting, stopped))
    piece = max(1, (to_ms - from_ms) // STOP_STEPS)
    if len(found) <= 2 * STOP_STEPS:
        return found
    highest: dict[int, tuple[int, int, int]] = {}
    last: dict[int, tuple[int, int, int]] = {}
    for step in found:
        number = step[0] // piece
        highest[number] = max(highest.get(number, step), step, key=lambda each: (each[2], each[1]))
        last[number] = step
    return sorted({*highest.values(), *last.values()})


def _fill_lag(made: dict[Key, GroupReport], shown: ShownGroups, commits: DataFrame) -> None:
    stored = shown.of(commits.where("outcome = 'stored' AND lag IS NOT NULL"))
    if not shown.spans:
        return
    begin = shown.value({key: from_ms for key, (from_ms, _) in shown.spans.items()})
    width = shown.value({key: max(1, (to - at) // LAG_POINTS) for key, (at, to) in shown.spans.items()})
    binned = stored.groupBy(*_KEY, "topic", "partition", fn.floor((fn.col("at_ms") - begin) / width).alias("bin")).agg(
        fn.max_by("lag", fn.struct("at_ms", "seq")).alias("lag")
    )
    for key, rows in _by_group(_rows(binned)).items():
        from_ms, to_ms = shown.spans[key]
        made[key].lag = _lag(rows, from_ms, max(1, (to_ms - from_ms) // LAG_POINTS))


def _lag(rows: Iterable[Row], from_ms: int, width: int) -> list[tuple[int, int]]:
    """The sum over all partitions, each as of its last commit, from the first commit on."""
    rows = list(rows)
    bins = max(row["bin"] for row in rows) + 1
    partitions = sorted({(row["topic"], row["partition"]) for row in rows})
    lags = np.full((len(partitions), bins), -1, dtype=np.int64)
    for row in rows:
        lags[partitions.index((row["topic"], row["partition"])), max(0, row["bin"])] = row["lag"]
    newest = np.maximum.accumulate(np.where(lags >= 0, np.arange(bins), -1), axis=1)
    filled = np.where(newest >= 0, np.take_along_axis(lags, np.maximum(newest, 0), axis=1), 0)
    sums = filled.sum(axis=0)
    first = min(max(0, row["bin"]) for row in rows)
    return [(from_ms + int(number) * width, int(sums[number])) for number in range(first, bins)]


def _spans(tables: Mapping[str, DataFrame]) -> dict[Key, tuple[int, int]]:
    """When each group was: from its first row in any table to the end of its run."""
    ends: dict[str, int] = {}
    for row in _all(tables, "streams"):
        ends[row["run_id"]] = max(row["last_at_ms"], ends.get(row["run_id"], row["last_at_ms"]))
    found: dict[Key, tuple[int, int]] = {}
    for name, *columns in _TIMES:
        for column in columns:
            for key, each in _extents(tables, name, column).items():
                if key[1] is not None and each.least is not None and each.most is not None:
                    first, last = found.get(key, (each.least, ends.get(key[0], each.most)))
                    found[key] = min(first, each.least), max(last, each.most)
    return found


_TIMES: Final = (
    ("rebalances", "prepared_at_ms", "ended_at_ms"),
    ("member_sessions", "joined_at_ms", "ended_at_ms"),
    ("ownership", "from_ms"),
    ("commits", "at_ms"),
    ("findings", "from_ms"),
    ("violations", "at_ms"),
)
"""Columns of tables that say when a group was there."""


class _Extent(NamedTuple):
    """Of a column in the rows of one group."""

    least: int | None
    most: int | None
    rows: int


def _extents(tables: Mapping[str, DataFrame], name: str, column: str) -> dict[Key, _Extent]:
    rows = collected(tables, name)
    if rows is None:
        sums = tables[name].groupBy(*_KEY).agg(fn.min(column), fn.max(column), fn.count("*")).toArrow()
    else:
        functions = [(column, "min"), (column, "max"), ([], "count_all")]
        sums = rows.group_by(list(_KEY)).aggregate(functions)
        sums = sums.select([*_KEY, f"{column}_min", f"{column}_max", "count_all"])
    return {
        (run_id, group_id): _Extent(*extent)
        for run_id, group_id, *extent in zip(*(each.to_pylist() for each in sums.columns), strict=True)
    }


def _struct(key: Key) -> Column:
    return fn.struct(*[fn.lit(value).alias(name) for name, value in zip(_KEY, key, strict=True)])


def _weight(findings: Sequence[Row]) -> tuple[int, float]:
    """The worst first: by the severest finding, then by what all cost."""
    return min((_RANK.get(row["severity"], 3) for row in findings), default=4), -sum(
        row["score"] or 0.0 for row in findings
    )


def _other(key: Key, rebalances: int, findings: Sequence[Row]) -> Row:
    run_id, group_id = key
    return {
        "run_id": run_id,
        "group_id": group_id,
        "rebalances": rebalances,
        "worst": findings[0]["title"] if findings else None,
    }


def _labels(owners: Sequence[str]) -> list[str]:
    """Owners without their process, where they are distinct without it."""
    names = [owner.rsplit("/", 1)[-1] for owner in owners]
    names = [short(name) for name in names]
    return names if len(set(names)) == len(names) else list(owners)


def _natural(name: str) -> list[tuple[int, str]]:
    """consumer-2 before consumer-10."""
    pieces: list[tuple[int, str]] = []
    digits = ""
    for letter in [*name, ""]:
        if letter.isdecimal():
            digits += letter
            continue
        if digits:
            pieces.append((int(digits), ""))
            digits = ""
        pieces.append((-1, letter))
    return pieces


def collected(tables: Mapping[str, DataFrame], name: str) -> pa.Table | None:
    """The rows of a table if they are in this process."""
    return tables.collected(name) if isinstance(tables, Tables) else None


def _all(tables: Mapping[str, DataFrame], name: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    rows = collected(tables, name)
    return _rows(tables[name] if rows is None else rows)


def _rows(table: DataFrame | pa.Table) -> list[dict[str, Any]]:
    rows = table.toArrow() if isinstance(table, DataFrame) else table
    found: list[dict[str, Any]] = rows.to_pylist()
    for row in found:
        for name, value in row.items():
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                row[name] = dict(value)
    return found


def _by_group(rows: Iterable[dict[str, Any]]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[_key(row)].append(row)
    return dict(found)


def _key(row: Row) -> Key:
    return row["run_id"], row["group_id"]
