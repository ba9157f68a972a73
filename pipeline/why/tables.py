"""A folder that ``rejoin report`` or ``rejoin watch`` wrote, read without Spark."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rejoin.pipeline.findings.rules import order
from rejoin.pipeline.vocabulary import EXACT
from rejoin.pipeline.why.rows import names_of, status_after
from rejoin.pipeline.why.story import GroupStatus, GroupStory, Row, SourceProblem, unknown_group

_FOLDERS: Final = ds.partitioning(pa.schema([("day", pa.string()), ("group_id", pa.string())]), flavor="hive")
_OF_REBALANCES: Final = (
    *("run_id", "rebalance_id", "prepared_at_ms", "ended_at_ms", "outcome", "cause", "cause_member_id"),
    *("cause_group_instance_id", "cause_client_id", "client_reason", "generation_to", "members_after", "protocol"),
    *("members_before", "joined", "left", "evicted"),
    *("unavailable_ms", "moved", "initial"),
)
_OF_SESSIONS: Final = (
    *("run_id", "group_id", "member_id", "group_instance_id", "client_id", "joined_at_ms", "ended_at_ms", "end"),
)
_OF_TASKS: Final = ("tasks", "task_moves", "streams_changes")
_NOT_IN_ALL: Final = ("streams", "pauses", "share_partitions", *_OF_TASKS)
"""Tables that an earlier version may not have written."""


class TablesSource:
    """The tables below a folder. Raises SourceProblem where there are none."""

    def __init__(self, folder: Path) -> None:
        self._tables = folder / "tables"
        self._where = str(folder)
        if not (self._tables / "rebalances").is_dir() or not (self._tables / "findings").is_dir():
            raise SourceProblem(
                f"{folder}: no report in there; expected the folder that was --out of rejoin report or rejoin watch, "
                "or journals"
            )

    def groups(self) -> list[GroupStatus]:
        """All groups that have rebalances."""
        newest: dict[str, Row] = {}
        numbers: Counter[str] = Counter()
        for row in self._rebalances(None):
            numbers[row["group_id"]] += 1
            newest[row["group_id"]] = row
        sessions: dict[tuple[str, str], list[Row]] = {}
        for row in self._sessions(None):
            sessions.setdefault((row["run_id"], row["group_id"]), []).append(row)
        known = {
            group_id: status_after(group_id, row, numbers[group_id], sessions.get((row["run_id"], group_id), ()))
            for group_id, row in newest.items()
        }
        # Share and streams groups have no rebalances.
        for name in ("share_partitions", "tasks", "streams_changes"):
            for row in self._read(name, None, ["group_id"]):
                known.setdefault(row["group_id"], GroupStatus(row["group_id"], rebalances=0))
        return [known[group_id] for group_id in sorted(known)]

    def story(self, group_id: str) -> GroupStory:
        """All about one group: of the run that began last, where there are several."""
        rows = self._rebalances(group_id)
        shared = self._read("share_partitions", pc.field("group_id") == group_id)
        tasks = {name: self._read(name, pc.field("group_id") == group_id) for name in _OF_TASKS}
        if not rows and not shared and not any(tasks.values()):
            known = [each.group_id for each in self.groups()]
            raise unknown_group(group_id, known, self._where)
        times = ("first_at_ms", "from_ms", "at_ms")
        of_kinds = [*shared, *(row for found in tasks.values() for row in found)]
        began = sorted(of_kinds, key=lambda row: next((row[name] for name in times if row.get(name) is not None), 0))
        runs = list(dict.fromkeys(row["run_id"] for row in rows or began))
        rows = [row for row in rows if row["run_id"] == runs[-1]]
        notes = [f"the newest of {len(runs)} runs, {runs[-1]}"] if len(runs) > 1 else []
        findings = [
            row
            for row in self._findings
            if row["run_id"] == runs[-1] and group_id in {row["group_id"], *(row["groups"] or ())}
        ]
        sessions = self._sessions(group_id)
        of_run = [row for row in sessions if row["run_id"] == runs[-1]]
        return GroupStory(
            status_after(group_id, rows[-1], len(rows), of_run) if rows else GroupStatus(group_id, rebalances=0),
            rows,
            findings,
            names_of(sessions),
            notes,
            recorded=self._recorded(runs[-1]),
            costs_are_upper_bounds=not self._reported(runs[-1], group_id),
            share_partitions=[row for row in shared if row["run_id"] == runs[-1]],
            tasks={name: [row for row in found if row["run_id"] == runs[-1]] for name, found in tasks.items()},
        )

    def findings(self) -> list[Row]:
        """The findings of all groups, the worst first."""
        return list(self._findings)

    @cached_property
    def _findings(self) -> list[Row]:
        rows = self._read("findings", None)
        return sorted(({**row, "numbers": dict(row["numbers"] or ())} for row in rows), key=order)

    def _rebalances(self, group_id: str | None) -> list[Row]:
        wanted = None if group_id is None else pc.field("group_id") == group_id
        rows = self._read("rebalances", wanted, [*_OF_REBALANCES, "group_id"])
        return sorted(
            (row for row in rows if row["group_id"] is not None),
            key=lambda row: (row["prepared_at_ms"], row["rebalance_id"]),
        )

    def _recorded(self, run_id: str) -> tuple[int, int] | None:
        rows = self._read("streams", pc.field("run_id") == run_id, ["first_at_ms", "last_at_ms"])
        known = [(row["first_at_ms"], row["last_at_ms"]) for row in rows if row["first_at_ms"] is not None]
        return (min(first for first, _ in known), max(last for _, last in known)) if known else None

    def _reported(self, run_id: str, group_id: str) -> bool:
        """Whether consumers of the group reported pauses in a run."""
        wanted = (pc.field("group_id") == group_id) & (pc.field("run_id") == run_id)
        return any(row["confidence"] == EXACT for row in self._read("pauses", wanted, ["confidence"]))

    def _sessions(self, group_id: str | None) -> list[Row]:
        wanted = None if group_id is None else pc.field("group_id") == group_id
        return self._read("member_sessions", wanted, list(_OF_SESSIONS))

    def _read(self, name: str, wanted: Any, columns: list[str] | None = None) -> list[Row]:
        try:
            folder = self._tables / name
            if not folder.is_dir() and name in _NOT_IN_ALL:
                return []
            # A report's tables lie in folders by day and group, those of a watch do not.
            by = _FOLDERS if any(folder.glob("*=*")) else None
            table = ds.dataset(folder, format="parquet", partitioning=by)
            if table.schema.names == []:
                return []
            rows: list[Row] = table.to_table(columns=columns, filter=wanted).to_pylist()
        except (pa.ArrowException, OSError) as problem:
            raise SourceProblem(f"{self._tables / name} cannot be read: {problem}; make the report again") from None
        return rows
