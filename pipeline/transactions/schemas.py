"""The tables of transactions: names, types, units, as in :mod:`rejoin.pipeline.schemas`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rejoin.journal.events.fields import MEANINGS
from rejoin.pipeline.columns import BOOLEAN, DATE, INT, LONG, STRING, STRINGS, column, list_of, struct, table

_RUN = column("run_id", STRING, "The run; clocks of two runs have nothing to do with each other.")
_DAY = column("day", DATE, "The day of its beginning in UTC.")
_ID = column("transactional_id", STRING, "The transactional.id; null where no coordinator says it.")
_PRODUCER = column("producer_id", LONG, "The producer id.")
_CONFIDENCE = column("confidence", STRING, "exact | inferred | unknown.")

TRANSACTIONS: Final = table(
    _RUN,
    _DAY,
    _ID,
    _PRODUCER,
    column("producer_epoch", INT, "Epoch of its records."),
    column("node", STRING, "The transaction coordinator; of an uncoordinated one the partition's leader."),
    column("started_at_ms", LONG, "Its first partitions were added; uncoordinated: its first batch was stored."),
    column("prepared_at_ms", LONG, "Its end was decided: PrepareCommit or PrepareAbort."),
    column("ended_at_ms", LONG, "All markers were written; null where the journal ends before."),
    column(
        "outcome",
        STRING,
        "committed | aborted | preparing (markers are missing when the journal ends) | open (the end is not decided).",
    ),
    column("ended_by", STRING, MEANINGS["ended_by"]),
    column("coordinated", BOOLEAN, "Whether its coordinator knew of it; if not it hangs. Null where that is unknown."),
    column("fenced", BOOLEAN, "Whether its epoch was fenced before its first batch was stored."),
    column("transaction_version", INT, MEANINGS["transaction_version"]),
    column("transaction_timeout_ms", LONG, MEANINGS["transaction_timeout_ms"]),
    column("open_ms", LONG, "From its start until its end was decided; to the end of the run if it was not."),
    column("markers_ms", LONG, "From then until the last marker; to the end of the run if one is missing."),
    column("held_ms", LONG, "The longest that it was open in the log of a partition."),
    column("partition_count", INT, "Partitions that were added, those of __consumer_offsets too."),
    column("missing_markers", INT, "Partitions without a marker when the journal ends, though the end is decided."),
    column(
        "logs",
        list_of(struct(topic=STRING, partition=INT, first_offset=LONG, opened_at_ms=LONG, marker_at_ms=LONG)),
        "Its partitions: where and when it begins in the log, and when the marker was written.",
    ),
    column("groups", STRINGS, "Groups whose offsets it commits."),
    column("offset_count", LONG, "Offsets that it commits."),
    _CONFIDENCE,
    column("source", STRING, "As in events."),
    column("seq", LONG, "Number of its first row."),
    column("file", STRING, "Where its first row was read."),
    column("line", LONG, "Where its first row was read."),
)
"""One row for each transaction, and for each that is open in a log while its coordinator has none (hanging)."""

PRODUCERS: Final = table(
    _RUN,
    _DAY,
    _ID,
    _PRODUCER,
    column("first_epoch", INT, "The first epoch that is known."),
    column("last_epoch", INT, "The last one."),
    column("transaction_timeout_ms", LONG, MEANINGS["transaction_timeout_ms"]),
    column("first_at_ms", LONG, "The first event."),
    column("last_at_ms", LONG, "The last event."),
    column("initializations", LONG, "How often InitProducerId gave out an epoch."),
    column("transactions", LONG, "How many began."),
    column("committed", LONG, "How many were committed."),
    column("aborted", LONG, "How many its client aborted."),
    column("timed_out", LONG, "How many were aborted as transaction.timeout.ms was over."),
    column("fenced_out", LONG, "How many were aborted as another instance took over."),
    column("open", LONG, "How many are not decided, or wait for markers, when the journal ends."),
    column("fenced_requests", LONG, "Requests that were refused because of their epoch."),
    column("p50_ms", LONG, "Half of the transactions were decided within this."),
    column("longest_ms", LONG, "The longest time until a decision."),
    column("longest_markers_ms", LONG, "The longest time from a decision to the last marker."),
    column("groups", STRINGS, "Groups whose offsets it commits."),
    column("expired_at_ms", LONG, "The transactional id expired."),
    _CONFIDENCE,
)
"""One row for each producer id."""

STABLE_OFFSETS: Final = table(
    _RUN,
    _DAY,
    column("topic", STRING, MEANINGS["topic"]),
    column("partition", INT, MEANINGS["partition"]),
    column("at_ms", LONG, "When."),
    column("last_stable_offset", LONG, MEANINGS["last_stable_offset"]),
    column("high_watermark", LONG, MEANINGS["high_watermark"]),
    column("end_offset", LONG, MEANINGS["end_offset"]),
    column("event", STRING, "transaction_opened | transaction_marker_written | last_stable_offset_held."),
    _PRODUCER,
    column("held_ms", LONG, MEANINGS["held_ms"]),
    _CONFIDENCE,
    column("source", STRING, "As in events."),
    column("node", STRING, "As in events."),
    column("seq", LONG, "As in events."),
)
"""The ends of a log for both kinds of readers, whenever a transaction in it changes."""

READERS: Final = table(
    _RUN,
    _DAY,
    column("reader", STRING, MEANINGS["reader"]),
    column("isolation_level", STRING, MEANINGS["isolation_level"]),
    column("topics", STRINGS, "The topics that it reads."),
    column("transform_groups", STRINGS, MEANINGS["transform_groups"]),
    column("commit_modes", STRINGS, MEANINGS["commit_modes"]),
    column("at_ms", LONG, "When they were compared: the end of the run."),
    column(
        "delivery",
        STRING,
        "exactly once | at least once | at most once | neither (some lost, and some twice): what the counts come to.",
    ),
    *(
        column(f"records_{name}", LONG, MEANINGS[f"records_{name}"])
        for name in ("in", "read", "twice", "lost", "out_of_order", "aborted", "unread", "to_come")
    ),
    column("source", STRING, "As in events."),
    column("node", STRING, "As in events."),
    column("seq", LONG, "As in events."),
)
"""One row for each reader of what transforms wrote: the laboratory knows what went in."""

OF_TRANSACTIONS: Final[dict[str, pa.Schema]] = {
    "transactions": TRANSACTIONS,
    "producers": PRODUCERS,
    "stable_offsets": STABLE_OFFSETS,
    "readers": READERS,
}
