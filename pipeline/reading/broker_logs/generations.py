"""The generations of a group, from its requests: the members, their SyncGroups and their assignments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from rejoin.pipeline.reading.broker_logs.groups.membership import (
    EXACT,
    EventRow,
)
from rejoin.pipeline.reading.request_log import (
    LoggedExchange,
    LoggedMember,
    assignments,
    decoded_assignment,
    joining,
    roster,
)

BROKER_LOG: Final = "broker-log"

FAR_MS: Final = 600_000
"""Generations with the same number that lie further apart than this are not the same one."""


def _latest(member: str, names: dict[str, str]) -> str:
    for _ in range(len(names)):
        if member not in names:
            break
        member = names[member]
    return member


PartitionOwners = dict[tuple[str, int], str]


class SourcedExchange(NamedTuple):
    """An exchange, and where it was read."""

    exchange: LoggedExchange
    node: str
    file: str


@dataclass(slots=True)
class GenerationExchanges:
    """One generation, as far as its requests show it."""

    generation: int
    joins: dict[str, tuple[LoggedMember, SourcedExchange]] = field(default_factory=dict)
    leader: str | None = None
    protocol: str | None = None
    roster: list[LoggedMember] = field(default_factory=list)
    ended: SourcedExchange | None = None
    """The first JoinGroup that was answered with this generation."""
    assigned: SourcedExchange | None = None
    """The leader's SyncGroup, if it succeeded."""
    given: dict[str, tuple[tuple[str, int], ...] | None] = field(default_factory=dict)
    returned: list[tuple[str, str, SourcedExchange]] = field(default_factory=list)
    """Static members that came back without a rebalance: old id, new id, JoinGroup."""

    @property
    def members_since(self) -> list[str]:
        """The members by the ids that they have by the end of the generation."""
        names = {old: new for old, new, _ in self.returned}
        return [_latest(member, names) for member in self.members]

    @property
    def members(self) -> list[str]:
        """All members, from the leader's list; else those whose answers were seen."""
        return [member.member_id for member in self.roster] or list(self.joins)

    @property
    def owned(self) -> list[dict[str, Any]] | None:
        """The assignments, as the events table has them; None when they are not known."""
        if not self.given or any(partitions is None for partitions in self.given.values()):
            return None
        return [
            {"member_id": member, "topic": topic, "partition": partition}
            for member, partitions in sorted(self.given.items())
            for topic, partition in partitions or ()
        ]

    @property
    def owned_since(self) -> list[dict[str, Any]] | None:
        """The assignments, by the ids that members have by the end of the generation."""
        names = {old: new for old, new, _ in self.returned}
        owned = self.owned
        if owned is None or not names:
            return owned
        return [row | {"member_id": _latest(row["member_id"], names)} for row in owned]


def request_event(asked: SourcedExchange) -> EventRow:
    """The row of one request with its answer; ``at_ms`` is its arrival."""
    exchange = asked.exchange
    event = event_row(asked, "request", EXACT, exchange.arrived_at_ms)
    request = exchange.request
    columns = {
        "group_id": exchange.group_id,
        "member_id": exchange.member_id,
        "group_instance_id": request.get("groupInstanceId"),
        "client_id": exchange.client_id,
        "client_host": exchange.client_host,
        "generation": exchange.generation,
        "client_reason": request.get("reason") or None,
        "error": exchange.error,
        "api": exchange.api,
        "api_version": exchange.api_version,
        "correlation_id": exchange.correlation_id,
        "total_ms": exchange.total_ms,
        "queue_ms": exchange.queue_ms,
        "local_ms": exchange.local_ms,
        "parked_ms": exchange.parked_ms,
        "throttle_ms": exchange.throttle_ms,
        "software": exchange.software,
    }
    if exchange.api == "JOIN_GROUP":
        member = joining(exchange)
        columns["topics"] = list_or_none(member.topics)
        columns["owned"] = _places(member.owned)
        columns["protocols"] = [str(each.get("name")) for each in request.get("protocols") or ()]
        columns["protocol"] = exchange.response.get("protocolName") or None
        columns["leader"] = exchange.response.get("leader") or None
    elif exchange.api == "SYNC_GROUP" and exchange.error is None:
        columns["partitions"] = _places(decoded_assignment(exchange.response.get("assignment")))
        columns["protocol"] = exchange.response.get("protocolName") or None
    event |= {name: value for name, value in columns.items() if value is not None}
    return event


def event_row(asked: SourcedExchange, name: str, confidence: str, at_ms: int) -> EventRow:
    return {
        "event": name,
        "at_ms": at_ms,
        "order_ms": at_ms,
        "node": asked.node,
        "file": asked.file,
        "line": asked.exchange.line,
        "confidence": confidence,
        "source": "request-log",
    }


def list_or_none(values: Iterable[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _places(partitions: Iterable[tuple[str, int]] | None) -> list[dict[str, Any]] | None:
    return None if partitions is None else [{"topic": topic, "partition": number} for topic, number in partitions]


def generations_of(asked: Iterable[SourcedExchange]) -> list[GenerationExchanges]:
    """The generations of one group, in their order."""
    rounds: list[GenerationExchanges] = []
    for each in sorted(asked, key=lambda one: one.exchange.answered_at_ms):
        exchange = each.exchange
        if exchange.error is not None or exchange.api not in ("JOIN_GROUP", "SYNC_GROUP"):
            continue
        if exchange.api == "JOIN_GROUP":
            generation = exchange.generation
            if generation is None:
                continue
            if not rounds or rounds[-1].generation != generation or _is_another(rounds[-1], exchange):
                rounds.append(GenerationExchanges(generation, ended=each))
            if rounds[-1].assigned is not None:
                _return(rounds[-1], each)
            else:
                _join(rounds[-1], each)
        else:
            _sync(rounds, each)
    return rounds


def _join(current: GenerationExchanges, asked: SourcedExchange) -> None:
    exchange = asked.exchange
    member = joining(exchange)
    current.joins.setdefault(member.member_id, (member, asked))
    current.leader = exchange.response.get("leader") or current.leader
    current.protocol = exchange.response.get("protocolName") or current.protocol
    members = roster(exchange)
    if members:
        current.roster = members


def _is_another(current: GenerationExchanges, exchange: LoggedExchange) -> bool:
    """Whether a generation's number came again: a group was deleted, and began anew."""
    assert current.ended is not None, "a round has begun with an answer"
    later = exchange.answered_at_ms - current.ended.exchange.answered_at_ms
    return later > FAR_MS and exchange.request.get("groupInstanceId") is None


def _return(current: GenerationExchanges, asked: SourcedExchange) -> None:
    """A JoinGroup that is answered with a generation that has its assignment: a static member came back (KIP-345)."""
    member = joining(asked.exchange)
    instance = member.group_instance_id
    if instance is None:
        return
    known = {each.group_instance_id: each.member_id for each in current.roster}
    known |= {each.group_instance_id: each.member_id for each, _ in current.joins.values()}
    old = known.get(instance)
    latest = {before: after for before, after, _ in current.returned}
    while old is not None and old in latest:
        old = latest[old]
    if old is not None and old != member.member_id:
        current.returned.append((old, member.member_id, asked))


def _sync(rounds: list[GenerationExchanges], asked: SourcedExchange) -> None:
    exchange = asked.exchange
    generation = exchange.request.get("generationId")
    current = next((each for each in reversed(rounds) if each.generation == generation), None)
    if current is None:
        return
    member, given = str(exchange.request.get("memberId")), assignments(exchange)
    if given and member == current.leader:
        current.assigned = asked
        current.given = {each: given.get(each, ()) for each in current.members}
    elif current.assigned is None:
        # The leader's own request is in none of the files; the followers' requests have at least their own parts.
        current.given.setdefault(member, decoded_assignment(exchange.response.get("assignment")))


def rename_owners(last: PartitionOwners, round_: GenerationExchanges) -> None:
    """Static members that came back under other ids keep what they had."""
    names = {old: new for old, new, _ in round_.returned}
    if names:
        last.update({where: _latest(owner, names) for where, owner in last.items()})


class Moves(NamedTuple):
    """Partitions that went between members that are both there, and those whose last owner has gone."""

    moved: int
    regained: int


def count_moves(last: PartitionOwners, round_: GenerationExchanges) -> Moves:
    """Counts as ``rejoin.coordinator.core.groups.classic.rebalance`` does, and brings the last owners up to date."""
    owned = round_.owned or ()
    return moves_to(last, round_.members, (((each["topic"], each["partition"]), each["member_id"]) for each in owned))


def moves_to(last: PartitionOwners, members: Iterable[str], owned: Iterable[tuple[tuple[str, int], str]]) -> Moves:
    """Moves from the last owners to these, who become the last owners. ``members``: all that there are now."""
    moved = regained = 0
    there = set(members)
    for where, member in owned:
        before = last.get(where)
        if before != member:
            if before in there:
                moved += 1
            else:
                regained += 1
        last[where] = member
    return Moves(moved, regained)
