"""Members that are too slow: between two polls, or in answering a rebalance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding, severity_of
from rejoin.pipeline.findings.history import GroupHistory, ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import first, last, probably, share, stood_still, value, when
from rejoin.pipeline.findings.words import at_least, count, names, period, span, spans, times

HELD_UP_MS: Final = 6_000
"""A join phase of this length is long: members learn of it with their next heartbeat, after 3 s by default."""
ALONE: Final = 0.8
"""The slowest member came after this share of the join phase: it is the one that all others waited for."""
AGAIN: Final = 3
"""A poll that is missed so often is no accident."""
MARGIN: Final = 1.2


def max_poll_exceeded(history: GroupHistory) -> Iterator[Finding]:
    """A consumer did not poll within max.poll.interval.ms: its own heartbeat thread leaves the group. The coordinator
    knows that only from the client's reason (KIP-800), else the consumer's own journal has it."""
    ended = [session for session in history.sessions if session.left_by_poll_timeout]
    timed_out = [event for event in history.events if event.event == "poll_timeout_exceeded"]
    if not ended and not timed_out:
        return
    times_out = max(len(ended), len(timed_out))
    clients = list(
        dict.fromkeys(
            [event.group_instance_id or event.client_id or history.who(event.member_id) for event in timed_out]
            or [history.name_of(session) for session in ended]
        )
    )
    gone = [session.member_id for session in ended] + [event.member_id for event in timed_out if event.member_id]
    back = [each for each in history.absences if each.exact and each.before.member_id in gone]
    ids = dict.fromkeys([*gone, *(each.after.member_id for each in back)])
    caused = [
        each for each in history.caused_by(ids) if (each.cause == "join-new") == (each.cause_member_id not in gone)
    ]
    limits = [event.timeout_ms for event in timed_out if event.timeout_ms]
    limits = limits or [session.rebalance_timeout_ms for session in ended if session.rebalance_timeout_ms]
    limit = max(limits, default=0)
    away = [each.away_ms for each in back if each.away_ms > 0]
    longest = limit + max(away, default=0)
    cost = history.cost_s(caused)
    bound = f"max.poll.interval.ms ({span(limit)})" if limit else "max.poll.interval.ms"
    took = (
        f" {'It' if len(clients) == 1 else 'They'} polled again {spans(away)} after that"
        + (f", so one batch took up to {span(longest)}." if limit else ".")
        if away
        else f" {'It' if len(clients) == 1 else 'They'} did not come back."
    )
    refused = [event for event in history.events if event.event == "commit_refused" and event.member_id in gone]
    twice = (
        f" {count(len(refused), 'commit')} of theirs {'was' if len(refused) == 1 else 'were'} refused afterwards: "
        "those records are processed again."
        if refused
        else ""
    )
    exact = all_exact(caused) and all_exact(ended) and all_exact(timed_out)
    moments = [event.at_ms for event in timed_out] or [
        session.ended_at_ms for session in ended if session.ended_at_ms is not None
    ]
    raised = f", or raise max.poll.interval.ms above {value(at_least(longest * MARGIN))}" if away and limit else ""
    yield Finding(
        "max-poll-exceeded",
        f"{names(clients)} did not poll in time, {times(times_out)}",
        f"{times(times_out).capitalize()} a consumer did not poll within {bound} and left the group "
        f"{period(min(moments), max(moments)) if moments else ''} ({names(clients)}).{took} Its heartbeats went on, "
        f"so the session timeout is not the problem. {share(history, caused)} began through it.{twice}"
        f"{stood_still(history, cost)}",
        cost,
        min(moments, default=first(caused)) if moments else first(caused),
        max([*moments, *([last(caused) or 0] if caused else [])], default=None),
        setting="max.poll.interval.ms",
        advice="Make one poll's worth of work shorter: a smaller max.poll.records, or a timeout for whatever the "
        "handler "
        f"waits for{raised}. That is also the rebalance timeout: for so long the group waits for a consumer that is "
        "stuck.",
        numbers={
            "times": times_out,
            "consumers": len(clients),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "commits_refused": len(refused),
            "consumer_seconds": cost,
        }
        # How long the batch was follows from both.
        | ({"max_poll_interval_ms": limit} if limit else {})
        | ({"longest_batch_ms": longest} if limit and away else {}),
        members=clients,
        rebalances=[each.rebalance_id for each in caused],
        evidence=[event.as_evidence() for event in [*timed_out, *refused]],
        exact=exact,
        # Again and again: the group makes no progress, whatever the other members do.
        severity=MEDIUM if severity_of(cost) == LOW and times_out >= AGAIN else None,
    )


@dataclass(frozen=True, slots=True)
class _HeldUp:
    """A rebalance whose join phase waited for one member."""

    rebalance: ObservedRebalance
    who: str
    how: str
    """late | poll-timeout | expired | never."""
    ms: int


def join_held_up(history: GroupHistory) -> Iterator[Finding]:
    """The join phase ends when the last member has sent JoinGroup or has gone, or the rebalance timeout is over: one
    member that is busy, stuck or dead makes all others wait."""
    held_up = [found for each in history.later if (found := _held_up(history, each)) is not None]
    if not held_up:
        return
    rebalances = [each.rebalance for each in held_up]
    hows = Counter(each.how for each in held_up)
    main = hows.most_common(1)[0][0]
    clients = [who for who, _ in Counter(each.who for each in held_up).most_common()]
    waits = [each.ms for each in held_up]
    waited = sum(each.members_waiting_ms or 0 for each in rebalances)
    exact = all_exact(rebalances)
    cost = max(history.cost_s(rebalances), 0.0)
    ways = names(f"{times(number)} it {_HOW[how]}" for how, number in hows.most_common())
    timeouts = [
        session.rebalance_timeout_ms
        for each in held_up
        if (session := history.by_member.get(each.rebalance.slowest_member_id or "")) and session.rebalance_timeout_ms
    ]
    bound = f" It is {span(max(timeouts))} now." if timeouts else ""
    dead = main == "expired"
    yield Finding(
        "join-held-up",
        f"{probably(exact)}{count(len(held_up), 'rebalance')} waited {spans(waits)} for {names(clients, 2)}",
        f"In {share(history, rebalances)} {when(rebalances)} the join phase waited {spans(waits)} for one member "
        f"({names(clients)}): {ways}."
        + (f" The others waited {span(waited)}, added up." if waited else "")
        + stood_still(history, cost),
        cost,
        first(rebalances),
        last(rebalances),
        setting="session.timeout.ms" if dead else "max.poll.interval.ms",
        advice=(
            "The coordinator waits for a member that is dead until its session ends. Let consumers close, so that they "
            "leave, or set group.instance.id, so that a restarted one takes its old place; a shorter "
            "session.timeout.ms "
            "shortens the wait, at the price of more members that are removed for a pause."
            if dead
            else "A member answers a rebalance with its next poll, so one batch is the longest that all others may "
            "have to "
            "wait: make it shorter with max.poll.records, or lower max.poll.interval.ms, which is how long the "
            f"coordinator waits at the most.{bound}"
        ),
        numbers={
            "held_up": len(held_up),
            "rebalances_in_all": len(history.rebalances),
            "longest_ms": max(waits),
            "members_waited_ms": waited,
            "consumer_seconds": cost,
        },
        members=clients,
        rebalances=[each.rebalance_id for each in rebalances],
        exact=exact,
    )


_HOW: Final = {
    "late": "came late",
    "poll-timeout": "left at last, as it had not polled for max.poll.interval.ms",
    "expired": "was dead, until its session ended",
    "never": "never came, until the rebalance timeout",
}


def _held_up(history: GroupHistory, rebalance: ObservedRebalance) -> _HeldUp | None:
    join_ms = rebalance.join_ms
    if join_ms is None and rebalance.joined_at_ms is not None:
        join_ms = rebalance.joined_at_ms - rebalance.prepared_at_ms
    if join_ms is None or join_ms < HELD_UP_MS:
        return None
    ended = rebalance.prepared_at_ms + join_ms
    went = [
        session
        for member_id in [*(rebalance.evicted or ()), *(rebalance.left or ())]
        if (session := history.by_member.get(member_id)) is not None
        and session.ended_at_ms is not None
        and session.ended_at_ms > rebalance.prepared_at_ms
        and abs(session.ended_at_ms - ended) <= (1 - ALONE) * join_ms
    ]
    if went:
        last_one = max(went, key=lambda session: (session.ended_at_ms or 0, session.member_id))
        if last_one.left_by_poll_timeout:
            how = "poll-timeout"
        elif last_one.end == "session-expiry":
            how = "expired"
        elif last_one.end == "did-not-rejoin":
            how = "never"
        else:
            return None
        return _HeldUp(
            rebalance, history.name_of(last_one), how, (last_one.ended_at_ms or 0) - rebalance.prepared_at_ms
        )
    if rebalance.slowest_member_id and (rebalance.slowest_ms or 0) >= max(HELD_UP_MS, ALONE * join_ms):
        return _HeldUp(rebalance, history.who(rebalance.slowest_member_id), "late", rebalance.slowest_ms or 0)
    return None
