"""Partitions that a member owns and does not read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import HIGH, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, span
from rejoin.pipeline.findings.observed_rows import OwnedPartition

STANDS_MS: Final = 60_000
"""A committed offset that stands for less is nothing to speak of: consumers commit every few seconds."""
_SNAPSHOTS: Final = 3
_LONGER_THAN_USUAL: Final = 3


def owned_not_moving(causes: Causes) -> Iterator[Finding]:
    """A member owns partitions with records to read, and their committed offsets do not move."""
    history = causes.history
    stuck: dict[str, list[OwnedPartition]] = defaultdict(list)
    moving: dict[str, int] = defaultdict(int)
    for each in history.progress:
        if _stands(each, _usual_ms(history.progress)):
            stuck[each.member_id].append(each)
        elif each.moves:
            moving[each.member_id] += 1
    for member_id, rows in stuck.items():
        yield _finding(history.group_id, rows, moving[member_id])


def _usual_ms(rows: Sequence[OwnedPartition]) -> int:
    """The longest time between two commits anywhere in the group, while it went on."""
    return max((each.longest_move_ms for each in rows), default=0)


def _stands(each: OwnedPartition, usual_ms: int) -> bool:
    if each.committed is None or not each.lag or each.lag_then == 0 or each.snapshots < _SNAPSHOTS:
        return False
    # One record behind may be the marker of a transaction, which no consumer reads.
    to_read = bool(each.written) or each.lag > 1
    return to_read and each.at_ms - each.since_ms >= max(STANDS_MS, _LONGER_THAN_USUAL * usual_ms)


def _finding(group_id: str, rows: Sequence[OwnedPartition], moving: int) -> Finding:
    first, last = min(each.since_ms for each in rows), max(each.at_ms for each in rows)
    owner, lag = rows[0].owner, sum(each.lag or 0 for each in rows)
    partitions = names(f"{each.topic}-{each.partition}" for each in rows)
    written = sum(each.written or 0 for each in rows)
    if moving:
        why = (
            f"Its other partitions move ({moving}), so the consumer is alive: a record that its handler cannot "
            "process, a partition that the application has paused, or with isolation.level=read_committed a "
            "transaction that is open."
        )
        advice = (
            f"Look at the record at offset {rows[0].committed} of {rows[0].topic}-{rows[0].partition}, and at what "
            f"{owner} logs about it."
        )
    else:
        why = (
            "None of its partitions moves, and its heartbeats go on: a handler that hangs, or a consumer that does not "
            "commit."
        )
        advice = (
            f"Take a thread dump of {owner} and look at what its handler waits for. max.poll.interval.ms is how long "
            "the group waits before it takes the partitions away."
        )
    return Finding(
        "owned-not-moving",
        f"{owner} owns {count(len(rows), 'partition')} and reads none of "
        f"{'it' if len(rows) == 1 else 'them'}: lag {lag:,}",
        f"{owner} of {group_id} is assigned {partitions}, and committed nothing there for {span(last - first)} "
        f"({period(first, last)}), with {count(lag, 'record')} to read, {written:,} of them written meanwhile. {why}",
        (last - first) / 1_000,
        first,
        last,
        setting=None if moving else "max.poll.interval.ms",
        advice=advice,
        numbers={"partitions": len(rows), "lag": lag, "written": written, "stands_ms": last - first},
        members=[rows[0].member_id],
        exact=False,
        severity=MEDIUM if moving else HIGH,
    )
