"""Consumers that start behind a commit that was stored long before, or as if there were none."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.audits.rows import AuditedGroup, Partition, proof
from rejoin.pipeline.tables.groups.rows import Row

COMMITS_NOT_SEEN: Final = "commit-not-seen"
COMMIT: Final = "offsets_committed"
POSITION: Final = "positions_found"
EVENTS_READ: Final = (COMMIT, POSITION, "offsets_deleted")
GROUP_DELETED: Final = "group_deleted"
SLACK_MS: Final = 60_000
"""A read may have been served so long before the consumer reports what it read: its requests and pauses take time."""


def commits_not_seen(group: AuditedGroup) -> Iterator[Row]:
    """A consumer that starts behind a commit that was stored long before.

    ``expected``: the smallest offset that a read could have shown in the :data:`SLACK_MS` before; ``found``: the
    position, -1 if it was as if there were no commit. Offsets that were deleted or expired, or belong to a deleted
    group, are not missed.
    """
    partitions: dict[Partition, list[Row]] = defaultdict(list)
    for row in group.offsets:
        partitions[row["topic"], row["partition"]].append(row)
    deleted = [event["at_ms"] for event in group.events if event["event"] == GROUP_DELETED]
    for at, rows in partitions.items():
        rows.sort(key=lambda row: (row["at_ms"], row["seq"], row["offset"]))
        changes = [row for row in rows if row["event"] != POSITION]
        instants = [row["at_ms"] for row in changes]
        for row in rows:
            visible = bisect_right(instants, row["at_ms"] - SLACK_MS)
            if row["event"] == POSITION and visible:
                since = changes[visible : bisect_right(instants, row["at_ms"])]
                yield from _not_seen(group, at, row, changes[:visible], since, deleted)


def _not_seen(
    group: AuditedGroup, at: Partition, position: Row, visible: list[Row], since: list[Row], deleted: list[int]
) -> Iterator[Row]:
    """The violation of a position, if any. ``visible``: commits and deletions that every read must show."""
    commit = next((row for row in reversed(visible) if row["event"] == COMMIT), None)
    gone_ms = max((row["at_ms"] for row in visible if row["event"] != COMMIT), default=-1)
    if commit is None or gone_ms >= commit["at_ms"]:
        return
    shown = shown_by(position)
    lately = [row["offset"] if row["event"] == COMMIT else -1 for row in since if row["at_ms"] > commit["at_ms"]]
    least = min(commit["offset"], *lately) if lately else commit["offset"]
    if shown >= least or any(commit["at_ms"] <= at_ms <= position["at_ms"] for at_ms in deleted):
        return
    topic, partition = at
    yield group.violation(
        COMMITS_NOT_SEEN,
        position["at_ms"],
        topic=topic,
        partition=partition,
        generation=position["generation"],
        members=[position["member_id"]],
        expected=least,
        found=shown,
        text=f"{topic}-{partition} was committed at {commit['offset']}, {position['at_ms'] - commit['at_ms']} ms "
        f"before it was read as {shown} (-1: as if there were no commit)",
        evidence=[proof(commit), proof(position)],
        confidence=position["confidence"],
    )


def shown_by(position: Row) -> int:
    """The committed offset that a position shows; -1 for one that is taken as if there were no commit."""
    return int(position["offset"]) if position["origin"] == "committed" else -1
