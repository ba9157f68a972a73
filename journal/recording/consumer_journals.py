"""Read ahead from consumers' own events: who writes them, the lane of each member, and its last event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.journal.events import client
from rejoin.journal.events.base import Event

MEMBER_STATES: Final[dict[type[client.MemberEvent], str]] = {
    client.JoinSent: "PREPARING_REBALANCE",
    client.GenerationJoined: "COMPLETING_REBALANCE",
    client.GroupJoined: "STABLE",
    client.GroupSynced: "STABLE",
    client.TargetAssignmentReceived: "RECONCILING",
    client.AssignmentAcknowledged: "STABLE",
    client.MembershipReset: "UNJOINED",
    client.GroupLeft: "UNJOINED",
    client.Fenced: "FENCED",
}
"""The state of a member, by the event that its consumer writes as it begins."""


class ConsumerJournals:
    """Read from a whole recording before its rows are made: a coordinator's event may come before the consumer's."""

    def __init__(self, events: Iterable[tuple[int, Event]] = ()) -> None:
        """``events``: instants, as the rows will have them, and the events."""
        self._writers: set[tuple[str, str]] = set()
        self._lanes: dict[str, str] = {}
        self._last_at: dict[str, int] = {}
        for at, event in events:
            if not isinstance(event, client.MemberEvent) or event.group_id is None:
                continue
            if type(event) in MEMBER_STATES:
                self._writers.add((event.group_id, event.client_id))
            if event.member_id and event.client_id:
                self._lanes.setdefault(event.member_id, event.client_id)
                self._last_at[event.member_id] = at

    def writes(self, group_id: str, client_id: str) -> bool:
        """Whether a consumer writes how its membership goes on. Some libraries log their failures alone."""
        return (group_id, client_id) in self._writers

    def lane_of(self, member_id: str) -> str:
        """The client id under which a member writes; empty where it writes nothing."""
        return self._lanes.get(member_id, "")

    def is_silent_after(self, member_id: str, at: int) -> bool:
        """Whether a member writes nothing after an instant: its process is dead, or its log ends there."""
        return self._last_at.get(member_id, -1) <= at


NO_JOURNALS: Final = ConsumerJournals()
