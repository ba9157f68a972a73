"""The tables of streams groups: names, types, units, as in :mod:`rejoin.pipeline.schemas`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import BOOLEAN, INT, LONG, STRING, STRINGS, column, table
from rejoin.pipeline.share_groups.schemas import CONFIDENCE, DAY, GROUP, MEMBER, PLACE, RUN

_SUBTOPOLOGY: Final = column("subtopology", STRING, "Id of the subtopology.")
_TASK: Final = column("task", INT, "Number of the task: the partition that it reads.")
_ROLE: Final = column("role", STRING, "active | standby | warmup.")
_INSTANCE: Final = column("group_instance_id", STRING, MEANINGS["group_instance_id"])
_PROCESS: Final = column("process_id", STRING, MEANINGS["process_id"])
_EPOCH: Final = column("member_epoch", INT, "Epoch of the member with which it got the task.")

TASKS: Final = table(
    RUN,
    DAY,
    GROUP,
    _SUBTOPOLOGY,
    _TASK,
    _ROLE,
    MEMBER,
    _INSTANCE,
    _PROCESS,
    _EPOCH,
    column("from_ms", LONG, "The coordinator gave the task to the member."),
    column("to_ms", LONG, "The member no longer has it; null where it still has it when the run ends."),
    column(
        "end",
        STRING,
        "given-up (another target) | static-left (it left for a moment and keeps its place) | replaced (by its next "
        "process) | left | session-expiry | rebalance-expiry; null where it still has the task.",
    ),
    column(
        "unowned_ms",
        LONG,
        "Of an active task: how long no member had it then, up to the end of the run where none took it over; null "
        "where the member still has it, where no member is left, and from members' own logs.",
    ),
    column("taken_over", BOOLEAN, "Whether another took the active task over; null where that is not known."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each time that a member had a task, as the coordinator knows it."""

TASK_MOVES: Final = table(
    RUN,
    DAY,
    GROUP,
    _SUBTOPOLOGY,
    _TASK,
    column("at_ms", LONG, "The new owner got the task."),
    column("from_member_id", STRING, "The owner before."),
    column("from_process_id", STRING, "The process of the owner before."),
    MEMBER,
    _PROCESS,
    _EPOCH,
    column(
        "cause",
        STRING,
        "join | leave | crash (the session ended, or tasks were not given up in time) | restart (the process or static "
        "member came back within ten minutes) | rolling-restart (two or more of these, ten minutes apart at most) | "
        "metadata | topics | settings | failover | unknown.",
    ),
    column("cause_member_id", STRING, "The member through whom it began."),
    column("unowned_ms", LONG, "How long the task had no owner in between."),
    column("had_standby", BOOLEAN, "Whether the new owner had a standby of the task."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each active task that went from one member to another."""

TASK_RESTORES: Final = table(
    RUN,
    DAY,
    GROUP,
    _SUBTOPOLOGY,
    _TASK,
    _ROLE,
    MEMBER,
    column("begun_at_ms", LONG, "The member got the task, or its first report where that is not known."),
    column("last_at_ms", LONG, "The last report of its offsets."),
    column(
        "ready_at_ms",
        LONG,
        "The thread said that the task runs, or reported at most 10,000 missing records; else null.",
    ),
    column("restore_ms", LONG, "From the begin until then."),
    column("records", LONG, "Records that were restored, where the thread says so."),
    column(
        "state_from", STRING, "standby | disk | changelog | none: where most of the state was, where that is known."
    ),
    column("reports", INT, "How often the member reported offsets of the task with a known end."),
    column("first_lag", LONG, "Records of the changelog that were missing at the first report."),
    column("least_lag", LONG, "The least that were missing."),
    column("last_lag", LONG, "What was missing at the last report."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each task of a member whose state was reported, while it had the task in one role."""

STREAMS_CHANGES: Final = table(
    RUN,
    DAY,
    GROUP,
    column("at_ms", LONG, "When."),
    column("to_ms", LONG, "Of a status: until when it was so; null where it still is when the run ends."),
    column(
        "event",
        STRING,
        "streams_topology_configured | streams_internal_topics_created | streams_member_described (only changes) | "
        "streams_shutdown_requested | streams_heartbeat_refused.",
    ),
    MEMBER,
    _INSTANCE,
    column("client_id", STRING, MEANINGS["client_id"]),
    column("status", STRING, MEANINGS["status"]),
    column("topics", STRINGS, "Internal topics that were created, or not."),
    column("changed_fields", STRINGS, MEANINGS["changed_fields"]),
    column("generation", INT, "The group epoch that this made, where it made one."),
    column("error", STRING, MEANINGS["error"]),
    column("reason", STRING, "Why, in words; of a refused heartbeat one of its reasons."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each change of what lets the application run, or keeps it from running."""

OF_STREAMS_GROUPS: Final[dict[str, pa.Schema]] = {
    "tasks": TASKS,
    "task_moves": TASK_MOVES,
    "task_restores": TASK_RESTORES,
    "streams_changes": STREAMS_CHANGES,
}
