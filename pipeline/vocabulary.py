"""Words that stand in the columns of tables. Nothing here needs Spark or Arrow."""

from __future__ import annotations

from typing import Final

from rejoin.journal.envelope import SOURCES as JOURNAL_SOURCES

EXACT: Final = "exact"
"""Confidence: the source says so."""
INFERRED: Final = "inferred"
"""Confidence: concluded from other rows; likely, and perhaps some ms off."""
UNKNOWN: Final = "unknown"
"""Confidence: the source lacks what this row would need."""

BROKER_LOG: Final = "broker-log"
REQUEST_LOG: Final = "request-log"
CLIENT_LOG: Final = "client-log"
LOGS: Final = (BROKER_LOG, REQUEST_LOG, CLIENT_LOG)
SOURCES: Final = (*JOURNAL_SOURCES, *LOGS)
"""Who says so: a service, a process of consumers, a simulation of both, or one of :data:`LOGS`."""

REQUEST: Final = "request"
"""The event of a row that is one request with its answer. All other events are named as in the journals."""

BUG_SIGN: Final = "bug_sign"
"""The event of a line that a known bug leaves in a log; its reason is the name of the sign."""
BROKER_BUG_SIGN: Final = "broker_bug_sign"
"""As :data:`BUG_SIGN`, of a broker's line that names no group."""
SHARE_STATE_REFUSED: Final = "share_state_refused"
"""The event of a line in which the topic with the state of share groups could not be created; its problem is Kafka's
name of the error, its reason the rest."""
SOFTWARE_VERSION: Final = "software_version"
"""The event of a line that states a version; its reason is the software and the version."""

LOG_END_SEEN: Final = "log_end_seen"
"""The event of an answer with the end of a partition's log, to Fetch or ListOffsets; offsets are where a reader was."""

TOPIC_UNAVAILABLE: Final = "topic_unavailable"
"""The event of a line in which a client was refused a topic; its problem is Kafka's name of the error."""
ASSIGNED_NOTHING: Final = "assigned_nothing"
"""The event of a consumer whose last assignment, in its log, has no partition."""
TASKS_ASSIGNED: Final = "tasks_assigned"
"""The event of a line with all tasks that a thread of Kafka Streams has after a rebalance."""
TASKS_READY: Final = "tasks_ready"
"""The event of a thread of Kafka Streams whose active tasks all run, some time after they were assigned."""
TASK_RESTORED: Final = "task_restored"
"""The event of a thread of Kafka Streams whose active task has its state and runs; its partition is the task."""
TASKS_CORRUPTED: Final = "tasks_corrupted"
"""The event of a thread of Kafka Streams that discards the state of tasks; its problem names them."""

AFTER_REMOVAL: Final = "owner-after-removal"
"""The kind of two owners as Kafka allows them: the first was removed, and has not noticed yet. No violation."""

SESSION_ENDED: Final = "session expired"
"""Prefix of an event's reason where a client reports that its session ended without an answer."""

OF_NO_DAY_BEFORE_MS: Final = 10 * 365 * 86_400_000
"""An instant before 1980 is counted from the start of a simulation, or is the number of a line."""
UNTIMED_FROM_MS: Final = 300_000_000_000
"""Lines of logs without times are numbered from here on; no simulation lasts so long."""


def instant_of_line(number: int) -> int:
    """Stand-in for the instant of a line in a log without times: it gives the order, and no length."""
    return UNTIMED_FROM_MS + number


def is_untimed(at_ms: int | None) -> bool:
    """Whether an instant is the number of a line, so that the time to another one is not known."""
    return at_ms is not None and UNTIMED_FROM_MS <= at_ms < OF_NO_DAY_BEFORE_MS
