"""From the tables to a :class:`~pipeline.report.data.Report`. No query reads the events again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import RunContext, short
from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.findings.sums import KINDS, sums_of
from rejoin.pipeline.report.data import (
    FINEST,
    LEAST_MS,
    MOST_INTERVALS,
    GroupReport,
    Intervals,
    Report,
    Row,
    ShareGroupReport,
    StreamsGroupReport,
)
from rejoin.pipeline.report.defaults import MOST_GROUPS
from rejoin.pipeline.report.lag import fill_lag
from rejoin.pipeline.report.shown import Key, ShownGroups, StoredTables, all_rows, by_group
from rejoin.pipeline.report.tables import AT_ONCE
from rejoin.pipeline.report.transactions import collect_transactions, order_of_violations
from rejoin.pipeline.share_groups.histories import begin_of
from rejoin.pipeline.share_groups.words import late_deliveries
from rejoin.pipeline.tables.common import GROUP
from rejoin.pipeline.tables.groups.rows import TopicPartition
from rejoin.pipeline.tables.whole_groups import values_of
from rejoin.pipeline.vocabulary import AFTER_REMOVAL

MOST_LINES: Final = 20
"""Lines of the quarantine that the page shows."""
MOST_STREAMS: Final = 50
MOST_LANES: Final = 200
"""Members of a group with a lane; those that came first have one."""
STOP_STEPS: Final = 4_000

_RANK: Final = {"high": 0, "medium": 1, "low": 2}


def collect(
    tables: StoredTables,
    quarantine: ds.Dataset,
    *,
    title: str,
    groups: Sequence[str] = (),
    most_groups: int = MOST_GROUPS,
    logged: Mapping[Key, tuple[int, int]] | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Report:
    """The report over all tables. ``groups`` are those to show if given; else the worst ones are.

    ``logged``: groups that logs name, from and to, of which the tables may have no row.
    """
    on_step("findings")
    findings = by_group(all_rows(tables, "findings"))
    for rows in findings.values():
        rows.sort(key=order)
    known = {**(logged or {}), **_spans(tables)}
    rebalanced = {key: each.rows for key, each in _extents(tables, "rebalances", "prepared_at_ms").items()}
    ranked = sorted(known, key=lambda key: (_weight(findings.get(key, ()), known[key]), -rebalanced.get(key, 0), key))
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
    streams = sorted(all_rows(tables, "streams"), key=lambda row: (row["run_id"], row["source"], row["node"]))
    return Report(
        title,
        list(made.values()),
        [_other(key, rebalanced.get(key, 0), findings.get(key, ())) for key in ranked if key not in made],
        streams[:MOST_STREAMS],
        kinds_of(quarantine),
        _first_lines(quarantine),
        sum(row["rows"] or 0 for row in streams),
        transactions=transactions,
        readers=sorted(all_rows(tables, "readers"), key=lambda row: (row["run_id"], row["reader"])),
    )


def kinds_of(quarantine: ds.Dataset) -> list[tuple[str, int]]:
    """Kinds of lines that could not be used, with how many there are, the most frequent first."""
    counts = Counter(kind for batch in quarantine.to_batches(columns=["kind"]) for kind in batch["kind"].to_pylist())
    return sorted(counts.items(), key=lambda kind: (-kind[1], kind[0]))


def _first_lines(quarantine: ds.Dataset) -> list[Row]:
    rows = (row for batch in quarantine.to_batches() for row in batch.to_pylist())
    return nsmallest(MOST_LINES, rows, key=lambda row: (row["file"], row["line"] or 0))


def _place_shared(made: Mapping[Key, GroupReport], rows: Iterable[Row]) -> None:
    """Put findings about several groups beside those of the first of them that is shown."""
    for row in rows:
        if row["transactional_ids"] is not None:
            continue
        shown = [group for key, group in made.items() if key[0] == row["run_id"] and key[1] in row["groups"]]
        if shown:
            shown[0].findings = sorted([*shown[0].findings, row], key=order)


def _fill(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    """All that is drawn of the groups: some queries at a time, as most of each is planning."""
    parts: tuple[Callable[[], None], ...] = (
        lambda: _fill_rebalances(made, shown, tables),
        lambda: _fill_lanes(made, shown, tables),
        lambda: _fill_pauses(made, shown, tables),
        lambda: fill_lag(made, shown, tables),
        lambda: _fill_lists(made, shown, tables),
        lambda: _fill_counts(made, shown, tables),
        lambda: _fill_shares(made, shown, tables),
        lambda: _fill_streams(made, shown, tables),
    )
    with ThreadPoolExecutor(AT_ONCE, "charts") as pool:
        for part in [pool.submit(each) for each in parts]:
            part.result()
    for group in made.values():
        members = [len(row["members_after"] or ()) for row in group.rebalances]
        group.counts = {"members": max(members, default=0), **group.counts}


def _fill_lanes(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    _fill_owners(made, shown, tables)
    fill_members(made, shown, tables)


def _fill_lists(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    for key, rows in shown.rows(tables, "balance").items():
        made[key].balance = sorted(rows, key=lambda row: (row["at_ms"], row["generation"]))
    for key, rows in shown.rows(tables, "violations").items():
        in_order = sorted(rows, key=order_of_violations)
        made[key].violations = [row for row in in_order if row["kind"] != AFTER_REMOVAL]
        made[key].after_removal = [row for row in in_order if row["kind"] == AFTER_REMOVAL]
    for key, rows in shown.rows(tables, "client_metrics").items():
        made[key].measured = sorted(rows, key=lambda row: (row["at_ms"], row["client_instance_id"]))
    for key, rows in shown.rows(tables, "requests").items():
        known = [row for row in rows if row["api"] is not None]
        made[key].requests = sorted(known, key=lambda row: (-row["requests"], row["api"], row["day"]))


def _fill_counts(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    for key, rows in shown.rows(tables, "progress", (*GROUP, "twice", "lost")).items():
        made[key].counts = {"duplicates": sum(r["twice"] for r in rows), "lost": sum(r["lost"] for r in rows)}


def _fill_shares(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    partitions = shown.rows(tables, "share_partitions")
    shared = ShownGroups({key: shown.spans[key] for key in partitions})
    windows, deliveries = (shared.rows(tables, name) for name in ("share_windows", "share_deliveries"))
    for key, rows in partitions.items():
        held = sorted(deliveries.get(key, ()), key=begin_of)
        moved = sorted(windows.get(key, ()), key=lambda row: (row["at_ms"], row["seq"]))
        in_order = sorted(rows, key=lambda row: (-(row["in_flight"] or 0), row["topic"], row["partition"]))
        made[key].shares = ShareGroupReport(in_order, moved, held, late_deliveries(held))


def _fill_streams(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    tasks, changes = (shown.rows(tables, name) for name in ("tasks", "streams_changes"))
    of_streams = ShownGroups({key: shown.spans[key] for key in shown.spans if key in tasks or key in changes})
    moves, restores = (of_streams.rows(tables, name) for name in ("task_moves", "task_restores"))
    for key in of_streams.spans:
        made[key].streams = StreamsGroupReport(
            sorted(tasks.get(key, ()), key=lambda row: (row["from_ms"], row["subtopology"], row["task"], row["role"])),
            sorted(moves.get(key, ()), key=lambda row: (row["at_ms"], row["subtopology"], row["task"])),
            sorted(restores.get(key, ()), key=lambda row: (row["last_at_ms"], row["subtopology"], row["task"])),
            sorted(changes.get(key, ()), key=lambda row: (row["at_ms"], row["seq"] or 0)),
        )


def _fill_rebalances(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    rebalances = shown.rows(tables, "rebalances")
    pauses = shown.rows(tables, "pauses", (*GROUP, *KINDS["pauses"].reads, "end"))
    for key, group in made.items():
        rows = sorted(rebalances.get(key, ()), key=lambda row: (row["prepared_at_ms"], row["rebalance_id"]))
        history = GroupHistory.of(
            RunContext(key[0], shown.spans[key][1]),
            key[1],
            {"rebalance": rows, "pauses": sums_of("pauses", pauses.get(key, ()))},
        )
        cost = history.stopped_ms if history.pauses and not history.is_untimed else {}
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


_OWNED: Final = ("topic", "partition", "owner", "from_ms", "to_ms", "overlap_ms")


def _owned(shown: ShownGroups, tables: StoredTables) -> dict[Key, pa.Table]:
    """Intervals by group, without the shortest gaps where there are very many."""
    owned = (pc.field("kind") == "owned") & pc.field("from_ms").is_valid() & pc.field("to_ms").is_valid()
    found = {}
    for key, span in shown.spans.items():
        batches = list(ShownGroups({key: span}).batches(tables, "ownership", _OWNED, owned))
        if rows := sum(batch.num_rows for batch in batches):
            gap_ms = (span[1] - span[0]) // FINEST
            found[key] = pa.Table.from_batches(batches)
            if rows > 4 * MOST_INTERVALS and gap_ms:
                found[key] = _closed(found[key], gap_ms)
    return found


def _expected(shown: ShownGroups, tables: StoredTables) -> dict[Key, dict[TopicPartition, int]]:
    """Since when partitions waited for their first owner."""
    expected: dict[Key, dict[TopicPartition, int]] = defaultdict(dict)
    for batch in shown.batches(tables, "ownership", _EXPECTED, pc.field("end") == "initial"):
        for run_id, group_id, topic, partition, from_ms in values_of(batch):
            expected[run_id, group_id][topic, partition] = from_ms
    return expected


_EXPECTED: Final = (*GROUP, "topic", "partition", "from_ms")


def _fill_owners(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    owned, expected = _owned(shown, tables), _expected(shown, tables)
    # Each group may have its share, and what small ones leave goes to those that come after them.
    left = MOST_INTERVALS
    for number, key in enumerate(sorted(owned, key=lambda key: (owned[key].num_rows, key))):
        _draw_owners(made[key], owned[key].to_pydict(), expected[key], left // (len(owned) - number))
        left -= len(made[key].owned)


def _draw_owners(
    group: GroupReport, columns: Mapping[str, list[Any]], expected: Mapping[TopicPartition, int], most: int
) -> None:
    since: dict[TopicPartition, int] = {}
    for topic, partition, from_ms in zip(columns["topic"], columns["partition"], columns["from_ms"], strict=True):
        at = topic, partition
        since[at] = min(from_ms, since.get(at, expected.get(at, from_ms)))
    row_of = {at: number for number, at in enumerate(sorted(since))}
    owners = sorted({owner or "" for owner in columns["owner"]}, key=_natural)
    number_of = {owner: number for number, owner in enumerate(owners)}
    rows = [row_of[each] for each in zip(columns["topic"], columns["partition"], strict=True)]
    ends = [max(start, end) for start, end in zip(columns["from_ms"], columns["to_ms"], strict=True)]
    group.partitions = [(*at, since[at]) for at in row_of]
    group.owners = _labels(owners)
    held = Intervals.of(
        zip(rows, (number_of[owner or ""] for owner in columns["owner"]), columns["from_ms"], ends, strict=True)
    )
    group.owned, group.closed_ms = held.reduced(most)
    group.overlaps = [
        (row, start, start + overlap)
        for row, start, overlap in zip(rows, columns["from_ms"], columns["overlap_ms"], strict=True)
        if overlap
    ]
    group.from_ms = min(group.from_ms, int(held.start.min()))
    group.to_ms = max(group.to_ms, int(held.end.max()))


def fill_members(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
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


def _closed(owned: pa.Table, gap_ms: int) -> pa.Table:
    """Intervals of one owner drawn together where at most so much lies between them."""
    in_order = owned.sort_by([(name, "ascending") for name in ("topic", "partition", "from_ms", "to_ms", "owner")])
    made: list[list[Any]] = []
    last_ms = 0
    for topic, partition, owner, from_ms, to_ms, overlap_ms in values_of(in_order):
        if made and owner is not None and made[-1][:3] == [topic, partition, owner] and from_ms - last_ms <= gap_ms:
            made[-1][4] = max(made[-1][4], to_ms)
            made[-1][5] = max(made[-1][5] or 0, overlap_ms or 0)
        else:
            made.append([topic, partition, owner, from_ms, to_ms, overlap_ms])
        last_ms = to_ms
    return pa.Table.from_pylist([dict(zip(_OWNED, row, strict=True)) for row in made], owned.schema)


def _fill_pauses(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    for key, rows in shown.rows(tables, "pauses", _OF_PAUSES).items():
        of_owners: dict[str | None, dict[str, Any]] = {}
        steps: list[tuple[int, int, int]] = []
        for row in rows:
            if row["end"] == "gone":
                continue
            owner = _first_known(row["group_instance_id"], row["client_id"], row["member_id"])
            stopped, stopped_ms = row["kind"] == "stop-the-world", row["stopped_ms"] or 0
            sums = of_owners.setdefault(owner, dict.fromkeys(("pauses", "stopped_ms", "longest_ms", "incremental"), 0))
            sums["pauses" if stopped else "incremental"] += 1
            sums["stopped_ms"] += stopped_ms
            sums["longest_ms"] = max(sums["longest_ms"], stopped_ms)
            begin, end = row["began_at_ms"], row["ended_at_ms"]
            if begin is not None and end is not None and end > begin:
                steps += [(begin, 1, int(stopped)), (end, -1, -int(stopped))]
        made[key].pauses = sorted(
            ({"owner": owner, **sums} for owner, sums in of_owners.items()),
            key=lambda row: (-row["stopped_ms"], _natural(row["owner"] or "")),
        )
        if steps:
            made[key].stops = _running(steps, *shown.spans[key])


_OF_PAUSES: Final = (
    *(*GROUP, "group_instance_id", "client_id", "member_id", "kind", "end"),
    *("began_at_ms", "ended_at_ms", "stopped_ms"),
)


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


def _spans(tables: StoredTables) -> dict[Key, tuple[int, int]]:
    """When each group was: from its first row in any table to the end of its run."""
    ends: dict[str, int] = {}
    for row in all_rows(tables, "streams"):
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
    ("share_partitions", "first_at_ms", "last_at_ms"),
    ("findings", "from_ms"),
    ("violations", "at_ms"),
)
"""Columns of tables that say when a group was there."""


class _Extent(NamedTuple):
    """Of a column in the rows of one group."""

    least: int | None
    most: int | None
    rows: int

    def with_(self, more: _Extent) -> _Extent:
        """The extent of both."""
        least = [each for each in (self.least, more.least) if each is not None]
        most = [each for each in (self.most, more.most) if each is not None]
        return _Extent(min(least, default=None), max(most, default=None), self.rows + more.rows)


def _extents(tables: StoredTables, name: str, column: str) -> dict[Key, _Extent]:
    found: dict[Key, _Extent] = {}
    functions = [(column, "min"), (column, "max"), ([], "count_all")]
    names = [*GROUP, f"{column}_min", f"{column}_max", "count_all"]
    for batch in tables[name].to_batches(columns=[*GROUP, column]):
        sums = pa.Table.from_batches([batch]).group_by(list(GROUP)).aggregate(functions).select(names)
        for run_id, group_id, *extent in values_of(sums):
            key, more = (run_id, group_id), _Extent(*extent)
            found[key] = found[key].with_(more) if key in found else more
    return found


def _weight(findings: Sequence[Row], times: tuple[int, int]) -> tuple[int, float]:
    """The worst first: by the severest finding, then by what all cost in an hour of the time in which it was seen."""
    cost = sum(row["score"] or 0.0 for row in findings)
    severity = min((_RANK.get(row["severity"], 3) for row in findings), default=4)
    return severity, -cost / max(LEAST_MS, times[1] - times[0])


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
