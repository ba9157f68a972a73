"""Every table of the pipeline: names, types, units. What journals fill is computed in :mod:`rejoin.pipeline.columns`.

A column's comment is in its metadata, so it travels into Parquet. Instants end in ``_at_ms`` (``at_ms`` itself, too):
ms since 1970, or since the start of a simulation; only those of one run can be compared. Lengths end in ``_ms``. An
interval is half open: from its first instant up to, and not including, its last one. What a source does not contain is
null. Words are Kafka's: states are ``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, ``Dead``,
errors are names such as ``ILLEGAL_GENERATION``, requests are ``JOIN_GROUP`` and so on, as in Kafka's request log.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rejoin.pipeline.columns import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    STRINGS,
    column,
    event_columns,
    list_of,
    map_of,
    metadata_of,
    struct,
    table,
)
from rejoin.pipeline.schemas.groups import BALANCE, CLIENT_METRICS, MEMBER_SESSIONS, OWNERSHIP_TABLE, PAUSES, REBALANCES
from rejoin.pipeline.schemas.keys import CONFIDENCE, DAY, GROUP, PARTITION, RUN, TOPIC
from rejoin.pipeline.schemas.records import COMMITS, PROGRESS, RECORDS, REQUESTS
from rejoin.pipeline.share_groups.schemas import OF_SHARE_GROUPS
from rejoin.pipeline.streams_groups.schemas import OF_STREAMS_GROUPS
from rejoin.pipeline.sweep.schemas import SWEEP_RUNS
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS

__all__ = [
    "ANNOTATIONS",
    "BALANCE",
    "CLIENT_METRICS",
    "COMMITS",
    "EVENTS",
    "EVIDENCE",
    "FINDINGS",
    "LINES",
    "MEMBER_SESSIONS",
    "OWNERSHIP_TABLE",
    "PAUSES",
    "PROGRESS",
    "QUARANTINE",
    "QUARANTINE_KINDS",
    "REBALANCES",
    "RECORDS",
    "REQUESTS",
    "STREAMS",
    "TABLES",
    "TRANSACTION_TABLES",
    "VERSION",
    "VIOLATIONS",
    "comments",
]

VERSION: Final = 2
"""Of these schemas. It rises with any change that an older reader would misunderstand."""

EVIDENCE: Final = list_of(
    struct(source=STRING, node=STRING, seq=LONG, at_ms=LONG, event=STRING, file=STRING, line=LONG),
)

LINES: Final = table(
    column("file", STRING, "Path of the file."),
    column("line", LONG, "Number of the line, from 1."),
    column("text", STRING, "The line without its end; bytes that are no UTF-8 are shown as U+FFFD."),
    column("problem", STRING, "Why the text cannot be taken as it is (no UTF-8, a half line); null if it can."),
)
"""Lines of any text file, before they are parsed."""

QUARANTINE_KINDS: Final = (
    "encoding | half-line | not-json | not-a-row | version | unknown-event | field | repeated | conflict | unreadable |"
    " unknown-line | unknown-layout: for counting."
)
QUARANTINE: Final = table(
    column("file", STRING, "Path of the file."),
    column("line", LONG, "Number of the line, from 1; null for a whole file."),
    column("reason", STRING, "What was wrong and what was expected, in words."),
    column("kind", STRING, QUARANTINE_KINDS),
    column("text", STRING, "The line as it stood there, at most 4,096 characters of it."),
)
"""Lines that could not be used. Nothing is left out without a row here."""

EVENTS: Final = table(
    column("schema_version", INT, "Of this table, see VERSION."),
    RUN,
    column("source", STRING, "coordinator | client | simulation | broker-log | request-log | client-log."),
    column("node", STRING, "Who wrote it: a node, a process of consumers, a broker."),
    column("seq", LONG, "Place in the stream of this source and node; orders rows of equal at_ms."),
    column("at_ms", LONG, "When."),
    DAY,
    column("event", STRING, "As in journals; also request, broker_started, broker_stopped, partition_load_failed."),
    CONFIDENCE,
    column("file", STRING, "Where it was read."),
    column("line", LONG, "Where it was read, from 1."),
    *event_columns(),
    # requests
    column("api_version", INT, "Version of the request."),
    column("correlation_id", LONG, "The client's number of the request."),
    column("total_ms", DOUBLE, "From arrival until the answer was sent; at_ms of the row is the arrival."),
    column("queue_ms", DOUBLE, "Waiting for a thread, before and after."),
    column("local_ms", DOUBLE, "Work of the broker."),
    column("parked_ms", DOUBLE, "Waiting for others: remoteTimeMs."),
    column("throttle_ms", DOUBLE, "Held back by a quota."),
    column("software", STRING, "The client's name and version."),
    # the rest
    column("event_json", STRING, "The event as JSON, where it says more than the columns; null where it does not."),
)
"""Bronze: one row for each event of any source. Events of the same kind have the same event name in all of them."""

STREAMS: Final = table(
    RUN,
    column("source", STRING, "As in events."),
    column("node", STRING, "As in events."),
    column("rows", LONG, "Events that were taken in."),
    column("first_seq", LONG, "The first number."),
    column("last_seq", LONG, "The last number."),
    column("missing", LONG, "Numbers from 1 to the last that no row has: lost, or in the quarantine."),
    column("out_of_order", LONG, "Rows that stood behind a later one in their file."),
    column("first_at_ms", LONG, "The earliest instant."),
    column("last_at_ms", LONG, "The latest instant."),
    column("clock_steps", LONG, "Rows whose at_ms is before that of the row with the number before."),
)
"""One row for each writer of a run: whether its journal is whole."""

VIOLATIONS: Final = table(
    RUN,
    DAY,
    GROUP,
    column("kind", STRING, "Name of the audit; rejoin.pipeline.report.page.findings.VIOLATIONS has each in words."),
    TOPIC,
    PARTITION,
    column("at_ms", LONG, "When it began."),
    column("to_ms", LONG, "When it ended; null if it has no length."),
    column("generation", INT, "In which generation."),
    column("members", STRINGS, "Members that took part."),
    column("expected", LONG, "What would have been right, in the unit of the kind; see audits."),
    column("found", LONG, "What was found instead."),
    column("text", STRING, "In words."),
    column("evidence", EVIDENCE, "The rows that prove it."),
    CONFIDENCE,
)
"""Violations of rules that must always hold, with proofs; and, as owner-after-removal, overlaps that Kafka allows."""

FINDINGS: Final = table(
    RUN,
    DAY,
    GROUP,
    column("finding", STRING, "Name of the rule."),
    column("severity", STRING, "high | medium | low."),
    column("score", DOUBLE, "Orders findings: consumer-seconds that it cost, or as the rule says."),
    column("title", STRING, "One line."),
    column("text", STRING, "What happened, with numbers, in plain words."),
    column("setting", STRING, "The setting to change, by Kafka's name; null if none helps."),
    column("advice", STRING, "What to set it to, and what else to do."),
    column("numbers", map_of(DOUBLE), "The numbers of the text, by name; units end the names."),
    column("from_ms", LONG, "The first of it."),
    column("to_ms", LONG, "The last of it."),
    column("members", STRINGS, "Member ids, instance ids or client ids it is about."),
    column("groups", STRINGS, "The groups that it is about; group_id is null where these are several."),
    column("rebalances", STRINGS, "rebalance_id of the rebalances it explains."),
    column("transactional_ids", STRINGS, "Producers that it is about; findings about transactions have no group_id."),
    column("evidence", EVIDENCE, "Other rows that prove it."),
    CONFIDENCE,
)
"""Problems of a group, with cause and advice."""

ANNOTATIONS: Final = table(
    DAY,
    column("at_ms", LONG, "When it was, in ms since 1970."),
    column("text", STRING, "What happened."),
    column("subject", STRING, "To what, such as a deployment; empty if that is not said."),
)
"""Happenings outside the groups, from ``--annotations``; without that option there is no such table."""

TABLES: Final[dict[str, pa.Schema]] = {
    "streams": STREAMS,
    "rebalances": REBALANCES,
    "member_sessions": MEMBER_SESSIONS,
    "pauses": PAUSES,
    "ownership": OWNERSHIP_TABLE,
    "balance": BALANCE,
    "client_metrics": CLIENT_METRICS,
    "commits": COMMITS,
    "records": RECORDS,
    "progress": PROGRESS,
    "requests": REQUESTS,
    **OF_TRANSACTIONS,
    **OF_SHARE_GROUPS,
    **OF_STREAMS_GROUPS,
    "violations": VIOLATIONS,
    "findings": FINDINGS,
    "sweep_runs": SWEEP_RUNS,
}
"""Every table that is written, by its name."""

TRANSACTION_TABLES: Final = tuple(OF_TRANSACTIONS)
"""Tables about transactions."""


def comments(schema: pa.Schema) -> dict[str, str]:
    """Column to comment."""
    return {field.name: metadata_of(field)["comment"] for field in schema}
