"""A group's history from its requests and responses, alone or together with the coordinator's log.

JoinGroup and SyncGroup show what no log line does: which members rejoined and when, their subscriptions, and their
assignments. They do not show why a rebalance began; that is concluded from what came first. Where a coordinator logged
the same generation, its events keep their instants and causes, and are completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from rejoin.pipeline.reading.broker_logs.exchanges.beginnings import Beginnings
from rejoin.pipeline.reading.broker_logs.exchanges.coordinators import absences, loads
from rejoin.pipeline.reading.broker_logs.exchanges.epochs import HeartbeatHistory, ShareHistory
from rejoin.pipeline.reading.broker_logs.exchanges.offsets import commit_events
from rejoin.pipeline.reading.broker_logs.exchanges.refusals import refusals
from rejoin.pipeline.reading.broker_logs.exchanges.tasks import StreamsHistory
from rejoin.pipeline.reading.broker_logs.exchanges.topic_names import TopicNames
from rejoin.pipeline.reading.broker_logs.generations import (
    BROKER_LOG,
    FAR_MS,
    GenerationExchanges,
    Moves,
    PartitionOwners,
    SourcedExchange,
    count_moves,
    event_row,
    generations_of,
    list_or_none,
    rename_owners,
)
from rejoin.pipeline.reading.broker_logs.groups.membership import (
    COMPLETING,
    EMPTY,
    EXACT,
    INFERRED,
    PREPARING,
    STABLE,
    EventRow,
)
from rejoin.pipeline.reading.broker_logs.processes import (
    complete_modern,
    former_ids,
    last_answers,
    poll_timeouts,
)
from rejoin.pipeline.reading.request_log import assignments

CLASSIC: Final = "classic"
"""The protocol of a group whose members send JoinGroup."""

EventsByName = dict[tuple[str, int | None], list[EventRow]]
"""Events by their names and generations."""


def complete(events: list[EventRow], asked: list[SourcedExchange], names: TopicNames | None = None) -> list[EventRow]:
    """A coordinator's events of one group, completed from its requests; from requests alone if it has none.

    ``names``: those of topics, by id.
    """
    names = {} if names is None else names
    alone = [] if events else [*refusals(asked), *loads(asked)]
    alone += last_answers(alone, asked)
    completed = _complete(events, asked, names, absences(alone))
    return [*completed, *commit_events(asked, names), *alone]


def _complete(
    events: list[EventRow], asked: list[SourcedExchange], names: TopicNames, away: list[tuple[int, int]]
) -> list[EventRow]:
    rounds = generations_of(asked)
    former = former_ids(asked)
    seen = [*poll_timeouts(asked), *last_answers(events, asked)]
    complete_modern(events, asked)
    if not any(event["event"] == "rebalance_started" for event in events):
        of_epochs = [] if any(event["event"] in _OF_EPOCHS for event in events) else epochs_of(asked, names)
        return [*events, *seen, *events_of_requests(rounds, asked, former, away), *of_epochs]
    owners: PartitionOwners = {}
    before: GenerationExchanges | None = None
    completed: list[EventRow] = [*events, *seen]
    by_name = _by_name(events)
    joined = {each["member_id"]: each for each in events if each["event"] == "member_joined"}
    replaced = [each for each in events if each["event"] == "static_member_replaced"]
    ids = _MemberIds(_handed_out(asked), former)
    for each in rounds:
        moves = count_moves(owners, each)
        ended = _nearest(by_name, "join_phase_ended", each)
        if ended is not None:
            ended |= {"members": each.members, "member_count": len(each.members), "confidence": EXACT}
            ended |= {name: value for name in ("leader", "protocol") if (value := getattr(each, name)) is not None}
        stable = _nearest(by_name, "rebalance_completed", each)
        if stable is not None:
            _fill(stable, each, before, moves)
        started = _started(by_name, each, ended)
        for event in _joins(each, before, joined, ids):
            _put_in_place(event, started)
            if started is not None:
                # It belongs to that coordinator's events.
                event |= {"source": BROKER_LOG, "node": started["node"]}
            completed.append(event)
        completed += _static_restarts(each, replaced)
        rename_owners(owners, each)
        before = each
    return completed


_OF_EPOCHS: Final = ("group_epoch_bumped", "member_joined", "member_removed")
"""Events of a group with epochs that its coordinator logs."""
_KINDS: Final = {
    "CONSUMER_GROUP_HEARTBEAT": HeartbeatHistory,
    "SHARE_GROUP_HEARTBEAT": ShareHistory,
    "STREAMS_GROUP_HEARTBEAT": StreamsHistory,
}


def epochs_of(asked: list[SourcedExchange], names: TopicNames) -> Iterator[EventRow]:
    """The events of a group of a newer protocol that is in no coordinator's log."""
    for api, history in _KINDS.items():
        mine = [each for each in asked if each.exchange.api == api and each.exchange.group_id is not None]
        if mine:
            yield from history(str(mine[0].exchange.group_id), mine, names).events()


class _MemberIds(NamedTuple):
    """Member ids that were given to new members, and the ids that a member's process used before."""

    handed_out: set[str]
    former: dict[str, str]


def _by_name(events: list[EventRow]) -> EventsByName:
    """Events by their names and generations."""
    by_name: EventsByName = {}
    for event in events:
        by_name.setdefault((event["event"], event.get("generation")), []).append(event)
    return by_name


def _started(by_name: EventsByName, round_: GenerationExchanges, ended: EventRow | None) -> EventRow | None:
    """The last beginning before a join phase ended."""
    if ended is None:
        return None
    earlier = [
        each
        for each in by_name.get(("rebalance_started", round_.generation - 1), ())
        if each["at_ms"] <= ended["at_ms"] and ended["at_ms"] - each["at_ms"] <= FAR_MS
    ]
    return max(earlier, key=lambda each: each["at_ms"], default=None)


def _put_in_place(event: EventRow, started: EventRow | None) -> None:
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


def _nearest(by_name: EventsByName, name: str, round_: GenerationExchanges) -> EventRow | None:
    assert round_.ended is not None, "a round has begun with an answer"
    at = round_.ended.exchange.answered_at_ms
    same = by_name.get((name, round_.generation), [])
    found = min(same, key=lambda each: abs(each["at_ms"] - at), default=None)
    return found if found is not None and abs(found["at_ms"] - at) <= FAR_MS else None


def _fill(event: EventRow, round_: GenerationExchanges, before: GenerationExchanges | None, moves: Moves) -> None:
    """Add the leader's SyncGroup to a rebalance: when it was stored, and each member's partitions."""
    event |= {"members": round_.members, "member_count": len(round_.members)}
    for name in ("leader", "protocol"):
        if getattr(round_, name) is not None:
            event[name] = getattr(round_, name)
    if round_.owned is not None:
        event |= {"owned_after": round_.owned, "moved": moves.moved, "regained": moves.regained}
    if before is not None and before.owned is not None:
        event["owned_before"] = before.owned_since
    elif before is None and round_.generation == 1:
        event["owned_before"] = []
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


def _handed_out(asked: Iterable[SourcedExchange]) -> set[str]:
    """Ids that new members were given for their second JoinGroup."""
    return {
        str(each.exchange.response.get("memberId"))
        for each in asked
        if each.exchange.api == "JOIN_GROUP" and each.exchange.error == "MEMBER_ID_REQUIRED"
    }


def _static_restarts(round_: GenerationExchanges, events: list[EventRow]) -> Iterator[EventRow]:
    """Static members that restarted without a rebalance; those that a coordinator logged get their new ids."""
    for old, new, asked in round_.returned:
        at = asked.exchange.answered_at_ms
        logged = [
            each
            for each in events
            if each["event"] == "static_member_replaced"
            and each.get("other_member_id") == old
            and abs(each["at_ms"] - at) <= FAR_MS
        ]
        if logged:
            logged[0] |= {"member_id": new, "confidence": EXACT}
            continue
        yield event_row(asked, "static_member_replaced", EXACT, asked.exchange.arrived_at_ms) | {
            "group_id": asked.exchange.group_id,
            "group_instance_id": asked.exchange.request.get("groupInstanceId"),
            "other_member_id": old,
            "member_id": new,
            "state": STABLE,
            "rebalance": False,
        }


def _joins(
    round_: GenerationExchanges, before: GenerationExchanges | None, logged: dict[str, EventRow], ids: _MemberIds
) -> Iterator[EventRow]:
    """The joins and rejoins of this generation; members that a coordinator logged are completed instead."""
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
            "topics": list_or_none(member.topics),
            "client_reason": request.get("reason") or None,
            "software": asked.exchange.software,
            "other_member_id": ids.former.get(member_id) if member_id not in known else None,
        }
        columns = {name: value for name, value in columns.items() if value is not None}
        event = logged.get(member_id)
        if event is not None and member_id not in known:
            for name, value in columns.items():
                event.setdefault(name, value)
            continue
        is_new = member_id not in known and (
            not request.get("memberId") or member_id in ids.handed_out or before is not None or round_.generation == 1
        )
        name = "member_joined" if is_new else "member_rejoined"
        yield event_row(asked, name, EXACT, asked.exchange.arrived_at_ms) | columns


# --- from requests alone


def events_of_requests(
    rounds: list[GenerationExchanges],
    asked: list[SourcedExchange],
    former: dict[str, str],
    away: list[tuple[int, int]],
) -> Iterator[EventRow]:
    """The events of a group that is in no coordinator's log. ``away``: absences of its coordinator."""
    owners: PartitionOwners = {}
    before: GenerationExchanges | None = None
    beginnings = Beginnings(asked, away)
    ids = _MemberIds(_handed_out(asked), former)
    for each in rounds:
        assert each.ended is not None, "a round has begun with an answer"
        ended = each.ended.exchange.answered_at_ms
        empty = beginnings.emptied(before, each)
        if before is not None and empty is not None:
            yield from _emptied(empty, before, beginnings)
            before = empty
        first = beginnings.of(each, before)
        state = STABLE if before is not None and before.assigned is not None else None
        if before is None:
            state = EMPTY if each.generation == 1 else None
        elif empty is not None:
            state = EMPTY
        group = {"group_id": each.ended.exchange.group_id}
        began = event_row(first.asked, "rebalance_started", INFERRED, first.at_ms) | group
        began |= {"generation": each.generation - 1, "group_type": CLASSIC}
        began |= first.cause
        if state is not None:
            began |= {"previous_state": state, "initial": state == EMPTY}
        for event in _joins(each, before, {}, ids):
            _put_in_place(event, began)
            yield event
        for event in _removals(each, before, beginnings, began):
            _put_in_place(event, began)
            yield event
        yield _moved(began, state, PREPARING)
        yield began
        phase = event_row(each.ended, "join_phase_ended", EXACT if each.roster else INFERRED, ended) | group
        phase |= {"generation": each.generation, "members": each.members, "member_count": len(each.members)}
        phase |= {name: value for name in ("leader", "protocol") if (value := getattr(each, name)) is not None}
        phase["join_ms"] = ended - first.at_ms
        yield _moved(phase, PREPARING, COMPLETING)
        yield phase
        moves = count_moves(owners, each)
        if each.assigned is not None:
            yield from _stable(each, before, moves, began, phase)
            yield from _static_restarts(each, [])
        rename_owners(owners, each)
        before = each
    empty = beginnings.emptied(before, None)
    if before is not None and empty is not None:
        yield from _emptied(empty, before, beginnings)


def _emptied(empty: GenerationExchanges, before: GenerationExchanges, beginnings: Beginnings) -> Iterator[EventRow]:
    """The events of a rebalance by which all members went. ``empty``: the generation without members behind it."""
    assert empty.ended is not None, "the last LeaveGroup ends it"
    first = beginnings.of(empty, before)
    state = STABLE if before.assigned is not None else None
    group = {"group_id": empty.ended.exchange.group_id}
    began = event_row(first.asked, "rebalance_started", INFERRED, first.at_ms) | group
    began |= {"generation": before.generation, "group_type": CLASSIC, "initial": False} | first.cause
    if state is not None:
        began["previous_state"] = state
    for event in _removals(empty, before, beginnings, began):
        _put_in_place(event, began)
        yield event
    yield _moved(began, state, PREPARING)
    yield began
    ended = empty.ended.exchange.answered_at_ms
    done = event_row(empty.ended, "group_emptied", INFERRED, ended) | group | {"generation": empty.generation}
    done |= {name: began[name] for name in _CAUSE if name in began} | {"rebalance_ms": ended - first.at_ms}
    yield _moved(done, PREPARING, EMPTY)
    yield done


def _moved(event: EventRow, before: str | None, state: str) -> EventRow:
    moved = {name: event[name] for name in ("at_ms", "order_ms", "node", "file", "line", "group_id", "generation")}
    changed = moved | {"event": "group_state_changed", "state": state, "confidence": INFERRED, "source": "request-log"}
    return changed if before is None else changed | {"previous_state": before}


def _removals(
    round_: GenerationExchanges, before: GenerationExchanges | None, beginnings: Beginnings, began: EventRow
) -> Iterator[EventRow]:
    assert round_.ended is not None, "a round has begun with an answer"
    if before is None:
        return
    for member_id in before.members_since:
        if member_id in round_.members:
            continue
        left = beginnings.left.get(member_id)
        asked = left.asked if left is not None else round_.ended
        is_culprit = left is None and member_id == began.get("cause_member_id")
        at = round_.ended.exchange.answered_at_ms
        if left is not None or is_culprit:
            at = left.at_ms if left is not None else began["at_ms"]
        event = event_row(asked, "member_removed", EXACT if left is not None else INFERRED, at)
        ends = None if left is not None or is_culprit else beginnings.session_ends(member_id)
        is_over = ends is not None and ends <= at
        if ends is not None and is_over:
            event |= {"at_ms": max(ends, began["at_ms"]), "order_ms": max(ends, began["at_ms"])}
        event |= {
            "group_id": asked.exchange.group_id,
            "member_id": member_id,
            "cause": "left" if left is not None else "session-expiry" if is_culprit or is_over else "did-not-rejoin",
        }
        if left is not None and left.cause.get("client_reason"):
            event["client_reason"] = left.cause["client_reason"]
        yield event


def _stable(
    round_: GenerationExchanges, before: GenerationExchanges | None, moves: Moves, began: EventRow, phase: EventRow
) -> Iterator[EventRow]:
    assert round_.assigned is not None, "only what was assigned is stable"
    exchange = round_.assigned.exchange
    group = {"group_id": exchange.group_id, "generation": round_.generation}
    received = event_row(round_.assigned, "assignment_received", EXACT, exchange.arrived_at_ms) | group
    received |= {"leader": round_.leader, "member_count": len(round_.members)}
    received["without_assignment"] = [member for member in round_.members if member not in assignments(exchange)]
    yield received
    done = event_row(round_.assigned, "rebalance_completed", EXACT, exchange.answered_at_ms) | group
    done |= {name: began[name] for name in _CAUSE if name in began}
    done |= {
        "group_type": CLASSIC,
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
