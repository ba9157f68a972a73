"""Members that left and came back: deploys, sessions that were too short, flapping, duplicate instance ids."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.finding import HIGH, LOW, Finding
from rejoin.pipeline.findings.history import (
    Absence,
    GroupHistory,
    MemberSession,
    ObservedEvent,
    ObservedRebalance,
    all_exact,
)
from rejoin.pipeline.findings.phrases import first, last, probably, share, stood_still, value, when
from rejoin.pipeline.findings.words import at_least, count, names, period, seconds, span, spans, times

WAVE_MS: Final = 30 * 60_000
"""Restarts that are closer together than this belong to one deploy."""
FLAPS: Final = 3
"""Absences of one client within :data:`WAVE_MS` of each other that make it a flapping one."""
SOON_MS: Final = 60_000
"""A member that was removed for silence and is back within this (or one more session) was not gone for good."""
FENCED_AGAIN_MS: Final = 60 * 60_000
"""An instance id fenced again within this has two owners; once may be a deploy that starts the new one too early."""
MARGIN: Final = 1.2
"""How much longer than what was seen a timeout should be."""


def rolling_restart(history: GroupHistory) -> Iterator[Finding]:
    """Dynamic members restart one after the other, and each makes the group rebalance twice: when it leaves and when it
    joins. With group.instance.id and a session that outlasts the restart there would be none (KIP-345)."""
    waves = [wave for wave in _waves(_restarts(history)) if _is_deploy(history, wave)]
    if not waves:
        return
    restarts = [each for wave in waves for each in wave]
    caused = _begun_by(history, restarts)
    if not caused:
        return
    cost = history.cost_s(caused)
    away = [max(0, each.away_ms) for each in restarts]
    exact = all(each.exact for each in restarts) and all_exact(caused)
    clients = list(dict.fromkeys(each.who for each in restarts))
    deploys = count(len(waves), "rolling restart")
    missed = [each.away_ms for each in restarts if each.away_ms >= 0]
    later = f", {spans(missed)} later" if missed else ", before the old process was missed"
    took = [_took(each) for each in restarts]
    known = [ms for ms in took if ms is not None]
    least = f": at least {value(at_least(max(known) * MARGIN))} here" if len(known) == len(took) else ""
    ends = Counter(each.before.end for each in restarts)
    how = (
        ""
        if not ends["session-expiry"]
        else f" ({ends['session-expiry']} of them silently, removed when their session timed out)"
    )
    yield Finding(
        "rolling-restart",
        f"{probably(exact)}{deploys} made {count(len(caused), 'rebalance')}: no static membership",
        f"{share(history, caused)} came from restarts of {count(len(clients), 'consumer')} ({names(clients)}) "
        f"{when(caused)}: each of {count(len(restarts), 'restart')} made the group rebalance when the consumer "
        f"left{how} "
        f"and again when it was back{later}. group.instance.id is not set, so a consumer that comes back is "
        f"a new member.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting="group.instance.id",
        advice="Give each consumer a group.instance.id of its own that survives a restart (the name of its pod or "
        "host), "
        f"and set session.timeout.ms longer than a restart takes{least}. "
        "A consumer that is back by then gets its partitions without any rebalance.",
        numbers={
            "deploys": len(waves),
            "restarts": len(restarts),
            "consumers": len(clients),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "longest_away_ms": max(away),
            "consumer_seconds": cost,
        },
        members=clients,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


def session_too_short(history: GroupHistory) -> Iterator[Finding]:
    """A member sent nothing for session.timeout.ms, was removed, and was back soon after: it had not gone, only been
    silent for longer than the session (a pause of its process or host, or a restart that took too long)."""
    flapping = {each.who for wave in _flaps(history) for each in wave}
    missed = [
        each
        for each in history.absences
        if each.before.end == "session-expiry"
        and each.exact
        and 0 <= each.away_ms <= max(SOON_MS, each.before.session_timeout_ms or 0)
        and each.who not in flapping
    ]
    if not missed:
        return
    caused = _begun_by(history, missed)
    static = [each for each in missed if each.before.group_instance_id]
    away = [each.away_ms for each in missed]
    timeouts = [each.before.session_timeout_ms for each in missed if each.before.session_timeout_ms]
    silent = sum(timeouts) / 1_000
    cost = history.cost_s(caused) + silent
    clients = list(dict.fromkeys(each.who for each in missed))
    one = len(clients) == 1
    # Broker logs do not report the session timeout, only by how much it was missed.
    timeouts_known = len(timeouts) == len(missed)
    longest = max(timeouts, default=0) + max(away)
    wanted = at_least((longest if timeouts_known else max(away)) * MARGIN)
    cause = "restart" if len(static) == len(missed) else "pause"
    after = f"session.timeout.ms ({spans(timeouts)})" if timeouts else "session.timeout.ms"
    exact = all_exact(caused) and all_exact(each.before for each in missed)
    reason = {
        "restart": "session.timeout.ms is shorter than the restart, so group.instance.id did not help",
        "pause": "session.timeout.ms is shorter than the pause or restart"
        + ("" if static else "; group.instance.id is not set"),
    }[cause]
    static_too = (
        ""
        if len(static) == len(missed)
        else " If these were restarts, set group.instance.id, too: without it even a quick one makes two rebalances."
        " If they were pauses, look for long garbage collections, a starved CPU or a network that was away."
    )
    yield Finding(
        "session-too-short",
        f"{probably(exact)}{names(clients)} missed the session by {spans(away)}",
        f"{share(history, caused)} {when(caused)} were "
        + (f"one consumer, {clients[0]}, missing its" if one else f"{names(clients)} missing their")
        + f" session by {spans(away)}: {times(len(missed))} no heartbeat came for {after}, the coordinator "
        "took "
        f"the partitions away, and {'it was' if one else 'each was'} back {spans(away)} later. {_capital(reason)}."
        + (f" Before that its partitions had no reader, for {seconds(silent * 1_000)} s in all." if silent else ""),
        cost,
        first(caused, missed),
        last(caused, missed),
        setting="session.timeout.ms",
        advice=(
            f"Set session.timeout.ms to {value(wanted)} or more (group.max.session.timeout.ms of the broker must allow "
            f"it): a {cause} of up to {span(longest)} then passes without a rebalance."
            if timeouts_known
            else f"Make session.timeout.ms longer than it is now, by at least {span(wanted)} (the source "
            "does not report its value; group.max.session.timeout.ms of the broker must allow it)."
        )
        + " The price: partitions of a consumer that is gone for good are without an owner for as long."
        + static_too,
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
            if timeouts_known
            else {"longer_by_ms": wanted}
        ),
        members=clients,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


def died_without_leaving(history: GroupHistory) -> Iterator[Finding]:
    """A member fell silent and never came back: it was killed, and its partitions had no reader until its session
    ended.
    A consumer that is closed leaves, and its partitions go on at once."""
    dead = _not_seen_again(history)
    if not dead or not history.all_joins_are_reported:
        return
    timeouts = [session.session_timeout_ms for session in dead if session.session_timeout_ms]
    silent = sum(timeouts) / 1_000
    caused = [
        each for each in history.caused_by(session.member_id for session in dead) if each.cause == "session-expiry"
    ]
    cost = history.cost_s(caused) + silent
    who = list(dict.fromkeys(history.name_of(session) for session in dead))
    whose = "its" if len(dead) == 1 else "their"
    moments = [session.ended_at_ms or 0 for session in dead]
    # That no member came back is only as certain as the joins that the source reports.
    exact = all_exact(caused) and all_exact(history.sessions)
    unread = (
        f" Before that {whose} partitions had no reader, for session.timeout.ms ({spans(timeouts)})"
        + (f", {seconds(silent * 1_000)} s in all." if timeouts[1:] else ".")
        if timeouts
        else f" Before that {whose} partitions had no reader."
    )
    yield Finding(
        "died-without-leaving",
        f"{probably(exact)}{names(who)} fell silent and did not come back",
        f"{count(len(dead), 'member')} ({names(who)}) sent no heartbeat for a whole session and did not come back; "
        "removed "
        f"{period(min(moments), max(moments))}.{unread}{stood_still(history, history.cost_s(caused))}",
        cost,
        min(moments) - max(timeouts, default=0),
        max([*moments, *(each.until_ms for each in caused)]),
        setting="session.timeout.ms",
        advice="If it was stopped on purpose, let it close its consumer (SIGTERM, and time enough before SIGKILL): "
        "then it "
        "leaves, and its partitions go on at once. For what dies by itself, a shorter session.timeout.ms finds out "
        "sooner "
        "(not below group.min.session.timeout.ms, 6000 by default, nor three times heartbeat.interval.ms), at the "
        "price of "
        "members that are removed for a pause.",
        numbers={
            "died": len(dead),
            "rebalances": len(caused),
            "consumer_seconds": cost,
        }
        | ({"session_timeout_ms": max(timeouts)} if timeouts else {}),
        members=who,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


def fell_silent(history: GroupHistory) -> Iterator[Finding]:
    """A member fell silent for a whole session, and the source does not report every join: whether it came back, and
    so whether the session is too long or too short, cannot be known."""
    gone = _not_seen_again(history)
    if not gone or history.all_joins_are_reported:
        return
    caused = [
        each for each in history.caused_by(session.member_id for session in gone) if each.cause == "session-expiry"
    ]
    cost = history.cost_s(caused)
    who = list(dict.fromkeys(history.name_of(session) for session in gone))
    moments = [session.ended_at_ms or 0 for session in gone]
    yield Finding(
        "fell-silent",
        f"{names(who)} fell silent for a whole session, {times(len(gone))}",
        f"{count(len(gone), 'member')} ({names(who)}) sent no heartbeat for a whole session and "
        f"{'was' if len(gone) == 1 else 'were'} removed {period(min(moments), max(moments))}. Whether they came back "
        f"this source does not say: brokers log every join since Kafka 2.5.{stood_still(history, cost)}",
        cost,
        min(moments),
        max([*moments, *(each.until_ms for each in caused)]),
        advice="Look into the logs of these consumers at that time. If they paused or restarted and came back, "
        "session.timeout.ms is too short for it; if they were stopped for good, let them close, so that they leave at "
        "once. The broker's kafka-request.log shows which members came back: add it to the input.",
        numbers={"silent": len(gone), "rebalances": len(caused), "consumer_seconds": cost},
        members=who,
        rebalances=[each.rebalance_id for each in caused],
        exact=False,
    )


def flapping_member(history: GroupHistory) -> Iterator[Finding]:
    """One consumer leaves and comes back again and again, and the whole group rebalances each time."""
    for absences in _flaps(history):
        caused = _begun_by(history, absences)
        if len(caused) < FLAPS:
            continue
        who = absences[0].who
        cost = history.cost_s(caused)
        ghosts = [each for each in absences if each.away_ms < 0]
        held_up = [each for each in caused if each.join_ms and any(_is_ghost_of(each, ghost) for ghost in ghosts)]
        ends = Counter(each.before.end for each in absences if each.before.end)
        way = names(f"{_ENDED.get(end, end)} {times(number)}" for end, number in ends.most_common())
        every = _median([b.back_at_ms - a.back_at_ms for a, b in pairwise(absences)])
        waits = ""
        if held_up:
            longest = max(each.join_ms or 0 for each in held_up)
            waits = (
                f" {count(len(held_up), 'rebalance')} had to wait up to {span(longest)} for the member that was dead "
                "already:"
                " the new process is a new member, and the group waits for the old one until its session ends."
            )
        static = all(each.before.group_instance_id for each in absences)
        advice = (
            f"Find out why {who} ends so often (its log, memory limits, liveness probe); the group is only the victim."
        )
        if not static:
            advice += (
                " Until then set group.instance.id and a session.timeout.ms longer than its restart: it then comes "
                "back "
                "without a rebalance."
            )
        exact = all(each.exact for each in absences) and all_exact(caused)
        yield Finding(
            "flapping-member",
            f"{probably(exact)}{who} left and came back {times(len(absences))}",
            f"{share(history, caused)} {when(caused)} began with {who}, which left and came back "
            f"{times(len(absences))}, about every {span(every)} ({way}).{waits}{stood_still(history, cost)}",
            cost,
            first(caused),
            last(caused),
            setting=None if static else "group.instance.id",
            advice=advice,
            numbers={
                "returns": len(absences),
                "rebalances": len(caused),
                "rebalances_in_all": len(history.rebalances),
                "every_ms": every,
                "held_up": len(held_up),
                "consumer_seconds": cost,
            },
            members=[who],
            rebalances=[each.rebalance_id for each in caused],
            exact=exact,
        )


def duplicate_instance_id(history: GroupHistory) -> Iterator[Finding]:
    """Two processes use one group.instance.id. Each that joins fences the other (FENCED_INSTANCE_ID), which is fatal
    for a consumer; no rebalance shows it."""
    fencings = [event for event in history.events if event.event == "member_fenced"]
    fencings = fencings or [event for event in history.events if event.event == "fenced"]
    by_instance: dict[str, list[ObservedEvent]] = defaultdict(list)
    for event in fencings:
        if event.group_instance_id:
            by_instance[event.group_instance_id].append(event)
    for instance, fenced in sorted(by_instance.items()):
        again = any(b.at_ms - a.at_ms <= FENCED_AGAIN_MS for a, b in pairwise(fenced))
        sessions = [session for session in history.sessions if session.group_instance_id == instance]
        clients = list(dict.fromkeys(session.client_id for session in sessions if session.client_id))
        hosts = list(dict.fromkeys(session.client_host for session in sessions if session.client_host))
        where = f" on {names(hosts)}" if len(hosts) > 1 else ""
        users = f" ({names(clients)}{where})" if len(clients) > 1 or where else ""
        exact = all_exact(fenced)
        what = (
            f"At least two processes{users} run with group.instance.id {instance} and take turns"
            if again
            else f"A second process{users} joined with group.instance.id {instance} while the first still ran"
        )
        yield Finding(
            "duplicate-instance-id",
            f"{instance} is used by two processes: fenced {times(len(fenced))}"
            if again
            else f"{instance} was taken over from a process that still ran",
            f"{what}: {period(fenced[0].at_ms, fenced[-1].at_ms)} a member was fenced {times(len(fenced))}. "
            "FENCED_INSTANCE_ID is fatal for the consumer that gets it; the records that it had in hand are processed "
            "again by the other. The group does not rebalance, so nothing else shows it.",
            0.0,
            fenced[0].at_ms,
            fenced[-1].at_ms,
            setting="group.instance.id",
            advice="Make group.instance.id different in every process that runs at one time (the pod's name of a "
            "StatefulSet, not that of a Deployment or a constant)."
            + ("" if again else " In a deploy, stop the old process before the new one starts."),
            numbers={"fenced": len(fenced), "member_ids": len({session.member_id for session in sessions})},
            members=[instance, *clients],
            evidence=[event.as_evidence() for event in fenced],
            exact=exact,
            severity=HIGH if again else LOW,
        )


_ENDED: Final = {
    "left": "left",
    "session-expiry": "session expired",
    "did-not-rejoin": "did not rejoin in time",
    "sync-expiry": "did not sync in time",
}


def _restarts(history: GroupHistory) -> list[Absence]:
    """Absences of dynamic members that look like restarts, and not like a missed session or poll."""
    return [
        each
        for each in history.absences
        if not each.before.group_instance_id
        and not each.before.left_by_poll_timeout
        and (each.before.end == "left" or (each.before.end == "session-expiry" and each.away_ms < 0))
    ]


def _took(restart: Absence) -> int | None:
    """How long a restart took; None where the old process was missed only later, by a session that is not known."""
    if restart.before.end != "session-expiry":
        return max(0, restart.away_ms)
    session = restart.before.session_timeout_ms
    return None if session is None else max(0, session + restart.away_ms)


def _not_seen_again(history: GroupHistory) -> list[MemberSession]:
    """Members whose session ended and that are not known to have come back."""
    returned = {each.before.member_id for each in history.absences}
    return [
        session
        for session in history.sessions
        if session.end == "session-expiry" and session.member_id not in returned and session.ended_at_ms is not None
    ]


def _waves(absences: Sequence[Absence]) -> list[list[Absence]]:
    waves: list[list[Absence]] = []
    for each in sorted(absences, key=lambda one: (one.gone_at_ms, one.who)):
        if waves and each.gone_at_ms - waves[-1][-1].gone_at_ms <= WAVE_MS:
            waves[-1].append(each)
        else:
            waves.append([each])
    return waves


def _is_deploy(history: GroupHistory, wave: Sequence[Absence]) -> bool:
    """Whether at least half of the group, and two at least, were each restarted about once, a few at a time."""
    clients = {each.who for each in wave} if all(each.exact for each in wave) else {id(each.before) for each in wave}
    begin, end = wave[0].gone_at_ms, max(each.back_at_ms for each in wave)
    size = max(
        (len(one.members_before or ()) for one in history.later if begin <= one.prepared_at_ms <= end), default=0
    )
    size = size or len(clients)
    steps = sorted(step for each in wave if each.away_ms > 0 for step in ((each.gone_at_ms, 1), (each.back_at_ms, -1)))
    away = most = 0
    for _, step in steps:
        away += step
        most = max(most, away)
    return len(clients) >= max(2, size / 2) and len(wave) <= 1.5 * len(clients) and most <= max(1, size / 2)


def _flaps(history: GroupHistory) -> list[list[Absence]]:
    """The absences of each client that comes back again and again. Empty if most of the group does."""
    by_client: dict[str, list[Absence]] = defaultdict(list)
    for each in history.absences:
        if each.exact and not each.before.left_by_poll_timeout:
            by_client[each.who].append(each)
    found = []
    for who in sorted(by_client):
        run: list[Absence] = []
        for each in by_client[who]:
            if run and each.back_at_ms - run[-1].back_at_ms > WAVE_MS:
                if len(run) >= FLAPS:
                    break
                run = []
            run.append(each)
        if len(run) >= FLAPS:
            found.append(run)
    clients = {history.name_of(session) for session in history.sessions}
    return found if len(found) <= max(1, len(clients) / 3) else []


def _begun_by(history: GroupHistory, absences: Iterable[Absence]) -> list[ObservedRebalance]:
    """Rebalances that these members began by leaving or by coming back."""
    ids = dict.fromkeys(member for each in absences for member in (each.before.member_id, each.after.member_id))
    went = ("leave", "session-expiry", "sync-expiry")
    gone = {each.before.member_id for each in absences}
    back = {each.after.member_id for each in absences}
    return [
        each
        for each in history.caused_by(ids)
        if (each.cause in went and each.cause_member_id in gone)
        or (each.cause == "join-new" and each.cause_member_id in back)
    ]


def _is_ghost_of(rebalance: ObservedRebalance, ghost: Absence) -> bool:
    """Whether a restarted member began a rebalance that had to wait for its old member id."""
    return rebalance.cause_member_id == ghost.after.member_id and ghost.before.member_id in (rebalance.evicted or ())


def _median(values: Sequence[int]) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2]) if ordered else 0.0


def _capital(text: str) -> str:
    # Names of settings keep their case.
    return text if text.startswith("session.") else text[:1].upper() + text[1:]
