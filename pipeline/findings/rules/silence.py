"""Members that fell silent for a whole session: paused, restarted too slowly, killed, or gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.absences import Absence
from rejoin.pipeline.findings.causes import KILLED, MISSED_SESSION, SOON_MS, Causes
from rejoin.pipeline.findings.clients.advice import (
    SURVIVING_ID,
    can_be_static,
    least_session,
    leaves_when_closed,
    session_bound,
    session_timeout,
    session_value,
    shortest_already,
    static_since,
)
from rejoin.pipeline.findings.clients.share_groups import (
    LET_IT_LEAVE,
    SHORTER_LOCKS,
    longer_session,
    unread_while_silent,
)
from rejoin.pipeline.findings.finding import LONGER, SHORTER, Finding
from rejoin.pipeline.findings.formatting import at_least, count, names, period, seconds, span, spans, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import MemberSession, ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import capital, first, last, probably, share, stood_still, when

LOADED_MS: Final = 60_000
"""Sessions that began with the load of a group end within this."""
TOGETHER_MS: Final = 1_000
MARGIN: Final = 1.2
"""How much longer than what was seen a timeout should be."""


def session_too_short(causes: Causes) -> Iterator[Finding]:
    """A member sent nothing for session.timeout.ms, was removed, and was back soon after: it had not gone, only been
    silent for longer than the session (a pause of its process or host, or a static restart that took too long)."""
    if not causes.missed_sessions:
        return
    missed, history = causes.missed_sessions, causes.history
    caused = causes.begun_by(MISSED_SESSION)
    away = [each.away_ms for each in missed]
    timeouts = _timeouts(each.before for each in missed)
    # Broker logs do not report the session timeout, only by how much it was missed.
    known = len(timeouts) == len(missed)
    longest = max(timeouts, default=0) + max(away)
    wanted = at_least((longest if known else max(away)) * MARGIN)
    cost = history.cost_s(caused) + sum(timeouts) / 1_000
    clients = list(dict.fromkeys(each.who for each in missed))
    exact = all_exact(caused) and all_exact(each.before for each in missed)
    yield Finding(
        "session-too-short",
        f"{probably(exact)}{names(clients)} missed the session by {spans(away)}",
        _missed_text(history, missed, caused, timeouts),
        cost,
        first(caused, missed),
        last(caused, missed),
        setting=session_timeout(history),
        advice=_longer(history, missed, wanted, longest if known else None),
        numbers={
            "expired": len(missed),
            "consumers": len(clients),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "least_missed_ms": min(away),
            "most_missed_ms": max(away),
            "consumer_seconds": cost,
        }
        | (
            {"session_timeout_ms": max(timeouts), "wanted_session_timeout_ms": wanted}
            if known
            else {"longer_by_ms": wanted}
        ),
        members=clients,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
        changes={session_timeout(history): LONGER},
    )


def _timeouts(sessions: Iterator[MemberSession]) -> list[int]:
    return [session.session_timeout_ms for session in sessions if session.session_timeout_ms]


def _what(missed: Sequence[Absence]) -> str:
    """Whether these were pauses of processes that went on, or restarts of static members, as far as that is known."""
    if all(each.before.group_instance_id and each.same_process is not True for each in missed):
        return "restart"
    return "pause" if all(each.same_process for each in missed) else "pause or restart"


def _missed_text(
    history: GroupHistory, missed: Sequence[Absence], caused: Sequence[ObservedRebalance], timeouts: Sequence[int]
) -> str:
    clients = list(dict.fromkeys(each.who for each in missed))
    one = len(clients) == 1
    away, setting = spans([each.away_ms for each in missed]), session_timeout(history)
    after = f"{setting} ({spans(timeouts)})" if timeouts else setting
    what = _what(missed)
    reason = f"{setting} is shorter than the {what}"
    if what == "restart":
        reason += ", so group.instance.id did not help"
    elif what != "pause" and can_be_static(history) and not any(each.before.group_instance_id for each in missed):
        reason += "; group.instance.id is not set"
    unread = f" Before that its partitions had no reader, for {seconds(sum(timeouts))} s in all." if timeouts else ""
    if history.is_share_group:
        unread = unread_while_silent(setting, timeouts) + "."
    if history.is_share_group:
        its = "it" if one else "each"
        return (
            f"{names(clients)} missed {'its' if one else 'their'} session by {away}: {times(len(missed))} no heartbeat "
            f"came for {after}, the coordinator removed the member, and {its} was back {away} later. "
            f"{capital(reason)}.{unread}"
        )
    began = f"{share(history, caused)} {when(caused)} were " if caused else "No rebalance shows it, but there were "
    return (
        began
        + (f"one consumer, {clients[0]}, missing its" if one else f"{names(clients)} missing their")
        + f" session by {away}: {times(len(missed))} no heartbeat came for {after}, the coordinator took the "
        f"partitions away, and {'it was' if one else 'each was'} back {away} later. {capital(reason)}.{unread}"
    )


def _longer(history: GroupHistory, missed: Sequence[Absence], wanted: int, longest: int | None) -> str:
    setting, what = session_timeout(history), _what(missed)
    if longest is not None and history.is_share_group:
        return longer_session(setting, session_value(history, wanted), session_bound(history), longest, what)
    if longest is not None:
        text = (
            f"Set {setting} to {session_value(history, wanted)} or more ({session_bound(history)}): a {what} of up to "
            f"{span(longest)} then passes without a rebalance."
        )
    else:
        text = (
            f"Make {setting} longer than it is now, by at least {span(wanted)} (the source does not report its value; "
            f"{session_bound(history)})."
        )
    text += " The price: partitions of a consumer that is gone for good are without an owner for as long."
    if what == "pause or restart":
        if can_be_static(history):
            text += (
                " If these were restarts, set group.instance.id, too: without it even a quick one makes two rebalances."
            )
        text += " If they were pauses, look for long garbage collections, a starved CPU or a network that was away."
    elif what == "pause":
        text += " Look for long garbage collections, a starved CPU or a host that was suspended."
    return text


def died_without_leaving(causes: Causes) -> Iterator[Finding]:
    """A member fell silent and never came back, or came back as a new process: it was killed, and its partitions had no
    reader until its session ended. A consumer that is closed leaves, and its partitions go on at once."""
    history = causes.history
    # With a new instance id at each start they did come back; that has a finding of its own.
    renamed = {id(before) for before, _ in history.renamed}
    dead = [each for each in causes.dead if _fate_is_known(history, each) and id(each) not in renamed]
    gone = [*dead, *(each.before for each in causes.killed)]
    if not gone:
        return
    who = list(dict.fromkeys(history.name_of(session) for session in gone))
    timeouts = _timeouts(iter(gone))
    caused = causes.begun_by(KILLED)
    silent = sum(timeouts) / 1_000
    cost = history.cost_s(caused) + silent
    moments = [session.ended_at_ms or 0 for session in gone]
    # That no member came back is only as certain as the joins that the source reports.
    exact = all_exact(caused) and all_exact(history.sessions)
    again = f"{names(each.who for each in causes.killed)} {_was(causes.killed)} started again"
    outcome = "fell silent and did not come back" if not causes.killed else f"died without leaving; {again}"
    whose = "its" if len(who) == 1 else "their"
    early = [each.before for each in causes.killed if each.away_ms < 0]
    slow = [session for session in gone if not any(session is each for each in early)]
    is_shortest = bool(shortest_already(history, timeouts))
    unread = f" Before that {whose} partitions had no reader"
    if history.is_share_group:
        unread = unread_while_silent(session_timeout(history), timeouts)
    elif timeouts:
        unread += f", for {session_timeout(history)} ({spans(timeouts)})"
        unread += f", {seconds(silent * 1_000)} s in all" if timeouts[1:] else ""
    yield Finding(
        "died-without-leaving",
        f"{probably(exact)}{names(who)} {outcome}",
        f"{_silent(who, len(gone))}{_fate(causes, dead)}; "
        f"removed {period(min(moments), max(moments))}.{unread}.{stood_still(history, history.cost_s(caused))}",
        cost,
        min(moments) - max(timeouts, default=0),
        max([*moments, *(each.until_ms for each in caused)]),
        setting=session_timeout(history)
        if slow and not is_shortest
        else "group.instance.id"
        if early and can_be_static(history)
        else None,
        advice=_what_to_do(history, gone, slow, bool(early)),
        numbers={
            "died": len(gone),
            "started_again": len(causes.killed),
            "rebalances": len(caused),
            "consumer_seconds": cost,
        }
        | ({"session_timeout_ms": max(timeouts)} if timeouts else {}),
        members=who,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
        changes={session_timeout(history): SHORTER} if slow and not is_shortest else {},
    )


def _silent(who: Sequence[str], number: int) -> str:
    """How many members were silent for a session, and how often where that is not once for each."""
    often = f", {times(number)}" if number > len(who) else ""
    return f"{count(len(who), 'member')} ({names(who)}) sent no heartbeat for a whole session{often}"


def _was(absences: Sequence[Absence]) -> str:
    return "was" if len({each.who for each in absences}) == 1 else "were"


def _fate(causes: Causes, dead: Sequence[MemberSession]) -> str:
    if not causes.killed:
        return " and did not come back"
    back = [max(0, each.gone_at_ms - each.went_at_ms + each.away_ms) for each in causes.killed]
    again = f"{names(each.who for each in causes.killed)} came back as a new process, {spans(back)} after the last sign"
    if not dead:
        return f"; {again}"
    return f"; {names(causes.history.name_of(each) for each in dead)} did not come back, {again}"


def _what_to_do(
    history: GroupHistory, gone: Sequence[MemberSession], slow: Sequence[MemberSession], is_early: bool
) -> str:
    """Advice about members that die: how they would leave or keep their place, or what a shorter session costs.

    ``slow``: those that were not back before their session ended. For others a shorter one would be of no use: with
    static membership the longer it is, the more restarts pass without a rebalance.
    """
    static = [session for session in gone if session.group_instance_id]
    shorter = shortest_already(history, _timeouts(iter(gone))) or (
        f"For what dies by itself, a shorter {session_timeout(history)} finds out sooner ({least_session(history)}), "
        "at the price of members that are removed for a pause."
    )
    keep = (
        f"Give each consumer a group.instance.id of its own: {SURVIVING_ID}.{static_since(history)} A process that is "
        "back before its session ends then gets its partitions without any rebalance."
    )
    leave = (
        "A consumer of Kafka Streams does not leave when its application is closed: its partitions wait for a whole "
        "session."
        if not leaves_when_closed(history)
        else "If it was stopped on purpose, let it close its consumer (SIGTERM, and time enough before SIGKILL): then "
        "it leaves, and its partitions go on at once."
    )
    remain = (
        "A static member sends no LeaveGroup when it is closed: its partitions wait for a whole session. Take one that "
        "is stopped for good out of the group (Admin.removeMembersFromConsumerGroup; from Java's client 4.1 on, close "
        "it with CloseOptions and LEAVE_GROUP)."
    )
    if history.is_share_group:
        return " ".join([LET_IT_LEAVE, SHORTER_LOCKS, *([shorter] if slow else [])])
    ways = [
        (is_early and can_be_static(history), keep),
        (len(static) < len(gone), leave),
        (bool(static), remain),
        (bool(slow), shorter),
    ]
    return " ".join(text for holds, text in ways if holds)


def _fate_is_known(history: GroupHistory, session: MemberSession) -> bool:
    """Whether a member that came back would be seen: every join is reported, and consumers' logs go on long enough."""
    goes_on = history.end_ms - (session.ended_at_ms or 0) >= SOON_MS
    return history.all_joins_are_reported and (goes_on or not history.is_from_consumers)


def fell_silent(causes: Causes) -> Iterator[Finding]:
    """A member fell silent for a whole session, and the source does not report every join, or ends soon after: whether
    the member came back, and so whether the session is too long or too short, cannot be known."""
    history = causes.history
    dead = [each for each in causes.dead if not _fate_is_known(history, each)]
    if not dead:
        return
    caused = causes.begun_by(KILLED)
    cost = history.cost_s(caused)
    who = list(dict.fromkeys(history.name_of(session) for session in dead))
    moments = [session.ended_at_ms or 0 for session in dead]
    after = _after_a_load(history, moments)
    requests = (
        ""
        if history.run.requests_read
        else " The broker's kafka-request.log shows which members came back: add it to the input."
    )
    yield Finding(
        "fell-silent",
        f"{names(who)} fell silent for a whole session, {times(len(dead))}",
        f"{_silent(who, len(dead))} and "
        f"{'was' if len(who) == 1 else 'were'} removed {period(min(moments), max(moments))}.{after} Whether they came "
        f"back this source does not say: {_unknown_joins(history)}.{stood_still(history, cost)}",
        cost,
        min(moments),
        max([*moments, *(each.until_ms for each in caused)]),
        advice="Look into the logs of these consumers at that time. If they paused or restarted and came back, "
        f"{session_timeout(history)} is too short for it; if they were stopped for good{_let_leave(history, dead)}."
        f"{requests}",
        numbers={"silent": len(dead), "rebalances": len(caused), "consumer_seconds": cost},
        members=who,
        rebalances=[each.rebalance_id for each in caused],
        exact=False,
    )


def _let_leave(history: GroupHistory, dead: Sequence[MemberSession]) -> str:
    """Advice on members that are stopped for good; static ones and those of Streams do not leave."""
    if leaves_when_closed(history) and not all(each.group_instance_id for each in dead):
        return ", let them close, so that they leave at once"
    return ", their partitions waited for a whole session, as such members do not leave"


def _unknown_joins(history: GroupHistory) -> str:
    if history.is_from_consumers:
        return "their logs have no later join"
    return "it has no line about a later join, and brokers before Kafka 2.5 do not log every one"


def _after_a_load(history: GroupHistory, moments: Sequence[int]) -> str:
    """A sentence where the coordinator had just got the group: its sessions began then, and no heartbeat came."""
    for outage in history.outages:
        waited = [at_ms - outage.to_ms for at_ms in moments]
        if 0 < min(waited) <= max(waited) <= LOADED_MS and max(waited) - min(waited) <= TOGETHER_MS:
            return (
                f" That was {span(min(waited))} after broker {outage.node} had loaded the group: they never came to "
                "this coordinator, so look at why these clients did not find it."
            )
    return ""
