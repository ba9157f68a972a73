"""Statements of consumers as the events that a consumer's journal has for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rejoin.journal.events.client import EVENT_TYPES
from rejoin.journal.kafka_logs.clients.errors import error_in
from rejoin.pipeline.reading.broker_logs.groups.membership import EXACT, INFERRED, EventRow
from rejoin.pipeline.reading.broker_logs.statements import Statement
from rejoin.pipeline.reading.client_logs.families import STARTED
from rejoin.pipeline.reading.client_logs.logged_consumer.state import NOT_A_MEMBER
from rejoin.pipeline.reading.client_logs.statements import NO_GROUP
from rejoin.pipeline.vocabulary import (
    ASSIGNED_NOTHING,
    BUG_SIGN,
    CLIENT_LOG,
    SESSION_ENDED,
    SOFTWARE_VERSION,
    TASK_RESTORED,
    TASKS_ASSIGNED,
    TASKS_CORRUPTED,
    TASKS_READY,
    TOPIC_UNAVAILABLE,
)

ORDER: Final = 1_000
"""Rows are in the order of ``order_ms``: there is room for so many within a millisecond."""

JOIN_FAILED: Final = "the join failed"
"""The reason of a client that joins once more since its JoinGroup or SyncGroup was refused."""
ONE_COMMIT_MS: Final = 50
"""Lines of a consumer that are closer together than this are about one commit."""
_REFUSALS: Final = (
    *("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH"),
    *("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION"),
)
"""Errors with which the coordinator refuses commits."""
_WITH_ERRORS: Final = ("heartbeat_failed", "coordinator_lost", "rejoin_requested")
"""Events whose reason or problem may be an error of Kafka."""
_SOFTWARE: Final = {
    **{name: name for name in ("librdkafka", "kafka-python", "aiokafka", "franz-go", "sarama", "brod", "ruby-kafka")},
    "kafkajs": "KafkaJS",
    "spring": "Spring Boot",
    "smallrye": "SmallRye",
}
"""Libraries whose settings have names of their own, by the families of their lines."""
_OF_SESSIONS: Final = ("heartbeat_failed", "coordinator_lost")
_SESSION_ENDED: Final = re.compile(r"session (?:timed out|expired)(?:.*? after (?P<waited>\d+) ms)?")
_EVENTS: Final = frozenset(
    (
        *(event.name for event in EVENT_TYPES),
        *(BUG_SIGN, SOFTWARE_VERSION, TOPIC_UNAVAILABLE, ASSIGNED_NOTHING),
        *(TASKS_ASSIGNED, TASKS_READY, TASKS_CORRUPTED, TASK_RESTORED),
        *("streams_topology_configured", "streams_member_assigned", "streams_heartbeat_refused"),
        "streams_shutdown_requested",
    )
)
_INFERRED: Final = ("coordinator_lost",)


def consumer_events(statements: Iterable[Statement], *, with_requests: bool = False) -> Iterator[EventRow]:
    """The events of consumers, each in the order of its log. ``with_requests``: the requests of the group are known,
    and with them which commits the coordinator refused."""
    refused_at: dict[tuple[str, str], int] = {}
    joined_at: dict[tuple[str, str], int] = {}
    for statement in statements:
        values = statement.values
        key = (statement.node, str(values.get("consumer")))
        row = _row(statement)
        if statement.kind == "join_sent":
            joined_at.setdefault(key, statement.at_ms)
            # A process that begins owns nothing, whatever became of the one before.
            row["owned"] = [] if values.get("fresh") else None
            row["member_id"] = "" if values.get("fresh") else row.get("member_id")
        elif statement.kind in ("generation_joined", "group_synced") and key in joined_at:
            took = "waited_ms" if statement.kind == "generation_joined" else "rebalance_ms"
            row[took] = statement.at_ms - joined_at[key]
            if statement.kind == "group_synced":
                del joined_at[key]
        elif statement.kind == "poll_timeout_exceeded":
            row["timeout_ms"] = values.get("rebalance_timeout_ms")
        elif statement.kind == "fatal":
            row |= {"event": "heartbeat_failed"}
        elif statement.kind == "join_failed":
            row |= {"event": "rejoin_requested", "reason": JOIN_FAILED}
        elif statement.kind in _OF_SESSIONS and (ended := _SESSION_ENDED.search(statement.text)) is not None:
            waited = values.get("waited_ms") or ended["waited"]
            row["reason"] = f"{SESSION_ENDED}: no answer" + (f" for {waited} ms" if waited else "")
        elif statement.kind == "heartbeat_failed" and statement.text.startswith(NOT_A_MEMBER):
            row["problem"] = row["problem"] or statement.text
        elif statement.kind == "commit_failed" and (error := _refusal(statement)) is not None:
            # Clients have several lines about one commit.
            is_said = statement.at_ms - refused_at.get(key, -ONE_COMMIT_MS) < ONE_COMMIT_MS
            refused_at[key] = statement.at_ms
            if not with_requests:
                if not is_said:
                    yield _with_refusal(row, error, values.get("was"))
                continue
        if statement.kind == STARTED:
            continue
        if row["event"] in _WITH_ERRORS:
            row["error"] = error_in(f"{row['reason']}: {row['problem']}")
        if statement.kind == SOFTWARE_VERSION:
            # The library alone is what other events have there.
            row["software"] = None
        if row["event"] in _EVENTS:
            yield {name: value for name, value in row.items() if value is not None}


def _with_refusal(row: EventRow, error: str, was: str | None) -> EventRow:
    """A failed commit as the coordinator reports it; the client may have forgotten its member id by then."""
    refused = {"event": "commit_refused", "error": error, "member_id": row["member_id"] or was}
    return {name: value for name, value in (row | refused).items() if value is not None}


def _refusal(statement: Statement) -> str | None:
    """The error with which the coordinator refused a commit, by the words of a client; none for other failures."""
    error = error_in(f"{statement.text} {statement.values.get('problem', '')}")
    return error if error in _REFUSALS else None


def _row(statement: Statement) -> EventRow:
    values = statement.values
    row: EventRow = {
        "source": CLIENT_LOG,
        "event": statement.kind,
        "at_ms": statement.at_ms,
        "order_ms": statement.order_ms,
        "node": statement.node,
        "file": statement.file,
        "line": statement.line,
        "confidence": INFERRED if statement.kind in _INFERRED or values.get("inferred") else EXACT,
        "group_id": statement.group or NO_GROUP,
        "client_id": values.get("client_id"),
        "member_id": values.get("member"),
        "group_instance_id": values.get("instance"),
        "generation": values.get("generation"),
        "protocol": values.get("assignor"),
        "reason": values.get("reason"),
        "problem": values.get("problem"),
        "software": _SOFTWARE.get(str(values.get("family"))),
    }
    if "partitions" in values:
        row["partitions"] = [{"topic": topic, "partition": number} for topic, number in values["partitions"]]
    if values.get("offsets"):
        row["offsets"] = [dict(zip(("topic", "partition", "offset"), each, strict=True)) for each in values["offsets"]]
    if statement.kind == TOPIC_UNAVAILABLE:
        row["topic"] = values.get("topic")
    if statement.kind == TASK_RESTORED:
        row["topic"], row["partition"] = values["task"]
    row |= values.get("of_streams", {})
    if statement.kind == TASKS_READY:
        row["waited_ms"] = values["waited_ms"]
    if statement.kind == "group_left":
        row["notified"] = True
    return row
