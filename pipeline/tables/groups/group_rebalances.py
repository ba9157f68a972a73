"""The rebalances of one group at one coordinator, event by event: the one definition of what a rebalance is.

A report takes in all events of a group, and a step of a watch those that still matter; both get the same rows. A row is
one beginning of a join phase, or of a consumer group's way to a new epoch (``rebalance_started``). All events up to
the next beginning belong to it. Members that join, leave or rejoin while the group is not in a join phase make the
*next* one begin (Kafka: GroupCoordinator's ``maybePrepareRebalance``), so they belong to that; the event has the
group's state before it, which separates the two. In a log without states they belong to the one before.

A rebalance has ended when the coordinator says how: the group is Stable again, no member is left, it had to begin
again, or the coordinator lost or loaded the group. What takes events of other coordinators to know is added by
:mod:`rejoin.pipeline.tables.groups.rebalances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rejoin.pipeline.tables.groups.rebalance_events import (
    EMPTIED,
    ENDS,
    GATHERING,
    HANDING_OUT,
    JOINS,
    MEMBERSHIP,
    OPEN,
    SUPERSEDED,
    TARGETS,
)
from rejoin.pipeline.tables.groups.rows import EventOfGroup, Ownership, date_of
from rejoin.pipeline.vocabulary import EXACT, INFERRED

_CLIENT: Final = re.compile(r"(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Kafka: a dynamic member's id is its client.id with a UUID behind it."""

Value = TypeVar("Value")


@dataclass(slots=True)
class JoinPhase:
    """The end of a join phase, or of computing a target assignment."""

    at_ms: int | None
    generation: int | None
    leader: str | None
    protocol: str | None
    members: list[str] | None
    absent: list[str] | None
    join_ms: int | None


@dataclass(slots=True)
class RebalanceEnd:
    """The completion of a rebalance."""

    at_ms: int | None
    generation: int | None
    leader: str | None
    previous_leader: str | None
    protocol: str | None
    members: list[str] | None
    members_before: list[str] | None
    owned_before: int | None
    owned_after: int | None
    moved: int | None
    regained: int | None
    join_ms: int | None
    sync_ms: int | None


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
    inferred: bool = False
    """Whether any event of the rebalance is a conclusion."""

    def add(self, event: EventOfGroup) -> None:
        """Take in an event about a member."""
        whose = self._list_of(event)
        if whose is not None and event.member_id is not None and event.member_id not in whose:
            whose.append(event.member_id)
        if event.event in JOINS:
            self.joins += 1
            self.joins_at_ms += event.at_ms
        moved_on = event.event in JOINS or event.event == "member_reconciled"
        if moved_on and (self.slowest_at_ms is None or event.at_ms >= self.slowest_at_ms):
            self.slowest_at_ms, self.slowest_member_id = event.at_ms, event.member_id

    def _list_of(self, event: EventOfGroup) -> list[str] | None:
        match event.event:
            case "member_joined":
                return self.joined
            case "static_member_replaced":
                return self.replaced
            case "member_removed" if event.cause is not None:
                return self.left if event.cause == "left" else self.evicted
        return None


@dataclass(slots=True)
class Rebalance:
    """A rebalance from its beginning; what has not come yet is none."""

    rebalance_id: str
    seq: int
    attempt: int
    prepared_at_ms: int
    generation_from: int | None
    previous_state: str | None
    cause: str
    cause_member_id: str | None
    cause_group_instance_id: str | None
    client_reason: str | None
    initial: bool | None
    members: list[str] | None
    """Members of the group when the rebalance began; of a consumer group when it was last at rest."""
    group_type: str | None
    file: str | None
    line: int | None
    leader_before: str | None
    """Who led the last rebalance here of which that is known."""
    changes: MembershipChanges
    target: JoinPhase | None = None
    assigned_at_ms: int | None = None
    assigned_by: str | None = None
    completion: RebalanceEnd | None = None
    outcome: str | None = None
    ended_at_ms: int | None = None
    next_at_ms: int | None = None
    """When the next one began, if the coordinator never said how this one ended."""
    given_up: int | None = None
    revocation_ms: int | None = None

    @property
    def leader(self) -> str | None:
        """Who leads it, as far as is known."""
        done, target = self.completion or _NO_END, self.target or _NO_TARGET
        return _first(done.leader, target.leader, self.assigned_by)

    def row(self) -> dict[str, Any]:
        """The row of the table ``rebalances``."""
        changes = self.changes
        return {
            "day": date_of(self.prepared_at_ms),
            "rebalance_id": self.rebalance_id,
            "group_type": self.group_type,
            "generation_from": self.generation_from,
            "prepared_at_ms": self.prepared_at_ms,
            "assigned_at_ms": self.assigned_at_ms,
            "ended_at_ms": self.ended_at_ms,
            "outcome": self.outcome or OPEN,
            "cause": self.cause,
            "cause_member_id": self.cause_member_id,
            "cause_group_instance_id": self.cause_group_instance_id,
            "cause_client_id": self._client_id(),
            "client_reason": self.client_reason,
            "previous_state": self.previous_state,
            "initial": self.initial,
            "attempt": self.attempt,
            "joined": changes.joined,
            "left": changes.left,
            "evicted": changes.evicted,
            "replaced": changes.replaced,
            **self._result(),
            **self._lengths(),
            "given_up": (self.given_up or 0) if self.group_type == "consumer" else None,
            "revocation_ms": (self.revocation_ms or 0) if self.group_type == "consumer" else None,
            "confidence": INFERRED if changes.inferred else EXACT,
            "file": self.file,
            "line": self.line,
        }

    def _result(self) -> dict[str, Any]:
        """The columns about the outcome."""
        target, done, leader = self.target or _NO_TARGET, self.completion or _NO_END, self.leader
        previous = done.previous_leader
        if previous is None and self.changes.inferred:
            previous = self.leader_before
        before = done.members_before
        if before is None and self.members is not None:
            before = [member for member in dict.fromkeys(self.members) if member not in self.changes.joined]
        return {
            "generation_to": target.generation if done.generation is None else done.generation,
            "members_before": before,
            "members_after": target.members if done.members is None else done.members,
            "absent": target.absent,
            "leader": leader,
            "previous_leader": previous,
            "leader_changed": None if previous is None or leader is None else previous != leader,
            "protocol": target.protocol if done.protocol is None else done.protocol,
            "owned_before": done.owned_before,
            "owned_after": done.owned_after,
            "moved": done.moved,
            "regained": done.regained,
            "stickiness": _stickiness(done),
        }

    def _lengths(self) -> dict[str, Any]:
        """The columns about durations, and about the member that took longest to join."""
        changes, prepared = self.changes, self.prepared_at_ms
        target, done = self.target or _NO_TARGET, self.completion or _NO_END
        joined_at, stable_at = target.at_ms, done.at_ms
        slowest = changes.slowest_at_ms
        came = slowest is not None and slowest >= prepared
        waits = changes.joins > 0 and joined_at is not None
        return {
            "joined_at_ms": joined_at,
            "stable_at_ms": stable_at,
            "join_ms": _first(done.join_ms, target.join_ms, _between(prepared, joined_at)),
            "sync_ms": _first(done.sync_ms, _between(joined_at, stable_at)),
            "unavailable_ms": _between(prepared, self.ended_at_ms),
            "members_waiting_ms": (joined_at or 0) * changes.joins - changes.joins_at_ms if waits else None,
            "slowest_member_id": changes.slowest_member_id if came else None,
            "slowest_ms": _between(prepared, slowest) if came else None,
        }

    def _client_id(self) -> str | None:
        if self.cause_group_instance_id is not None or self.cause_member_id is None:
            return None
        found = _CLIENT.fullmatch(self.cause_member_id)
        return found[1] if found else None


_NO_TARGET: Final = JoinPhase(*[None] * 7)
_NO_END: Final = RebalanceEnd(*[None] * 13)


@dataclass(slots=True)
class GroupRebalances:
    """State of a group, in a run, at a coordinator, between two events."""

    leader: str | None = None
    """Who led the last rebalance of which that is known, the current one aside."""
    current: Rebalance | None = None
    """The last rebalance that began, whether or not it has ended."""
    ahead: MembershipChanges = field(default_factory=MembershipChanges)
    """Who came and went since then, which makes the next one begin."""

    def take(self, event: EventOfGroup) -> None:
        """Take in the next event."""
        name, current = event.event, self.current
        if name == "rebalance_started":
            self._begin(event)
        elif name in MEMBERSHIP:
            self._count(event)
        elif current is None or (name == "group_state_changed" and event.state != "Dead"):
            return
        elif name in ("member_reconciled", "revocation_completed"):
            self._advance(current, event)
        else:
            _note_confidence(current.changes, event)
            _move_on(current, event)

    def _begin(self, event: EventOfGroup) -> None:
        """Start the next rebalance; that the one before was superseded finishes it."""
        last = self.current
        if last is not None and last.outcome is None:
            if event.previous_state in (*HANDING_OUT, None):
                last.outcome, last.ended_at_ms = SUPERSEDED, event.at_ms
            else:
                # Its coordinator was interrupted and never said how it ended.
                last.next_at_ms = event.at_ms
        if last is not None:
            self.leader = last.leader or self.leader
        again = last is not None and last.outcome == SUPERSEDED
        parts = (event.run_id, event.group_id, event.node, str(event.seq))
        self.current = Rebalance(
            rebalance_id="/".join(part for part in parts if part is not None),
            seq=event.seq,
            attempt=last.attempt + 1 if last is not None and again else 1,
            prepared_at_ms=event.at_ms,
            generation_from=event.generation,
            previous_state=event.previous_state,
            cause=event.cause or "unknown",
            cause_member_id=event.cause_member_id,
            cause_group_instance_id=event.cause_group_instance_id,
            client_reason=event.client_reason,
            initial=event.initial,
            members=_members_at_rest(last, event.previous_state) if event.members is None else event.members,
            group_type=event.group_type,
            file=event.file,
            line=event.line,
            leader_before=self.leader,
            changes=self.ahead,
        )
        self.ahead = MembershipChanges()
        _note_confidence(self.current.changes, event)

    def _count(self, event: EventOfGroup) -> None:
        gathers = event.state in GATHERING
        if event.event == "static_member_replaced" and not gathers and not event.rebalance:
            return
        changes = self.ahead
        if gathers or event.state is None:
            if self.current is None:
                return
            changes = self.current.changes
        _note_confidence(changes, event)
        changes.add(event)

    @staticmethod
    def _advance(current: Rebalance, event: EventOfGroup) -> None:
        """Count a step of a member of a consumer group. A step after the end of the rebalance counts for none."""
        if current.completion is not None or current.outcome == EMPTIED:
            return
        _note_confidence(current.changes, event)
        if event.event == "member_reconciled":
            current.changes.add(event)
            return
        if event.partitions is not None:
            current.given_up = (current.given_up or 0) + len(event.partitions)
        if event.revocation_ms is not None:
            current.revocation_ms = (current.revocation_ms or 0) + event.revocation_ms


def _members_at_rest(last: Rebalance | None, previous_state: str | None) -> list[str] | None:
    """The members when a group was last at rest, where the beginning of a rebalance does not name them.

    None where that is not known: a source that begins in the middle of a group's life says nothing of them.
    """
    if last is None:
        return [] if previous_state == "Empty" else None
    done = last.completion
    return last.members if done is None or done.members is None else done.members


def _move_on(current: Rebalance, event: EventOfGroup) -> None:
    """Take in what the coordinator says of a rebalance; the first of each kind counts."""
    name = event.event
    if name in TARGETS:
        current.target = current.target or JoinPhase(
            event.at_ms,
            event.generation,
            event.leader,
            event.protocol,
            event.members,
            event.absent,
            event.join_ms,
        )
        return
    if name == "assignment_received":
        if current.assigned_at_ms is None:
            current.assigned_at_ms, current.assigned_by = event.at_ms, event.leader
        return
    if name == "rebalance_completed" and current.completion is None:
        current.completion = _completion(current, event)
    if current.outcome is None:
        current.outcome, current.ended_at_ms = ENDS[name], event.at_ms


def _completion(current: Rebalance, event: EventOfGroup) -> RebalanceEnd:
    before, after = event.owned_before, event.owned_after
    members = event.members
    if members is None and current.target is not None:
        members = current.target.members
    moved, regained = event.moved, event.regained
    if before is not None and after is not None and (moved is None or regained is None):
        changed = changed_hands(before, after, members or ())
        moved, regained = (changed[0] if moved is None else moved, changed[1] if regained is None else regained)
    return RebalanceEnd(
        event.at_ms,
        event.generation,
        event.leader,
        event.previous_leader,
        event.protocol,
        event.members,
        event.members_before,
        None if before is None else len(before),
        None if after is None else len(after),
        moved,
        regained,
        event.join_ms,
        event.sync_ms,
    )


def changed_hands(before: Sequence[Ownership], after: Sequence[Ownership], members: Iterable[str]) -> tuple[int, int]:
    """How many partitions have another owner while the one before remains a member, and how many had none or lost it.

    For sources that have the owners, but not what moved.
    """
    owners = {(topic, partition): member_id for member_id, topic, partition in before}
    remain = set(members)
    moved = regained = 0
    for member_id, topic, partition in after:
        owner = owners.get((topic, partition))
        if owner is None or owner not in remain:
            regained += 1
        elif owner != member_id:
            moved += 1
    return moved, regained


def _note_confidence(changes: MembershipChanges, event: EventOfGroup) -> None:
    if event.confidence is not None and event.confidence != EXACT:
        changes.inferred = True


def _stickiness(done: RebalanceEnd) -> float | None:
    if done.owned_after is None or done.moved is None or done.regained is None:
        return None
    could = done.owned_after - done.regained
    return (could - done.moved) / could if could > 0 else None


def _between(begin_ms: int | None, end_ms: int | None) -> int | None:
    return None if begin_ms is None or end_ms is None else end_ms - begin_ms


def _first(*values: Value | None) -> Value | None:
    return next((value for value in values if value is not None), None)
