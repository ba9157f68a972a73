"""Rules about assignments: the cost of the assignor, uneven load, members that do not fit together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.advice import (
    agree_on_an_assignor,
    cooperative_assignor,
    finish_the_migration,
    how_to_become_cooperative,
)
from rejoin.pipeline.findings.clients.share_groups import NEW_GROUP
from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, seconds, span
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import COOPERATIVE, EAGER, Balance, MemberSession, all_exact
from rejoin.pipeline.findings.phrases import capital, first, last, probably, share, when
from rejoin.pipeline.findings.reads import AnyBut, reads
from rejoin.pipeline.vocabulary import REQUEST

WORTH_IT_S: Final = 1.0
"""Consumer-seconds below which a change of the assignor is not worth it."""
SOME_OF_THE_TIME: Final = 0.2
"""Balances that lasted for a smaller share of the group's time do not count: cooperative ones are uneven in between."""
TOGETHER_MS: Final = 60_000
"""Members that are in one group for so long are no change of subscription."""
HALF_WAY_MS: Final = 10 * 60_000
"""A rolling restart that gives members other assignors is over by then."""
MUCH: Final = 1.25
"""The member with the most has this much more than the mean: then the assignor is to blame."""


def eager_assignor(causes: Causes) -> Iterator[Finding]:
    """With an eager assignor every consumer gives up all it has before each rebalance, also what it gets back at once;
    cooperative-sticky stops only the partitions that move (KIP-429)."""
    history = causes.history
    rebalances = [each for each in history.later if history.is_eager(each) and each.owned_before]
    cost = history.cost_s(rebalances)
    if not rebalances or cost < WORTH_IT_S:
        return
    protocols = list(dict.fromkeys(each.protocol or "" for each in rebalances))
    counted = [each for each in rebalances if each.moved is not None]
    owned = sum(each.owned_before or 0 for each in counted)
    changed = sum((each.moved or 0) + (each.regained or 0) for each in counted)
    stayed = max(0, owned - changed)
    stops = sum(each.pauses for each in history.pauses if each.kind == "stop-the-world")
    over = f" in {count(stops, 'pause')}" if stops else ""
    exact = all_exact(rebalances) and history.costs_are_known
    yield Finding(
        "eager-assignor",
        f"{probably(exact)}{names(protocols)} stopped every consumer in {count(len(rebalances), 'rebalance')}",
        f"{share(history, rebalances)} {when(rebalances)} used {names(protocols)}, which is eager: every member gave "
        "up all its partitions first, and consumers stood still for "
        f"{'' if exact else 'up to '}{seconds(cost * 1_000)} s, added up{over}."
        + (
            f" {stayed:,} of {owned:,} times a partition went back to the consumer that had given it up."
            if stayed
            else ""
        ),
        cost,
        first(rebalances),
        last(rebalances),
        setting="partition.assignment.strategy" if cooperative_assignor(history) else None,
        advice=_cooperative(history, moves_fewer="sticky" not in protocols and changed > 0),
        numbers={
            "rebalances": len(rebalances),
            "rebalances_in_all": len(history.rebalances),
            "pauses": stops,
            "partitions_kept": stayed,
            "partitions_given_up": owned,
            "consumer_seconds": cost,
        },
        rebalances=[each.rebalance_id for each in rebalances],
        exact=exact,
    )


def _cooperative(history: GroupHistory, *, moves_fewer: bool) -> str:
    """Advice on moving the group's clients to a cooperative assignor."""
    listed = all(COOPERATIVE in (session.protocols or ()) for session in history.sessions) and bool(history.sessions)
    assignor = cooperative_assignor(history)
    moved = " It also moves fewer partitions." if moves_fewer else ""
    use = f"Use {assignor}: consumers go on with the partitions that they keep.{moved} " if assignor else ""
    return use + how_to_become_cooperative(history, listed)


def unbalanced_assignor(causes: Causes) -> Iterator[Finding]:
    """Some members have much more than others although all subscribe to the same: range shares out each topic apart, so
    the first members get one more of every topic."""
    history = causes.history
    if history.is_share_group:
        # Its coordinator assigns, and partitions have as many readers as members need.
        return
    subscriptions = {tuple(sorted(session.topics)) for session in history.sessions if session.topics is not None}
    if len(subscriptions) > 1:
        return
    uneven: dict[str, list[Balance]] = defaultdict(list)
    for each in history.balances:
        if each.partitions and each.members and each.most is not None and each.least is not None:
            mean = each.partitions / each.members
            if each.most - each.least > 1 and each.most >= MUCH * mean:
                uneven[each.protocol or "the assignor"].append(each)
    for protocol in sorted(uneven):
        total = sum(_lasted(history, each) for each in uneven[protocol])
        if total >= SOME_OF_THE_TIME * sum(_lasted(history, each) for each in history.balances):
            yield _unbalanced(history, protocol, uneven[protocol], total, next(iter(subscriptions), ()))


def _unbalanced(
    history: GroupHistory, protocol: str, rows: Sequence[Balance], total: int, topics: Sequence[str]
) -> Finding:
    worst = max(rows, key=lambda each: (_lasted(history, each) * ((each.most or 0) - (each.least or 0)), -each.at_ms))
    mean = (worst.partitions or 0) / (worst.members or 1)
    ratio = (worst.most or 0) / mean
    apart = f" {protocol} shares out each of the {len(topics)} topics apart." if protocol == "range" else ""
    return Finding(
        "unbalanced-assignor",
        f"{protocol} gave one member {worst.most} partitions and another {worst.least}",
        f"For {span(total)} {protocol} shared the partitions out unevenly: in generation {worst.generation} one of "
        f"{worst.members} members ({history.who(worst.most_member_id)}) had {worst.most} of {worst.partitions} "
        f"partitions, another {worst.least}; {mean:.1f} would have been even. The one with the most has {ratio:.1f} "
        f"times its share of the work, and the lag.{apart if topics[1:] else ''}",
        0.0,
        rows[0].at_ms,
        max((each.until_ms or history.end_ms) for each in rows),
        setting="partition.assignment.strategy",
        advice=f"Use {_even(history)}: they share out all partitions of all "
        "topics together, so members differ by one at the most. Keep range only where one member must have the same "
        "partition of several topics (co-partitioning)."
        if protocol in EAGER
        else "Look at what the assignor weighs: with equal subscriptions Kafka's sticky ones differ by one at the "
        "most.",
        numbers={
            "generations": len(rows),
            "unbalanced_ms": total,
            "most": worst.most or 0,
            "least": worst.least or 0,
            "mean": mean,
            "ratio": ratio,
        },
        members=[history.who(worst.most_member_id)],
        exact=True,
        severity=HIGH if ratio >= 3 else MEDIUM,
    )


def uneven_topic(causes: Causes) -> Iterator[Finding]:
    """Every member has as much as the others, but one of them has most of a topic: sticky assignors count partitions,
    whatever they are of."""
    history = causes.history
    if history.is_share_group:
        return
    subscriptions = {tuple(sorted(session.topics)) for session in history.sessions if session.topics is not None}
    if len(subscriptions) > 1:
        return
    rows = [
        each
        for each in history.balances
        if each.uneven_topic is not None and (each.most or 0) - (each.least or 0) <= 1 and (each.members or 0) > 1
    ]
    total = sum(_lasted(history, each) for each in rows)
    if not rows or total < SOME_OF_THE_TIME * sum(_lasted(history, each) for each in history.balances):
        return
    worst = max(rows, key=lambda each: (_lasted(history, each) * _spread_of_topic(each), -each.at_ms))
    who = history.who(worst.topic_most_member_id)
    yield Finding(
        "uneven-topic",
        f"{worst.protocol} gave {who} {worst.topic_most} partitions of {worst.uneven_topic} and another "
        f"{worst.topic_least}",
        f"For {span(total)} all members had about as many partitions ({worst.least} to {worst.most}), but not of each "
        f"topic: in generation {worst.generation} one of {worst.members} members ({who}) had {worst.topic_most} "
        f"partitions of {worst.uneven_topic}, another {worst.topic_least}. {capital(worst.protocol or 'the assignor')} "
        "counts partitions and does not look at what they are of: if this topic has more records than the others, "
        "that member has more of the work, and the lag.",
        0.0,
        rows[0].at_ms,
        max((each.until_ms or history.end_ms) for each in rows),
        setting="partition.assignment.strategy",
        advice="If the topics differ in load, read the large one in a group of its own, or use range, where the client "
        "has it, which shares out each topic apart (the first members get one more of each).",
        numbers={
            "generations": len(rows),
            "uneven_ms": total,
            "most": worst.topic_most or 0,
            "least": worst.topic_least or 0,
        },
        members=[who],
        exact=True,
        severity=LOW,
    )


def _spread_of_topic(balance: Balance) -> int:
    return (balance.topic_most or 0) - (balance.topic_least or 0)


def _even(history: GroupHistory) -> str:
    """The assignors that spread all partitions evenly."""
    assignor = cooperative_assignor(history)
    if assignor is None:
        return "roundrobin (or sticky, where the client has it)"
    return f"{assignor} (or sticky or roundrobin, where the client has them)"


def idle_members(causes: Causes) -> Iterator[Finding]:
    """There are more consumers than partitions: the rest owns nothing, and only makes rebalances."""
    history = causes.history
    if history.is_share_group:
        return
    rows = [
        each
        for each in history.balances
        if each.idle_members and each.partitions and each.members and each.members > each.partitions
    ]
    total = sum(_lasted(history, each) for each in rows)
    stable = sum(_lasted(history, each) for each in history.balances)
    if not rows or total < SOME_OF_THE_TIME * stable:
        return
    worst, _ = Counter(
        {(each.members or 0, each.partitions or 0): _lasted(history, each) for each in rows}
    ).most_common(1)[0]
    yield Finding(
        "idle-members",
        f"{count(worst[0] - worst[1], 'consumer')} had nothing to do: {worst[0]} members, "
        f"{count(worst[1], 'partition')}",
        f"For {span(total)} the group had more members than partitions "
        f"({period(rows[0].at_ms, rows[-1].until_ms or history.end_ms)})"
        f": {worst[0]} members for {count(worst[1], 'partition')}. A partition has one owner, so the others idle and "
        "still take part in every rebalance.",
        0.0,
        rows[0].at_ms,
        rows[-1].until_ms or history.end_ms,
        advice="Run fewer consumers, or give the topic more partitions; one or two spare ones may be what you want.",
        numbers={"members": worst[0], "partitions": worst[1], "idle_ms": total},
        severity=LOW,
    )


def _lasted(history: GroupHistory, balance: Balance) -> int:
    return max(0, (history.end_ms if balance.until_ms is None else balance.until_ms) - balance.at_ms)


# --- members that do not fit together


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
    rebalances = count(len(history.later), "rebalance")
    harm = (
        "Members that are spare for one topic do not help with another, and settings of the group, such as its lock "
        "duration and its delivery limit, hold for both."
        if history.is_share_group
        else f"Each restart in one of them makes the others rebalance, too ({rebalances} in all), and members that are "
        "spare for one topic do not help with another."
    )
    yield Finding(
        "two-applications",
        f"{count(len(apps), 'application')} seem to share the group.id {history.group_id}",
        f"Members of {history.group_id} read topics that have nothing in common: {'; '.join(described)}. {harm}",
        0.0,
        min(each.joined_at_ms or 0 for each in members),
        max(each.ended_at_ms or history.end_ms for each in members),
        setting="group.id",
        advice=NEW_GROUP
        if history.is_share_group
        else "Give each application a group.id of its own. Its committed offsets can be taken along: "
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
        parts.append([*(each for part in near for each in part), topics])
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
        advice=finish_the_migration(history, old),
        numbers={"new": len(new), "old": len(old), "rebalances": len(later), "consumer_seconds": cost},
        members=list(dict.fromkeys(map(history.name_of, old))),
        rebalances=[each.rebalance_id for each in later],
        exact=all_exact(there),
        severity=MEDIUM if cost else LOW,
    )


@reads(REQUEST, api=("JOIN_GROUP",), error=AnyBut("NONE"))
def inconsistent_protocols(causes: Causes) -> Iterator[Finding]:
    """A client may not join, as it has no assignor (or no protocol type) that all members of the group have."""
    history = causes.history
    refused = [
        each
        for each in history.events
        if each.event == REQUEST and each.api == "JOIN_GROUP" and each.error == "INCONSISTENT_GROUP_PROTOCOL"
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
        advice=agree_on_an_assignor(history),
        numbers={"refused": len(refused), "clients": len(clients)},
        members=clients,
        evidence=[each.as_evidence() for each in refused],
        exact=all_exact(refused),
        severity=HIGH if len(refused) > 1 else MEDIUM,
    )
