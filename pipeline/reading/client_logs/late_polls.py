"""Late polls of consumers whose logs have no member ids, tied to the members that a broker's log has leaving then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from rejoin.pipeline.reading.broker_logs.groups.membership import UUID, EventRow

WITHIN_MS: Final = 2_000
"""A consumer that has not polled in time leaves within this, by the clocks of two machines."""


def with_members(rows: Iterable[EventRow], events: Iterable[EventRow]) -> Iterator[EventRow]:
    """Rows of consumers, late polls with the member of the same client that left then. ``events``: the broker's."""
    changes: dict[str, list[tuple[int, bool, str]]] = defaultdict(list)
    for event in events:
        if event["event"] in ("member_removed", "member_joined") and event.get("member_id"):
            member, is_leave = str(event["member_id"]), event["event"] == "member_removed"
            changes[event.get("client_id") or UUID.sub("", member)].append((event["at_ms"], is_leave, member))
    for row in rows:
        if row["event"] == "poll_timeout_exceeded" and not row.get("member_id"):
            member_id = _left_by(row["at_ms"], sorted(changes.get(str(row.get("client_id")), ())))
            yield row if member_id is None else row | {"member_id": member_id}
        else:
            yield row


def _left_by(at_ms: int, changes: list[tuple[int, bool, str]]) -> str | None:
    """The member that left when the line was written; or, as lines may be handed out with the next poll, the one whose
    client came back then."""
    near = [(abs(when - at_ms), member) for when, is_leave, member in changes if is_leave]
    if near and min(near)[0] <= WITHIN_MS:
        return min(near)[1]
    is_back = any(abs(when - at_ms) <= WITHIN_MS for when, is_leave, _ in changes if not is_leave)
    left = [member for when, is_leave, member in changes if is_leave and when < at_ms]
    return left[-1] if is_back and left else None
