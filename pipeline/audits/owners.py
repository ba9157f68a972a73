"""Partitions that two consumers owned at one time: those that Kafka allows, and those that must never happen.

A member that was removed and has not noticed yet, since its process paused or its handler is stuck, goes on with its
partitions while the coordinator has given them to others. Records that it processes meanwhile are processed twice, and
its commits are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from rejoin.pipeline.audits.rows import AuditedGroup, proves_owner, start_of
from rejoin.pipeline.tables.groups.rows import Row
from rejoin.pipeline.vocabulary import AFTER_REMOVAL, INFERRED

TWO_OWNERS: Final = "two-owners"
POLL_TIMEOUT: Final = "poll_timeout_exceeded"
_REMOVALS: Final = {
    "session-expiry": "its session ended",
    "did-not-rejoin": "it did not rejoin in time",
    "rebalance-expiry": "it did not give up partitions in time",
    "sync-expiry": "it sent no SyncGroup in time",
    "replaced": "another process took its group.instance.id",
    POLL_TIMEOUT: "it did not poll in time",
}
"""Ends of a member's session that its application does not notice, with their texts. After a poll that was too late the
thread of the member's heartbeats left."""
SKEW_MS: Final = 1_000
"""Clocks of consumers and of coordinators differ by so much."""

Removals = Mapping[str | None, list[tuple[int, str]]]
"""By member: when it was removed without its application, and why."""


def two_owners(group: AuditedGroup) -> Iterator[Row]:
    """A partition that two consumers owned at one time. ``found``: for how many ms; ``expected``: 0.

    Where the first was removed before the second got the partition, the kind is :data:`AFTER_REMOVAL`.
    """
    owned: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for each in group.intervals:
        if each["kind"] == "owned":
            owned[each["topic"], each["partition"], each["owner"]].append(each)
    removals = _removals(group)
    for second in group.intervals:
        if second["kind"] == "owned" and second["overlap_ms"] > 0:
            for first in owned[second["topic"], second["partition"], second["overlaps_owner"]]:
                if first["from_ms"] <= second["from_ms"] < first["to_ms"]:
                    found = _violation(group, first, second, removals)
                    if found["kind"] != TWO_OWNERS or (proves_owner(first) and proves_owner(second)):
                        yield found


def _violation(group: AuditedGroup, first: Row, second: Row, removals: Removals) -> Row:
    until_ms = second["from_ms"] + SKEW_MS
    during = (why for at_ms, why in removals[first["member_id"]] if first["from_ms"] <= at_ms <= until_ms)
    removed = next(during, None)
    both = f"{second['topic']}-{second['partition']} for {second['overlap_ms']} ms"
    text = (
        f"{first['owner']} and {second['owner']} both owned {both}"
        if removed is None
        else f"{first['owner']} had been removed ({_REMOVALS[removed]}) and went on with {both} beside "
        f"{second['owner']}"
    )
    return group.violation(
        TWO_OWNERS if removed is None else AFTER_REMOVAL,
        second["from_ms"],
        topic=second["topic"],
        partition=second["partition"],
        to_ms=min(first["to_ms"], second["to_ms"]),
        generation=second["generation"],
        members=[first["member_id"], second["member_id"]],
        expected=0,
        found=second["overlap_ms"],
        text=text,
        evidence=[
            start_of(each, "rebalance_completed" if each["confidence"] == INFERRED else "partitions_assigned")
            for each in (first, second)
        ],
        confidence=max((each["confidence"] for each in (first, second) if each["confidence"]), default=None),
    )


def _removals(group: AuditedGroup) -> Removals:
    found: dict[str | None, list[tuple[int, str]]] = defaultdict(list)
    for event in group.events:
        if event["event"] == POLL_TIMEOUT:
            found[event["member_id"]].append((event["at_ms"], POLL_TIMEOUT))
    for session in group.sessions:
        left_late = session["end"] == "left" and (session["leave_reason"] or "").startswith("consumer poll timeout")
        why = POLL_TIMEOUT if left_late else session["end"]
        if why in _REMOVALS and session["ended_at_ms"] is not None:
            found[session["member_id"]].append((session["ended_at_ms"], why))
    for removals in found.values():
        removals.sort()
    return found
