"""Members that left and came back: deploys, clients that flap, instance ids that two use or that change each time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from rejoin.pipeline.findings.absences import Absence, silent_ms, went_at_ms
from rejoin.pipeline.findings.causes import DEPLOY, FLAPPING, Causes
from rejoin.pipeline.findings.clients.advice import (
    SURVIVING_ID,
    can_be_static,
    late_setting,
    no_static_members,
    of_workers,
    session_timeout,
    session_value,
    static_since,
    without_instance_id,
)
from rejoin.pipeline.findings.deploys import FLAPS
from rejoin.pipeline.findings.finding import HIGH, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import at_least, count, names, period, seconds, span, spans, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import MemberSession, ObservedEvent, ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import first, last, probably, share, stood_still, when
from rejoin.pipeline.findings.reads import reads

LEAST_RENAMED: Final = 2
"""Static members that come back with other ids, from so many on."""
MARGIN: Final = 1.2
"""How much longer than what was seen a timeout should be."""
FENCED_AGAIN_MS: Final = 60 * 60_000
"""An instance id fenced again within this has two owners that go on."""
OVERLAP_MS: Final = 10 * 60_000
"""Several instance ids, each fenced once and so close together: a deploy that starts the new before the old ends."""


def rolling_restart(causes: Causes) -> Iterator[Finding]:
    """Dynamic members restart one after the other, and each makes the group rebalance twice: when it leaves and when it
    joins. With group.instance.id and a session that outlasts the restart there would be none (KIP-345)."""
    history = causes.history
    restarts = [each for wave in causes.deploys for each in wave]
    caused = causes.begun_by(DEPLOY)
    if not caused:
        return
    cost = history.cost_s(caused)
    exact = all(each.exact for each in restarts) and all_exact(caused)
    clients = list(dict.fromkeys(each.who for each in restarts))
    static = can_be_static(history)
    why = "group.instance.id is not set" if static else no_static_members(history)
    advice = _stay(history, restarts) if static else of_workers(history) or _AT_ONE_TIME
    yield Finding(
        "rolling-restart",
        f"{probably(exact)}{count(len(causes.deploys), 'rolling restart')} made {count(len(caused), 'rebalance')}: "
        "no static membership",
        f"{share(history, caused)} came from restarts of {count(len(clients), 'consumer')} ({names(clients)}) "
        f"{when(caused)}: each of {count(len(restarts), 'restart')} made the group rebalance when the consumer "
        f"left{_silently(restarts)} and again when it was back{_later(restarts)}. {why}, so a "
        f"consumer that comes back is a new member.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting="group.instance.id" if static else None,
        advice=advice,
        numbers={
            "deploys": len(causes.deploys),
            "restarts": len(restarts),
            "consumers": len(clients),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "longest_away_ms": max(max(0, each.away_ms) for each in restarts),
            "consumer_seconds": cost,
        },
        members=clients,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


def _stay(history: GroupHistory, restarts: Sequence[Absence]) -> str:
    return (
        f"Give each consumer a group.instance.id of its own: {SURVIVING_ID}.{static_since(history)} Set "
        f"{session_timeout(history)} longer than a restart takes{_least(history, restarts)}. A consumer that is back "
        "by then gets its partitions without any rebalance."
    )


_AT_ONE_TIME: Final = (
    "Restart the consumers at one time and not one after the other: the group then rebalances once or twice, and not "
    "twice for each consumer. Let each leave when it stops (close it on SIGTERM), so that no one waits for its session."
)
"""Advice on restarts where a client has no static membership."""


def _silently(restarts: Sequence[Absence]) -> str:
    expired = sum(each.before.end == "session-expiry" for each in restarts)
    return f" ({expired} of them silently, removed when their session timed out)" if expired else ""


def _later(restarts: Sequence[Absence]) -> str:
    missed = [each.away_ms for each in restarts if each.away_ms >= 0]
    return f", {spans(missed)} later" if missed else ", before the old process was missed"


def _least(history: GroupHistory, restarts: Sequence[Absence]) -> str:
    """The session timeout that would have been long enough, where it is known."""
    took = [_took(each) for each in restarts]
    known = [ms for ms in took if ms is not None]
    if len(known) != len(took):
        return ""
    return f": at least {session_value(history, at_least(max(known) * MARGIN))} here"


def _took(restart: Absence) -> int | None:
    """How long a restart took; None where it began silently, with a session that is not known."""
    if restart.before.end != "session-expiry":
        return max(0, restart.away_ms)
    session = restart.before.session_timeout_ms
    return None if session is None else max(0, session + restart.away_ms)


def flapping_member(causes: Causes) -> Iterator[Finding]:
    """One consumer leaves and comes back again and again, and the whole group rebalances each time."""
    for absences in causes.flapping:
        caused = causes.begun_by(FLAPPING, of=absences)
        if caused and len(absences) >= FLAPS:
            yield _flapping(causes, absences, caused)


def _flapping(causes: Causes, absences: Sequence[Absence], caused: Sequence[ObservedRebalance]) -> Finding:
    history, who = causes.history, absences[-1].who
    cost = history.cost_s(caused)
    held_up = [
        each for each in caused if each.join_ms and any(_waits_for_the_dead(each, absence) for absence in absences)
    ]
    ends = Counter(each.before.end for each in absences if each.before.end)
    way = names(f"{_ENDED.get(end, end)} {times(number)}" for end, number in ends.most_common())
    every = _median([b.back_at_ms - a.back_at_ms for a, b in pairwise(absences)])
    waits = ""
    if held_up:
        longest = max(each.join_ms or 0 for each in held_up)
        waits = (
            f" {count(len(held_up), 'rebalance')} had to wait up to {span(longest)} for the member that was dead "
            "already: the new process is a new member, and the group waits for the old one until its session ends."
        )
    static = all(each.before.group_instance_id for each in absences)
    dynamic_for_good = not static and not can_be_static(history)
    until_then = (
        ""
        if static or dynamic_for_good
        else f" Until then set group.instance.id and a {session_timeout(history)} longer than its restart: it then "
        "comes back without a rebalance."
    )
    exact = all(each.exact for each in absences) and all_exact(caused)
    return Finding(
        "flapping-member",
        f"{probably(exact)}{who} left and came back {times(len(absences))}",
        f"{share(history, caused)} {when(caused)} began with {who}, which left and came back "
        f"{times(len(absences))}, about every {span(every)} ({way}).{waits}{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting=None if static or dynamic_for_good else "group.instance.id",
        advice=f"Find out why {who} ends so often (its log, memory limits, liveness probe); the group is only the "
        f"victim.{_or_together(causes)}{_or_polls(history, absences)}{until_then}",
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


def _or_together(causes: Causes) -> str:
    """Where several crash, what they have in common may be the reason."""
    if len(causes.flapping) < FLAPS:
        return ""
    return (
        f" {len(causes.flapping)} of its members do so: look for what they share (a record that none can process, a "
        "release, a service that they need)."
    )


def _or_polls(history: GroupHistory, absences: Sequence[Absence]) -> str:
    """Where neither the client nor the request log says why it left, it can have been late with its polls."""
    reasons = any(each.before.leave_reason for each in absences)
    if history.run.requests_read or reasons or any(each.before.end != "left" for each in absences):
        return ""
    return f" If its process did not end, it was late with a poll: look at {late_setting(history)}."


_ENDED: Final = {
    "left": "left",
    "session-expiry": "session expired",
    "did-not-rejoin": "did not rejoin in time",
    "sync-expiry": "did not sync in time",
}


def _waits_for_the_dead(rebalance: ObservedRebalance, absence: Absence) -> bool:
    """Whether a restarted member began a rebalance that had to wait for its old member id."""
    return (
        absence.away_ms < 0
        and rebalance.cause_member_id == absence.after.member_id
        and absence.before.member_id in (rebalance.evicted or ())
    )


@reads("member_fenced", "fenced", "commit_refused")
def duplicate_instance_id(causes: Causes) -> Iterator[Finding]:
    """Two processes use one group.instance.id. Each that joins fences the other (FENCED_INSTANCE_ID), which is fatal
    for a consumer; no rebalance shows it."""
    events = causes.history.events
    by_instance: dict[str, list[ObservedEvent]] = defaultdict(list)
    refused = [each for each in events if each.event == "commit_refused" and each.error == "FENCED_INSTANCE_ID"]
    for event in (
        [each for each in events if each.event == "member_fenced"]
        or [each for each in events if each.event == "fenced"]
        or refused
    ):
        if event.group_instance_id:
            by_instance[event.group_instance_id].append(event)
    for instance in sorted(by_instance):
        fencings = _each_once(by_instance[instance])
        near = [
            each
            for other, others in by_instance.items()
            for each in others[:1]
            if other != instance and abs(each.at_ms - fencings[0].at_ms) <= OVERLAP_MS
        ]
        yield _duplicate(causes, instance, fencings, overlaps=bool(near) and not fencings[1:])


def _each_once(events: Sequence[ObservedEvent]) -> list[ObservedEvent]:
    """One event for each member that was fenced: its requests that were still in flight are refused as well."""
    found: dict[str, ObservedEvent] = {}
    for nth, event in enumerate(events):
        found.setdefault(event.member_id or str(nth), event)
    return list(found.values())


def _duplicate(causes: Causes, instance: str, fencings: Sequence[ObservedEvent], *, overlaps: bool) -> Finding:
    history = causes.history
    again = any(b.at_ms - a.at_ms <= FENCED_AGAIN_MS for a, b in pairwise(fencings))
    sessions: list[MemberSession] = [each for each in history.sessions if each.group_instance_id == instance]
    clients = list(dict.fromkeys(each.client_id for each in sessions if each.client_id))
    hosts = list(dict.fromkeys(each.client_host for each in sessions if each.client_host))
    where = f" on {names(hosts)}" if len(hosts) > 1 else ""
    users = f" ({names(clients)}{where})" if len(clients) > 1 or where else ""
    what = (
        f"At least two processes{users} run with group.instance.id {instance} and fence each other"
        if again
        else f"A second process{users} joined with group.instance.id {instance} while the first still ran"
    )
    return Finding(
        "duplicate-instance-id",
        f"{instance} is used by two processes: fenced {times(len(fencings))}"
        if again
        else f"{instance} was taken over from a process that still ran, and now has a fatal error",
        f"{what}: {period(fencings[0].at_ms, fencings[-1].at_ms)} a member was fenced {times(len(fencings))}. "
        "FENCED_INSTANCE_ID is fatal for the consumer that gets it, so its process ends or stands still; the records "
        "that it had in hand are processed again by the other. The group does not rebalance, so nothing else shows it.",
        0.0,
        fencings[0].at_ms,
        fencings[-1].at_ms,
        setting="group.instance.id",
        advice="Make group.instance.id different in every process that runs at one time (the ordinal of a StatefulSet, "
        "not the name of a Deployment or a constant)."
        + ("" if again else " In a deploy, stop the old process before the new one starts."),
        numbers={"fenced": len(fencings), "member_ids": len({session.member_id for session in sessions})},
        members=[instance, *(each for each in clients if each != instance)],
        evidence=[event.as_evidence() for event in fencings],
        exact=all_exact(fencings),
        severity=MEDIUM if overlaps else HIGH,
    )


def _median(values: Sequence[int]) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2]) if ordered else 0.0


def changing_instance_ids(causes: Causes) -> Iterator[Finding]:
    """Each start of a process has another group.instance.id: the coordinator keeps the old member until its session
    ends, and the new one is one more. That is worse than no static membership at all."""
    history = causes.history
    pairs = history.renamed
    if len(pairs) < LEAST_RENAMED:
        return
    mine = {session.member_id for pair in pairs for session in pair}
    caused = [each for each in history.later if each.cause_member_id in mine]
    old = [before.group_instance_id or "" for before, _ in pairs]
    new = [after.group_instance_id or "" for _, after in pairs]
    from_ms, to_ms = min(went_at_ms(one) for one, _ in pairs), max(one.joined_at_ms or 0 for _, one in pairs)
    unread = sum(silent_ms(before) for before, _ in pairs)
    cost = history.cost_s(caused) + unread / 1_000
    exact = all_exact([session for pair in pairs for session in pair])
    yield Finding(
        "changing-instance-ids",
        f"{probably(exact)}{count(len(pairs), 'static member')} came back with another group.instance.id",
        f"{names(old)} of {history.group_id} went for good, and {names(new)} came in their stead "
        f"({period(from_ms, to_ms)}): "
        f"each start has a new group.instance.id. The coordinator keeps the partitions for the old one until its "
        f"session ends, and both made the group rebalance ({count(len(caused), 'rebalance')})."
        + (f" The partitions had no reader for {seconds(unread)} s in all." if unread else ""),
        cost,
        from_ms,
        to_ms,
        setting="group.instance.id",
        advice=f"Take a group.instance.id that survives a restart: {SURVIVING_ID}. A pod's name in a Deployment, a "
        f"UUID or a time of start does not. If none can be had, {without_instance_id(history)}.",
        numbers={
            "renamed": len(pairs),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=list(dict.fromkeys([*old, *new])),
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )
