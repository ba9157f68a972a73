"""Partitions without an owner for longer than rebalances and the session of a dead owner explain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from rejoin.pipeline.audits.rows import AuditedGroup, nulls_first, proves_owner, start_of
from rejoin.pipeline.tables.groups.rows import Row

UNEXPLAINED_GAPS: Final = "unexplained-gap"
TOLERANCE_MS: Final = 5_000
"""A gap may be longer than its rebalances by so much: answers travel, and metadata of a new topic takes a while."""
_DIED: Final = ("crashed", "gone", "expired", "stopped")
_NOTICED_LATE: Final = ("session-expiry", "replaced")


def unexplained_gaps(group: AuditedGroup) -> Iterator[Row]:
    """A partition without an owner for too long.

    ``expected``: ms that rebalances explain; ``found``: ms without an owner. A gap after an owner that died, or stopped
    without leaving the group, is explained for its session timeout as well.
    """
    gaps = [each for each in group.intervals if _is_long(each)]
    owners: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for each in group.intervals if gaps else ():
        if each["kind"] == "owned":
            owners[each["topic"], each["partition"], each["to_ms"]].append(each)
    sessions: dict[str | None, list[Row]] = defaultdict(list)
    for each in group.sessions if gaps else ():
        sessions[each["member_id"]].append(each)
    for gap in gaps:
        from_ms, to_ms = gap["from_ms"], gap["to_ms"]
        before = [
            (owner, session)
            for owner in owners[gap["topic"], gap["partition"], from_ms]
            for session in sessions[owner["member_id"]] or ({},)
        ]
        last, session = max(before, key=_longest_session)
        if not proves_owner(last):
            continue
        silent = last["end"] in _DIED or session.get("end") in _NOTICED_LATE
        allowed = _rebalancing_ms(group, from_ms, to_ms) + (_session_ms(session) if silent else 0)
        if gap["length_ms"] > allowed + TOLERANCE_MS:
            yield group.violation(
                UNEXPLAINED_GAPS,
                from_ms,
                topic=gap["topic"],
                partition=gap["partition"],
                to_ms=to_ms,
                generation=gap["generation"],
                members=[last["member_id"]],
                expected=allowed,
                found=gap["length_ms"],
                text=f"{gap['topic']}-{gap['partition']} had no owner for {gap['length_ms']} ms, of which rebalances "
                f"and sessions explain {allowed}",
                evidence=[start_of(last, "partitions_assigned")],
                confidence=gap["confidence"],
            )


def _is_long(each: Row) -> bool:
    return each["kind"] == "gap" and each["end"] == "between" and bool(each["length_ms"] > TOLERANCE_MS)


def _longest_session(before: tuple[Row, Row]) -> tuple[Any, ...]:
    """The order among those who had a partition until a gap began."""
    last, session = before
    began = (last[name] for name in ("from_source", "node", "from_seq", "from_ms", "file", "line"))
    return nulls_first(_session_ms(session), last["end"], session.get("end"), last["member_id"], *began)


def _session_ms(session: Row) -> int:
    return session.get("session_timeout_ms") or 0


def _rebalancing_ms(group: AuditedGroup, from_ms: int, to_ms: int) -> int:
    """How much of a time rebalances take."""
    spans = ((each["prepared_at_ms"], each["ended_at_ms"]) for each in group.rebalances)
    return sum(
        min(ended_ms, to_ms) - max(began_ms, from_ms)
        for began_ms, ended_ms in spans
        if ended_ms is not None and began_ms < to_ms and ended_ms > from_ms
    )
