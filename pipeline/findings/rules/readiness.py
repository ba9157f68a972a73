"""Whether a classic group can move to the consumer protocol (KIP-848, KIP-1274), and what stands in the way."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.advice import can_speak_consumer_protocol
from rejoin.pipeline.findings.finding import LOW, Finding
from rejoin.pipeline.findings.formatting import count, names, seconds, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import COOPERATIVE, EAGER, MemberSession, all_exact

MODERN: Final = {
    "apache-kafka-java": (4, 0),
    "librdkafka": (2, 12),
    "confluent-kafka-python": (2, 12),
    "rejoin": (1, 0),
}
"""The first version of each client whose consumer protocol is for production."""
SESSION_TIMEOUT_MS: Final = 45_000
"""Kafka's default, for session.timeout.ms and for group.consumer.session.timeout.ms."""
OWN_ASSIGNORS: Final = (*EAGER, COOPERATIVE)
DEFAULT_ASSIGNORS: Final = (("range", COOPERATIVE), ("range", "roundrobin"), ("range",))
"""Assignors of clients that leave partition.assignment.strategy alone: Java since 3.0, librdkafka, Java before."""
_LIBRDKAFKA: Final = ("librdkafka", "confluent-kafka")
_SOFTWARE: Final = re.compile(r"([a-z-]+)\s+v?(\d+)\.(\d+)")
_SPECIAL: Final = {
    "stream": "Kafka Streams has a protocol of its own (group.protocol=streams, KIP-1071)",
    "connect": "Kafka Connect's workers stay with the classic protocol",
    "compatible": "Kafka Connect's workers stay with the classic protocol",
    "sessioned": "Kafka Connect's workers stay with the classic protocol",
}


class Obstacle(NamedTuple):
    """An obstacle for some members, and its remedy."""

    what: str
    remedy: str
    members: list[str]


def ready_for_the_consumer_protocol(causes: Causes) -> Iterator[Finding]:
    """Kafka 5.0 deprecates classic groups, and 6.0 takes them out of the Java consumer: can this group move?"""
    history = causes.history
    members = [each for each in history.sessions if each.joined_at_ms is not None or each.protocols]
    blocked = any(event.event == "conversion_refused" for event in history.events)
    if not members or blocked or history.uses_consumer_protocol or not all(each.software for each in members):
        return
    obstacles = [
        *_clients(history, members),
        *_assignors(history, members),
        *_librdkafka_cooperative(history, members),
    ]
    settings = _settings(history, members)
    cost = history.cost_s(history.later)
    clients = sorted({session.software or "" for session in members})
    static = [history.name_of(each) for each in members if each.group_instance_id]
    done = f" Its {count(len(history.later), 'rebalance')} stopped consumers for {seconds(cost * 1_000)} s, added up; "
    done += "there only those stop that give something up."
    yield Finding(
        "ready-for-the-consumer-protocol",
        f"{history.group_id} could use the consumer protocol"
        if not obstacles
        else f"{history.group_id} is not ready for the consumer protocol: {_short(obstacles)}",
        f"{count(len({history.name_of(each) for each in members}), 'member')} of {history.group_id} "
        f"{'run' if len(members) > 1 else 'runs'} {names(clients)}. "
        + (
            " ".join(f"{each.what} ({names(each.members)})." for each in obstacles)
            if obstacles
            else "All are new enough, with Kafka's own assignors, so the group can move to group.protocol=consumer."
        )
        + (f" Static members keep their group.instance.id ({names(static)})." if static else "")
        + (done if history.later and cost > 0 else ""),
        0.0,
        min(each.joined_at_ms or history.end_ms for each in members),
        history.end_ms,
        setting="group.protocol",
        advice=_advice(history, obstacles, settings),
        numbers={
            "members": len(members),
            "obstacles": len(obstacles),
            "settings_to_remove": len(settings),
            "static_members": len(set(static)),
            "consumer_seconds": cost,
        },
        members=list(dict.fromkeys(name for each in obstacles for name in each.members)),
        exact=all_exact(members),
        severity=LOW,
    )


def _short(obstacles: Sequence[Obstacle]) -> str:
    return obstacles[0].what if len(obstacles) == 1 else f"{obstacles[0].what}, and {count(len(obstacles) - 1, 'more')}"


def _advice(history: GroupHistory, obstacles: Sequence[Obstacle], settings: Sequence[str]) -> str:
    first = " ".join(f"{each.remedy}." for each in obstacles)
    if obstacles and not can_speak_consumer_protocol(history.clients):
        return first
    removed = f" Take out of the clients' settings: {', '.join(settings)}; a client refuses to start with them."
    move = (
        "With brokers from 4.0 on set group.protocol to consumer, one member at a time; session.timeout.ms, "
        "heartbeat.interval.ms and partition.assignment.strategy must not be set any more. Subscriptions by "
        "java.util.regex.Pattern become SubscriptionPattern, in the syntax of RE2. Kafka 5.0 deprecates classic "
        "consumers (KIP-1274)."
    )
    return f"{first} Then: {move}{removed if settings else ''}".removeprefix(" Then: ")


def _clients(history: GroupHistory, members: Sequence[MemberSession]) -> Iterator[Obstacle]:
    """Clients that are too old, or that do not have the consumer protocol as far as is known."""
    old: dict[str, list[str]] = defaultdict(list)
    for session in members:
        if not is_modern(session):
            old[session.software or ""].append(history.name_of(session))
    for software, who in old.items():
        found = _SOFTWARE.match(software.lower())
        since = MODERN.get(found[1]) if found else None
        if since is None:
            yield Obstacle(
                f"{software} is not known to have the consumer protocol",
                f"Look whether a newer {software.split(' ')[0]} has the consumer protocol",
                list(dict.fromkeys(who)),
            )
        else:
            needs = ".".join(map(str, since))
            yield Obstacle(f"{software} is too old", f"Update it to {needs} or newer", list(dict.fromkeys(who)))


def is_modern(session: MemberSession) -> bool:
    """Whether a client's version has the consumer protocol, for production."""
    found = _SOFTWARE.match((session.software or "").lower())
    return found is not None and (int(found[2]), int(found[3])) >= MODERN.get(found[1], (99, 0))


def _assignors(history: GroupHistory, members: Sequence[MemberSession]) -> Iterator[Obstacle]:
    """Assignors that the coordinator does not have, and what they hand out in user data."""
    own: dict[str, list[str]] = defaultdict(list)
    for session in members:
        for name in session.protocols or ():
            if name not in OWN_ASSIGNORS:
                own[name].append(history.name_of(session))
    for name, who in own.items():
        yield Obstacle(
            f"the assignor {name} is none of Kafka's",
            _SPECIAL.get(
                name,
                "Move to one of Kafka's assignors first (in a rolling restart of its own, as user data cannot be taken "
                "along), or write a server-side assignor",
            ),
            list(dict.fromkeys(who)),
        )


def _librdkafka_cooperative(history: GroupHistory, members: Sequence[MemberSession]) -> Iterator[Obstacle]:
    """Its cooperative-sticky leader puts user data beside the partitions, which Kafka does not convert."""
    chosen = next((each.protocol for each in reversed(history.rebalances) if each.protocol), None)
    who = [history.name_of(each) for each in members if (each.software or "").lower().startswith(_LIBRDKAFKA)]
    if chosen == COOPERATIVE and who and len(members) > 1:
        yield Obstacle(
            "the cooperative-sticky assignor of librdkafka hands out user data, and Kafka does not upgrade a group "
            "that has any (GROUP_ID_NOT_FOUND)",
            "Stop all members and start them with group.protocol=consumer, as an empty group can be upgraded; or go "
            "back to range or roundrobin first, for which all members must stop as well",
            list(dict.fromkeys(who)),
        )


def _settings(history: GroupHistory, members: Sequence[MemberSession]) -> list[str]:
    """Settings that members must have set, since what they asked for is no default."""
    timeouts = {each.session_timeout_ms for each in members if each.session_timeout_ms} - {SESSION_TIMEOUT_MS}
    lists = {tuple(each.protocols) for each in members if each.protocols} - set(DEFAULT_ASSIGNORS)
    found = []
    if timeouts:
        instead = "the group's consumer.session.timeout.ms holds instead, within the brokers' limits"
        found.append(f"session.timeout.ms ({names(map(span, sorted(timeouts)))}: {instead})")
    if lists:
        found.append("partition.assignment.strategy")
    return found
