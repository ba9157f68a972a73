"""Static members that made a Stable group rebalance though they need not have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.audits.rows import AuditedGroup, proof
from rejoin.pipeline.tables.groups.rows import Row

STATIC_MEMBERS: Final = "static-member-rebalanced"


def static_members_that_rebalanced(group: AuditedGroup) -> Iterator[Row]:
    """A static member that made a Stable group rebalance though it need not have.

    Kafka: a static member never sends LeaveGroup (KIP-345), and a member that is back in time with the same instance id
    takes over the assignment without a rebalance. Found are those that left all the same, and those that were taken out
    by LeaveGroup, if only by an administrator, and were back within their session timeout. Not found are sessions that
    expired, and other subscriptions. ``expected``: the session timeout in ms; ``found``: how long it was away, -1 where
    it left by itself.
    """
    sessions: dict[str | None, list[Row]] = defaultdict(list)
    for each in group.sessions:
        if each["group_instance_id"] is not None:
            sessions[each["member_id"]].append(each)
    for row in group.rebalances:
        if row["cause_group_instance_id"] is None or row["previous_state"] != "Stable":
            continue
        for session in sessions[row["cause_member_id"]] or (_UNKNOWN,):
            came = row["cause"] == "join-new" and _was_back_in_time(session)
            if came or (row["cause"] == "leave" and "admin" not in (row["client_reason"] or "")):
                yield _violation(group, row, session, came=came)


_UNKNOWN: Final = dict.fromkeys(("session_timeout_ms", "away_ms", "previous_end"))


def _was_back_in_time(session: Row) -> bool:
    away_ms, timeout_ms = session["away_ms"], session["session_timeout_ms"]
    known = away_ms is not None and timeout_ms is not None
    return session["previous_end"] == "left" and known and bool(away_ms <= timeout_ms)


def _violation(group: AuditedGroup, row: Row, session: Row, *, came: bool) -> Row:
    who, timeout_ms = row["cause_group_instance_id"], session["session_timeout_ms"]
    began = {"seq": int(row["rebalance_id"].rpartition("/")[2]), "at_ms": row["prepared_at_ms"]}
    return group.violation(
        STATIC_MEMBERS,
        row["prepared_at_ms"],
        to_ms=row["ended_at_ms"],
        generation=row["generation_from"],
        members=[row["cause_member_id"]],
        expected=timeout_ms,
        found=session["away_ms"] if came else -1,
        text=f"static member {who} was away for {session['away_ms']} ms of its session timeout of {timeout_ms} ms, and "
        "the group rebalanced"
        if came
        else f"static member {who} left the group by LeaveGroup",
        evidence=[proof({**row, **began, "event": "rebalance_started"})],
        confidence=row["confidence"],
    )
