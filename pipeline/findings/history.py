"""What the rules look at: the rows of one group, from all tables, in the order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

from rejoin.pipeline.schemas import EXACT

POLL_TIMEOUT: Final = "consumer poll timeout has expired"
"""How the reason begins with which a consumer leaves that did not poll within max.poll.interval.ms (KIP-800)."""
METADATA_CHANGED: Final = "cached metadata has changed"
"""What a leader says that joins again since the topics of the group are not as they were."""
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
        """Its end, or its beginning if that is all that is known."""
        return self.prepared_at_ms if self.ended_at_ms is None else self.ended_at_ms


@dataclass(frozen=True, slots=True)
class Stay:
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
class Stop:
    """Of the table ``pauses``: those that one generation ended, drawn together."""

    generation_to: int
    kind: str
    pauses: int
    stopped_ms: int
    """Consumers that owned nothing, summed up."""
    ended_at_ms: int
    guessed: bool | None
    """Whether the coordinator's view was all there was to conclude it from."""


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
    """Of the table ``ownership``: when a partition was first owned by anybody."""

    topic: str
    partition: int
    first_ms: int


@dataclass(frozen=True, slots=True)
class ObservedLoss:
    """Of the table ``records``: what was never processed, of one partition."""

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
        """Where the event is to be found."""
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
    "stay": Stay,
    "stop": Stop,
    "balance": Balance,
    "owned": Owned,
    "loss": ObservedLoss,
    "event": ObservedEvent,
}
"""Kind of row to its class; the names of the fields are the columns."""


@dataclass(frozen=True, slots=True)
class Return:
    """The same client went and came back: two stays, and how long it was away (below 0: it came before it went)."""

    who: str
    before: Stay
    after: Stay
    away_ms: int
    exact: bool
    """Whether both are surely the same one; else one went and another one came."""

    @property
    def gone_at_ms(self) -> int:
        """When the coordinator took it for gone."""
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
    stays: list[Stay] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
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
            read("stay", lambda row: (row.joined_at_ms or 0, row.ended_at_ms or end_ms, row.member_id)),
            read("stop", lambda row: (row.ended_at_ms, row.generation_to, row.kind)),
            read("balance", lambda row: (row.at_ms, row.generation or 0)),
            read("owned", lambda row: (row.topic, row.partition)),
            read("loss", lambda row: (row.topic, row.partition)),
            read("event", lambda row: (row.at_ms, row.source, row.node or "", row.seq or 0)),
        )

    # -- who

    @cached_property
    def by_member(self) -> dict[str, Stay]:
        """The stay of a member id."""
        return {stay.member_id: stay for stay in self.stays}

    def who(self, member_id: str | None) -> str:
        """What people call a member: its instance id, its client id, or else the member id in short."""
        stay = self.by_member.get(member_id or "")
        return self.name_of(stay) if stay is not None else short(member_id)

    def name_of(self, stay: Stay) -> str:
        """What people call a member."""
        if stay.group_instance_id:
            return stay.group_instance_id
        key = (stay.client_id, stay.client_host)
        return stay.client_id if stay.client_id and key not in self._shared else short(stay.member_id)

    @cached_property
    def _shared(self) -> set[tuple[str | None, str | None]]:
        """Clients of one host that cannot be told apart by their client.id."""
        shared = set()
        for key, stays in self._by_client.items():
            for one, next_one in pairwise(stays):
                went_silently = one.end in ("session-expiry", "did-not-rejoin", "sync-expiry", "replaced")
                if (one.ended_at_ms or self.end_ms) > (next_one.joined_at_ms or 0) and not went_silently:
                    shared.add(key)
        return shared

    @cached_property
    def _by_client(self) -> dict[tuple[str | None, str | None], list[Stay]]:
        found = defaultdict(list)
        for stay in self.stays:
            found[stay.client_id, stay.client_host].append(stay)
        return dict(found)

    @cached_property
    def returns(self) -> list[Return]:
        """Everybody who went and came back, by the time of coming.

        Static members are known by their instance id, others by client id and host. Where several have the same ones,
        or where every start has a new host, whoever comes is taken for the one who went longest ago.
        """
        found: list[Return] = []
        seen: set[int] = set()
        chains: dict[tuple[str, ...], list[Stay]] = defaultdict(list)
        for stay in self.stays:
            if stay.group_instance_id:
                chains["instance", stay.group_instance_id].append(stay)
            elif stay.client_id and (stay.client_id, stay.client_host) not in self._shared:
                chains["client", stay.client_id, stay.client_host or ""].append(stay)
        for stays in chains.values():
            for before, after in pairwise(stays):
                if before.ended_at_ms is None or after.joined_at_ms is None or before.end == "replaced":
                    continue
                seen |= {id(before), id(after)}
                away = after.joined_at_ms - before.ended_at_ms
                if away <= PAIRED_WITHIN_MS:
                    found.append(Return(self.name_of(after), before, after, away, before.confidence in (None, EXACT)))
        found += self._pairs([stay for stay in self.stays if id(stay) not in seen and not stay.group_instance_id])
        return sorted(found, key=lambda each: (each.back_at_ms, each.who))

    @cached_property
    def joins_are_told(self) -> bool:
        """Whether whoever joins is told of, so that a member that is not told to be back is not back.

        Coordinators tell it in their journals. Logs of brokers before 2.5 name a new member only where it begins a
        rebalance, so one that joins in the middle of one is never heard of: only a join that began none, and that is
        not the return of a static member, shows that all are told.
        """
        if any(each.source == "coordinator" for each in self.rebalances):
            return True
        named = {each.cause_member_id for each in self.rebalances}
        returned = {stay.group_instance_id for stay in self.stays if stay.end == "replaced"}
        return any(
            stay.joined_at_ms is not None
            and stay.member_id not in named
            and (stay.group_instance_id is None or stay.group_instance_id not in returned)
            for stay in self.stays
        )

    def _pairs(self, stays: list[Stay]) -> list[Return]:
        gone = sorted(
            (stay for stay in stays if stay.ended_at_ms is not None and stay.end != "replaced"),
            key=lambda stay: (stay.ended_at_ms or 0, stay.member_id),
        )
        found = []
        for after in stays:
            if after.joined_at_ms is None:
                continue
            gone = [one for one in gone if (one.ended_at_ms or 0) > after.joined_at_ms - PAIRED_WITHIN_MS]
            before = next((one for one in gone if (one.ended_at_ms or 0) <= after.joined_at_ms), None)
            if before is not None:
                gone.remove(before)
                away = after.joined_at_ms - (before.ended_at_ms or 0)
                found.append(Return(self.name_of(after), before, after, away, False))
        return found

    # -- what it cost

    @cached_property
    def stopped_ms(self) -> dict[str, int]:
        """Rebalance to the ms that consumers owned nothing on its account."""
        costs = dict.fromkeys((each.rebalance_id for each in self.rebalances), 0)
        by_generation: dict[int, list[ObservedRebalance]] = defaultdict(list)
        for each in self.rebalances:
            if each.generation_to is not None:
                by_generation[each.generation_to].append(each)
        for stop in self.stops:
            # After a failover a generation may come a second time: then it is the last one that began before.
            made = [one for one in by_generation.get(stop.generation_to, ()) if one.prepared_at_ms <= stop.ended_at_ms]
            if made:
                costs[made[-1].rebalance_id] += stop.stopped_ms
        return costs

    def cost_s(self, rebalances: Iterable[ObservedRebalance]) -> float:
        """Consumer-seconds that these rebalances cost.

        What consumers told. Where none told anything: members times the length, the most that it can have been.
        """
        return sum(self.cost_of_one_s(each) for each in rebalances)

    def cost_of_one_s(self, rebalance: ObservedRebalance) -> float:
        """See :meth:`cost_s`."""
        if self.stops:
            return self.stopped_ms[rebalance.rebalance_id] / 1_000
        if rebalance.initial or rebalance.protocol == COOPERATIVE:
            return 0.0
        members = 1 if rebalance.members_before is None else len(rebalance.members_before)
        return members * (rebalance.unavailable_ms or 0) / 1_000

    @property
    def costs_are_known(self) -> bool:
        """Whether consumers told when they stood still; else costs are the most that they can have been."""
        return any(not stop.guessed for stop in self.stops)

    def caused_by(self, member_ids: Iterable[str]) -> list[ObservedRebalance]:
        """Rebalances that began through one of these members."""
        wanted = set(member_ids)
        return [each for each in self.rebalances if each.cause_member_id in wanted]

    @cached_property
    def later(self) -> list[ObservedRebalance]:
        """All but those with which the group first came to be."""
        return [each for each in self.rebalances if not each.initial]


def short(member_id: str | None) -> str:
    """A member id without its UUID."""
    if not member_id:
        return "somebody"
    return member_id[:-37] if len(member_id) > 37 and member_id[-37] == "-" else member_id


def all_exact(rows: Iterable[ObservedRebalance | Stay | ObservedEvent]) -> bool:
    """Whether the sources said all of it."""
    return all(row.confidence in (None, EXACT) for row in rows)
