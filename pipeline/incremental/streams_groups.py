"""Streams groups step by step: of each group the events of the last half an hour, and those that began what goes on.

A row is settled when nothing that may still come changes it: a task that another member has taken over, a move that no
restart can explain any more, a status that has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.incremental.runs import SCHEMA, ObservedRuns
from rejoin.pipeline.share_groups.histories import in_order
from rejoin.pipeline.streams_groups.causes import RESTART_MS
from rejoin.pipeline.streams_groups.findings import is_suspicious
from rejoin.pipeline.streams_groups.histories import DESCRIBED, OWN, StreamsGroupHistory, Tenure, has_restore
from rejoin.pipeline.streams_groups.names import TABLES
from rejoin.pipeline.streams_groups.schemas import OF_STREAMS_GROUPS
from rejoin.pipeline.streams_groups.tables import STREAMS_GROUPS

Row = dict[str, Any]
Key = tuple[str, str]
"""Run and group."""

_KEPT_MS: Final = 3 * RESTART_MS
"""Events that are kept before what is settled: causes of moves are among them."""


class IncrementalStreamsGroups:
    """The streams groups of all runs."""

    def __init__(self, runs: ObservedRuns) -> None:
        self._runs = runs
        self.kept: pa.Table = SCHEMA.empty_table()
        self.settled_to: dict[Key, int] = {}
        """Instant before which the rows of a group are settled."""
        self.open: dict[Key, dict[str, list[Row]]] = {}
        self.suspicious: dict[str, list[Row]] = {name: [] for name in TABLES}
        """Settled rows that rules look at."""

    def add(self, events: pa.Table, *, everything: bool) -> dict[str, pa.Table]:
        """Take in the events of a step; returns settled rows by table."""
        ours = events.filter(STREAMS_GROUPS.are_read(events))
        self.kept = pa.concat_tables([self.kept, ours])
        touched = set(_keys(self.kept)) if everything else set(_keys(ours))
        settled: dict[str, list[Row]] = {name: [] for name in TABLES}
        if touched:
            is_touched = pa.array([key in touched for key in _keys(self.kept)], pa.bool_())
            rows: dict[Key, list[Row]] = {key: [] for key in sorted(touched)}
            for row in in_order(self.kept.filter(is_touched).to_pylist()):
                rows[row["run_id"], row["group_id"]].append(dict(row))
            left: list[Row] = []
            for key, of_group in rows.items():
                left += self._of_group(key, of_group, settled)
            kept = pa.Table.from_pylist(left, SCHEMA)
            self.kept = pa.concat_tables([self.kept.filter(pc.invert(is_touched)), kept])
        for name, found in settled.items():
            self.suspicious[name] += [row for row in found if is_suspicious(name, row)]
        return {name: _table(name, found) for name, found in settled.items()}

    def tables(self) -> dict[str, pa.Table]:
        """The rows that are open, of all tables."""
        return {
            name: _table(name, [row for key in sorted(self.open) for row in self.open[key][name]]) for name in TABLES
        }

    def to_judge(self) -> dict[str, list[Row]]:
        """The rows that rules look at."""
        of_open = {name: [row for rows in self.open.values() for row in rows[name]] for name in TABLES}
        return {name: [*self.suspicious[name], *rows] for name, rows in of_open.items()}

    def _of_group(self, key: Key, rows: Sequence[Row], settled: dict[str, list[Row]]) -> list[Row]:
        """Sort the rows of one group into settled and open ones; returns the events that are still needed."""
        if not any(row["event"] in OWN for row in rows):
            # Members of another kind of groups; what makes it a streams group may still come.
            return [row for row in rows if row["at_ms"] >= self._runs.known[key[0]].end_ms - _KEPT_MS]
        before_ms, since_ms = self._runs.settled_before(key[0]) - RESTART_MS, self.settled_to.get(key, 0)
        before_ms = max(before_ms, since_ms)
        history = StreamsGroupHistory(*key, self._runs.known[key[0]].end_ms)
        for row in rows:
            history.take(row)
        made = history.tables()
        ends = {
            "tasks": [_settled_at(each) for each in history.tenures],
            "task_moves": [row["at_ms"] for row in made["task_moves"]],
            "task_restores": [_settled_at(each) for each in history.tenures if has_restore(each)],
            "streams_changes": [
                row["to_ms"] if row["event"] == "streams_topology_configured" else row["at_ms"]
                for row in made["streams_changes"]
            ],
        }
        self.open[key] = {name: [] for name in TABLES}
        for name, found in made.items():
            for row, end_ms in zip(found, ends[name], strict=True):
                if end_ms is None or end_ms >= before_ms:
                    self.open[key][name].append(row)
                elif end_ms >= since_ms:
                    settled[name].append(row)
        self.settled_to[key] = before_ms
        needed = _needed(history, rows)
        return [row for row in rows if row["at_ms"] >= before_ms - _KEPT_MS or id(row) in needed]

    # -- on disk

    def as_json(self) -> list[Any]:
        """To where each group is settled."""
        return [[*key, at_ms] for key, at_ms in self.settled_to.items()]

    def as_tables(self) -> dict[str, pa.Table]:
        """The events that are kept, open rows, and settled rows that rules look at."""
        return {
            "kept": self.kept,
            **{f"open-{name}": table for name, table in self.tables().items()},
            **{f"suspicious-{name}": _table(name, rows) for name, rows in self.suspicious.items()},
        }

    def restore(self, known: Iterable[Any], kept: Mapping[str, pa.Table]) -> None:
        """Restore the state from :meth:`as_json` and :meth:`as_tables`."""
        self.kept = kept["kept"]
        self.settled_to = {(run_id, group_id): at_ms for run_id, group_id, at_ms in known}
        for name in TABLES:
            for row in kept[f"open-{name}"].to_pylist():
                key = row["run_id"], row["group_id"]
                self.open.setdefault(key, {each: [] for each in TABLES})[name].append(row)
        self.suspicious = {name: kept[f"suspicious-{name}"].to_pylist() for name in TABLES}


def _settled_at(tenure: Tenure) -> int | None:
    """When nothing more happened to a tenure; None where something still may."""
    if tenure.ended is None:
        return None
    if tenure.role != "active":
        return int(tenure.ended["at_ms"])
    return None if tenure.taken_over_by is None else int(tenure.taken_over_by["at_ms"])


def _needed(history: StreamsGroupHistory, rows: Sequence[Row]) -> set[int]:
    """Events that began what goes on: tenures with their reports, the newest of each member, the newest status."""
    needed: set[int] = set()
    for each in history.tenures:
        if _settled_at(each) is None:
            needed |= {id(each.begun), id(each.ended), id(each.newest), id(each.restored)}
    newest: dict[tuple[str, str | None], int] = {}
    for row in rows:
        if row["event"] in OWN or row["event"] == "member_joined":
            newest[row["event"], row["member_id"] if row["event"] != "streams_topology_configured" else None] = id(row)
    first = {row["member_id"]: id(row) for row in reversed(rows) if row["event"] == DESCRIBED}
    is_there = {member for member, held in history.held.items() if held}
    return (
        needed
        | {at for (_, member), at in newest.items() if member is None or member in is_there}
        | {at for member, at in first.items() if member in is_there}
    )


def _keys(events: pa.Table) -> Iterable[Key]:
    return zip(events["run_id"].to_pylist(), events["group_id"].to_pylist(), strict=True)


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, OF_STREAMS_GROUPS[name])
