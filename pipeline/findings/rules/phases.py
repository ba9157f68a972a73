"""Trouble within a rebalance: it begins anew, its sync phase is held up, or it never ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.advice import (
    can_speak_consumer_protocol,
    rebalance_timeout,
    session_timeout,
    shortest_already,
)
from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, SHORTER, Finding, severity_of
from rejoin.pipeline.findings.formatting import count, names, period, span, spans, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import (
    ENFORCED,
    METADATA_CHANGED,
    MemberSession,
    ObservedRebalance,
    all_exact,
)
from rejoin.pipeline.findings.phrases import first, last, probably, share, stood_still, when
from rejoin.pipeline.findings.rules.groups import rejoin_loops, run_length
from rejoin.pipeline.vocabulary import CLIENT_LOG

SYNC_MS: Final = 6_000
"""Members wait so long for the leader's assignment before it is a finding."""
OFTEN_AN_HOUR: Final = 30
"""A group that rebalances so often for no reason is in trouble, however short each is."""
OPEN_MS: Final = 30_000
"""A rebalance that has gone on for so long where the source ends is likely to be stuck."""


# --- a member rejoins in a loop


def rejoin_loop(causes: Causes) -> Iterator[Finding]:
    """A member of a Stable group, mostly its leader, joins again and again: each time all others rebalance."""
    history = causes.history
    for run in rejoin_loops(causes):
        who, cost = history.who(run[0].cause_member_id), history.cost_s(run)
        said = Counter((each.client_reason or "").split(" (")[0][:120] for each in run).most_common(1)[0][0]
        exact = all_exact(run)
        role = "the leader" if all(each.cause == "rejoin-leader" for each in run) else "a member"
        gaps = [after.prepared_at_ms - before.prepared_at_ms for before, after in pairwise(run)]
        number, lasted_ms = run_length(run), run[-1].prepared_at_ms - run[0].prepared_at_ms
        an_hour = (number - 1) * 3_600_000 / max(lasted_ms, 1)
        left_out = f" Their generations show {number} in this time." if number > len(run) else ""
        yield Finding(
            "rejoin-loop",
            f"{probably(exact)}{who}, {role}, rejoined {times(len(run))}",
            f"{share(history, run)} {when(run)} began as {who}, {role}, joined the Stable group again, every "
            f"{spans(gaps)}"
            + (f'; it gave the reason "{said}".' if said else "; it gave no reason.")
            + f" No member came or went for these.{left_out} At this rate it is {an_hour:,.0f} rebalances an hour."
            + stood_still(history, cost),
            cost,
            first(run),
            last(run),
            advice=_loop_advice(said),
            numbers={"rejoins": len(run), "consumer_seconds": cost, "rebalances_in_all": len(history.rebalances)},
            members=[who],
            rebalances=[each.rebalance_id for each in run],
            exact=exact,
            # Each costs little, and they go on for ever.
            severity=MEDIUM if an_hour >= OFTEN_AN_HOUR and severity_of(cost) == LOW else None,
        )


def _loop_advice(said: str) -> str:
    if said.startswith(ENFORCED):
        return "The application calls enforceRebalance(): call it only when something outside the group has changed."
    if said.startswith(METADATA_CHANGED):
        return (
            "Its metadata changes each time, though no topic grew: look for topics of its pattern "
            "that come and go, and for brokers that disagree (compare kafka-topics.sh --describe against each of them)."
        )
    return (
        "Look at that member's own log at these instants. An assignor of its own whose subscription is never the same "
        "(user data), a call of enforceRebalance(), or a client library that joins again after each refresh of its "
        "metadata does this; restarting the member makes another one the leader and shows whether it is the member."
    )


# --- the sync phase


@dataclass(frozen=True, slots=True)
class _Wait:
    """A rebalance whose members waited for the leader's assignment."""

    rebalance: ObservedRebalance
    who: str
    ms: int
    dead: bool


def sync_held_up(causes: Causes) -> Iterator[Finding]:
    """After the join phase all members wait for the assignment that the leader computes: a slow assignor, or a leader
    that died, holds up the whole group."""
    history = causes.history
    waits = [wait for each in history.rebalances if (wait := _wait(history, each)) is not None]
    if not waits:
        return
    rebalances = [each.rebalance for each in waits]
    leaders = [who for who, _ in Counter(each.who for each in waits).most_common()]
    lengths, dead = [each.ms for each in waits], sum(each.dead for each in waits)
    exact, cost = all_exact(rebalances), history.cost_s(rebalances)
    outcome = f"{times(dead)} the leader was removed before it had sent one" if dead else "it came at last"
    died = [history.by_member.get(each.rebalance.leader or "") for each in waits if each.dead]
    shortest = shortest_already(history, [each.session_timeout_ms or 0 for each in died if each is not None])
    yield Finding(
        "sync-held-up",
        f"{probably(exact)}{count(len(waits), 'rebalance')} waited {spans(lengths)} for the assignment of "
        f"{names(leaders, 2)}",
        f"In {share(history, rebalances)} {when(rebalances)} all members had joined, and then waited {spans(lengths)} "
        f"for SyncGroup of the leader ({names(leaders)}): {outcome}.{stood_still(history, cost)}",
        cost,
        first(rebalances),
        last(rebalances),
        setting=session_timeout(history) if dead and not shortest else None,
        advice=_dead_leader(history, shortest)
        if 2 * dead > len(waits)
        else "The leader computes the assignment within poll(). Look there for a slow assignor (one of your own, many "
        "partitions, calls to other systems), for long pauses of its process, and for work in onPartitionsRevoked."
        + (_BROKERS_ASSIGN if can_speak_consumer_protocol(history.clients) else ""),
        numbers={
            "held_up": len(waits),
            "longest_ms": max(lengths),
            "leaders_removed": dead,
            "consumer_seconds": cost,
        },
        members=leaders,
        rebalances=[each.rebalance_id for each in rebalances],
        exact=exact,
        changes={session_timeout(history): SHORTER} if 2 * dead > len(waits) and not shortest else {},
    )


_BROKERS_ASSIGN: Final = " In the consumer protocol (group.protocol=consumer) the brokers assign."


def _dead_leader(history: GroupHistory, shortest: str) -> str:
    waits = "The leader died between joining and assigning. The others wait until its session ends"
    return f"{waits}. {shortest}" if shortest else f"{waits}: a shorter {session_timeout(history)} shortens that."


def _wait(history: GroupHistory, rebalance: ObservedRebalance) -> _Wait | None:
    joined = rebalance.joined_at_ms
    if joined is None or rebalance.group_type == "consumer" or rebalance.outcome in ("aborted", "open"):
        return None
    ms = (rebalance.until_ms if rebalance.assigned_at_ms is None else rebalance.assigned_at_ms) - joined
    if ms < SYNC_MS or rebalance.leader is None:
        return None
    session = history.by_member.get(rebalance.leader)
    ended = None if session is None else session.ended_at_ms
    removed = rebalance.assigned_at_ms is None and ended is not None and joined <= ended <= rebalance.until_ms + SYNC_MS
    if rebalance.assigned_at_ms is None and not removed:
        return None  # something else made the group begin anew
    return _Wait(rebalance, history.who(rebalance.leader), ms, removed)


# --- one that does not end


def _last_known_ms(history: GroupHistory) -> int:
    """The end of the run; where only consumers report, of what they report: another one's log goes on without them."""
    if not history.is_from_consumers:
        return history.end_ms
    return max((each.at_ms for each in history.events), default=history.rebalances[-1].prepared_at_ms)


def rebalance_still_open(causes: Causes) -> Iterator[Finding]:
    """The source ends in the middle of a rebalance that has gone on for long: the group may be stuck now."""
    history = causes.history
    rebalance = history.rebalances[-1] if history.rebalances else None
    if rebalance is None or rebalance.outcome != "open" or rebalance.group_type == "consumer":
        return
    if rebalance.source == CLIENT_LOG and rebalance.joined_at_ms is None:
        # Of consumers' logs that is one whose members have no more lines, and not one that is known to go on.
        return
    # A coordinator that stopped says nothing more, however long other sources go on.
    stops = (event.at_ms for event in history.events if event.event == "broker_stopped")
    end_ms = min((at_ms for at_ms in stops if at_ms >= rebalance.prepared_at_ms), default=_last_known_ms(history))
    open_ms = end_ms - rebalance.prepared_at_ms
    if open_ms < OPEN_MS:
        return
    members = rebalance.members_before or []
    syncs = rebalance.joined_at_ms is not None
    waits_for = (
        f"for the assignment of {history.who(rebalance.leader)}, the leader"
        if syncs and rebalance.leader
        else "for the leader's assignment"
        if syncs
        else "for members to send JoinGroup"
    )
    limits = [each.rebalance_timeout_ms for each in _members(history, members) if each.rebalance_timeout_ms]
    limit = f" The coordinator waits {span(max(limits))} at the most." if limits else ""
    yield Finding(
        "rebalance-still-open",
        f"{history.group_id} has been rebalancing for {span(open_ms)} where the source ends",
        f"The last rebalance of {history.group_id} began {period(rebalance.prepared_at_ms, rebalance.prepared_at_ms)} "
        f"({_began(history, rebalance)}) and was not over {span(open_ms)} later, where the source ends. It waits "
        f"{waits_for}.{limit} Until then none of its {count(len(members), 'member')} reads, unless it kept its "
        "partitions (cooperative-sticky).",
        len(members) * open_ms / 1_000 if not history.is_incremental(rebalance) else 0.0,
        rebalance.prepared_at_ms,
        end_ms,
        setting=None if syncs else rebalance_timeout(history),
        advice="See whether it still goes on (kafka-consumer-groups.sh --describe --state --group "
        f"{history.group_id}). If it does, "
        + ("take a thread dump of the leader." if syncs else "take thread dumps of the members that do not poll.")
        + " If it does not, give a longer piece of the log.",
        numbers={"open_ms": open_ms, "members": len(members)},
        members=[history.who(each) for each in members],
        rebalances=[rebalance.rebalance_id],
        exact=all_exact([rebalance]),
        severity=HIGH,
    )


def _members(history: GroupHistory, members: Sequence[str]) -> list[MemberSession]:
    return [session for each in members if (session := history.by_member.get(each)) is not None]


def _began(history: GroupHistory, rebalance: ObservedRebalance) -> str:
    who = f" of {history.who(rebalance.cause_member_id)}" if rebalance.cause_member_id else ""
    return f"{rebalance.cause}{who}"
