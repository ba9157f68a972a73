"""Every table of the pipeline: names, types, units. What journals fill is computed in :mod:`rejoin.pipeline.columns`.

A column's comment is in its metadata, so it travels into Parquet. Instants end in ``_at_ms`` (``at_ms`` itself, too):
ms since 1970, or since the start of a simulation; only those of one run can be compared. Lengths end in ``_ms``. An
interval is half open: from its first instant up to, and not including, its last one. What a source does not contain is
null. Words are Kafka's: states are ``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, ``Dead``,
errors are names such as ``ILLEGAL_GENERATION``, requests are ``JOIN_GROUP`` and so on, as in Kafka's request log.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, DateType, MapType, StructType

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, column, event_columns, struct, table
from rejoin.pipeline.sweep.schemas import SWEEP_RUNS
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS

VERSION: Final = 2
"""Of these schemas. It rises with any change that an older reader would misunderstand."""

EVIDENCE: Final = ArrayType(
    struct(source=STRING, node=STRING, seq=LONG, at_ms=LONG, event=STRING, file=STRING, line=LONG),
)

_RUN = column("run_id", STRING, "The run; clocks of two runs have nothing to do with each other.")
_DAY = column("day", DateType(), "The day of at_ms in UTC (of the beginning, where a row is an interval).")
_GROUP, _MEMBER, _INSTANCE, _CLIENT, _HOST, _TOPIC = (
    column(name, STRING, MEANINGS[name])
    for name in ("group_id", "member_id", "group_instance_id", "client_id", "client_host", "topic")
)
_PARTITION = column("partition", INT, MEANINGS["partition"])
_CONFIDENCE = column("confidence", STRING, "exact | inferred | unknown.")

LINES: Final = table(
    column("file", STRING, "Path of the file."),
    column("line", LONG, "Number of the line, from 1."),
    column("text", STRING, "The line without its end; bytes that are no UTF-8 are shown as U+FFFD."),
    column("problem", STRING, "Why the text cannot be taken as it is (no UTF-8, a half line); null if it can."),
)
"""What is read from any file of text, before anybody knows what it says."""

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
    _RUN,
    column("source", STRING, "coordinator | client | simulation | broker-log | request-log | client-log."),
    column("node", STRING, "Who wrote it: a node, a process of consumers, a broker."),
    column("seq", LONG, "Place in the stream of this source and node; orders rows of equal at_ms."),
    column("at_ms", LONG, "When."),
    _DAY,
    column("event", STRING, "As in journals; also request, broker_started, broker_stopped, partition_load_failed."),
    _CONFIDENCE,
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
    _RUN,
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

REBALANCES: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    column("rebalance_id", STRING, "run/group/node/number of the row that began it."),
    column("number", INT, "Counts the rebalances of a group, from 1."),
    column("node", STRING, "The coordinator."),
    column("source", STRING, "As in events."),
    column("group_type", STRING, MEANINGS["group_type"] + " Null in journals from before there were two."),
    column("generation_from", INT, "Generation when it began, or the group's epoch before."),
    column("generation_to", INT, "Generation that the join phase led to, or the epoch; null if it led to none."),
    column("prepared_at_ms", LONG, "The join phase began, or the group had a new epoch."),
    column("joined_at_ms", LONG, "The join phase ended, or the target was computed."),
    column("assigned_at_ms", LONG, "The leader's assignment came."),
    column("stable_at_ms", LONG, "The assignment was stored, or all members have reached the epoch: Stable."),
    column("ended_at_ms", LONG, "Whatever ended it, see outcome; null if the source does not tell."),
    column(
        "outcome",
        STRING,
        "completed | superseded (it had to begin again) | emptied (no member was left) | aborted"
        " (the coordinator stopped, or the group was deleted) | open (the journal ends before it does).",
    ),
    column(
        "cause",
        STRING,
        "Cause class, see rejoin.journal.events.coordinator.CauseClass; 'unknown' where the source does not say.",
    ),
    column("cause_member_id", STRING, "Through whom."),
    column("cause_group_instance_id", STRING, "Its group.instance.id."),
    column("cause_client_id", STRING, "Its client.id."),
    column("client_reason", STRING, "What that client said (KIP-800)."),
    column("previous_state", STRING, "The group's state before."),
    column("initial", BOOLEAN, "Whether the initial delay is part of it."),
    column("attempt", INT, "1, and one more for each rebalance that was superseded just before."),
    column(
        "episode", INT, "Number of the rebalance that this one is an attempt of; equal up to the one that ended it."
    ),
    column("members_before", STRINGS, "Members when the group was last Stable; when this began, if never."),
    column("members_after", STRINGS, "Members after it, or after the join phase if it got no further."),
    column("joined", STRINGS, "Members added since the rebalance before."),
    column("left", STRINGS, "Members that left by LeaveGroup."),
    column("evicted", STRINGS, "Members that were removed: session, rebalance or sync timeout, capacity."),
    column("replaced", STRINGS, "New ids of static members that restarted."),
    column("absent", STRINGS, "Static members that did not rejoin and remain members."),
    column("leader", STRING, "Who leads after the join phase."),
    column("previous_leader", STRING, "Who led the completed generation before."),
    column("leader_changed", BOOLEAN, "Whether that is another one; null where there was none before."),
    column("protocol", STRING, "The assignor."),
    column("owned_before", INT, "Partitions that had an owner before."),
    column("owned_after", INT, "Partitions that have an owner after."),
    column("moved", INT, "Partitions that went to another member while the old one remains."),
    column("regained", INT, "Partitions whose owner had gone, or which had none."),
    column(
        "stickiness", DOUBLE, "Share of the partitions that kept their owner, of those that could; null if none could."
    ),
    column("join_ms", LONG, "Length of the join phase."),
    column("sync_ms", LONG, "From the end of the join phase to Stable."),
    column("unavailable_ms", LONG, "From its beginning to its end. Attempts add up to the whole episode."),
    column(
        "members_waiting_ms",
        LONG,
        "Of the members that were to rejoin, how long they waited for the last one,"
        " summed up; null where joins are not reported.",
    ),
    column("slowest_member_id", STRING, "The member whose JoinGroup came last, or that reached the epoch last."),
    column("slowest_ms", LONG, "How long after the beginning that was."),
    column("given_up", INT, "Partitions that members gave up for it; null where the source does not say."),
    column("revocation_ms", LONG, "How long members took to give them up, summed up. All others went on."),
    column("chain", INT, "Number of the first rebalance of a storm: rebalances that follow each other closely."),
    column("chain_length", INT, "How many belong to the chain; 1 for one that is alone."),
    _CONFIDENCE,
    column("file", STRING, "Where its first row was read."),
    column("line", LONG, "Where its first row was read."),
)
"""One row for each time a join phase began, or a consumer group had a new epoch that its members had to reach."""

MEMBER_SESSIONS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    _HOST,
    column("node", STRING, "The coordinator that took it in."),
    column("joined_at_ms", LONG, "It became a member; null if that was before the journal."),
    column("ended_at_ms", LONG, "It was removed or replaced; null if it still is a member."),
    column("session_ms", LONG, "Length of the session, to the end of the journal if it did not end."),
    column(
        "end",
        STRING,
        "left | session-expiry | did-not-rejoin | sync-expiry | over-capacity | rebalance-expiry |"
        " replaced (a static member came back under a new id) | group-gone | open.",
    ),
    column("replaces", STRING, "The id that this one took over (static)."),
    column("replaced_by", STRING, "The id that took this one over (static)."),
    column("first_generation", INT, "The first generation it took part in."),
    column("last_generation", INT, "The last one."),
    column("generations", INT, "How many."),
    column("rejoins", INT, "JoinGroups after the first one."),
    column("caused", INT, "Rebalances that began through it."),
    column("session_timeout_ms", LONG, "session.timeout.ms."),
    column("rebalance_timeout_ms", LONG, "max.poll.interval.ms."),
    column("protocols", STRINGS, "Assignors it supports."),
    column("topics", STRINGS, "Topics it subscribes to."),
    column("group_protocol", STRING, "consumer | share | streams where the source says so; null in classic groups."),
    column("software", STRING, "The client library with its version, as the request log has it."),
    column(
        "same_process_as", STRING, "The member id that its process had before; empty for a new one; null if unknown."
    ),
    column("join_reason", STRING, "What it said when it joined."),
    column("leave_reason", STRING, "What it said when it left."),
    column("previous_end", STRING, "How the previous session of the same instance or client ended."),
    column("away_ms", LONG, "How long the same instance (or client.id on the same host) had been away before."),
    _CONFIDENCE,
)
"""One row for each session of a member id in a group."""

PAUSES: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    column("node", STRING, "Process of the consumer; the coordinator where consumers wrote nothing."),
    column("kind", STRING, "stop-the-world (it owned nothing meanwhile) | incremental (it went on with the rest)."),
    column("how", STRING, "revoked | lost."),
    column("began_at_ms", LONG, "It lost partitions."),
    column("ended_at_ms", LONG, "It got its next assignment, or was gone."),
    column("pause_ms", LONG, "Between the two."),
    column("stopped_ms", LONG, "Of it, how long it owned nothing at all; in a consumer group all of it."),
    column("end", STRING, "assigned | gone (the consumer ended) | open (the journal ends)."),
    column("generation_from", INT, "Generation in which it lost them; -1 if it had none any more."),
    column("generation_to", INT, "Generation of the next assignment."),
    column("given_up", INT, "Partitions it lost."),
    column("kept", INT, "Partitions it kept meanwhile."),
    column("received", INT, "Partitions it was assigned at the end."),
    _CONFIDENCE,
)
"""One row for each time a consumer waited between losing partitions and its next assignment."""

OWNERSHIP_TABLE: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    column("kind", STRING, "owned | gap (no owner: between two owners, before the first, after the last)."),
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    column(
        "owner",
        STRING,
        "Its owner, over all of its member ids: process/client.id, else member id.",
    ),
    column("node", STRING, "Process of the consumer; the coordinator where consumers wrote nothing."),
    column("from_ms", LONG, "It was assigned; for a gap, the last owner let go."),
    column("to_ms", LONG, "It was given up; for a gap, the next owner got it."),
    column("length_ms", LONG, "Between the two."),
    column("generation", INT, "Generation in which it was assigned."),
    column(
        "end",
        STRING,
        "Of an owner: revoked | lost | stopped | crashed | gone | expired | rebalance | open."
        " Of a gap: initial | between | final.",
    ),
    column("overlap_ms", LONG, "How long another one who got it earlier owned it, too; 0 if alone."),
    column("overlaps_owner", STRING, "The owner with whom it overlaps the longest."),
    _CONFIDENCE,
    column("from_source", STRING, "Source of the row that began it."),
    column("from_seq", LONG, "Number of that row in its stream."),
    column("file", STRING, "Where that row was read."),
    column("line", LONG, "Where that row was read."),
)
"""One row for each interval in which one consumer owned a partition, or none did."""

BALANCE: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    column("at_ms", LONG, "The generation became Stable."),
    column("until_ms", LONG, "The next one did; null for the last."),
    column("generation", INT, "The generation."),
    column("protocol", STRING, "The assignor."),
    column("members", INT, "Members."),
    column("partitions", INT, "Partitions that were assigned."),
    column("least", INT, "Fewest partitions of a member."),
    column("most", INT, "Most partitions of a member."),
    column("spread", INT, "Most less fewest."),
    column("deviation", DOUBLE, "Standard deviation of the members' partitions."),
    column("idle_members", INT, "Members without a partition."),
    column("unowned", INT, "Partitions of subscribed topics that were not assigned; null where topics are not known."),
    column("most_member_id", STRING, "A member with the most."),
    column(
        "uneven_topic",
        STRING,
        "The topic that is spread worst; null where members differ by one at the most.",
    ),
    column("topic_least", INT, "Fewest partitions of it that a member has."),
    column("topic_most", INT, "Most partitions of it that a member has."),
    column("topic_most_member_id", STRING, "A member with the most of it."),
    _CONFIDENCE,
)
"""One row for each generation that became Stable."""

COMMITS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    column("at_ms", LONG, "When the coordinator stored or refused it."),
    _MEMBER,
    _INSTANCE,
    column("generation", INT, "Generation of the commit; -1 from outside the group."),
    column("outcome", STRING, "stored | refused."),
    column("error", STRING, "Why it was refused."),
    column("offset", LONG, "The next record to read."),
    column("previous_offset", LONG, "The stored one before; null for the first."),
    column("advanced", LONG, "Records between the two; negative if it went back."),
    column("end_offset", LONG, "End of the partition's log then; null where it is not known."),
    column("lag", LONG, "Records that were written and not committed."),
    column("since_ms", LONG, "Since the commit before."),
    column("transactional", BOOLEAN, "Within a transaction."),
    _CONFIDENCE,
    column("source", STRING, "As in events."),
    column("node", STRING, "As in events."),
    column("seq", LONG, "As in events."),
)
"""One row for each partition of each commit."""

RECORDS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    column(
        "kind",
        STRING,
        "duplicate (processed again) | lost (passed over by a commit or a later record, never"
        " processed) | in-hand (the same, but the journal ends while a consumer may be at it).",
    ),
    column("start", LONG, "First record."),
    column("end", LONG, "One behind the last."),
    column("records", LONG, "How many."),
    column("at_ms", LONG, "Duplicate: when they were processed again. Else: when they were passed over."),
    column("member_id", STRING, "Who did."),
    column("client_id", STRING, "client.id of that one."),
    column("generation", INT, "In which generation."),
    _CONFIDENCE,
)
"""One row for each range of records that was processed twice, or never."""

PROGRESS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    column("first_offset", LONG, "The first position of any consumer of the group."),
    column("reached", LONG, "One behind the last record that was processed."),
    column("committed", LONG, "The furthest commit."),
    column("processed", LONG, "Records that were processed, each counted once."),
    column("twice", LONG, "Records that were processed again, each time counted."),
    column("lost", LONG, "Records that were passed over and never processed."),
    column("in_hand", LONG, "Records that may be lost, or still in a consumer's hands."),
    _CONFIDENCE,
)
"""One row for each partition of a group, over the whole run; ``day`` is that of the first event."""

REQUESTS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    column("api", STRING, "JOIN_GROUP, SYNC_GROUP, HEARTBEAT ..."),
    column("source", STRING, "As in events."),
    column("requests", LONG, "How many were answered."),
    column("failed", LONG, "How many with an error."),
    column("errors", MapType(STRING, LONG), "Name of the error to how many."),
    column("p50_ms", DOUBLE, "Half were answered within this."),
    column("p95_ms", DOUBLE, "95 of 100 were answered within this."),
    column("p99_ms", DOUBLE, "99 of 100 were answered within this."),
    column("max_ms", DOUBLE, "The slowest."),
    column("parked_ms", DOUBLE, "All waiting for others, summed up."),
    column("parked_p50_ms", DOUBLE, "Half waited less."),
    column("parked_p99_ms", DOUBLE, "99 of 100 waited less."),
    column("parked_max_ms", DOUBLE, "The longest wait."),
    column("clients", LONG, "How many client.ids sent them."),
    _CONFIDENCE,
)
"""One row for each day, group and kind of request."""

VIOLATIONS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    column("kind", STRING, "Name of the audit; rejoin.pipeline.report.page.VIOLATIONS has each in words."),
    _TOPIC,
    _PARTITION,
    column("at_ms", LONG, "When it began."),
    column("to_ms", LONG, "When it ended; null if it has no length."),
    column("generation", INT, "In which generation."),
    column("members", STRINGS, "Members that took part."),
    column("expected", LONG, "What would have been right, in the unit of the kind; see audits."),
    column("found", LONG, "What was found instead."),
    column("text", STRING, "In words."),
    column("evidence", EVIDENCE, "The rows that prove it."),
    _CONFIDENCE,
)
"""What must never happen and did, with its proof; and, as the kind owner-after-removal, overlaps that Kafka allows."""

FINDINGS: Final = table(
    _RUN,
    _DAY,
    _GROUP,
    column("finding", STRING, "Name of the rule."),
    column("severity", STRING, "high | medium | low."),
    column("score", DOUBLE, "Orders findings: consumer-seconds that it cost, or as the rule says."),
    column("title", STRING, "One line."),
    column("text", STRING, "What happened, with numbers, in plain words."),
    column("setting", STRING, "The setting to change, by Kafka's name; null if none helps."),
    column("advice", STRING, "What to set it to, and what else to do."),
    column("numbers", MapType(STRING, DOUBLE), "The numbers of the text, by name; units end the names."),
    column("from_ms", LONG, "The first of it."),
    column("to_ms", LONG, "The last of it."),
    column("members", STRINGS, "Member ids, instance ids or client ids it is about."),
    column("groups", STRINGS, "The groups that it is about; group_id is null where these are several."),
    column("rebalances", STRINGS, "rebalance_id of the rebalances it explains."),
    column("transactional_ids", STRINGS, "Producers that it is about; findings about transactions have no group_id."),
    column("evidence", EVIDENCE, "Other rows that prove it."),
    _CONFIDENCE,
)
"""What is wrong with a group, why, and what to change."""

ANNOTATIONS: Final = table(
    _DAY,
    column("at_ms", LONG, "When it was, in ms since 1970."),
    column("text", STRING, "What happened."),
    column("subject", STRING, "To what, such as a deployment; empty if that is not said."),
)
"""What happened around the groups, as ``--annotations`` was given it; without that there is no such table."""

TABLES: Final[dict[str, StructType]] = {
    "streams": STREAMS,
    "rebalances": REBALANCES,
    "member_sessions": MEMBER_SESSIONS,
    "pauses": PAUSES,
    "ownership": OWNERSHIP_TABLE,
    "balance": BALANCE,
    "commits": COMMITS,
    "records": RECORDS,
    "progress": PROGRESS,
    "requests": REQUESTS,
    **OF_TRANSACTIONS,
    "violations": VIOLATIONS,
    "findings": FINDINGS,
    "sweep_runs": SWEEP_RUNS,
}
"""Every table that is written, by its name."""

TRANSACTION_TABLES: Final = tuple(OF_TRANSACTIONS)
"""Those about transactions."""


def comments(schema: StructType) -> dict[str, str]:
    """Column to comment."""
    return {field.name: field.metadata["comment"] for field in schema.fields}
