"""Tasks of one streams group over time, from the events of its coordinator.

A task belongs to a member from the event that gives it until the one that no longer has it among what the member runs
or gives up. A journal may begin or end anywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rejoin.pipeline.share_groups.histories import in_order
from rejoin.pipeline.streams_groups.causes import GroupCauses
from rejoin.pipeline.streams_groups.names import OF_CHANGES, OF_MOVES, OF_RESTORES, OF_TASKS, TABLES
from rejoin.pipeline.tables.groups.rows import date_of
from rejoin.pipeline.vocabulary import CLIENT_LOG, TASK_RESTORED

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]
Task = tuple[str, int]
"""Subtopology and number."""

ASSIGNED: Final = "streams_member_assigned"
DESCRIBED: Final = "streams_member_described"
CONFIGURED: Final = "streams_topology_configured"
CREATED: Final = "streams_internal_topics_created"
SHUTDOWN: Final = "streams_shutdown_requested"
REFUSED: Final = "streams_heartbeat_refused"
REPORTED: Final = "streams_task_offsets_reported"
COMPUTED: Final = "streams_target_computed"
RESTORED: Final = "streams_task_restored"
"""As TASK_RESTORED, of a simulated application."""
OWN: Final = (ASSIGNED, DESCRIBED, CONFIGURED, CREATED, SHUTDOWN, REFUSED, REPORTED, COMPUTED)
"""Events that only streams groups have."""
READ: Final = (
    *OWN,
    *(
        TASK_RESTORED,
        RESTORED,
        "group_epoch_bumped",
        "member_joined",
        "member_removed",
        "static_member_left",
        "static_member_replaced",
    ),
)
"""The events that tables of streams groups are made from."""
COLUMNS: Final = (
    *("run_id", "source", "node", "seq", "at_ms", "event", "file", "line", "confidence", "group_id"),
    *("member_id", "group_instance_id", "other_member_id", "client_id", "process_id", "member_epoch", "generation"),
    *("active", "standby", "warmup", "revoking_active", "revoking_standby", "status", "topics", "changed_fields"),
    *("error", "reason", "cause", "cause_member_id", "task_offsets", "task_end_offsets", "topic", "partition"),
    *("subtopology_id", "state_from", "restored_records", "restore_ms"),
)
"""Columns of these events that are read."""

ACTIVE: Final = "active"
ROLES: Final = (ACTIVE, "standby", "warmup")
NEAR: Final = 10_000
"""Kafka: acceptable.recovery.lag. A state that lacks no more records is as good as restored."""
_CHANGES: Final = (CREATED, SHUTDOWN, REFUSED)


@dataclass(slots=True, eq=False)
class Tenure:
    """A time in which a member has a task in one role."""

    task: Task
    role: str
    member_id: str
    process_id: str | None
    begun: Row
    ended: Row | None = None
    end: str | None = None
    taken_over_by: Row | None = None
    reports: list[tuple[int, int]] = field(default_factory=list)
    """Instant and lag of each report."""
    newest: Row | None = None
    """The newest report."""
    restored: Row | None = None
    """The thread says that the task runs."""


class StreamsGroupHistory:
    """Takes in the events of one streams group in one run, in order."""

    def __init__(self, run_id: str, group_id: str, ends_at_ms: int) -> None:
        self._key = {"run_id": run_id, "group_id": group_id}
        self._ends_at_ms = ends_at_ms
        self.tenures: list[Tenure] = []
        self.held: dict[str, dict[tuple[str, Task], Tenure]] = defaultdict(dict)
        """By member, by role and task."""
        self._last: dict[Task, Tenure] = {}
        """The newest owner of each active task that has none now."""
        self._causes = GroupCauses()
        self._moves: list[tuple[Tenure, Tenure, bool]] = []
        """The owner before, the new one, and whether its process had a standby."""
        self._ends: dict[tuple[str, Task], int] = {}
        """The end of the changelogs of a member's task, as it was reported last."""
        self.changes: Rows = []
        self._configured: dict[str, Any] | None = None

    def take(self, row: Row) -> None:
        """Take in one event."""
        self._causes.take(row)
        match row["event"]:
            case "streams_member_assigned":
                self._assigned(row)
            case "member_removed":
                self._gone(row, row["member_id"], row["cause"] or "unknown")
            case "static_member_left":
                self._gone(row, row["member_id"], "static-left")
            case "static_member_replaced":
                self._gone(row, row["other_member_id"], "replaced")
            case "streams_topology_configured":
                self._configure(row)
            case "streams_member_described":
                if row["changed_fields"]:
                    self._change(row)
            case "group_epoch_bumped":
                self._bumped(row)
            case "streams_task_offsets_reported":
                self._reported(row)
            case "task_restored" | "streams_task_restored":
                self._restored(row)
            case event if event in _CHANGES:
                self._change(row)

    # --- tasks

    def _assigned(self, row: Row) -> None:
        member, held = row["member_id"], self.held[row["member_id"]]
        if (row["member_epoch"] or 0) < 0:
            self._gone(row, member, "static-left")
            return
        has = {(role, task): True for role in ROLES for task in _tasks(row[role])}
        keeps = has | {(role, task): True for role in (ACTIVE, "standby") for task in _tasks(row[f"revoking_{role}"])}
        standbys = {task for role, task in held if role != ACTIVE}
        for key in [key for key in held if key not in keeps]:
            self._end(held.pop(key), row, "given-up")
        for role, task in has:
            if (role, task) not in held:
                self._begin(row, role, task, had_standby=task in standbys)

    def _begin(self, row: Row, role: str, task: Task, *, had_standby: bool) -> None:
        member, process = row["member_id"], row["process_id"] or self._causes.process_of(row["member_id"])
        tenure = Tenure(task, role, member, process, row)
        self.held[member][role, task] = tenure
        self.tenures.append(tenure)
        before = self._last.pop(task, None) if role == ACTIVE else None
        # Members' own logs may be those of some of them: who had the task in between is not known.
        if before is not None and row["source"] != CLIENT_LOG:
            before.taken_over_by = row
            self._moves.append((before, tenure, had_standby))

    def _end(self, tenure: Tenure, row: Row, end: str) -> None:
        tenure.ended, tenure.end = row, end
        if tenure.role == ACTIVE:
            self._last[tenure.task] = tenure

    def _gone(self, row: Row, member: str, end: str) -> None:
        for tenure in self.held.pop(member, {}).values():
            self._end(tenure, row, end)

    # --- restores

    def _reported(self, row: Row) -> None:
        member = row["member_id"]
        for each in row["task_end_offsets"] or ():
            self._ends[member, _task(each)] = each["offset"]
        for each in row["task_offsets"] or ():
            task, end = _task(each), self._ends.get((member, _task(each)))
            if end is None:
                continue
            for role in ROLES:
                tenure = self.held[member].get((role, task))
                if tenure is not None:
                    tenure.reports.append((row["at_ms"], max(0, end - each["offset"])))
                    tenure.newest = row

    def _restored(self, row: Row) -> None:
        """An active task runs, as its thread says."""
        task = row["subtopology_id"] or row["topic"], row["partition"]
        tenure = self.held[row["member_id"]].get((ACTIVE, task))
        if tenure is not None and tenure.restored is None:
            tenure.restored = row

    # --- changes

    def _configure(self, row: Row) -> None:
        before = self._configured
        if before is not None and (before["status"], before["reason"]) == (row["status"], row["reason"]):
            return
        if before is not None:
            before["to_ms"] = row["at_ms"]
        self._configured = self._change(row)

    def _change(self, row: Row) -> dict[str, Any]:
        made = {name: row.get(name) for name in OF_CHANGES}
        made |= {"day": date_of(row["at_ms"]), "to_ms": None, "generation": None}
        self.changes.append(made)
        return made

    def _bumped(self, row: Row) -> None:
        if row["cause"] != "rejoin-metadata" or not self.changes:
            return
        last = self.changes[-1]
        if last["event"] == DESCRIBED and last["member_id"] == row["cause_member_id"]:
            last["generation"] = row["generation"]

    # --- rows

    def tables(self) -> dict[str, Rows]:
        """All tables, as rows."""
        made: dict[str, Rows] = {
            "tasks": [self.row_of(each) for each in self.tenures],
            "task_moves": self._causes.with_rolling([self._move(*each) for each in self._moves]),
            "task_restores": [self._restore(each) for each in self.tenures if has_restore(each)],
            "streams_changes": self.changes,
        }
        return made

    def row_of(self, tenure: Tenure) -> dict[str, Any]:
        """The row of a tenure."""
        ended, over = tenure.ended, tenure.taken_over_by
        unowned_ms = None
        if ended is not None and tenure.role == ACTIVE and tenure.begun["source"] != CLIENT_LOG:
            has_members = any(self.held.values())
            until_ms = over["at_ms"] if over is not None else self._ends_at_ms if has_members else None
            unowned_ms = None if until_ms is None else until_ms - ended["at_ms"]
        return self._row(tenure.begun, tenure, OF_TASKS) | {
            "day": date_of(tenure.begun["at_ms"]),
            "role": tenure.role,
            "from_ms": tenure.begun["at_ms"],
            "to_ms": None if ended is None else ended["at_ms"],
            "end": tenure.end,
            "unowned_ms": unowned_ms,
            "taken_over": None if unowned_ms is None and over is None else over is not None,
        }

    def _move(self, before: Tenure, after: Tenure, had_standby: bool) -> dict[str, Any]:
        assert before.ended is not None, "a task that moves was given up"
        at_ms = after.begun["at_ms"]
        cause, member = self._causes.of_move(before.end or "", before.ended, before.process_id, after.begun)
        return self._row(after.begun, after, OF_MOVES) | {
            "day": date_of(at_ms),
            "at_ms": at_ms,
            "from_member_id": before.member_id,
            "from_process_id": before.process_id,
            "cause": cause,
            "cause_member_id": member,
            "unowned_ms": at_ms - before.ended["at_ms"],
            "had_standby": had_standby,
        }

    def _restore(self, tenure: Tenure) -> dict[str, Any]:
        begun_ms = tenure.begun["at_ms"]
        lags = [lag for _, lag in tenure.reports]
        ready_at_ms = next((at_ms for at_ms, lag in tenure.reports if lag <= NEAR), None)
        restored: Row = tenure.restored or {}
        ready_at_ms = restored.get("at_ms", ready_at_ms)
        took_ms = restored.get("restore_ms")
        if took_ms is None and ready_at_ms is not None:
            took_ms = ready_at_ms - begun_ms
        newest = tenure.newest or tenure.restored or tenure.begun
        return self._row(newest, tenure, OF_RESTORES) | {
            "day": date_of(begun_ms),
            "role": tenure.role,
            "begun_at_ms": begun_ms,
            "last_at_ms": newest["at_ms"],
            "ready_at_ms": ready_at_ms,
            "restore_ms": took_ms,
            "records": restored.get("restored_records"),
            "state_from": restored.get("state_from"),
            "reports": len(lags),
            "first_lag": lags[0] if lags else None,
            "least_lag": min(lags, default=None),
            "last_lag": lags[-1] if lags else None,
        }

    def _row(self, row: Row, tenure: Tenure, names: Iterable[str]) -> dict[str, Any]:
        made = {name: row.get(name) for name in names} | self._key
        made |= {"subtopology": tenure.task[0], "task": tenure.task[1], "member_id": tenure.member_id}
        return made | ({"process_id": tenure.process_id} if "process_id" in made else {})


def has_restore(tenure: Tenure) -> bool:
    """True if anything is known of the state of a task."""
    return bool(tenure.reports) or tenure.restored is not None


def histories(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> Iterator[StreamsGroupHistory]:
    """The history of each streams group of each run. Groups of other kinds have none of its own events."""
    by_group: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in in_order(rows):
        by_group[row["run_id"], row["group_id"]].append(row)
    for (run_id, group_id), ours in sorted(by_group.items()):
        if any(row["event"] in OWN for row in ours):
            # The coordinator's word is enough: what members say of the same tasks comes at other times.
            is_coordinated = any(row["event"] == ASSIGNED and row["source"] != CLIENT_LOG for row in ours)
            history = StreamsGroupHistory(run_id, group_id, ends_at_ms[run_id])
            for row in ours:
                if not is_coordinated or row["event"] != ASSIGNED or row["source"] != CLIENT_LOG:
                    history.take(row)
            yield history


def tables_of(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> dict[str, Rows]:
    """All tables of streams groups, as rows."""
    made: dict[str, Rows] = {name: [] for name in TABLES}
    for history in histories(rows, ends_at_ms):
        for name, found in history.tables().items():
            made[name] += found
    return made


def _tasks(listed: Iterable[Mapping[str, Any]] | None) -> list[Task]:
    return [_task(each) for each in listed or ()]


def _task(each: Mapping[str, Any]) -> Task:
    """A task of a list in the table of events, whose column is that of partitions."""
    return each["topic"], each["partition"]
