"""Share groups step by step: of each group the events since its oldest delivery that is not settled.

Windows are carried over as they were before those events, and sums of what is settled are added to those of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.incremental.runs import SCHEMA, ObservedRuns
from rejoin.pipeline.share_groups.findings import is_suspicious
from rejoin.pipeline.share_groups.histories import Place, ShareGroupHistory, WindowState, in_order
from rejoin.pipeline.share_groups.names import TABLES
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS
from rejoin.pipeline.share_groups.sums import standing_in, sums_of, together
from rejoin.pipeline.share_groups.tables import SHARE_GROUPS

Row = dict[str, Any]
Key = tuple[str, str]
"""Run and group."""

_SUMS: Final = "share_partitions"
_BY_ROW: Final = tuple(name for name in TABLES if name != _SUMS)


class IncrementalShareGroups:
    """The share groups of all runs."""

    def __init__(self, runs: ObservedRuns) -> None:
        self._runs = runs
        self.kept: pa.Table = SCHEMA.empty_table()
        self.windows: dict[Key, dict[Place, WindowState]] = {}
        """Windows as they were before the events that are kept."""
        self.so_far: dict[Key, dict[Place, Row]] = {}
        """Sums of settled rows."""
        self.open: dict[Key, dict[str, list[Row]]] = {}
        """Rows that are not settled, and the sums of all rows."""
        self.suspicious: dict[str, list[Row]] = {name: [] for name in _BY_ROW}
        """Settled rows that rules look at."""

    def add(self, events: pa.Table, *, everything: bool) -> dict[str, pa.Table]:
        """Take in the events of a step; returns settled rows by table."""
        ours = events.filter(SHARE_GROUPS.are_read(events))
        self.kept = pa.concat_tables([self.kept, ours])
        touched = set(_keys(self.kept)) | set(self.so_far) if everything else set(_keys(ours))
        settled = self._settle(touched) if touched else {name: [] for name in _BY_ROW}
        return {name: _table(name, rows) for name, rows in settled.items()}

    def tables(self) -> dict[str, pa.Table]:
        """The rows that are open, of all tables."""
        return {
            name: _table(name, [row for key in sorted(self.open) for row in self.open[key][name]]) for name in TABLES
        }

    def to_judge(self) -> dict[str, list[Row]]:
        """The rows that rules look at."""
        of_open = {name: [row for rows in self.open.values() for row in rows[name]] for name in TABLES}
        return {name: [*self.suspicious.get(name, ()), *rows] for name, rows in of_open.items()}

    def _settle(self, touched: set[Key]) -> dict[str, list[Row]]:
        is_touched = pa.array([key in touched for key in _keys(self.kept)], pa.bool_())
        rows: dict[Key, list[Row]] = {key: [] for key in sorted(touched)}
        for row in in_order(self.kept.filter(is_touched).to_pylist()):
            rows[row["run_id"], row["group_id"]].append(dict(row))
        settled: dict[str, list[Row]] = {name: [] for name in _BY_ROW}
        left: list[Row] = []
        for key, ours in rows.items():
            over, kept = self._of_group(key, ours)
            for name in _BY_ROW:
                settled[name] += over[name]
                self.suspicious[name] += [row for row in over[name] if is_suspicious(name, row)]
            left += kept
        self.kept = pa.concat_tables([self.kept.filter(pc.invert(is_touched)), pa.Table.from_pylist(left, SCHEMA)])
        return settled

    def _of_group(self, key: Key, rows: Sequence[Row]) -> tuple[dict[str, list[Row]], list[Row]]:
        """Rows of one group that are settled, and the events that are still needed."""
        run, before_ms = self._runs.known[key[0]], self._runs.settled_before(key[0])
        whole = self._history(key, rows, run.end_ms)
        numbers = {id(row): number for number, row in enumerate(rows)}
        cut = min([number for number, row in enumerate(rows) if row["at_ms"] >= before_ms][:1], default=len(rows))
        spans = [
            (
                numbers[id(each.begun or each.ended)],
                numbers[id(each.ended)] if each.ended is not None and each.is_settled(before_ms) else len(rows),
            )
            for each in whole.deliveries
        ]
        # A delivery is settled with its end, or its acquisition is still needed.
        for begin, end in sorted(spans, reverse=True):
            cut = begin if end >= cut > begin else cut
        earlier = self._history(key, rows[:cut], run.end_ms)
        over = earlier.tables()
        over["share_deliveries"] = [
            whole.row_of(each) for each, (_, end) in zip(whole.deliveries, spans, strict=True) if end < cut
        ]
        so_far = self.so_far.setdefault(key, {})
        for row in sums_of(over):
            place = row["topic"], row["partition"]
            so_far[place] = together(so_far.get(place), row)
        self.windows[key] = earlier.windows
        later = self._history(key, rows[cut:], run.end_ms)
        made = later.tables()
        sums = {(row["topic"], row["partition"]): row for row in made[_SUMS]}
        made[_SUMS] = [
            (together(so_far.get(place), sums[place]) if place in sums else dict(so_far[place]))
            | standing_in(later.standing(), place)
            for place in sorted({*so_far, *sums})
        ]
        self.open[key] = made
        return over, list(rows[cut:])

    def _history(self, key: Key, rows: Iterable[Row], ends_at_ms: int) -> ShareGroupHistory:
        history = ShareGroupHistory(*key, ends_at_ms, self.windows.get(key))
        for row in rows:
            history.take(row)
        return history

    # -- on disk

    def as_json(self) -> list[Any]:
        """Windows before the events that are kept."""
        return [
            [*key, [[*place, each.start, each.since_ms, each.end_then, each.end] for place, each in windows.items()]]
            for key, windows in self.windows.items()
        ]

    def as_tables(self) -> dict[str, pa.Table]:
        """The events that are kept, open rows, sums of settled rows, and settled rows that rules look at."""
        sums = [row for places in self.so_far.values() for row in places.values()]
        return {
            "kept": self.kept,
            "sums": _table(_SUMS, sums),
            **{f"open-{name}": table for name, table in self.tables().items()},
            **{f"suspicious-{name}": _table(name, rows) for name, rows in self.suspicious.items()},
        }

    def restore(self, known: Iterable[Any], kept: Mapping[str, pa.Table]) -> None:
        """Restore the state from :meth:`as_json` and :meth:`as_tables`."""
        self.kept = kept["kept"]
        for run_id, group_id, windows in known:
            self.windows[run_id, group_id] = {
                (topic, partition): WindowState(*values) for topic, partition, *values in windows
            }
        for row in kept["sums"].to_pylist():
            self.so_far.setdefault((row["run_id"], row["group_id"]), {})[row["topic"], row["partition"]] = row
        for name in TABLES:
            for row in kept[f"open-{name}"].to_pylist():
                key = row["run_id"], row["group_id"]
                self.open.setdefault(key, {each: [] for each in TABLES})[name].append(row)
        self.suspicious = {name: kept[f"suspicious-{name}"].to_pylist() for name in _BY_ROW}


def _keys(events: pa.Table) -> Iterable[Key]:
    return zip(events["run_id"].to_pylist(), events["group_id"].to_pylist(), strict=True)


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, OF_SHARE_GROUPS[name])
