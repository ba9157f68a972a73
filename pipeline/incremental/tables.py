"""All tables of a stream, brought up to date step by step, and what is kept of them between two runs of a program.

    FOLDER/tables/NAME/      what readers read, see :mod:`table_files`
    FOLDER/state/            what is still needed; written now and then, and whole or not at all

A program that is killed goes on from the state that was written last, and does the steps after it once more.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rejoin.pipeline import schemas
from rejoin.pipeline.findings.observed_rows import MINUTE_MS
from rejoin.pipeline.findings.table import are_commits, joined, judged, rows_by_kind, rows_of_kind, runs_of
from rejoin.pipeline.incremental.group_states import GroupStates
from rejoin.pipeline.incremental.groups import READ, Groups, Key, StepRows, is_of
from rejoin.pipeline.incremental.runs import SCHEMA, ObservedRuns, Waits
from rejoin.pipeline.incremental.share_groups import IncrementalShareGroups
from rejoin.pipeline.incremental.streams_groups import IncrementalStreamsGroups
from rejoin.pipeline.incremental.table_files import TableFiles
from rejoin.pipeline.incremental.transactions import Producers
from rejoin.pipeline.share_groups.findings import share_findings
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS
from rejoin.pipeline.streams_groups.findings import streams_findings
from rejoin.pipeline.streams_groups.schemas import OF_STREAMS_GROUPS
from rejoin.pipeline.tables.groups.rebalance_events import OPEN
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS
from rejoin.pipeline.transactions.tables import findings_about, groups_by_topic

LOOK_BACK_MS: Final = 86_400_000
"""Rules look at what was in the last day; a finding from before stays as it was."""
SHARE_OF_SAVING: Final = 0.05
"""Of the time at the most goes into keeping the state."""
NAMES: Final = (*READ, *OF_TRANSACTIONS, *OF_SHARE_GROUPS, *OF_STREAMS_GROUPS, "findings")
_VERSION: Final = 4
_LOOKED_AT: Final = ("rebalances", "member_sessions", "pauses", "balance")
"""Tables whose settled rows rules look at, a day long."""
_BEGINS: Final = {
    "rebalances": "prepared_at_ms",
    "member_sessions": "ended_at_ms",
    "pauses": "ended_at_ms",
    "balance": "until_ms",
}
_COMMIT: Final = (*("run_id", "group_id", "at_ms", "event", "api", "error", "offsets", "member_id", "client_id"),)
_GROUP: Final = ("run_id", "group_id")

Row = dict[str, Any]


class IncrementalTables:
    """The tables below ``FOLDER/tables``. One process at a time may have them."""

    def __init__(self, folder: Path, waits: Waits = Waits()) -> None:  # noqa: B008 - it cannot be changed
        self._folder = folder
        self._files = {name: TableFiles(folder / "tables", name, _schema(name)) for name in NAMES}
        self._begin(waits)
        try:
            known = self._restore()
        except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
            known = False
            self._begin(waits)
        if not known:
            # There is no state, or it is damaged or of another version: all events are taken in once more.
            shutil.rmtree(folder / "tables", ignore_errors=True)
        for files in self._files.values():
            files.forget_after(self.step)

    def _begin(self, waits: Waits) -> None:
        """Know nothing."""
        self._runs = ObservedRuns(waits)
        self._groups = Groups(self._runs)
        self._states = GroupStates()
        self._producers = Producers(self._runs)
        self._share_groups = IncrementalShareGroups(self._runs)
        self._streams_groups = IncrementalStreamsGroups(self._runs)
        self._open = {name: _schema(name).empty_table() for name in NAMES}
        """Rows that are not settled, of all groups."""
        self._history = {name: _schema(name).empty_table() for name in _LOOKED_AT}
        self._owned = rows_of_kind("owned", _schema("ownership").empty_table())
        """When partitions had their first owner, as far as that is settled."""
        self._commits = SCHEMA.empty_table().select(_COMMIT)
        self._minutes = rows_of_kind("commits", SCHEMA.empty_table())
        self._judged = _schema("findings").empty_table()
        """Findings of each group, before those about one broker become one."""
        self._saved_at, self._saving_seconds = time.monotonic(), 0.0
        self.step = -1
        """The newest batch of events that the tables have."""
        self.quarantined = 0

    def take(self, events: pa.Table, step: int, *, quarantined: int = 0, everything: bool = False) -> pa.Table:
        """Take in the events of a step, in any order; returns the rebalances that ended in it.

        ``everything``: look at all groups, whatever befell them.
        """
        new, concerned = self._runs.add(events)
        self._states.add(new)
        self.quarantined += quarantined + events.num_rows - new.num_rows
        keys = self._groups.add(new, concerned, everything=everything)
        self._count_commits(new)
        settled = self._producers.add(new, everything=everything)
        settled |= self._share_groups.add(new, everything=everything)
        settled |= self._streams_groups.add(new, everything=everything)
        self._open |= self._producers.tables() | self._share_groups.tables() | self._streams_groups.tables()
        ended = _schema("rebalances").empty_table()
        if keys:
            rows = self._groups.make(keys)
            known = _ended(self._open["rebalances"])["rebalance_id"]
            ended = _ended(rows.made["rebalances"])
            ended = ended.filter(pc.invert(pc.is_in(ended["rebalance_id"], known)))
            self._judge(rows)
            settled |= rows.settled
            self._take_over(rows)
        self._write(settled, step)
        self.step = step
        return ended

    @property
    def kept(self) -> dict[str, pa.Table]:
        """All that is kept for later steps, but for rows of tables that rules look at."""
        return {
            **self._groups.kept,
            "producers": self._producers.kept,
            "share_groups": self._share_groups.kept,
            "streams_groups": self._streams_groups.kept,
            "commits": self._commits,
        }

    def count(self, name: str) -> int:
        """How many rows a table has."""
        rows: int = self._files[name].settled() + self._open[name].num_rows
        return rows

    def findings(self) -> list[Row]:
        """All findings."""
        found: list[Row] = self._open["findings"].to_pylist()
        return found

    def ended(self) -> pa.Table:
        """All rebalances that have ended."""
        return _ended(pa.concat_tables([self._files["rebalances"].read(), self._open["rebalances"]]))

    def groups(self) -> list[Row]:
        """Each group at each of its coordinators, as in :meth:`GroupStates.rows`."""
        return self._states.rows(self._open["rebalances"])

    # -- a step

    def _count_commits(self, events: pa.Table) -> None:
        """Commits by minute; those of minutes that may get more stay as they are."""
        commits = pa.concat_tables([self._commits, events.filter(are_commits(events)).select(_COMMIT)])
        until = {run_id: self._runs.settled_before(run_id) // MINUTE_MS * MINUTE_MS for run_id in self._runs.known}
        limits = pa.array([until[run_id] for run_id in commits["run_id"].to_pylist()], pa.int64())
        is_over = pc.less(commits["at_ms"], limits)
        self._minutes = pa.concat_tables([self._minutes, rows_of_kind("commits", commits.filter(is_over))])
        self._commits = commits.filter(pc.invert(is_over)).combine_chunks()

    def _judge(self, rows: StepRows) -> None:
        """Findings of some groups, from rows of the last day."""
        keys = rows.keys
        tables = {name: pa.concat_tables([_of(self._history[name], keys), rows.made[name]]) for name in _LOOKED_AT}
        # Of records only losses matter, which are never settled.
        tables["records"] = rows.made["records"]
        owned = pa.concat_tables([_of(self._owned, keys), rows_of_kind("owned", rows.made["ownership"])])
        minutes = pa.concat_tables([_of(self._minutes, keys), rows_of_kind("commits", _of(self._commits, keys))])
        run_ids = sorted({run_id for run_id, _ in keys})
        events, of_runs = self._groups.one_by_one(keys), self._runs.events_seen(run_ids)
        runs = runs_of({run_id: run.context() for run_id, run in self._runs.known.items()}, of_runs)
        parts = rows_by_kind(tables | {"events": events}, {"owned": _first(owned), "commits": minutes})
        found = judged(parts, runs)
        groups = set(keys)
        before = self._judged.to_pylist()
        kept = [row for row in before if (row["run_id"], row["group_id"]) not in groups or self._is_long_ago(row)]
        self._judged = pa.Table.from_pylist([*kept, *found], self._judged.schema)

    def _is_long_ago(self, finding: Row) -> bool:
        until_ms = finding["to_ms"] if finding["to_ms"] is not None else finding["from_ms"]
        return until_ms is not None and bool(until_ms < self._runs.known[finding["run_id"]].end_ms - LOOK_BACK_MS)

    def _take_over(self, rows: StepRows) -> None:
        for name in READ:
            others = self._open[name].filter(pc.invert(is_of(self._open[name], rows.keys)))
            self._open[name] = pa.concat_tables([others, rows.open[name]]).combine_chunks()
            if name in _LOOKED_AT and rows.settled[name].num_rows:
                self._history[name] = pa.concat_tables([self._history[name], rows.settled[name]])
        if rows.settled["ownership"].num_rows:
            self._owned = _first(pa.concat_tables([self._owned, rows_of_kind("owned", rows.settled["ownership"])]))

    def _write(self, settled: Mapping[str, pa.Table], step: int) -> None:
        self._open["findings"] = self._all_findings()
        for name, files in self._files.items():
            if name in settled:
                files.add(settled[name], step)
            files.replace_open(self._open[name])

    def _all_findings(self) -> pa.Table:
        found = joined(self._judged.to_pylist())
        producers = list(self._producers.rows.values())
        sessions = pa.concat_tables([self._history["member_sessions"], self._open["member_sessions"]])
        about = findings_about(
            self._producers.to_judge(),
            producers,
            self._open["readers"].to_pylist(),
            lambda: groups_by_topic(sessions.select([*_GROUP, "topics"]).to_pylist()),
            self._rebalances_of,
        )
        about += share_findings(self._share_groups.to_judge())
        about += streams_findings(self._streams_groups.to_judge())
        return pa.concat_tables([found, pa.Table.from_pylist(about, found.schema)])

    def _rebalances_of(self, groups: Iterable[str]) -> list[Row]:
        columns = [*_GROUP, "prepared_at_ms", "ended_at_ms"]
        rows = pa.concat_tables([self._history["rebalances"].select(columns), self._open["rebalances"].select(columns)])
        found: list[Row] = rows.filter(pc.is_in(rows["group_id"], pa.array(list(groups), pa.string()))).to_pylist()
        return found

    # -- on disk

    def save(self, *, now: bool = False) -> bool:
        """Keep the state, if enough time has gone by since it was kept, or now; whether it was kept."""
        began = time.monotonic()
        if not now and (began - self._saved_at) * SHARE_OF_SAVING < self._saving_seconds:
            return False
        self._forget()
        aside = self._folder / ".state.new"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, table in self._as_tables().items():
            pq.write_table(table, aside / f"{name}.parquet", compression="snappy")
        known = {
            "version": _VERSION,
            "step": self.step,
            "quarantined": self.quarantined,
            "runs": self._runs.as_json(),
            "groups": self._groups.as_json(),
            "states": self._states.as_json(),
            "producers": self._producers.as_json(),
            "share_groups": self._share_groups.as_json(),
            "streams_groups": self._streams_groups.as_json(),
        }
        (aside / "state.json").write_bytes(orjson.dumps(known))
        kept = self._folder / "state"
        shutil.rmtree(self._folder / ".state.old", ignore_errors=True)
        if kept.exists():
            kept.rename(self._folder / ".state.old")
        aside.rename(kept)
        for files in self._files.values():
            files.merge(self.step)
        self._saved_at = time.monotonic()
        self._saving_seconds = self._saved_at - began
        return True

    def _forget(self) -> None:
        """Drop what rules do not look at any more."""
        until = {run_id: run.end_ms - LOOK_BACK_MS for run_id, run in self._runs.known.items()}
        for name, at in _BEGINS.items():
            self._history[name] = _since(self._history[name], at, until, 1)
        self._minutes = _since(self._minutes, "minute", until, MINUTE_MS)
        self._groups.forget(until)

    def _as_tables(self) -> dict[str, pa.Table]:
        return {
            **{f"kept-{name}": table for name, table in self._groups.kept.items()},
            **{f"open-{name}": table for name, table in self._open.items()},
            **{f"history-{name}": table for name, table in self._history.items()},
            **{f"producers-{name}": table for name, table in self._producers.as_tables().items()},
            **{f"shares-{name}": table for name, table in self._share_groups.as_tables().items()},
            **{f"tasks-{name}": table for name, table in self._streams_groups.as_tables().items()},
            "runs": self._runs.events,
            "owned": self._owned,
            "commits": self._commits,
            "minutes": self._minutes,
            "judged": self._judged,
        }

    def _restore(self) -> bool:
        """Know what was kept last; whether there is something."""
        folder = self._folder / "state"
        if not folder.exists():
            folder = self._folder / ".state.old"
        if not folder.exists():
            return False
        known = orjson.loads((folder / "state.json").read_bytes())
        if known["version"] != _VERSION:
            return False
        read: dict[str, dict[str, pa.Table]] = defaultdict(dict)
        for each in folder.glob("*.parquet"):
            kind, _, name = each.stem.partition("-")
            read[kind][name] = pq.read_table(each, partitioning=None)
        self._runs.restore(known["runs"], read["runs"][""])
        self._groups.restore(known["groups"], read["kept"])
        self._states.restore(known["states"])
        self._producers.restore(known["producers"], read["producers"])
        self._share_groups.restore(known["share_groups"], read["shares"])
        self._streams_groups.restore(known["streams_groups"], read["tasks"])
        self._open, self._history = dict(read["open"]), dict(read["history"])
        self._owned, self._commits = read["owned"][""], read["commits"][""]
        self._minutes, self._judged = read["minutes"][""], read["judged"][""]
        self.step, self.quarantined = known["step"], known["quarantined"]
        return True


def _schema(name: str) -> pa.Schema:
    return schemas.TABLES[name]


def _ended(rebalances: pa.Table) -> pa.Table:
    return rebalances.filter(pc.not_equal(rebalances["outcome"], OPEN))


def _of(rows: pa.Table, keys: list[Key]) -> pa.Table:
    return rows.filter(is_of(rows, keys))


def _first(owned: pa.Table) -> pa.Table:
    sums = owned.group_by([*_GROUP, "topic", "partition"]).aggregate([("first_ms", "min")])
    return sums.rename_columns([*_GROUP, "topic", "partition", "first_ms"]).select(owned.column_names)


def _since(rows: pa.Table, at: str, since: Mapping[str, int], unit_ms: int) -> pa.Table:
    limits = pa.array([since[run_id] // unit_ms for run_id in rows["run_id"].to_pylist()], pa.int64())
    return rows.filter(pc.greater_equal(pc.fill_null(rows[at].cast(pa.int64()), 0), limits)).combine_chunks()
