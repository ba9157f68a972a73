"""Columns of the tables of streams groups that rows are made of. Nothing here needs Arrow."""

from __future__ import annotations

from typing import Final

_KEY: Final = ("run_id", "day", "group_id")
_TASK: Final = ("subtopology", "task")
_PLACE: Final = ("confidence", "source", "node", "seq", "file", "line")

OF_TASKS: Final = (
    *(*_KEY, *_TASK, "role", "member_id", "group_instance_id", "process_id", "member_epoch", "from_ms", "to_ms"),
    *("end", "unowned_ms", "taken_over", *_PLACE),
)
OF_MOVES: Final = (
    *(*_KEY, *_TASK, "at_ms", "from_member_id", "from_process_id", "member_id", "process_id", "member_epoch"),
    *("cause", "cause_member_id", "unowned_ms", "had_standby", *_PLACE),
)
OF_RESTORES: Final = (
    *(*_KEY, *_TASK, "role", "member_id", "begun_at_ms", "last_at_ms", "ready_at_ms", "restore_ms", "records"),
    *("state_from", "reports", "first_lag", "least_lag", "last_lag", *_PLACE),
)
OF_CHANGES: Final = (
    *(*_KEY, "at_ms", "to_ms", "event", "member_id", "group_instance_id", "client_id", "status", "topics"),
    *("changed_fields", "generation", "error", "reason", *_PLACE),
)
TABLES: Final = ("tasks", "task_moves", "task_restores", "streams_changes")
