"""Every table of the pipeline: names, types, units. The one place where a column is defined.

A column's comment is in its metadata, so it travels into Parquet. Instants end in ``_at_ms`` (``at_ms`` itself, too):
ms since 1970, or since the start of a simulation; only those of one run can be compared. Lengths end in ``_ms``. An
interval is half open: from its first instant up to, and not including, its last one. Whatever a source cannot tell is
null. Words are Kafka's: states are ``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, ``Dead``,
errors are names such as ``ILLEGAL_GENERATION``, requests are ``JOIN_GROUP`` and so on, as in Kafka's request log.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

VERSION: Final = 1
"""Of these schemas. It rises with any change that an older reader would misunderstand."""

EXACT: Final = "exact"
"""Confidence: the source says so."""
INFERRED: Final = "inferred"
"""Confidence: concluded from other rows; likely, and perhaps some ms off."""
UNKNOWN: Final = "unknown"
"""Confidence: the source is known not to tell what this row would need."""

BROKER_LOG: Final = "broker-log"
REQUEST_LOG: Final = "request-log"
SOURCES: Final = ("coordinator", "client", "simulation", BROKER_LOG, REQUEST_LOG)
"""Who says so: a service, a process of consumers, a simulation of both, ``server.log``, ``kafka-request.log``."""

REQUEST: Final = "request"
"""The event of a row that is one request with its answer. All other events are named as in the journals."""

_STRING: Final = StringType()
_INT: Final = IntegerType()
_LONG: Final = LongType()
_DOUBLE: Final = DoubleType()
_BOOLEAN: Final = BooleanType()
_STRINGS: Final = ArrayType(_STRING)


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


PARTITIONS: Final = ArrayType(_struct(topic=_STRING, partition=_INT))
OWNERSHIP: Final = ArrayType(_struct(member_id=_STRING, topic=_STRING, partition=_INT))
RANGES: Final = ArrayType(_struct(topic=_STRING, partition=_INT, start=_LONG, end=_LONG))
OFFSETS: Final = ArrayType(_struct(topic=_STRING, partition=_INT, offset=_LONG))
EVIDENCE: Final = ArrayType(
    _struct(source=_STRING, node=_STRING, seq=_LONG, at_ms=_LONG, event=_STRING, file=_STRING, line=_LONG),
)


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, True, {"comment": comment})


def _table(*columns: StructField) -> StructType:
    return StructType(list(columns))


_RUN = _column("run_id", _STRING, "The run; clocks of two runs have nothing to do with each other.")
_DAY = _column("day", DateType(), "The day of at_ms in UTC (of the beginning, where a row is an interval).")
_GROUP = _column("group_id", _STRING, "The group.")
_MEMBER = _column("member_id", _STRING, "The member.")
_INSTANCE = _column("group_instance_id", _STRING, "group.instance.id of a static member.")
_CLIENT = _column("client_id", _STRING, "client.id.")
_HOST = _column("client_host", _STRING, "Where the client came from.")
_TOPIC = _column("topic", _STRING, "The topic.")
_PARTITION = _column("partition", _INT, "The partition of the topic.")
_CONFIDENCE = _column("confidence", _STRING, "exact | inferred | unknown.")

LINES: Final = _table(
    _column("file", _STRING, "Path of the file."),
    _column("line", _LONG, "Number of the line, from 1."),
    _column("text", _STRING, "The line without its end; bytes that are no UTF-8 are shown as U+FFFD."),
    _column("problem", _STRING, "Why the text cannot be taken as it is (no UTF-8, a half line); null if it can."),
)
"""What is read from any file of text, before anybody knows what it says."""

QUARANTINE: Final = _table(
    _column("file", _STRING, "Path of the file."),
    _column("line", _LONG, "Number of the line, from 1; null for a whole file."),
    _column("reason", _STRING, "What was wrong and what was expected, in words."),
    _column(
        "kind",
        _STRING,
        "encoding | half-line | not-json | not-a-row | version | unknown-event | field | repeated"
        " | conflict | unreadable | unknown-line: for counting.",
    ),
    _column("text", _STRING, "The line as it stood there, at most 4,096 characters of it."),
)
"""Lines that could not be used. Nothing is left out without a row here."""

EVENTS: Final = _table(
    _column("schema_version", _INT, "Of this table, see VERSION."),
    _RUN,
    _column("source", _STRING, "coordinator | client | simulation | broker-log | request-log."),
    _column("node", _STRING, "Who wrote it: a node, a process of consumers, a broker."),
    _column("seq", _LONG, "Place in the stream of this source and node; orders rows of equal at_ms."),
    _column("at_ms", _LONG, "When."),
    _DAY,
    _column("event", _STRING, "Name of the event, as in the journals; 'request' for a request with its answer."),
    _CONFIDENCE,
    _column("file", _STRING, "Where it was read."),
    _column("line", _LONG, "Where it was read, from 1."),
    # who
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    _HOST,
    _column(
        "other_member_id",
        _STRING,
        "The other member of the event: the old id that was replaced"
        " (static_member_replaced), the refused one (static_member_restored), the owner of the instance id"
        " (member_fenced).",
    ),
    # state
    _column("generation", _INT, "As the event has it: the old one in rebalance_started, the new one elsewhere."),
    _column("state", _STRING, "The group's state: after group_state_changed, before the event elsewhere."),
    _column("previous_state", _STRING, "State before."),
    _column("offsets_partition", _INT, "Partition of __consumer_offsets."),
    _column("epoch", _INT, "Leader epoch of the offsets partition."),
    # why
    _column(
        "cause",
        _STRING,
        "Why: a cause class of a rebalance, or why a member was removed (left, session-expiry,"
        " did-not-rejoin, sync-expiry, over-capacity); the words of rejoin.journal.events.coordinator.",
    ),
    _column("cause_member_id", _STRING, "The member through whom a rebalance began."),
    _column("cause_group_instance_id", _STRING, "Its group.instance.id."),
    _column("client_reason", _STRING, "What the client said why it joins or leaves (KIP-800)."),
    _column(
        "reason",
        _STRING,
        "Words of the one who tells: a consumer's reason to rejoin or leave, why a group or"
        " its offsets were deleted, the reason a broker's log has in full.",
    ),
    # rebalance
    _column("leader", _STRING, "Member id of the leader."),
    _column("previous_leader", _STRING, "Member id of the one before; null if there was none."),
    _column("protocol", _STRING, "The assignor that was chosen."),
    _column("protocols", _STRINGS, "Assignors that a member supports."),
    _column("topics", _STRINGS, "What a member subscribes to."),
    _column("members", _STRINGS, "Member ids: of the group at that moment, after the rebalance if completed."),
    _column("members_before", _STRINGS, "Member ids before the rebalance."),
    _column("member_count", _INT, "How many members, where only the number is told."),
    _column("static_member_count", _INT, "How many of them are static."),
    _column("absent", _STRINGS, "Static members that did not come to the join phase and stay."),
    _column("did_not_rejoin", _STRINGS, "Dynamic members that were removed since they did not come."),
    _column("without_assignment", _STRINGS, "Members that the leader gave nothing."),
    _column("owned_before", OWNERSHIP, "Who owned what before the rebalance."),
    _column("owned_after", OWNERSHIP, "Who owns what after it."),
    _column("moved", _INT, "Partitions that went from one member to another that both stayed."),
    _column("regained", _INT, "Partitions whose owner had gone, or which had none."),
    _column("attempts", _INT, "How often the join phase began, or how often something failed."),
    _column("rebalance_ms", _LONG, "From the first rebalance_started since Stable or Empty."),
    _column("join_ms", _LONG, "Length of the join phase."),
    _column("sync_ms", _LONG, "Length of the sync phase."),
    _column("waited_ms", _LONG, "A consumer's wait for the answer to JoinGroup."),
    _column("timeout_ms", _LONG, "The longest the join phase may take; max.poll.interval.ms in poll_timeout_exceeded."),
    _column("session_timeout_ms", _LONG, "session.timeout.ms of the member."),
    _column("rebalance_timeout_ms", _LONG, "Rebalance timeout of the member: its max.poll.interval.ms."),
    _column("initial", _BOOLEAN, "Whether the initial delay is part of it (KIP-134)."),
    _column("changed", _BOOLEAN, "Whether a rejoining member's metadata differ from before."),
    _column("rebalances", _BOOLEAN, "Whether a static member's return makes the group rebalance."),
    _column("told", _BOOLEAN, "Whether a consumer that leaves told the coordinator."),
    # partitions, records, offsets
    _TOPIC,
    _column("partition_count", _INT, "Partitions of the topic; of all topics in assignment_computed."),
    _column("previous_partition_count", _INT, "Before it grew."),
    _column("records_per_second", _DOUBLE, "What each partition of a synthetic topic gets."),
    _column("partitions", PARTITIONS, "Partitions of the event: assigned, revoked, lost, or given in group_synced."),
    _column("owned", PARTITIONS, "What the consumer owned then (join_sent, group_synced)."),
    _column("ranges", RANGES, "Records of records_processed, half open."),
    _column("offsets", OFFSETS, "Committed, refused or found positions: the next record to read."),
    _column("origin", _STRING, "Where a position came from: committed | earliest | latest."),
    _column("kind", _STRING, "Who asked for a commit: sync | async | auto | rebalance | close."),
    _column("producer_id", _LONG, "The producer of a transactional commit."),
    # trouble
    _column("error", _STRING, "Name of Kafka's error; null or NONE if there was none."),
    _column("problem", _STRING, "What went wrong, in words."),
    # requests
    _column("api", _STRING, "JOIN_GROUP, SYNC_GROUP, HEARTBEAT ... as in Kafka's request log."),
    _column("api_version", _INT, "Version of the request."),
    _column("correlation_id", _LONG, "The client's number of the request."),
    _column("total_ms", _DOUBLE, "From arrival until the answer was sent; at_ms of the row is the arrival."),
    _column("queue_ms", _DOUBLE, "Waiting for a thread, before and after."),
    _column("local_ms", _DOUBLE, "Work of the broker."),
    _column("parked_ms", _DOUBLE, "Waiting for others: remoteTimeMs."),
    _column("throttle_ms", _DOUBLE, "Held back by a quota."),
    _column("software", _STRING, "The client's name and version."),
    # the rest
    _column("event_json", _STRING, "The event as JSON, where it says more than the columns; null where it does not."),
)
"""Bronze: one row for each event of any source. Events of the same kind have the same event name in all of them."""

STREAMS: Final = _table(
    _RUN,
    _column("source", _STRING, "As in events."),
    _column("node", _STRING, "As in events."),
    _column("rows", _LONG, "Events that were taken in."),
    _column("first_seq", _LONG, "The first number."),
    _column("last_seq", _LONG, "The last number."),
    _column("missing", _LONG, "Numbers from 1 to the last that no row has: lost, or in the quarantine."),
    _column("out_of_order", _LONG, "Rows that stood behind a later one in their file."),
    _column("first_at_ms", _LONG, "The earliest instant."),
    _column("last_at_ms", _LONG, "The latest instant."),
    _column("clock_steps", _LONG, "Rows whose at_ms is before that of the row with the number before."),
)
"""One row for each writer of a run: whether its journal is whole."""

REBALANCES: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _column("rebalance_id", _STRING, "run/group/node/number of the row that began it."),
    _column("number", _INT, "Counts the rebalances of a group, from 1."),
    _column("node", _STRING, "The coordinator."),
    _column("source", _STRING, "As in events."),
    _column("generation_from", _INT, "Generation when it began."),
    _column("generation_to", _INT, "Generation that the join phase led to; null if it led to none."),
    _column("prepared_at_ms", _LONG, "The join phase began."),
    _column("joined_at_ms", _LONG, "The join phase ended."),
    _column("assigned_at_ms", _LONG, "The leader's assignment came."),
    _column("stable_at_ms", _LONG, "The assignment was stored: Stable."),
    _column("ended_at_ms", _LONG, "Whatever ended it, see outcome; null if the source does not tell."),
    _column(
        "outcome",
        _STRING,
        "completed | superseded (it had to begin again) | emptied (nobody was left) | aborted"
        " (the coordinator went, or the group was deleted) | open (the journal ends before it does).",
    ),
    _column(
        "cause",
        _STRING,
        "Cause class, see rejoin.journal.events.coordinator.CauseClass; 'unknown' where it is not told.",
    ),
    _column("cause_member_id", _STRING, "Through whom."),
    _column("cause_group_instance_id", _STRING, "Its group.instance.id."),
    _column("cause_client_id", _STRING, "Its client.id."),
    _column("client_reason", _STRING, "What that client said (KIP-800)."),
    _column("previous_state", _STRING, "The group's state before."),
    _column("initial", _BOOLEAN, "Whether the initial delay is part of it."),
    _column("attempt", _INT, "1, and one more for each rebalance that was superseded just before."),
    _column(
        "episode",
        _INT,
        "Number of the rebalance that this one is an attempt of: equal for superseded ones and"
        " the one that ended the matter.",
    ),
    _column("members_before", _STRINGS, "Members when the group was last Stable; when this began, if never."),
    _column("members_after", _STRINGS, "Members after it, or after the join phase if it got no further."),
    _column("joined", _STRINGS, "Members added since the rebalance before."),
    _column("left", _STRINGS, "Members that left by LeaveGroup."),
    _column("evicted", _STRINGS, "Members that were thrown out: session, rebalance or sync timeout, capacity."),
    _column("replaced", _STRINGS, "New ids of static members that came back."),
    _column("absent", _STRINGS, "Static members that did not come and stay."),
    _column("leader", _STRING, "Who leads after the join phase."),
    _column("previous_leader", _STRING, "Who led the completed generation before."),
    _column("leader_changed", _BOOLEAN, "Whether that is another one; null where there was none before."),
    _column("protocol", _STRING, "The assignor."),
    _column("owned_before", _INT, "Partitions that had an owner before."),
    _column("owned_after", _INT, "Partitions that have an owner after."),
    _column("moved", _INT, "Partitions that went from a member that stays to another."),
    _column("regained", _INT, "Partitions whose owner had gone, or which had none."),
    _column(
        "stickiness",
        _DOUBLE,
        "Of the partitions that could stay with their owner, the share that did: 0 to 1; null if there were none.",
    ),
    _column("join_ms", _LONG, "Length of the join phase."),
    _column("sync_ms", _LONG, "From the end of the join phase to Stable."),
    _column(
        "unavailable_ms",
        _LONG,
        "From its beginning to its end: the group made no progress that needs the"
        " coordinator. Attempts add up to the whole episode.",
    ),
    _column(
        "members_waiting_ms",
        _LONG,
        "Of the members that were to rejoin, how long they waited for the last one,"
        " summed up; null where joins are not told.",
    ),
    _column("slowest_member_id", _STRING, "The member whose JoinGroup came last."),
    _column("slowest_ms", _LONG, "How long after the beginning it came."),
    _column("chain", _INT, "Number of the first rebalance of a storm: rebalances that follow each other closely."),
    _column("chain_length", _INT, "How many belong to the chain; 1 for one that is alone."),
    _CONFIDENCE,
    _column("file", _STRING, "Where its first row was read."),
    _column("line", _LONG, "Where its first row was read."),
)
"""One row for each time a join phase began."""

MEMBER_SESSIONS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    _HOST,
    _column("node", _STRING, "The coordinator that took it in."),
    _column("joined_at_ms", _LONG, "It became a member; null if that was before the journal."),
    _column("ended_at_ms", _LONG, "It was removed or replaced; null if it still is a member."),
    _column("session_ms", _LONG, "Length of the stay, to the end of the journal if it did not end."),
    _column(
        "end",
        _STRING,
        "left | session-expiry | did-not-rejoin | sync-expiry | over-capacity | replaced (a static"
        " member came back under a new id) | group-gone | open.",
    ),
    _column("replaces", _STRING, "The id that this one took over (static)."),
    _column("replaced_by", _STRING, "The id that took this one over (static)."),
    _column("first_generation", _INT, "The first generation it took part in."),
    _column("last_generation", _INT, "The last one."),
    _column("generations", _INT, "How many."),
    _column("rejoins", _INT, "JoinGroups after the first one."),
    _column("caused", _INT, "Rebalances that began through it."),
    _column("session_timeout_ms", _LONG, "session.timeout.ms."),
    _column("rebalance_timeout_ms", _LONG, "max.poll.interval.ms."),
    _column("protocols", _STRINGS, "Assignors it supports."),
    _column("topics", _STRINGS, "Topics it subscribes to."),
    _column("join_reason", _STRING, "What it said when it joined."),
    _column("leave_reason", _STRING, "What it said when it left."),
    _column("previous_end", _STRING, "How the stay before of the same instance or client ended."),
    _column("away_ms", _LONG, "How long the same instance (or client.id on the same host) had been away before."),
    _CONFIDENCE,
)
"""One row for each stay of a member id in a group."""

PAUSES: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    _column("node", _STRING, "Process of the consumer; the coordinator where consumers wrote nothing."),
    _column("kind", _STRING, "stop-the-world (it owned nothing meanwhile) | incremental (it went on with the rest)."),
    _column("how", _STRING, "revoked | lost."),
    _column("began_at_ms", _LONG, "It lost partitions."),
    _column("ended_at_ms", _LONG, "It got its next assignment, or was gone."),
    _column("pause_ms", _LONG, "Between the two."),
    _column("stopped_ms", _LONG, "Of it, how long it owned nothing at all."),
    _column("end", _STRING, "assigned | gone (the consumer ended) | open (the journal ends)."),
    _column("generation_from", _INT, "Generation in which it lost them; -1 if it had none any more."),
    _column("generation_to", _INT, "Generation of the next assignment."),
    _column("given_up", _INT, "Partitions it lost."),
    _column("kept", _INT, "Partitions it kept meanwhile."),
    _column("received", _INT, "Partitions it was assigned at the end."),
    _CONFIDENCE,
)
"""One row for each time a consumer waited between losing partitions and its next assignment."""

OWNERSHIP_TABLE: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    _column("kind", _STRING, "owned | gap (nobody owned it: between two owners, before the first, after the last)."),
    _MEMBER,
    _INSTANCE,
    _CLIENT,
    _column(
        "owner",
        _STRING,
        "Whoever owned it, over all of its member ids: process/client.id, else member id.",
    ),
    _column("node", _STRING, "Process of the consumer; the coordinator where consumers wrote nothing."),
    _column("from_ms", _LONG, "It was assigned; for a gap, the last owner let go."),
    _column("to_ms", _LONG, "It was given up; for a gap, the next owner got it."),
    _column("length_ms", _LONG, "Between the two."),
    _column("generation", _INT, "Generation in which it was assigned."),
    _column(
        "end",
        _STRING,
        "Of an owner: revoked | lost | stopped | crashed | gone | expired | rebalance | open."
        " Of a gap: initial | between | final.",
    ),
    _column("overlap_ms", _LONG, "How long another one who got it earlier owned it, too; 0 if alone."),
    _column("overlaps_owner", _STRING, "The owner with whom it overlaps the longest."),
    _CONFIDENCE,
    _column("from_source", _STRING, "Source of the row that began it."),
    _column("from_seq", _LONG, "Number of that row in its stream."),
    _column("file", _STRING, "Where that row was read."),
    _column("line", _LONG, "Where that row was read."),
)
"""One row for each interval in which one consumer owned a partition, or nobody did."""

BALANCE: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _column("at_ms", _LONG, "The generation became Stable."),
    _column("until_ms", _LONG, "The next one did; null for the last."),
    _column("generation", _INT, "The generation."),
    _column("protocol", _STRING, "The assignor."),
    _column("members", _INT, "Members."),
    _column("partitions", _INT, "Partitions that were given to somebody."),
    _column("least", _INT, "Fewest partitions of a member."),
    _column("most", _INT, "Most partitions of a member."),
    _column("spread", _INT, "Most less fewest."),
    _column("deviation", _DOUBLE, "Standard deviation of the members' partitions."),
    _column("idle_members", _INT, "Members without a partition."),
    _column("unowned", _INT, "Partitions of subscribed topics that nobody got; null where topics are not told."),
    _column("most_member_id", _STRING, "A member with the most."),
    _CONFIDENCE,
)
"""One row for each generation that became Stable."""

COMMITS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    _column("at_ms", _LONG, "When the coordinator stored or refused it."),
    _MEMBER,
    _INSTANCE,
    _column("generation", _INT, "Generation of the commit; -1 from outside the group."),
    _column("outcome", _STRING, "stored | refused."),
    _column("error", _STRING, "Why it was refused."),
    _column("offset", _LONG, "The next record to read."),
    _column("previous_offset", _LONG, "The stored one before; null for the first."),
    _column("advanced", _LONG, "Records between the two; negative if it went back."),
    _column("end_offset", _LONG, "End of the partition's log then; null where that is not told."),
    _column("lag", _LONG, "Records that were written and not committed."),
    _column("since_ms", _LONG, "Since the commit before."),
    _column("transactional", _BOOLEAN, "Within a transaction."),
    _CONFIDENCE,
    _column("source", _STRING, "As in events."),
    _column("node", _STRING, "As in events."),
    _column("seq", _LONG, "As in events."),
)
"""One row for each partition of each commit."""

RECORDS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    _column(
        "kind",
        _STRING,
        "duplicate (processed again) | lost (gone past by a commit or a later record, processed"
        " by nobody) | in-hand (the same, but the journal ends while a consumer may be at it).",
    ),
    _column("start", _LONG, "First record."),
    _column("end", _LONG, "One behind the last."),
    _column("records", _LONG, "How many."),
    _column("at_ms", _LONG, "Duplicate: when they were processed again. Else: when somebody went past."),
    _column("member_id", _STRING, "Who did."),
    _column("client_id", _STRING, "client.id of that one."),
    _column("generation", _INT, "In which generation."),
    _CONFIDENCE,
)
"""One row for each range of records that was processed twice, or never."""

PROGRESS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _TOPIC,
    _PARTITION,
    _column("first_offset", _LONG, "The first position of any consumer of the group."),
    _column("reached", _LONG, "One behind the last record that was processed."),
    _column("committed", _LONG, "The furthest commit."),
    _column("processed", _LONG, "Records that were processed, each counted once."),
    _column("twice", _LONG, "Records that were processed again, each time counted."),
    _column("lost", _LONG, "Records that were gone past and processed by nobody."),
    _column("in_hand", _LONG, "Records that may be lost, or still in a consumer's hands."),
    _CONFIDENCE,
)
"""One row for each partition of a group, over the whole run; ``day`` is that of the first event."""

REQUESTS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _column("api", _STRING, "JOIN_GROUP, SYNC_GROUP, HEARTBEAT ..."),
    _column("source", _STRING, "As in events."),
    _column("requests", _LONG, "How many were answered."),
    _column("failed", _LONG, "How many with an error."),
    _column("errors", MapType(_STRING, _LONG), "Name of the error to how many."),
    _column("p50_ms", _DOUBLE, "Half were answered within this."),
    _column("p95_ms", _DOUBLE, "95 of 100 were answered within this."),
    _column("p99_ms", _DOUBLE, "99 of 100 were answered within this."),
    _column("max_ms", _DOUBLE, "The slowest."),
    _column("parked_ms", _DOUBLE, "All waiting for others, summed up."),
    _column("parked_p50_ms", _DOUBLE, "Half waited less."),
    _column("parked_p99_ms", _DOUBLE, "99 of 100 waited less."),
    _column("parked_max_ms", _DOUBLE, "The longest wait."),
    _column("clients", _LONG, "How many client.ids sent them."),
    _CONFIDENCE,
)
"""One row for each day, group and kind of request."""

VIOLATIONS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _column(
        "kind",
        _STRING,
        "two-owners | unexplained-gap | generation-went-back | commit-not-seen | static-member-rebalanced.",
    ),
    _TOPIC,
    _PARTITION,
    _column("at_ms", _LONG, "When it began."),
    _column("to_ms", _LONG, "When it ended; null if it has no length."),
    _column("generation", _INT, "In which generation."),
    _column("members", _STRINGS, "Members that took part."),
    _column("expected", _LONG, "What would have been right, in the unit of the kind; see audits."),
    _column("found", _LONG, "What was found instead."),
    _column("text", _STRING, "In words."),
    _column("evidence", EVIDENCE, "The rows that prove it."),
    _CONFIDENCE,
)
"""What must never happen and did, with its proof."""

FINDINGS: Final = _table(
    _RUN,
    _DAY,
    _GROUP,
    _column("finding", _STRING, "Name of the rule."),
    _column("severity", _STRING, "high | medium | low."),
    _column("score", _DOUBLE, "Orders findings: consumer-seconds that it cost, or as the rule says."),
    _column("title", _STRING, "One line."),
    _column("text", _STRING, "What happened, with numbers, in plain words."),
    _column("setting", _STRING, "The setting to change, by Kafka's name; null if none helps."),
    _column("advice", _STRING, "What to set it to, and what else to do."),
    _column("numbers", MapType(_STRING, _DOUBLE), "The numbers of the text, by name; units end the names."),
    _column("from_ms", _LONG, "The first of it."),
    _column("to_ms", _LONG, "The last of it."),
    _column("members", _STRINGS, "Member ids, instance ids or client ids it is about."),
    _column("rebalances", _STRINGS, "rebalance_id of the rebalances it explains."),
    _column("evidence", EVIDENCE, "Other rows that prove it."),
    _CONFIDENCE,
)
"""What is wrong with a group, why, and what to change."""

SWEEP_RUNS: Final = _table(
    _column("run_id", _STRING, "The run; the events of it, if kept, have the same."),
    _column("scenario", _STRING, "Name of the scenario."),
    _column("variant", _INT, "Number of the point in the grid, from 0."),
    _column("parameters", MapType(_STRING, _STRING), "What was varied, by name as the grid has it."),
    _column("seed", _LONG, "The seed."),
    _column("status", _STRING, "done | failed."),
    _column("error", _STRING, "What a failed run said."),
    _column("code", _STRING, "Version of the program."),
    _column("horizon_ms", _LONG, "Simulated time."),
    _column("rebalances", _LONG, "How often a join phase began, all groups."),
    _column("causes", MapType(_STRING, _LONG), "The same by cause."),
    _column("completed", _LONG, "Rebalances that led to Stable."),
    _column("rebalancing_ms", _LONG, "Sum of their lengths."),
    _column("longest_rebalance_ms", _LONG, "The longest."),
    _column("removed", _LONG, "Members that were removed."),
    _column("moved", _LONG, "Partitions moved."),
    _column("stopped_ms", _LONG, "Consumers that stood still, summed up."),
    _column("unowned_ms", _LONG, "Partitions without an owner, summed up."),
    _column("worst_unowned_ms", _LONG, "The longest that one had none."),
    _column("processed", _LONG, "Records processed."),
    _column("late", _LONG, "Of them, late."),
    _column("twice", _LONG, "Records processed again."),
    _column("lost", _LONG, "Records processed by nobody."),
    _column("behind", _LONG, "Records still to come at the end."),
    _column("took_ms", _DOUBLE, "Real time of the run."),
    _column("executor", _STRING, "Where it ran: executor id and process id."),
)
"""One row for each simulation of a sweep."""

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
    "violations": VIOLATIONS,
    "findings": FINDINGS,
    "sweep_runs": SWEEP_RUNS,
}
"""Every table that is written, by its name."""


def comments(schema: StructType) -> dict[str, str]:
    """Column to comment."""
    return {field.name: field.metadata["comment"] for field in schema.fields}
