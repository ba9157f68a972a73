"""Members of one group that do not fit together: two applications, two lists of assignors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import COOPERATIVE, EAGER, MemberSession, all_exact
from rejoin.pipeline.findings.phrases import capital

TOGETHER_MS: Final = 60_000
"""Members that are in one group for so long are no change of subscription."""
HALF_WAY_MS: Final = 10 * 60_000
"""A rolling restart that gives members other assignors is over by then."""


def two_applications(causes: Causes) -> Iterator[Finding]:
    """Members of one group read disjoint topics: two applications share a group.id, and rebalance each other."""
    history = causes.history
    by_topics: dict[frozenset[str], list[MemberSession]] = defaultdict(list)
    for session in history.sessions:
        if session.topics and session.joined_at_ms is not None:
            by_topics[frozenset(session.topics)].append(session)
    parts = _disjoint(list(by_topics))
    if len(parts) < 2:
        return
    apps = [[session for topics in part for session in by_topics[topics]] for part in parts]
    apps = [app for app in apps if any(_together(app, other, history) for other in apps if other is not app)]
    if len(apps) < 2:
        return
    described = [
        f"{names(sorted({topic for session in app for topic in session.topics or ()}))} "
        f"({names(dict.fromkeys(map(history.name_of, app)))})"
        for app in apps
    ]
    members = [session for app in apps for session in app]
    yield Finding(
        "two-applications",
        f"{count(len(apps), 'application')} seem to share the group.id {history.group_id}",
        f"Members of {history.group_id} read topics that have nothing in common: {'; '.join(described)}. Each restart "
        f"in one of them makes the others rebalance, too ({count(len(history.later), 'rebalance')} in all), and "
        "members that are spare for one topic do not help with another.",
        0.0,
        min(each.joined_at_ms or 0 for each in members),
        max(each.ended_at_ms or history.end_ms for each in members),
        setting="group.id",
        advice="Give each application a group.id of its own. Its committed offsets can be taken along: "
        "kafka-consumer-groups.sh --reset-offsets --export, then --from-file with the new group.",
        numbers={"applications": len(apps), "members": len(members), "rebalances": len(history.later)},
        members=list(dict.fromkeys(map(history.name_of, members))),
        exact=all_exact(members),
        severity=MEDIUM,
    )


def _disjoint(all_topics: Sequence[frozenset[str]]) -> list[list[frozenset[str]]]:
    """Subscriptions in parts that have no topic in common."""
    parts: list[list[frozenset[str]]] = []
    for topics in all_topics:
        near = [part for part in parts if any(topics & other for other in part)]
        parts = [part for part in parts if part not in near]
        parts.append([topics, *(each for part in near for each in part)])
    return parts


def _together(app: Sequence[MemberSession], other: Sequence[MemberSession], history: GroupHistory) -> bool:
    """Whether members of both were in the group at one time, for long."""
    return any(
        min(one.ended_at_ms or history.end_ms, two.ended_at_ms or history.end_ms)
        - max(one.joined_at_ms or 0, two.joined_at_ms or 0)
        >= TOGETHER_MS
        for one in app
        for two in other
    )


def half_migrated_assignor(causes: Causes) -> Iterator[Finding]:
    """Some members list cooperative-sticky, others do not: the group keeps the eager assignor, and stops each time."""
    history = causes.history
    members = [each for each in history.sessions if each.protocols and each.group_protocol is None]
    there = [each for each in members if each.ended_at_ms is None and each.joined_at_ms is not None]
    new = [each for each in there if COOPERATIVE in (each.protocols or ())]
    old = [
        each for each in there if COOPERATIVE not in (each.protocols or ()) and set(each.protocols or ()) & set(EAGER)
    ]
    if not new or not old:
        return
    since = max(min(each.joined_at_ms or 0 for each in new), min(each.joined_at_ms or 0 for each in old))
    if history.end_ms - since < HALF_WAY_MS:
        return
    later = [each for each in history.later if each.prepared_at_ms >= since]
    cost, kept = history.cost_s(later), sorted({each.protocol for each in later if each.protocol})
    yield Finding(
        "half-migrated-assignor",
        f"{count(len(new), 'member')} of {history.group_id} could be cooperative, {len(old)} not: it stays eager",
        f"For {span(history.end_ms - since)} up to the end of the source {names(map(history.name_of, new))} listed "
        f"cooperative-sticky, and {names(map(history.name_of, old))} did not. An assignor is chosen only if all "
        f"members list it, so the group keeps {names(kept or ['an eager one'])}: {count(len(later), 'rebalance')} "
        "since then stopped all of them.",
        cost,
        since,
        history.end_ms,
        setting="partition.assignment.strategy",
        advice=f"Finish the first of the two rolling restarts: {names(map(history.name_of, old))} must list both "
        "assignors as well. Then a second one takes the eager one out (KIP-429).",
        numbers={"new": len(new), "old": len(old), "rebalances": len(later), "consumer_seconds": cost},
        members=list(dict.fromkeys(map(history.name_of, old))),
        rebalances=[each.rebalance_id for each in later],
        exact=all_exact(there),
        severity=MEDIUM if cost else LOW,
    )


def inconsistent_protocols(causes: Causes) -> Iterator[Finding]:
    """A client may not join, as it has no assignor (or no protocol type) that all members of the group have."""
    history = causes.history
    refused = [
        each
        for each in history.events
        if each.event == "request" and each.api == "JOIN_GROUP" and each.error == "INCONSISTENT_GROUP_PROTOCOL"
    ]
    if not refused:
        return
    clients = [name for name, _ in Counter(each.client_id or "a client" for each in refused).most_common()]
    lists = sorted({"+".join(each.protocols) for each in history.sessions if each.protocols})
    has = f" Its members list {names(lists)}." if lists else ""
    yield Finding(
        "inconsistent-protocols",
        f"{names(clients, 2)} may not join {history.group_id}: INCONSISTENT_GROUP_PROTOCOL",
        f"{capital(period(refused[0].at_ms, refused[-1].at_ms))} the coordinator refused "
        f"{count(len(refused), 'JoinGroup')} of {names(clients)}: they list no assignor that all members of "
        f"{history.group_id} have, or are of another kind (Connect, Streams).{has} Such a client ends with an error.",
        0.0,
        refused[0].at_ms,
        refused[-1].at_ms,
        setting="partition.assignment.strategy",
        advice="Let the new members list the old assignor beside the new one (first the new, then the old), restart "
        "all of them, and take the old one out with a second rolling restart. If it is another application, give it a "
        "group.id of its own.",
        numbers={"refused": len(refused), "clients": len(clients)},
        members=clients,
        evidence=[each.as_evidence() for each in refused],
        exact=all_exact(refused),
        severity=HIGH if len(refused) > 1 else MEDIUM,
    )
