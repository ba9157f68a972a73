"""A group's history from its requests and their answers, alone or together with what the coordinator logged.

JoinGroup and SyncGroup tell what no log line does: who rejoined and when, what each member subscribes to, who got which
partitions, and when. They do not tell why a rebalance began; that is concluded from what came first. Where a
coordinator's lines of the same generation are there, they keep their instants and causes, and are completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from rejoin.pipeline.reading.broker_logs.membership import COMPLETING, EMPTY, EXACT, INFERRED, PREPARING, STABLE, Event
from rejoin.pipeline.reading.broker_logs.reasons import UNKNOWN
from rejoin.pipeline.reading.request_log import (
    Exchange,
    Member,
    assignments,
    decoded_assignment,
    joining,
    leaving,
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


Places = dict[tuple[str, int], str]


class Asked(NamedTuple):
    """An exchange, and where it was read."""

    exchange: Exchange
    node: str
    file: str


@dataclass(slots=True)
class Round:
    """One generation, as far as requests tell it."""

    generation: int
    joins: dict[str, tuple[Member, Asked]] = field(default_factory=dict)
    leader: str | None = None
    protocol: str | None = None
    roster: list[Member] = field(default_factory=list)
    ended: Asked | None = None
    """The first JoinGroup that was answered with this generation."""
    assigned: Asked | None = None
    """The leader's SyncGroup, if it succeeded."""
    given: dict[str, tuple[tuple[str, int], ...] | None] = field(default_factory=dict)
    returned: list[tuple[str, str, Asked]] = field(default_factory=list)
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
        """Who was given what, as the events table has it; None when it was not told."""
        if not self.given or any(partitions is None for partitions in self.given.values()):
            return None
        return [
            {"member_id": member, "topic": topic, "partition": partition}
            for member, partitions in sorted(self.given.items())
            for topic, partition in partitions or ()
        ]


def request_event(asked: Asked) -> Event:
    """The row of one request with its answer; ``at_ms`` is its arrival."""
    exchange = asked.exchange
    event = _event(asked, "request", EXACT, exchange.arrived_at_ms)
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
        columns["topics"] = _list(member.topics)
        columns["owned"] = _places(member.owned)
        columns["protocols"] = [str(each.get("name")) for each in request.get("protocols") or ()]
        columns["protocol"] = exchange.response.get("protocolName") or None
        columns["leader"] = exchange.response.get("leader") or None
    elif exchange.api == "SYNC_GROUP" and exchange.error is None:
        columns["partitions"] = _places(decoded_assignment(exchange.response.get("assignment")))
        columns["protocol"] = exchange.response.get("protocolName") or None
    event |= {name: value for name, value in columns.items() if value is not None}
    return event


def _event(asked: Asked, name: str, confidence: str, at_ms: int) -> Event:
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


def _list(values: Iterable[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def _places(partitions: Iterable[tuple[str, int]] | None) -> list[dict[str, Any]] | None:
    return None if partitions is None else [{"topic": topic, "partition": number} for topic, number in partitions]


def rounds_of(asked: Iterable[Asked]) -> list[Round]:
    """The generations of one group, in their order."""
    rounds: list[Round] = []
    for each in sorted(asked, key=lambda one: one.exchange.answered_at_ms):
        exchange = each.exchange
        if exchange.error is not None or exchange.api not in ("JOIN_GROUP", "SYNC_GROUP"):
            continue
        if exchange.api == "JOIN_GROUP":
            generation = exchange.generation
            if generation is None:
                continue
            if not rounds or rounds[-1].generation != generation or _is_another(rounds[-1], exchange):
                rounds.append(Round(generation, ended=each))
            if rounds[-1].assigned is not None:
                _return(rounds[-1], each)
            else:
                _join(rounds[-1], each)
        else:
            _sync(rounds, each)
    return rounds


def _join(current: Round, asked: Asked) -> None:
    exchange = asked.exchange
    member = joining(exchange)
    current.joins.setdefault(member.member_id, (member, asked))
    current.leader = exchange.response.get("leader") or current.leader
    current.protocol = exchange.response.get("protocolName") or current.protocol
    told = roster(exchange)
    if told:
        current.roster = told


def _is_another(current: Round, exchange: Exchange) -> bool:
    """Whether a generation's number came again: a group was deleted, and began anew."""
    assert current.ended is not None, "a round has begun with an answer"
    later = exchange.answered_at_ms - current.ended.exchange.answered_at_ms
    return later > FAR_MS and exchange.request.get("groupInstanceId") is None


def _return(current: Round, asked: Asked) -> None:
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


def _sync(rounds: list[Round], asked: Asked) -> None:
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
        # The leader's own request is in no file that was read: followers tell at least their part.
        current.given.setdefault(member, decoded_assignment(exchange.response.get("assignment")))


class Moves(NamedTuple):
    """Partitions that went between members that are both there, and those whose last owner has gone."""

    moved: int
    regained: int


def count_moves(last: Places, round_: Round) -> Moves:
    """Counts as ``rejoin.coordinator.core.groups.classic.rebalance`` does, and brings the last owners up to date."""
    moved = regained = 0
    members = set(round_.members)
    for place in round_.owned or ():
        where = (place["topic"], place["partition"])
        before = last.get(where)
        if before != place["member_id"]:
            if before in members:
                moved += 1
            else:
                regained += 1
        last[where] = place["member_id"]
    return Moves(moved, regained)


def complete(events: list[Event], asked: list[Asked]) -> list[Event]:
    """A coordinator's events of one group, with what its requests tell besides; from requests alone if it has none."""
    rounds = rounds_of(asked)
    if not any(event["event"] == "rebalance_started" for event in events):
        return [*events, *tell_alone(rounds, asked)]
    owners: Places = {}
    before: Round | None = None
    completed: list[Event] = list(events)
    told = _by_name(events)
    joined = {each["member_id"]: each for each in events if each["event"] == "member_joined"}
    replaced = [each for each in events if each["event"] == "static_member_replaced"]
    handed_out = _handed_out(asked)
    for each in rounds:
        moves = count_moves(owners, each)
        ended = _nearest(told, "join_phase_ended", each)
        if ended is not None:
            ended |= {"members": each.members, "member_count": len(each.members), "confidence": EXACT}
            ended |= {name: value for name in ("leader", "protocol") if (value := getattr(each, name)) is not None}
        stable = _nearest(told, "rebalance_completed", each)
        if stable is not None:
            _fill(stable, each, before, moves)
        started = _started(told, each, ended)
        for event in _comings(each, before, joined, handed_out):
            _put_in_place(event, started)
            if started is not None:
                # It is one more event of what that coordinator did.
                event |= {"source": BROKER_LOG, "node": started["node"]}
            completed.append(event)
        completed += _returns(each, replaced)
        before = each
    return completed


def _by_name(events: list[Event]) -> dict[tuple[str, int | None], list[Event]]:
    """Events by their names and generations."""
    told: dict[tuple[str, int | None], list[Event]] = {}
    for event in events:
        told.setdefault((event["event"], event.get("generation")), []).append(event)
    return told


def _started(told: dict[tuple[str, int | None], list[Event]], round_: Round, ended: Event | None) -> Event | None:
    """The last beginning before a join phase ended."""
    if ended is None:
        return None
    earlier = [
        each
        for each in told.get(("rebalance_started", round_.generation - 1), ())
        if each["at_ms"] <= ended["at_ms"] and ended["at_ms"] - each["at_ms"] <= FAR_MS
    ]
    return max(earlier, key=lambda each: each["at_ms"], default=None)


def _put_in_place(event: Event, started: Event | None) -> None:
    """Put a member that came before or behind the beginning that it belongs to, with the state that it met."""
    if started is None:
        return
    began: int = started["order_ms"]
    if event["at_ms"] < started["at_ms"] or event["member_id"] == started.get("cause_member_id"):
        event["order_ms"] = min(event["order_ms"], began - 1)
        if started.get("previous_state") is not None:
            event["state"] = started["previous_state"]
    else:
        event["order_ms"] = max(event["order_ms"], began + 1)
        event["state"] = PREPARING


def _nearest(told: dict[tuple[str, int | None], list[Event]], name: str, round_: Round) -> Event | None:
    assert round_.ended is not None, "a round has begun with an answer"
    at = round_.ended.exchange.answered_at_ms
    same = told.get((name, round_.generation), [])
    found = min(same, key=lambda each: abs(each["at_ms"] - at), default=None)
    return found if found is not None and abs(found["at_ms"] - at) <= FAR_MS else None


def _fill(event: Event, round_: Round, before: Round | None, moves: Moves) -> None:
    """What the SyncGroup of the leader adds to a rebalance: when it was stored, and who owns what."""
    event |= {"members": round_.members, "member_count": len(round_.members)}
    for name in ("leader", "protocol"):
        if getattr(round_, name) is not None:
            event[name] = getattr(round_, name)
    if round_.owned is not None:
        event |= {"owned_after": round_.owned, "moved": moves.moved, "regained": moves.regained}
    if before is not None and before.owned is not None:
        event["owned_before"] = before.owned
    if before is not None and before.assigned is not None and event.get("members_before") != []:
        event["members_before"] = before.members_since
    if round_.assigned is not None:
        later = round_.assigned.exchange.answered_at_ms - event["at_ms"]
        event["confidence"] = EXACT
        if 0 < later <= FAR_MS:
            event["at_ms"] += later
            event["order_ms"] += later
            for name in ("rebalance_ms", "sync_ms"):
                if name in event:
                    event[name] += later


def _handed_out(asked: Iterable[Asked]) -> set[str]:
    """Ids that new members were told to come back with."""
    return {
        str(each.exchange.response.get("memberId"))
        for each in asked
        if each.exchange.api == "JOIN_GROUP" and each.exchange.error == "MEMBER_ID_REQUIRED"
    }


def _returns(round_: Round, events: list[Event]) -> Iterator[Event]:
    """Static members that came back without a rebalance, unless a coordinator told of them; then with their new ids."""
    for old, new, asked in round_.returned:
        at = asked.exchange.answered_at_ms
        told = [
            each
            for each in events
            if each["event"] == "static_member_replaced"
            and each.get("other_member_id") == old
            and abs(each["at_ms"] - at) <= FAR_MS
        ]
        if told:
            told[0] |= {"member_id": new, "confidence": EXACT}
            continue
        yield _event(asked, "static_member_replaced", EXACT, asked.exchange.arrived_at_ms) | {
            "group_id": asked.exchange.group_id,
            "group_instance_id": asked.exchange.request.get("groupInstanceId"),
            "other_member_id": old,
            "member_id": new,
            "state": STABLE,
            "rebalance": False,
        }


def _comings(round_: Round, before: Round | None, told: dict[str, Event], handed_out: set[str]) -> Iterator[Event]:
    """Who joined this generation and who rejoined; members that a coordinator told of are completed instead."""
    known = set(before.members_since) if before is not None else set()
    for member_id, (member, asked) in round_.joins.items():
        request = asked.exchange.request
        columns: dict[str, Any] = {
            "group_id": asked.exchange.group_id,
            "member_id": member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": asked.exchange.client_id,
            "client_host": asked.exchange.client_host,
            "session_timeout_ms": request.get("sessionTimeoutMs"),
            "rebalance_timeout_ms": request.get("rebalanceTimeoutMs"),
            "protocols": [str(each.get("name")) for each in request.get("protocols") or ()],
            "topics": _list(member.topics),
            "client_reason": request.get("reason") or None,
        }
        columns = {name: value for name, value in columns.items() if value is not None}
        event = told.get(member_id)
        if event is not None and member_id not in known:
            for name, value in columns.items():
                event.setdefault(name, value)
            continue
        is_new = member_id not in known and (
            not request.get("memberId") or member_id in handed_out or before is not None or round_.generation == 1
        )
        name = "member_joined" if is_new else "member_rejoined"
        yield _event(asked, name, EXACT, asked.exchange.arrived_at_ms) | columns


# --- from requests alone


def tell_alone(rounds: list[Round], asked: list[Asked]) -> Iterator[Event]:
    """The events of a group that no coordinator's log tells of."""
    owners: Places = {}
    before: Round | None = None
    beginnings = _Beginnings(asked)
    handed_out = _handed_out(asked)
    for each in rounds:
        assert each.ended is not None, "a round has begun with an answer"
        ended = each.ended.exchange.answered_at_ms
        first = beginnings.of(each, before)
        state = STABLE if before is not None and before.assigned is not None else None
        if before is None:
            state = EMPTY if each.generation == 1 else None
        group = {"group_id": each.ended.exchange.group_id}
        began = _event(first.asked, "rebalance_started", INFERRED, first.at_ms) | group
        began["generation"] = each.generation - 1
        began |= first.cause
        if state is not None:
            began |= {"previous_state": state, "initial": state == EMPTY}
        for event in _comings(each, before, {}, handed_out):
            _put_in_place(event, began)
            yield event
        for event in _goings(each, before, beginnings, began.get("cause_member_id")):
            _put_in_place(event, began)
            yield event
        yield _moved(began, state, PREPARING)
        yield began
        phase = _event(each.ended, "join_phase_ended", EXACT if each.roster else INFERRED, ended) | group
        phase |= {"generation": each.generation, "members": each.members, "member_count": len(each.members)}
        phase |= {name: value for name in ("leader", "protocol") if (value := getattr(each, name)) is not None}
        phase["join_ms"] = ended - first.at_ms
        yield _moved(phase, PREPARING, COMPLETING)
        yield phase
        moves = count_moves(owners, each)
        if each.assigned is not None:
            yield from _stable(each, before, moves, began, phase)
            yield from _returns(each, [])
        before = each


def _moved(event: Event, before: str | None, state: str) -> Event:
    moved = {name: event[name] for name in ("at_ms", "order_ms", "node", "file", "line", "group_id", "generation")}
    told = moved | {"event": "group_state_changed", "state": state, "confidence": INFERRED, "source": "request-log"}
    return told if before is None else told | {"previous_state": before}


def _goings(round_: Round, before: Round | None, beginnings: _Beginnings, culprit: str | None) -> Iterator[Event]:
    assert round_.ended is not None, "a round has begun with an answer"
    if before is None:
        return
    for member_id in before.members_since:
        if member_id in round_.members:
            continue
        left = beginnings.left.get(member_id)
        asked = left.asked if left is not None else round_.ended
        at = left.at_ms if left is not None else round_.ended.exchange.answered_at_ms
        event = _event(asked, "member_removed", EXACT if left is not None else INFERRED, at)
        event |= {
            "group_id": asked.exchange.group_id,
            "member_id": member_id,
            "cause": "left" if left is not None else "session-expiry" if member_id == culprit else "did-not-rejoin",
        }
        if left is not None and left.cause.get("client_reason"):
            event["client_reason"] = left.cause["client_reason"]
        yield event


def _stable(round_: Round, before: Round | None, moves: Moves, began: Event, phase: Event) -> Iterator[Event]:
    assert round_.assigned is not None, "only what was assigned is stable"
    exchange = round_.assigned.exchange
    group = {"group_id": exchange.group_id, "generation": round_.generation}
    received = _event(round_.assigned, "assignment_received", EXACT, exchange.arrived_at_ms) | group
    received |= {"leader": round_.leader, "member_count": len(round_.members)}
    received["without_assignment"] = [member for member in round_.members if member not in assignments(exchange)]
    yield received
    done = _event(round_.assigned, "rebalance_completed", EXACT, exchange.answered_at_ms) | group
    done |= {name: began[name] for name in _CAUSE if name in began}
    done |= {
        "attempts": 1,
        "rebalance_ms": exchange.answered_at_ms - began["at_ms"],
        "join_ms": phase["join_ms"],
        "sync_ms": exchange.answered_at_ms - phase["at_ms"],
        "members_before": before.members_since if before is not None else [],
    }
    if before is not None and before.leader is not None:
        done["previous_leader"] = before.leader
    _fill(done, round_, before, moves)
    yield _moved(done, COMPLETING, STABLE)
    yield done


_CAUSE: Final = ("cause", "cause_member_id", "cause_group_instance_id", "client_reason")


class _Beginning(NamedTuple):
    at_ms: int
    asked: Asked
    cause: dict[str, Any]


class _Beginnings:
    """What made each rebalance begin, as far as requests show it: whatever came first."""

    def __init__(self, asked: list[Asked]) -> None:
        self._asked = sorted(asked, key=lambda one: one.exchange.arrived_at_ms)
        self.left: dict[str, _Beginning] = {}
        for each in self._asked:
            if each.exchange.api == "LEAVE_GROUP":
                for member, instance, reason in leaving(each.exchange):
                    cause = {
                        "cause": "leave",
                        "cause_member_id": member or None,
                        "cause_group_instance_id": instance,
                        "client_reason": reason,
                    }
                    told = {name: value for name, value in cause.items() if value is not None}
                    self.left[member] = _Beginning(each.exchange.answered_at_ms, each, told)

    def of(self, round_: Round, before: Round | None) -> _Beginning:
        """The beginning of a generation's rebalance."""
        assert round_.ended is not None, "a round has begun with an answer"
        since = -1
        if before is not None and before.ended is not None:
            stable = before.assigned or before.ended
            since = stable.exchange.answered_at_ms
        until = round_.ended.exchange.answered_at_ms
        found = [each for each in self._candidates(round_, before) if since <= each.at_ms <= until]
        if found:
            return min(found, key=lambda each: each.at_ms)
        return _Beginning(round_.ended.exchange.arrived_at_ms, round_.ended, {"cause": UNKNOWN})

    def _candidates(self, round_: Round, before: Round | None) -> Iterator[_Beginning]:
        were = before.members_since if before is not None else []
        known = set(were)
        for member_id in were:
            if member_id in self.left:
                yield self.left[member_id]
        for member_id, (member, asked) in round_.joins.items():
            cause = "join-new" if member_id not in known else "rejoin-metadata"
            if before is not None and member_id in known and member_id == before.leader:
                cause = "rejoin-leader"
            told = {"cause": cause, "cause_member_id": member_id}
            if member.group_instance_id is not None:
                told["cause_group_instance_id"] = member.group_instance_id
            reason = asked.exchange.request.get("reason")
            if reason:
                told["client_reason"] = reason
            yield _Beginning(asked.exchange.arrived_at_ms, asked, told)
        gone = [each for each in were if each not in round_.members]
        missed = next((each for each in gone if each not in self.left), None)
        for each in self._asked:
            exchange = each.exchange
            if exchange.error != "REBALANCE_IN_PROGRESS" or exchange.api not in ("HEARTBEAT", "OFFSET_COMMIT"):
                continue
            # A rebalance goes on that nobody who asked began: somebody's session ended.
            if missed is not None:
                yield _Beginning(exchange.arrived_at_ms, each, {"cause": "session-expiry", "cause_member_id": missed})
