"""What the rules look at: the rows of one group, from all tables, by time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

from rejoin.pipeline.schemas import EXACT

POLL_TIMEOUT: Final = "consumer poll timeout has expired"
"""How the reason begins that a consumer gives when it did not poll within max.poll.interval.ms (KIP-800)."""
METADATA_CHANGED: Final = "cached metadata has changed"
"""How the reason begins that a leader gives when it rejoins because the group's topics changed."""
EAGER: Final = ("range", "roundrobin", "sticky")
"""Kafka's assignors that speak the eager protocol only (KIP-429)."""
COOPERATIVE: Final = "cooperative-sticky"
PAIRED_WITHIN_MS: Final = 10 * 60_000
"""The longest absence that counts as a restart."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObservedRebalance:
    """Of the table ``rebalances``."""

    rebalance_id: str
    source: str | None
    prepared_at_ms: int
    joined_at_ms: int | None
    ended_at_ms: int | None
    generation_from: int | None
    generation_to: int | None
    outcome: str
    cause: str
    cause_member_id: str | None
    client_reason: str | None
    initial: bool | None
    members_before: list[str] | None
    members_after: list[str] | None
    joined: list[str] | None
    left: list[str] | None
    evicted: list[str] | None
    protocol: str | None
    owned_before: int | None
    moved: int | None
    regained: int | None
    join_ms: int | None
    unavailable_ms: int | None
    members_waiting_ms: int | None
    slowest_member_id: str | None
    slowest_ms: int | None
    chain: int | None
    chain_length: int | None
    confidence: str | None

    @property
    def until_ms(self) -> int:
        """Its end, or its beginning if the end is not known."""
        return self.prepared_at_ms if self.ended_at_ms is None else self.ended_at_ms


@dataclass(frozen=True, slots=True)
class MemberSession:
    """Of the table ``member_sessions``."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    joined_at_ms: int | None
    ended_at_ms: int | None
    end: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    protocols: list[str] | None
    topics: list[str] | None
    leave_reason: str | None
    confidence: str | None

    @property
    def left_by_poll_timeout(self) -> bool:
        return (self.leave_reason or "").startswith(POLL_TIMEOUT)


@dataclass(frozen=True, slots=True)
class GenerationPauses:
    """Of the table ``pauses``: those that one generation ended, summed up."""

    generation_to: int
    kind: str
    pauses: int
    stopped_ms: int
    """Over all consumers that owned nothing."""
    ended_at_ms: int
    guessed: bool | None
    """Whether it is concluded from the coordinator's events alone."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Of the table ``balance``."""

    at_ms: int
    until_ms: int | None
    generation: int | None
    protocol: str | None
    members: int | None
    partitions: int | None
    least: int | None
    most: int | None
    idle_members: int | None
    most_member_id: str | None


@dataclass(frozen=True, slots=True)
class Owned:
    """Of the table ``ownership``: when a partition first had an owner."""

    topic: str
    partition: int
    first_ms: int


@dataclass(frozen=True, slots=True)
class ObservedLoss:
    """Of the table ``records``: the records of one partition that were never processed."""

    topic: str
    partition: int
    records: int
    ranges: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class ObservedEvent:
    """Of the table ``events``: one of :data:`READ_ONE_BY_ONE`, or an error."""

    source: str
    node: str | None
    seq: int | None
    at_ms: int
    event: str
    file: str | None
    line: int | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    other_member_id: str | None
    topic: str | None
    partition_count: int | None
    previous_partition_count: int | None
    timeout_ms: int | None
    confidence: str | None

    def as_evidence(self) -> dict[str, Any]:
        """Where to find the event."""
        return {name: getattr(self, name) for name in ("source", "node", "seq", "at_ms", "event", "file", "line")}


READ_ONE_BY_ONE: Final = (
    "poll_timeout_exceeded",
    "member_fenced",
    "fenced",
    "group_loaded",
    "commit_refused",
    "topic_created",
    "topic_grown",
    "topic_written",
)
"""Events of which the rules see every row."""

ROWS: Final[dict[str, type[Any]]] = {
    "rebalance": ObservedRebalance,
    "session": MemberSession,
    "pauses": GenerationPauses,
    "balance": Balance,
    "owned": Owned,
    "loss": ObservedLoss,
    "event": ObservedEvent,
}
"""Kind of row to its class; the names of the fields are the columns."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A client left and came back: its two sessions, and the time between (below 0: it came back before it left)."""

    who: str
    before: MemberSession
    after: MemberSession
    away_ms: int
    exact: bool
    """Whether both are known to be the same client."""

    @property
    def gone_at_ms(self) -> int:
        """When the coordinator removed it."""
        return self.before.ended_at_ms or 0

    @property
    def back_at_ms(self) -> int:
        return self.after.joined_at_ms or 0


@dataclass(frozen=True)
class GroupHistory:
    """One group of one run."""

    run_id: str
    group_id: str
    end_ms: int
    """The last instant of the run."""
    rebalances: list[ObservedRebalance] = field(default_factory=list)
    sessions: list[MemberSession] = field(default_factory=list)
    pauses: list[GenerationPauses] = field(default_factory=list)
    balances: list[Balance] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    losses: list[ObservedLoss] = field(default_factory=list)
    events: list[ObservedEvent] = field(default_factory=list)

    @classmethod
    def of(
        cls, run_id: str, group_id: str, end_ms: int, rows: Mapping[str, Iterable[Mapping[str, Any]]]
    ) -> GroupHistory:
        """From rows by kind, see :data:`ROWS`, in any order."""

        def read(kind: str, order: Callable[[Any], Any]) -> list[Any]:
            made = ROWS[kind]
            names = [each.name for each in fields(made)]
            return sorted((made(*(row.get(name) for name in names)) for row in rows.get(kind, ())), key=order)

        return cls(
            run_id,
            group_id,
            end_ms,
            read("rebalance", lambda row: (row.prepared_at_ms, row.rebalance_id)),
            read("session", lambda row: (row.joined_at_ms or 0, row.ended_at_ms or end_ms, row.member_id)),
            read("pauses", lambda row: (row.ended_at_ms, row.generation_to, row.kind)),
            read("balance", lambda row: (row.at_ms, row.generation or 0)),
            read("owned", lambda row: (row.topic, row.partition)),
            read("loss", lambda row: (row.topic, row.partition)),
            read("event", lambda row: (row.at_ms, row.source, row.node or "", row.seq or 0)),
        )

    # -- names

    @cached_property
    def by_member(self) -> dict[str, MemberSession]:
        """Member id to its session."""
        return {session.member_id: session for session in self.sessions}

    def who(self, member_id: str | None) -> str:
        """What people call a member: its instance id, its client id, or else the member id in short."""
        session = self.by_member.get(member_id or "")
        return self.name_of(session) if session is not None else short(member_id)

    def name_of(self, session: MemberSession) -> str:
        """What people call a member."""
        if session.group_instance_id:
            return session.group_instance_id
        key = (session.client_id, session.client_host)
        return session.client_id if session.client_id and key not in self._shared else short(session.member_id)

    @cached_property
    def _shared(self) -> set[tuple[str | None, str | None]]:
        """Clients of one host that share a client.id."""
        shared = set()
        for key, sessions in self._by_client.items():
            for one, next_one in pairwise(sessions):
                went_silently = one.end in ("session-expiry", "did-not-rejoin", "sync-expiry", "replaced")
                if (one.ended_at_ms or self.end_ms) > (next_one.joined_at_ms or 0) and not went_silently:
                    shared.add(key)
        return shared

    @cached_property
    def _by_client(self) -> dict[tuple[str | None, str | None], list[MemberSession]]:
        found = defaultdict(list)
        for session in self.sessions:
            found[session.client_id, session.client_host].append(session)
        return dict(found)

    @cached_property
    def absences(self) -> list[Absence]:
        """Clients that left and came back, by the time of coming back.

        Static members are known by their instance id, others by client id and host. Where several have the same ones,
        or where every start has a new host, a client that joins is paired with the one that left longest ago.
        """
        found: list[Absence] = []
        seen: set[int] = set()
        chains: dict[tuple[str, ...], list[MemberSession]] = defaultdict(list)
        for session in self.sessions:
            if session.group_instance_id:
                chains["instance", session.group_instance_id].append(session)
            elif session.client_id and (session.client_id, session.client_host) not in self._shared:
                chains["client", session.client_id, session.client_host or ""].append(session)
        for sessions in chains.values():
            for before, after in pairwise(sessions):
                if before.ended_at_ms is None or after.joined_at_ms is None or before.end == "replaced":
                    continue
                seen |= {id(before), id(after)}
                away = after.joined_at_ms - before.ended_at_ms
                if away <= PAIRED_WITHIN_MS:
                    found.append(Absence(self.name_of(after), before, after, away, before.confidence in (None, EXACT)))
        found += self._pairs(
            [session for session in self.sessions if id(session) not in seen and not session.group_instance_id]
        )
        return sorted(found, key=lambda each: (each.back_at_ms, each.who))

    @cached_property
    def all_joins_are_reported(self) -> bool:
        """Whether the source reports every join, so that a member without one has not come back.

        Coordinators report all in their journals. Logs of brokers before 2.5 name a new member only where it begins a
        rebalance, and never one that joins in the middle of one: a join that began no rebalance, and that is not a
        static member's restart, shows that the log has all of them.
        """
        if any(each.source == "coordinator" for each in self.rebalances):
            return True
        named = {each.cause_member_id for each in self.rebalances}
        returned = {session.group_instance_id for session in self.sessions if session.end == "replaced"}
        return any(
            session.joined_at_ms is not None
            and session.member_id not in named
            and (session.group_instance_id is None or session.group_instance_id not in returned)
            for session in self.sessions
        )

    def _pairs(self, sessions: list[MemberSession]) -> list[Absence]:
        gone = sorted(
            (session for session in sessions if session.ended_at_ms is not None and session.end != "replaced"),
            key=lambda session: (session.ended_at_ms or 0, session.member_id),
        )
        found = []
        for after in sessions:
            if after.joined_at_ms is None:
                continue
            gone = [one for one in gone if (one.ended_at_ms or 0) > after.joined_at_ms - PAIRED_WITHIN_MS]
            before = next((one for one in gone if (one.ended_at_ms or 0) <= after.joined_at_ms), None)
            if before is not None:
                gone.remove(before)
                away = after.joined_at_ms - (before.ended_at_ms or 0)
                found.append(Absence(self.name_of(after), before, after, away, False))
        return found

    # -- costs

    @cached_property
    def stopped_ms(self) -> dict[str, int]:
        """Rebalance to the ms for which it left consumers without partitions."""
        costs = dict.fromkeys((each.rebalance_id for each in self.rebalances), 0)
        by_generation: dict[int, list[ObservedRebalance]] = defaultdict(list)
        for each in self.rebalances:
            if each.generation_to is not None:
                by_generation[each.generation_to].append(each)
        for pause in self.pauses:
            # After a failover a generation may come a second time: take the last one that began before.
            made = [
                one for one in by_generation.get(pause.generation_to, ()) if one.prepared_at_ms <= pause.ended_at_ms
            ]
            if made:
                costs[made[-1].rebalance_id] += pause.stopped_ms
        return costs

    def cost_s(self, rebalances: Iterable[ObservedRebalance]) -> float:
        """Consumer-seconds that these rebalances cost.

        As consumers reported it; else the upper bound: members times the length.
        """
        return sum(self.cost_of_one_s(each) for each in rebalances)

    def cost_of_one_s(self, rebalance: ObservedRebalance) -> float:
        """See :meth:`cost_s`."""
        if self.pauses:
            return self.stopped_ms[rebalance.rebalance_id] / 1_000
        if rebalance.initial or rebalance.protocol == COOPERATIVE:
            return 0.0
        members = 1 if rebalance.members_before is None else len(rebalance.members_before)
        return members * (rebalance.unavailable_ms or 0) / 1_000

    @property
    def costs_are_known(self) -> bool:
        """Whether consumers reported their pauses; else costs are upper bounds."""
        return any(not pause.guessed for pause in self.pauses)

    def caused_by(self, member_ids: Iterable[str]) -> list[ObservedRebalance]:
        """Rebalances that began through one of these members."""
        wanted = set(member_ids)
        return [each for each in self.rebalances if each.cause_member_id in wanted]

    @cached_property
    def later(self) -> list[ObservedRebalance]:
        """All but the group's first."""
        return [each for each in self.rebalances if not each.initial]


def short(member_id: str | None) -> str:
    """A member id without its UUID."""
    if not member_id:
        return "a member"
    return member_id[:-37] if len(member_id) > 37 and member_id[-37] == "-" else member_id


def all_exact(rows: Iterable[ObservedRebalance | MemberSession | ObservedEvent]) -> bool:
    """Whether the sources reported all of it."""
    return all(row.confidence in (None, EXACT) for row in rows)
