"""Rules about groups of the consumer protocol (KIP-848), and about migrating to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.settings import IN_REVOKED, SMALLER_BATCHES
from rejoin.pipeline.findings.clients.table import POLL_INTERVAL
from rejoin.pipeline.findings.finding import LOW, MEDIUM, SHORTER, Finding
from rejoin.pipeline.findings.formatting import count, names, period, span, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import MemberSession, ObservedEvent, all_exact
from rejoin.pipeline.findings.reads import reads

_GIVE_UP: Final = (
    f"Partitions are given up within poll(): shorten the work between two polls ({SMALLER_BATCHES}) and in "
    f"{IN_REVOKED}. {POLL_INTERVAL} is the rebalance timeout: lower it to let the others wait less."
)
STUCK_MS: Final = 30_000
"""A member that takes so long to give up its partitions holds up all that wait for them."""
FENCED: Final = 3
"""A member that is fenced so often within :data:`LOOP_MS` goes on with an epoch that it does not have."""
LOOP_MS: Final = 10 * 60_000

_WHY: Final = {
    "policy": "group.consumer.migration.policy of the brokers forbids it",
    "classic-member": "group.consumer.migration.policy is disabled, and the group has members of both protocols",
    "size": "the group has more members than the other protocol allows",
    "protocol-type": "the members of the group are no consumers",
    "no-protocol": "the group has not chosen an assignor that all its members support",
    "unreadable": "a subscription or an assignment cannot be read",
    "user-data": "an assignor of its own hands out user data, which would be lost",
}
_REMEDY: Final = {
    "policy": "Set group.consumer.migration.policy to bidirectional or upgrade on all brokers; or stop all "
    "members, and "
    "start them with the other protocol: an empty group may always change.",
    "classic-member": "Set group.consumer.migration.policy to bidirectional on all brokers before members "
    "move: disabled "
    "leaves a group that is half way mixed. Or stop all its members.",
    "size": "Raise group.consumer.max.size, or group.max.size for the way back.",
    "no-protocol": "Wait until the group is Stable, and give all members the same assignors before the first "
    "one moves.",
    "user-data": "Move the group to one of Kafka's own assignors first, in a rolling restart of its own; or write a "
    "server-side assignor.",
}


@reads("revocation_requested", "revocation_completed")
def stuck_reconciliation(causes: Causes) -> Iterator[Finding]:
    """A member does not give up partitions that others wait for, until its rebalance timeout takes it out."""
    history = causes.history
    yield from _fenced(history)
    stuck = [each for each in _revocations(history) if each[1] - each[0].at_ms >= STUCK_MS]
    if not stuck:
        return
    who = list(dict.fromkeys(history.who(event.member_id) for event, _ in stuck))
    first, until = stuck[0]
    held = sum(len(event.partitions or ()) for event, _ in stuck)
    cost = sum(end - event.at_ms for event, end in stuck) / 1_000
    longest = max(end - event.at_ms for event, end in stuck)
    limit = span(first.rebalance_timeout_ms or 0)
    yield Finding(
        "stuck-reconciliation",
        f"{names(who)} did not give up partitions for up to {span(longest)}",
        f"{names(who)} had to give up {count(held, 'partition')} of {history.group_id} ({_listed(first)}) and "
        f"still held "
        f"them after {span(longest)} ({period(first.at_ms, until)}). Until then their new owners get nothing: the "
        f"coordinator waits for the heartbeat without them, or removes the member after its rebalance timeout "
        f"of {limit}.",
        cost,
        first.at_ms,
        max(end for _, end in stuck),
        setting=POLL_INTERVAL,
        advice=_GIVE_UP,
        changes={POLL_INTERVAL: SHORTER},
        numbers={"members": len(who), "partitions": held, "longest_ms": longest},
        members=who,
        evidence=[event.as_evidence() for event, _ in stuck],
        exact=all_exact([event for event, _ in stuck]),
    )


def _fenced(history: GroupHistory) -> Iterator[Finding]:
    """Stuck members of which a broker's log has only that they were removed."""
    if any(event.event == "revocation_requested" for event in history.events):
        return
    fenced = [each for each in history.sessions if each.end == "rebalance-expiry" and each.ended_at_ms is not None]
    if not fenced:
        return
    who = list(dict.fromkeys(history.name_of(each) for each in fenced))
    instants = [each.ended_at_ms or 0 for each in fenced]
    yield Finding(
        "stuck-reconciliation",
        f"{names(who)} did not give up partitions in time",
        f"The coordinator removed {names(who)} from {history.group_id} ({period(min(instants), max(instants))}), as "
        "they did not give up partitions within their rebalance timeout. Until then their new owners got nothing.",
        0.0,
        min(instants),
        max(instants),
        setting=POLL_INTERVAL,
        advice=_GIVE_UP,
        changes={POLL_INTERVAL: SHORTER},
        numbers={"members": len(who)},
        members=who,
        exact=all_exact(fenced),
        severity=MEDIUM,
    )


def _revocations(history: GroupHistory) -> list[tuple[ObservedEvent, int]]:
    """Partitions that a member was asked to give up, and when it had, was gone, or the run was over."""
    found = []
    for number, event in enumerate(history.events):
        if event.event != "revocation_requested":
            continue
        later = (
            each.at_ms
            for each in history.events[number + 1 :]
            if each.member_id == event.member_id and each.event in ("revocation_completed", "revocation_requested")
        )
        session = history.by_member.get(event.member_id or "")
        gone = history.end_ms if session is None or session.ended_at_ms is None else session.ended_at_ms
        found.append((event, min(next(later, history.end_ms), max(gone, event.at_ms))))
    return found


def _listed(event: ObservedEvent) -> str:
    listed = [f"{each['topic']}-{each['partition']}" for each in event.partitions or ()]
    return ", ".join(listed[:4]) + (", …" if len(listed) > 4 else "") if listed else "unknown"


@reads("member_epoch_fenced")
def epoch_fencing_loop(causes: Causes) -> Iterator[Finding]:
    """A member is fenced again and again since it speaks with an epoch that it does not have."""
    history = causes.history
    by_member: dict[str, list[ObservedEvent]] = defaultdict(list)
    for event in history.events:
        if event.event == "member_epoch_fenced" and event.member_id is not None:
            by_member[event.member_id].append(event)
    for member_id, fenced in by_member.items():
        loops = [each for each in fenced if sum(0 <= other.at_ms - each.at_ms <= LOOP_MS for other in fenced) >= FENCED]
        if not loops:
            continue
        who, last = history.who(member_id), fenced[-1]
        ahead = (last.member_epoch or 0) > (last.current_epoch or 0)
        why = (
            "It is ahead of the coordinator: the coordinator has lost records, or the id was used in another cluster."
            if ahead
            else "It is behind the coordinator: two processes use this member id, or the client does not take over the "
            "epoch of an answer."
        )
        lost = "" if history.is_share_group else " as lost"
        yield Finding(
            "epoch-fencing-loop",
            f"{who} was fenced {times(len(fenced))} because of its epoch",
            f"{who} of {history.group_id} got FENCED_MEMBER_EPOCH {times(len(fenced))} "
            f"({period(fenced[0].at_ms, last.at_ms)}), the last time with epoch {last.member_epoch} where the "
            f"coordinator "
            f"has {last.current_epoch}. Each time it gives up all partitions{lost} and joins anew. {why}",
            0.0,
            fenced[0].at_ms,
            last.at_ms,
            advice="Give each process a member id of its own (clients make a random one), update the client, and let a "
            "client that is fenced join with epoch 0."
            + ("" if history.is_share_group else " A static member may do so only after its session has ended."),
            numbers={"fenced": len(fenced)},
            members=[who],
            evidence=[each.as_evidence() for each in fenced],
            exact=all_exact(fenced),
            severity=MEDIUM,
        )


@reads("conversion_refused", "group_converted")
def migration_blocked(causes: Causes) -> Iterator[Finding]:
    """Members ask a group to change its protocol, and it does not."""
    history = causes.history
    refused = [event for event in history.events if event.event == "conversion_refused"]
    moved = [event.at_ms for event in history.events if event.event == "group_converted"]
    refused = [event for event in refused if not any(at_ms >= event.at_ms for at_ms in moved)]
    if not refused:
        return
    (reason, number), *_ = Counter(event.reason or "policy" for event in refused).most_common()
    mine = [event for event in refused if (event.reason or "policy") == reason]
    asked = list(dict.fromkeys(history.who(event.member_id) for event in mine if event.member_id))
    culprits = list(dict.fromkeys(history.who(event.culprit) for event in mine if event.culprit))
    to = "classic" if mine[0].group_type == "classic" else "consumer"
    because = f" {names(culprits)} prevents it." if culprits else ""
    yield Finding(
        "migration-blocked",
        f"{history.group_id} cannot move to the {to} protocol",
        f"{names(asked) or 'Members'} tried {times(number)} ({period(mine[0].at_ms, mine[-1].at_ms)}) to move "
        f"{history.group_id} to the {to} protocol, and could not: {_WHY.get(reason, reason)}.{because}",
        0.0,
        mine[0].at_ms,
        mine[-1].at_ms,
        setting="group.consumer.migration.policy" if reason in ("policy", "classic-member") else None,
        advice=_REMEDY.get(
            reason,
            "Look at the subscriptions and assignments of its members: kafka-consumer-groups.sh "
            "--describe --members --verbose.",
        ),
        numbers={"refused": number},
        members=[*culprits, *asked],
        evidence=[event.as_evidence() for event in mine],
        exact=all_exact(mine),
        severity=MEDIUM,
    )


def session_timeout_of_the_broker(causes: Causes) -> Iterator[Finding]:
    """Clients had a session timeout of their own, which the consumer protocol leaves to the brokers."""
    history = causes.history
    before: dict[str, MemberSession] = {}
    changed: list[tuple[MemberSession, MemberSession]] = []
    for session in history.sessions:
        client = session.group_instance_id or session.client_id
        if client is None or session.session_timeout_ms is None:
            continue
        if session.group_protocol is None:
            before[client] = session
        elif client in before and before[client].session_timeout_ms != session.session_timeout_ms:
            changed.append((before.pop(client), session))
    if not changed:
        return
    who = [history.name_of(after) for _, after in changed]
    old, new = (span(min(each[side].session_timeout_ms or 0 for each in changed)) for side in (0, 1))
    yield Finding(
        "session-timeout-of-the-broker",
        f"{names(who)} had a session timeout of {old}; now the broker's {new} holds",
        f"As classic members {names(who)} of {history.group_id} asked for a session timeout of {old}. In the consumer "
        f"protocol session.timeout.ms and heartbeat.interval.ms are the broker's: since they moved a member "
        f"that dies is "
        f"missed after {new}. Clients that still set either of them refuse to start.",
        0.0,
        changed[0][1].joined_at_ms,
        changed[-1][1].joined_at_ms,
        setting="group.consumer.session.timeout.ms",
        advice="Take session.timeout.ms and heartbeat.interval.ms out of the clients' settings, and give the group "
        "consumer.session.timeout.ms instead (kafka-configs.sh --alter --entity-type groups), within the "
        "brokers' limits.",
        numbers={"members": len(who), "before_ms": changed[0][0].session_timeout_ms or 0},
        members=who,
        exact=all_exact([after for _, after in changed]),
        severity=LOW,
    )
