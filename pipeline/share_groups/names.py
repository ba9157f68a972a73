"""Columns of the tables of share groups that rows are made of. Nothing here needs Arrow."""

from __future__ import annotations

from typing import Final

_KEY: Final = ("run_id", "day", "group_id", "topic", "partition")
_PLACE: Final = ("confidence", "source", "node", "seq", "file", "line")

OF_ARCHIVED: Final = (
    *(*_KEY, "first_offset", "last_offset", "records", "at_ms", "event", "delivery_count", "reason"),
    *("dead_letter_topic", "error", *_PLACE),
)
OF_WINDOWS: Final = (
    *(*_KEY, "at_ms", "event", "start_offset", "end_offset", "in_flight", "limit", "start_since_ms", "stood_ms"),
    *("stood_at", "grown", "state_epoch", "leader_epoch", "reset", "skipped_records", "operation", "error", *_PLACE),
)
SUMMED: Final = (
    *("acquired", "accepted", "released", "rejected", "expired", "given_back", "archived", "dead_lettered"),
    *("dead_letters_failed", "full", "failures"),
)
"""Columns of share_partitions that are sums."""
OF_PARTITIONS: Final = (
    *(*_KEY, "first_at_ms", "last_at_ms", *SUMMED, "most_deliveries", "longest_held_ms", "longest_stood_ms"),
    *("start_offset", "end_offset", "in_flight", "standing_since_ms", "standing_ms", "grown", "confidence"),
)
TABLES: Final = ("share_deliveries", "share_archived", "share_windows", "share_partitions")
