"""Tables that follow a group: its rebalances, members and pauses, and who owned what."""

from __future__ import annotations

from typing import Final

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, column, table
from rejoin.pipeline.event_fields import MEASURES
from rejoin.pipeline.schemas.keys import CLIENT, CONFIDENCE, DAY, GROUP, HOST, INSTANCE, MEMBER, PARTITION, RUN, TOPIC

REBALANCES: Final = table(
    RUN,
    DAY,
    GROUP,
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
    column("ended_at_ms", LONG, "When it ended, in whatever way (see outcome); null if the source does not say."),
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
    CONFIDENCE,
    column("file", STRING, "Where its first row was read."),
    column("line", LONG, "Where its first row was read."),
)
"""One row for each time a join phase began, or a consumer group had a new epoch that its members had to reach."""

MEMBER_SESSIONS: Final = table(
    RUN,
    DAY,
    GROUP,
    MEMBER,
    INSTANCE,
    CLIENT,
    HOST,
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
    CONFIDENCE,
)
"""One row for each session of a member id in a group."""

PAUSES: Final = table(
    RUN,
    DAY,
    GROUP,
    MEMBER,
    INSTANCE,
    CLIENT,
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
    CONFIDENCE,
)
"""One row for each time a consumer waited between losing partitions and its next assignment."""

OWNERSHIP_TABLE: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    column("kind", STRING, "owned | gap (no owner: between two owners, before the first, after the last)."),
    MEMBER,
    INSTANCE,
    CLIENT,
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
    CONFIDENCE,
    column("from_source", STRING, "Source of the row that began it."),
    column("from_seq", LONG, "Number of that row in its stream."),
    column("file", STRING, "Where that row was read."),
    column("line", LONG, "Where that row was read."),
)
"""One row for each interval in which one consumer owned a partition, or none did."""

BALANCE: Final = table(
    RUN,
    DAY,
    GROUP,
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
    CONFIDENCE,
)
"""One row for each generation that became Stable."""

_MEASURES: Final = dict.fromkeys(MEASURES, LONG) | {
    "client_instance_id": STRING,
    "failed_rebalances": INT,
    "fetch_rate": DOUBLE,
    "assigned_partitions": INT,
}

CLIENT_METRICS: Final = table(
    RUN,
    DAY,
    GROUP,
    column("at_ms", LONG, "The client pushed its metrics."),
    MEMBER,
    INSTANCE,
    CLIENT,
    *(column(name, of_type, MEANINGS[name]) for name, of_type in _MEASURES.items()),
    column("rebalance_timeout_ms", LONG, "The coordinator's view: " + MEANINGS["rebalance_timeout_ms"]),
    column("rebalances", INT, "Rebalances with the member that ended since the report before, if there was one."),
    column("rebalance_max_ms", LONG, "The longest of them, from its beginning to its end."),
    column("generation", INT, "The newest generation, or epoch, that was complete; null if none was."),
    column("owned_partitions", INT, "Partitions that the member had in it; null where the member is not known."),
    CONFIDENCE,
)
"""One row for each report of a client's own metrics, with what the coordinator knew of the same member then."""
