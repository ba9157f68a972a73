"""The rebalances of one group at one coordinator, fact by fact: what is known between two batches, and what changes it.

The rows are those that :mod:`pipeline.tables.rebalances` makes of the same facts, in the columns that are settled when
a rebalance ends (:data:`COLUMNS`). A row is finished, and final, when the coordinator itself says how it ended: the
group is Stable again, nobody is left, it had to begin again, or the coordinator lost or loaded the group. What takes
facts of other coordinators or later ones to know (numbers over all coordinators, storms, that a coordinator never came
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
FOLLOWED: Final = (
    *_JOINS,
    "member_removed",
    "rebalance_started",
    "join_phase_ended",
    "assignment_received",
    "rebalance_completed",
    "group_emptied",
    "group_loaded",
    "group_deleted",
    "group_state_changed",
)
"""The facts that change something here."""

_CLIENT: Final = re.compile(r"(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Kafka: a dynamic member's id is its client.id with a UUID behind it."""


class Fact(Protocol):
    """The columns of an event that are looked at; those that the fact does not have are none."""

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
    rebalances: bool | None
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


READS: Final = tuple(Fact.__annotations__)
"""Columns of events that a fact must come with."""


@dataclass(slots=True)
class Rebalance:
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


COLUMNS: Final = ("run_id", "day", "group_id", "source", "node", *(each.name for each in fields(Rebalance)))
"""Columns of ``rebalances`` that a finished row has here."""


@dataclass(slots=True)
class Comings:
    """Who came and went for one rebalance."""

    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    joins: int = 0
    joins_at_ms: int = 0
    slowest_at_ms: int | None = None
    slowest_member_id: str | None = None

    def add(self, fact: Fact) -> None:
        """Take in a fact about a member."""
        kinds = {"member_joined": self.joined, "static_member_replaced": self.replaced}
        if fact.event == "member_removed":
            kinds[fact.event] = self.left if fact.cause == "left" else self.evicted
        whose = kinds.get(fact.event)
        if whose is not None and fact.member_id is not None and fact.member_id not in whose:
            whose.append(fact.member_id)
        if fact.event in _JOINS:
            self.joins += 1
            self.joins_at_ms += fact.at_ms
            if self.slowest_at_ms is None or fact.at_ms >= self.slowest_at_ms:
                self.slowest_at_ms, self.slowest_member_id = fact.at_ms, fact.member_id


@dataclass(slots=True)
class Followed:
    """What is remembered of a group, in a run, at a coordinator."""

    state: str | None = None
    generation: int | None = None
    members: int = 0
    since_ms: int | None = None
    at_ms: int | None = None
    """Instant of the newest fact."""
    seen: int = 0
    """Number of the newest fact; none up to it counts any more."""
    attempt: int = 0
    open: Rebalance | None = None
    """The rebalance that goes on."""
    here: Comings = field(default_factory=Comings)
    """Who came and went for it."""
    ahead: Comings = field(default_factory=Comings)
    """Who came and went since then, which makes the next one begin."""

    def follow(self, facts: Iterable[Fact]) -> Iterator[Rebalance]:
        """Take in the facts of a batch, in whatever order they come, and give the rebalances that they finish."""
        for fact in sorted(facts, key=attrgetter("seq")):
            if fact.seq > self.seen:
                self.seen = fact.seq
                done = self._take(fact)
                self._look(fact)
                if done is not None:
                    yield done

    def _take(self, fact: Fact) -> Rebalance | None:
        if fact.event == "rebalance_started":
            return self._begin(fact)
        if fact.event in (*_JOINS, "member_removed"):
            self._count(fact)
            return None
        going_on = self.open
        if going_on is None:
            return None
        match fact.event:
            case "join_phase_ended":
                going_on.generation_to, going_on.joined_at_ms = fact.generation, fact.at_ms
                going_on.leader, going_on.protocol = fact.leader, fact.protocol
                going_on.members_after, going_on.absent = fact.members, fact.absent
                going_on.join_ms = fact.join_ms
            case "assignment_received" if going_on.assigned_at_ms is None:
                going_on.assigned_at_ms = fact.at_ms
            case "rebalance_completed":
                return self._complete(going_on, fact)
            case "group_emptied":
                return self._finish(fact.at_ms, EMPTIED)
            case "group_loaded" | "group_deleted":
                return self._finish(fact.at_ms, ABORTED)
            case "group_state_changed" if fact.state == "Dead":
                return self._finish(fact.at_ms, ABORTED)
        return None

    def _begin(self, fact: Fact) -> Rebalance | None:
        done = None
        again = self.open is not None and fact.previous_state in ("CompletingRebalance", None)
        if again:
            done = self._finish(fact.at_ms, SUPERSEDED)
        # Else its coordinator was interrupted and never said how the one before ended.
        self.attempt = self.attempt + 1 if again else 1
        self.here, self.ahead = self.ahead, Comings()
        self.open = Rebalance(
            rebalance_id=f"{fact.run_id}/{fact.group_id}/{fact.node}/{fact.seq}",
            attempt=self.attempt,
            generation_from=fact.generation,
            prepared_at_ms=fact.at_ms,
            previous_state=fact.previous_state,
            initial=fact.initial,
            cause=fact.cause or "unknown",
            cause_member_id=fact.cause_member_id,
            cause_group_instance_id=fact.cause_group_instance_id,
            cause_client_id=_client_id(fact),
            client_reason=fact.client_reason,
            members_before=fact.members,
        )
        return done

    def _count(self, fact: Fact) -> None:
        joins = fact.state == "PreparingRebalance"
        if fact.event == "static_member_replaced" and not joins and not fact.rebalances:
            return
        (self.here if joins else self.ahead).add(fact)

    def _complete(self, going_on: Rebalance, fact: Fact) -> Rebalance:
        going_on.generation_to, going_on.stable_at_ms = fact.generation, fact.at_ms
        going_on.leader = fact.leader or going_on.leader
        going_on.previous_leader = fact.previous_leader
        going_on.protocol = fact.protocol or going_on.protocol
        going_on.members_after = fact.members
        going_on.moved, going_on.regained = fact.moved, fact.regained
        going_on.join_ms, going_on.sync_ms = fact.join_ms, fact.sync_ms
        if fact.previous_leader is not None:
            going_on.leader_changed = fact.previous_leader != going_on.leader
        done = self._finish(fact.at_ms, COMPLETED)
        done.members_before = fact.members_before
        return done

    def _finish(self, at_ms: int, outcome: str) -> Rebalance:
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

    def _look(self, fact: Fact) -> None:
        """What to show of the group."""
        self.at_ms = fact.at_ms
        if fact.event in ("group_state_changed", "group_loaded", "group_deleted"):
            self.state = "Dead" if fact.event == "group_deleted" else fact.state
            self.since_ms = fact.at_ms
        if fact.generation is not None:
            self.generation = fact.generation
        if fact.members is not None:
            self.members = len(fact.members)
        elif fact.event in ("group_emptied", "group_deleted"):
            self.members = 0
        elif fact.event in ("member_joined", "member_removed"):
            self.members = max(0, self.members + (1 if fact.event == "member_joined" else -1))


def as_row(where: tuple[str, ...], rebalance: Rebalance) -> dict[str, Any]:
    """A rebalance with all of :data:`COLUMNS`; ``where`` is run, group, source and node."""
    named = dict(zip(("run_id", "group_id", "source", "node"), where, strict=True))
    return {**named, "day": _day_of(rebalance.prepared_at_ms), **asdict(rebalance)}


def _client_id(fact: Fact) -> str | None:
    if fact.cause_group_instance_id is not None or fact.cause_member_id is None:
        return None
    found = _CLIENT.fullmatch(fact.cause_member_id)
    return found[1] if found else None


def _day_of(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms // 1000, UTC).date()
