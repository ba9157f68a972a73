"""The rebalances of one group at one coordinator, event by event: what is known between batches, and what changes it.

The rows are those that :mod:`pipeline.tables.rebalances` makes of the same events, in the columns that are settled when
a rebalance ends (:data:`COLUMNS`). A row is finished, and final, when the coordinator itself says how it ended: the
group is Stable again, no member is left, it had to begin again, or the coordinator lost or loaded the group. What takes
events of other coordinators or later ones to know (numbers over all coordinators, storms, that a coordinator never came
back) is for the tables that are made of the whole journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime
from operator import attrgetter
from typing import Any, Final, Protocol

COMPLETED: Final = "completed"
SUPERSEDED: Final = "superseded"
EMPTIED: Final = "emptied"
ABORTED: Final = "aborted"

_JOINS: Final = ("member_joined", "member_rejoined", "static_member_replaced")
_GATHERING: Final = ("PreparingRebalance", "Assigning")
_HANDING_OUT: Final = ("CompletingRebalance", "Reconciling")
FOLLOWED: Final = (
    *_JOINS,
    "member_removed",
    "rebalance_started",
    "join_phase_ended",
    "target_assignment_computed",
    "member_reconciled",
    "revocation_completed",
    "assignment_received",
    "rebalance_completed",
    "group_emptied",
    "group_loaded",
    "group_deleted",
    "group_state_changed",
)
"""The events that change something here."""

_CLIENT: Final = re.compile(r"(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Kafka: a dynamic member's id is its client.id with a UUID behind it."""


class FollowedEvent(Protocol):
    """The columns of an event that are looked at; those that the event does not have are none."""

    run_id: str
    group_id: str
    source: str
    node: str
    seq: int
    at_ms: int
    event: str
    member_id: str | None
    generation: int | None
    state: str | None
    previous_state: str | None
    cause: str | None
    cause_member_id: str | None
    cause_group_instance_id: str | None
    client_reason: str | None
    initial: bool | None
    rebalance: bool | None
    leader: str | None
    previous_leader: str | None
    protocol: str | None
    members: list[str] | None
    members_before: list[str] | None
    absent: list[str] | None
    moved: int | None
    regained: int | None
    join_ms: int | None
    sync_ms: int | None
    group_type: str | None
    revocation_ms: int | None
    partitions: list[Any] | None


READS: Final = tuple(FollowedEvent.__annotations__)
"""Columns of events that an event must come with."""


@dataclass(slots=True)
class FollowedRebalance:
    """A rebalance, from its beginning; what has not come yet is none. Names and units are those of ``rebalances``."""

    rebalance_id: str
    attempt: int
    generation_from: int | None
    prepared_at_ms: int
    previous_state: str | None
    initial: bool | None
    cause: str | None
    cause_member_id: str | None
    cause_group_instance_id: str | None
    cause_client_id: str | None
    client_reason: str | None
    members_before: list[str] | None
    generation_to: int | None = None
    joined_at_ms: int | None = None
    assigned_at_ms: int | None = None
    stable_at_ms: int | None = None
    ended_at_ms: int | None = None
    outcome: str | None = None
    members_after: list[str] | None = None
    joined: list[str] | None = None
    left: list[str] | None = None
    evicted: list[str] | None = None
    replaced: list[str] | None = None
    absent: list[str] | None = None
    leader: str | None = None
    previous_leader: str | None = None
    leader_changed: bool | None = None
    protocol: str | None = None
    moved: int | None = None
    regained: int | None = None
    join_ms: int | None = None
    sync_ms: int | None = None
    unavailable_ms: int | None = None
    members_waiting_ms: int | None = None
    slowest_member_id: str | None = None
    slowest_ms: int | None = None
    group_type: str | None = None
    given_up: int | None = None
    revocation_ms: int | None = None


COLUMNS: Final = ("run_id", "day", "group_id", "source", "node", *(each.name for each in fields(FollowedRebalance)))
"""Columns of ``rebalances`` that a finished row has here."""


@dataclass(slots=True)
class MembershipChanges:
    """Who came and went for one rebalance."""

    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    joins: int = 0
    joins_at_ms: int = 0
    slowest_at_ms: int | None = None
    slowest_member_id: str | None = None

    def add(self, event: FollowedEvent) -> None:
        """Take in an event about a member."""
        kinds = {"member_joined": self.joined, "static_member_replaced": self.replaced}
        if event.event == "member_removed":
            kinds[event.event] = self.left if event.cause == "left" else self.evicted
        whose = kinds.get(event.event)
        if whose is not None and event.member_id is not None and event.member_id not in whose:
            whose.append(event.member_id)
        if event.event in _JOINS:
            self.joins += 1
            self.joins_at_ms += event.at_ms
        moved_on = event.event in (*_JOINS, "member_reconciled")
        if moved_on and (self.slowest_at_ms is None or event.at_ms >= self.slowest_at_ms):
            self.slowest_at_ms, self.slowest_member_id = event.at_ms, event.member_id


@dataclass(slots=True)
class FollowedGroup:
    """What is remembered of a group, in a run, at a coordinator."""

    state: str | None = None
    generation: int | None = None
    members: int = 0
    since_ms: int | None = None
    at_ms: int | None = None
    """Instant of the newest event."""
    seen: int = 0
    """Number of the newest event; none up to it counts any more."""
    attempt: int = 0
    open: FollowedRebalance | None = None
    """The rebalance that goes on."""
    here: MembershipChanges = field(default_factory=MembershipChanges)
    """Who came and went for it."""
    ahead: MembershipChanges = field(default_factory=MembershipChanges)
    """Who came and went since then, which makes the next one begin."""

    def follow(self, events: Iterable[FollowedEvent]) -> Iterator[FollowedRebalance]:
        """Take in the events of a batch, in whatever order they come, and give the rebalances that they finish."""
        for event in sorted(events, key=attrgetter("seq")):
            if event.seq > self.seen:
                self.seen = event.seq
                done = self._take(event)
                self._look(event)
                if done is not None:
                    yield done

    def _take(self, event: FollowedEvent) -> FollowedRebalance | None:
        if event.event == "rebalance_started":
            return self._begin(event)
        if event.event in (*_JOINS, "member_removed"):
            self._count(event)
            return None
        going_on = self.open
        if going_on is None:
            return None
        match event.event:
            case "target_assignment_computed":
                going_on.generation_to, going_on.joined_at_ms = event.generation, event.at_ms
                going_on.protocol, going_on.join_ms = event.protocol, event.at_ms - going_on.prepared_at_ms
            case "member_reconciled":
                self.here.add(event)
            case "revocation_completed":
                going_on.given_up = (going_on.given_up or 0) + len(event.partitions or ())
                going_on.revocation_ms = (going_on.revocation_ms or 0) + (event.revocation_ms or 0)
            case "join_phase_ended":
                going_on.generation_to, going_on.joined_at_ms = event.generation, event.at_ms
                going_on.leader, going_on.protocol = event.leader, event.protocol
                going_on.members_after, going_on.absent = event.members, event.absent
                going_on.join_ms = event.join_ms
            case "assignment_received" if going_on.assigned_at_ms is None:
                going_on.assigned_at_ms = event.at_ms
            case "rebalance_completed":
                return self._complete(going_on, event)
            case "group_emptied":
                return self._finish(event.at_ms, EMPTIED)
            case "group_loaded" | "group_deleted":
                return self._finish(event.at_ms, ABORTED)
            case "group_state_changed" if event.state == "Dead":
                return self._finish(event.at_ms, ABORTED)
        return None

    def _begin(self, event: FollowedEvent) -> FollowedRebalance | None:
        done = None
        again = self.open is not None and event.previous_state in (*_HANDING_OUT, None)
        if again:
            done = self._finish(event.at_ms, SUPERSEDED)
        # Else its coordinator was interrupted and never said how the one before ended.
        self.attempt = self.attempt + 1 if again else 1
        self.here, self.ahead = self.ahead, MembershipChanges()
        self.open = FollowedRebalance(
            rebalance_id=f"{event.run_id}/{event.group_id}/{event.node}/{event.seq}",
            attempt=self.attempt,
            generation_from=event.generation,
            prepared_at_ms=event.at_ms,
            previous_state=event.previous_state,
            initial=event.initial,
            cause=event.cause or "unknown",
            cause_member_id=event.cause_member_id,
            cause_group_instance_id=event.cause_group_instance_id,
            cause_client_id=_client_id(event),
            client_reason=event.client_reason,
            members_before=event.members,
            group_type=event.group_type,
            given_up=0 if event.group_type == "consumer" else None,
            revocation_ms=0 if event.group_type == "consumer" else None,
        )
        return done

    def _count(self, event: FollowedEvent) -> None:
        joins = event.state in _GATHERING
        if event.event == "static_member_replaced" and not joins and not event.rebalance:
            return
        (self.here if joins else self.ahead).add(event)

    def _complete(self, going_on: FollowedRebalance, event: FollowedEvent) -> FollowedRebalance:
        going_on.generation_to, going_on.stable_at_ms = event.generation, event.at_ms
        going_on.leader = event.leader or going_on.leader
        going_on.previous_leader = event.previous_leader
        going_on.protocol = event.protocol or going_on.protocol
        going_on.members_after = event.members
        going_on.moved, going_on.regained = event.moved, event.regained
        going_on.join_ms, going_on.sync_ms = event.join_ms, event.sync_ms
        if event.previous_leader is not None:
            going_on.leader_changed = event.previous_leader != going_on.leader
        done = self._finish(event.at_ms, COMPLETED)
        done.members_before = event.members_before
        return done

    def _finish(self, at_ms: int, outcome: str) -> FollowedRebalance:
        assert self.open is not None
        done, self.open = self.open, None
        who = self.here
        done.outcome, done.ended_at_ms = outcome, at_ms
        done.unavailable_ms = at_ms - done.prepared_at_ms
        done.joined, done.left, done.evicted, done.replaced = who.joined, who.left, who.evicted, who.replaced
        done.members_before = [member for member in done.members_before or () if member not in who.joined]
        if who.joins and done.joined_at_ms is not None:
            done.members_waiting_ms = done.joined_at_ms * who.joins - who.joins_at_ms
        if who.slowest_at_ms is not None and who.slowest_at_ms >= done.prepared_at_ms:
            done.slowest_member_id = who.slowest_member_id
            done.slowest_ms = who.slowest_at_ms - done.prepared_at_ms
        return done

    def _look(self, event: FollowedEvent) -> None:
        """What to show of the group."""
        self.at_ms = event.at_ms
        if event.event in ("group_state_changed", "group_loaded", "group_deleted"):
            self.state = "Dead" if event.event == "group_deleted" else event.state
            self.since_ms = event.at_ms
        if event.generation is not None:
            self.generation = event.generation
        if event.members is not None:
            self.members = len(event.members)
        elif event.event in ("group_emptied", "group_deleted"):
            self.members = 0
        elif event.event in ("member_joined", "member_removed"):
            self.members = max(0, self.members + (1 if event.event == "member_joined" else -1))


def as_row(where: tuple[str, ...], rebalance: FollowedRebalance) -> dict[str, Any]:
    """A rebalance with all of :data:`COLUMNS`; ``where`` is run, group, source and node."""
    named = dict(zip(("run_id", "group_id", "source", "node"), where, strict=True))
    return {**named, "day": _day_of(rebalance.prepared_at_ms), **asdict(rebalance)}


def _client_id(event: FollowedEvent) -> str | None:
    if event.cause_group_instance_id is not None or event.cause_member_id is None:
        return None
    found = _CLIENT.fullmatch(event.cause_member_id)
    return found[1] if found else None


def _day_of(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms // 1000, UTC).date()
