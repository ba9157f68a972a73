"""Tables of commits, records and requests."""

from __future__ import annotations

from typing import Final

from rejoin.pipeline.columns import BOOLEAN, DOUBLE, INT, LONG, STRING, column, map_of, table
from rejoin.pipeline.schemas.keys import CONFIDENCE, DAY, GROUP, INSTANCE, MEMBER, PARTITION, RUN, TOPIC

COMMITS: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    column("at_ms", LONG, "When the coordinator stored or refused it."),
    MEMBER,
    INSTANCE,
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
    CONFIDENCE,
    column("source", STRING, "As in events."),
    column("node", STRING, "As in events."),
    column("seq", LONG, "As in events."),
)
"""One row for each partition of each commit."""

RECORDS: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
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
    CONFIDENCE,
)
"""One row for each range of records that was processed twice, or never."""

PROGRESS: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    column("first_offset", LONG, "The first position of any consumer of the group."),
    column("reached", LONG, "One behind the last record that was processed."),
    column("committed", LONG, "The furthest commit."),
    column("processed", LONG, "Records that were processed, each counted once."),
    column("twice", LONG, "Records that were processed again, each time counted."),
    column("lost", LONG, "Records that were passed over and never processed."),
    column("in_hand", LONG, "Records that may be lost, or still in a consumer's hands."),
    CONFIDENCE,
)
"""One row for each partition of a group, over the whole run; ``day`` is that of the first event."""

REQUESTS: Final = table(
    RUN,
    DAY,
    GROUP,
    column("api", STRING, "JOIN_GROUP, SYNC_GROUP, HEARTBEAT ..."),
    column("source", STRING, "As in events."),
    column("requests", LONG, "How many were answered."),
    column("failed", LONG, "How many with an error."),
    column("errors", map_of(LONG), "Name of the error to how many."),
    column("p50_ms", DOUBLE, "Half were answered within this."),
    column("p95_ms", DOUBLE, "95 of 100 were answered within this."),
    column("p99_ms", DOUBLE, "99 of 100 were answered within this."),
    column("max_ms", DOUBLE, "The slowest."),
    column("parked_ms", DOUBLE, "All waiting for others, summed up."),
    column("parked_p50_ms", DOUBLE, "Half waited less."),
    column("parked_p99_ms", DOUBLE, "99 of 100 waited less."),
    column("parked_max_ms", DOUBLE, "The longest wait."),
    column("clients", LONG, "How many client.ids sent them."),
    CONFIDENCE,
)
"""One row for each day, group and kind of request."""
