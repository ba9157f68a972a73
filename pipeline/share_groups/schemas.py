"""The tables of share groups: names, types, units, as in :mod:`rejoin.pipeline.schemas`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import DATE, INT, LONG, STRING, column, table

RUN = column("run_id", STRING, "The run; clocks of two runs have nothing to do with each other.")
DAY = column("day", DATE, "The day of its beginning in UTC.")
GROUP, MEMBER, TOPIC = (column(name, STRING, MEANINGS[name]) for name in ("group_id", "member_id", "topic"))
PARTITION = column("partition", INT, MEANINGS["partition"])
CONFIDENCE = column("confidence", STRING, "exact | inferred | unknown.")
_FIRST = column("first_offset", LONG, "The first record of the run.")
_LAST = column("last_offset", LONG, "The last record of the run, inclusive.")
_DELIVERY = column("delivery_count", INT, MEANINGS["delivery_count"])
_NODE = column("node", STRING, "As in events.")
PLACE = (
    column("source", STRING, "As in events."),
    _NODE,
    column("seq", LONG, "Number of the row it is known from."),
    column("file", STRING, "Where that row was read."),
    column("line", LONG, "Where that row was read."),
)

SHARE_DELIVERIES: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    _FIRST,
    _LAST,
    column("records", LONG, "How many offsets the run has."),
    MEMBER,
    _DELIVERY,
    column("acquired_at_ms", LONG, "The member acquired the records; null where neither that nor a length is known."),
    column("ended_at_ms", LONG, "The delivery ended; null where the journal ends before."),
    column(
        "end",
        STRING,
        "accept | release | reject | gap (the member said so) | lock-expired | session-closed | disconnected | "
        "session-evicted | archived (taken from the holder) | leader-changed | unknown (acquired again, and no row "
        "says why); null where the journal ends before.",
    ),
    column("held_ms", LONG, "How long the member had the records; to the end of the run where it still has them."),
    column("lock_ms", LONG, MEANINGS["lock_ms"]),
    column("renewals", INT, "How often the member renewed the lock."),
    column(
        "next_fetch_ms",
        LONG,
        "Where the lock expired: from the acquisition until the member acquired records again, of any partition; null "
        "if it did not within ten minutes.",
    ),
    CONFIDENCE,
    *PLACE,
)
"""One row for each run of records that a member held: runs are cut where parts of them end differently."""

SHARE_ARCHIVED: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    _FIRST,
    _LAST,
    column("records", LONG, "How many offsets the run has."),
    column("at_ms", LONG, "When."),
    column("event", STRING, "share_records_archived | share_records_dead_lettered."),
    _DELIVERY,
    column("reason", STRING, "reject | delivery-limit | gap | log-start | compacted | aborted; null of dead letters."),
    column("dead_letter_topic", STRING, MEANINGS["dead_letter_topic"]),
    column("error", STRING, "Why the dead letters were not written; null if they were."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each run of records that no member will get again, and for each run of dead letters."""

SHARE_WINDOWS: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    column("at_ms", LONG, "When."),
    column(
        "event",
        STRING,
        "share_partition_loaded | share_window_moved | share_window_full | share_persister_failed | "
        "share_partitions_initialized (only where that failed).",
    ),
    column("start_offset", LONG, MEANINGS["start_offset"]),
    column("end_offset", LONG, "The last record of the window, or the next one if it is empty."),
    column("in_flight", INT, MEANINGS["in_flight"]),
    column("limit", INT, MEANINGS["limit"]),
    column("start_since_ms", LONG, "The instant since which the start is this offset and records are in flight."),
    column("stood_ms", LONG, "Where the start moved: how long it had stood before, with records in flight."),
    column("stood_at", LONG, "Where the start moved: the offset at which it had stood."),
    column("grown", LONG, "Where the start moved: by how many records the end had moved on while it stood."),
    column("state_epoch", INT, MEANINGS["state_epoch"]),
    column("leader_epoch", INT, MEANINGS["leader_epoch"]),
    column("reset", STRING, MEANINGS["reset"]),
    column("skipped_records", LONG, MEANINGS["skipped_records"]),
    column("operation", STRING, MEANINGS["operation"]),
    column("error", STRING, "What the share coordinator answered."),
    CONFIDENCE,
    *PLACE,
)
"""One row for each change of a share-partition's window, and for what keeps a share-partition from working."""

_SUMS: Final = {
    "acquired": "Records that were acquired; a record counts for each delivery.",
    "accepted": "Records that were accepted.",
    "released": "Records that their members released.",
    "rejected": "Records that their members rejected.",
    "expired": "Records whose locks ran out; a record counts for each delivery.",
    "given_back": "Records that were given back as a session or a leader was gone.",
    "archived": "Records that no member will get again though none accepted them, without gaps.",
    "dead_lettered": "Dead letters that were written.",
    "dead_letters_failed": "Dead letters that were not written.",
    "full": "How often the window was full.",
    "failures": "How often the share coordinator did not read or store the state.",
}

SHARE_PARTITIONS: Final = table(
    RUN,
    DAY,
    GROUP,
    TOPIC,
    PARTITION,
    column("first_at_ms", LONG, "The first event."),
    column("last_at_ms", LONG, "The last event."),
    *(column(name, LONG, comment) for name, comment in _SUMS.items()),
    column("most_deliveries", INT, "The highest delivery count."),
    column("longest_held_ms", LONG, "The longest that a member held records."),
    column("longest_stood_ms", LONG, "The longest that the start stood before it moved, with records in flight."),
    column("start_offset", LONG, "The start of the window at the end."),
    column("end_offset", LONG, "The end of the window at the end."),
    column("in_flight", INT, "How many records the window has at the end."),
    column("standing_since_ms", LONG, "Since when the start stands, where records are in flight at the end."),
    column("standing_ms", LONG, "How long the start has stood when the run ends, with records in flight; else null."),
    column("grown", LONG, "By how many records the end of the window has moved on meanwhile."),
    CONFIDENCE,
)
"""One row for each share-partition: sums of the other tables."""

OF_SHARE_GROUPS: Final[dict[str, pa.Schema]] = {
    "share_deliveries": SHARE_DELIVERIES,
    "share_archived": SHARE_ARCHIVED,
    "share_windows": SHARE_WINDOWS,
    "share_partitions": SHARE_PARTITIONS,
}
