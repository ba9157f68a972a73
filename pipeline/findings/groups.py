"""What concerns the group as a whole: storms, topics that grew, coordinators that moved, records that were lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.history import (
    COOPERATIVE,
    METADATA_CHANGED,
    GroupHistory,
    ObservedEvent,
    ObservedRebalance,
    all_exact,
)
from rejoin.pipeline.findings.phrases import first, last, share, stood_still, when
from rejoin.pipeline.findings.words import count, names, period, seconds, span, spans, times

STORM: Final = 5
"""Rebalances that follow each other closely make a storm from this many on."""
COLD_START: Final = 3
"""The same for a group that has just begun, where one rebalance would have done (KIP-134)."""
AFTER_FAILOVER_MS: Final = 60_000
"""A rebalance that begins so soon after the coordinator moved has to do with it."""
UNREAD_MS: Final = 5_000
"""New partitions that have an owner within this were noticed at once."""

_BEGAN: Final = {
    "join-new": "a member that joined",
    "rejoin-metadata": "a member that came with another subscription or gave up partitions",
    "rejoin-leader": "the leader that joined again",
    "static-metadata": "a static member that restarted in the middle of a rebalance",
    "static-protocol": "a static member that restarted with other assignors",
    "leave": "a member that left",
    "session-expiry": "a session that ended",
    "sync-expiry": "a member that did not sync",
    "store-failure": "an assignment that could not be stored",
    "over-capacity": "group.max.size",
}


def storm(history: GroupHistory) -> Iterator[Finding]:
    """Rebalances follow each other so closely that the group hardly gets to work in between."""
    chains: dict[int, list[ObservedRebalance]] = defaultdict(list)
    for each in history.rebalances:
        # The second half of a cooperative rebalance is as intended (KIP-429).
        if each.chain is not None and not (each.protocol == COOPERATIVE and each.cause == "rejoin-metadata"):
            chains[each.chain].append(each)
    storms = [chain for _, chain in sorted(chains.items()) if len(chain) >= STORM or _is_cold_start(chain)]
    if not storms:
        return
    caused = [each for chain in storms for each in chain]
    longest = max(storms, key=lambda chain: (len(chain), -chain[0].prepared_at_ms))
    lasted = longest[-1].until_ms - longest[0].prepared_at_ms
    causes = Counter(each.cause for each in caused)
    main = causes.most_common(1)[0][1]
    cost = history.cost_s(caused)
    exact = all_exact(caused)
    newcomers = causes["join-new"] + causes["leave"]
    setting: str | None = None
    advice = "Look at the other findings: a storm has a cause."
    if causes["leave"] and causes["join-new"] and newcomers >= len(caused) / 2:
        advice = (
            "Members come and go the whole time. If that is an autoscaler, make it slower than a rebalance (a "
            "stabilisation "
            "window, and no scaling down as soon as the lag is gone); if it is restarts, set group.instance.id; and "
            "with "
            "CooperativeStickyAssignor the others go on meanwhile."
        )
    elif causes["join-new"] >= len(caused) / 2:
        setting = "group.initial.rebalance.delay.ms"
        advice = (
            "Members start one after the other, and each makes the group rebalance. group.initial.rebalance.delay.ms "
            "of the "
            "broker (3000 by default) lets a group that was empty wait for them; start them together, "
            "and use CooperativeStickyAssignor, so that the others go on meanwhile."
        )
    elif causes["rejoin-metadata"] >= len(caused) / 2:
        advice = "Members joined again with something changed: find out why their subscriptions change all the time."
    mix = names((f"{_BEGAN.get(cause, 'an unknown cause')} ({number})" for cause, number in causes.most_common()), 4)
    yield Finding(
        "storm",
        f"{count(len(longest), 'rebalance')} in {span(lasted)}"
        + (f", and {count(len(storms) - 1, 'more storm')}" if storms[1:] else ""),
        f"{share(history, caused)} {when(caused)} followed each other closely"
        + (
            f", in {count(len(storms), 'storm')}; the longest was {len(longest)} in {span(lasted)}"
            if storms[1:]
            else f", in {span(lasted)}"
        )
        + f". What began them: {mix}.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting=setting,
        advice=advice,
        numbers={
            "storms": len(storms),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "longest": len(longest),
            "longest_ms": lasted,
            "main_cause": main,
            "consumer_seconds": cost,
        },
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
    )


def _is_cold_start(chain: Sequence[ObservedRebalance]) -> bool:
    """Whether a group that was empty grew member by member, each with a rebalance of its own."""
    return len(chain) >= COLD_START and bool(chain[0].initial) and all(each.cause == "join-new" for each in chain)


def topic_growth(history: GroupHistory) -> Iterator[Finding]:
    """A topic got more partitions. They have no reader before the leader refreshes its metadata, up to
    metadata.max.age.ms later."""
    grown = _growths(history.events)
    for event, before in grown:
        yield _grown(history, event, before)
    if grown:
        return
    caused = [each for each in history.later if (each.client_reason or "").startswith(METADATA_CHANGED)]
    if caused:
        cost = history.cost_s(caused)
        yield Finding(
            "topic-growth",
            f"Probably: topics of the group changed {times(len(caused))}",
            f"In {share(history, caused)} {when(caused)} the leader joined again since its topics were not as before: "
            "a topic "
            f"got more partitions, was created or was deleted.{stood_still(history, cost)}",
            cost,
            first(caused),
            last(caused),
            setting="metadata.max.age.ms",
            advice=_AGE,
            numbers={"rebalances": len(caused), "consumer_seconds": cost},
            rebalances=[each.rebalance_id for each in caused],
            exact=False,
        )


_AGE: Final = (
    "Consumers look at the metadata every metadata.max.age.ms (300000, five minutes, by default). Lower it before a "
    "topic "
    "grows if the wait matters, and grow topics when a rebalance does no harm."
)


def _growths(events: Sequence[ObservedEvent]) -> list[tuple[ObservedEvent, int]]:
    """Events that report more partitions than any before, each with the number before."""
    by_topic: dict[str, list[ObservedEvent]] = defaultdict(list)
    for event in events:
        if event.topic and event.partition_count:
            by_topic[event.topic].append(event)
    found = []
    for reported in by_topic.values():
        # A simulation's nodes learn late of a change from outside.
        outside = [event for event in reported if event.event == "topic_written"]
        known = 0
        for event in outside or reported:
            now, before = event.partition_count or 0, known or event.previous_partition_count or 0
            if 0 < before < now:
                found.append((event, before))
            known = max(known, now)
    return sorted(found, key=lambda each: (each[0].at_ms, each[0].topic or ""))


def _grown(history: GroupHistory, event: ObservedEvent, before: int) -> Finding:
    now = event.partition_count or 0
    first_owned = {row.partition: row.first_ms for row in history.owned if row.topic == event.topic}
    waits = [max(0, first_owned[number] - event.at_ms) for number in range(before, now) if number in first_owned]
    never = [number for number in range(before, now) if number not in first_owned]
    to_the_end = max(0, history.end_ms - event.at_ms)
    owners_known = bool(first_owned)
    unread_s = (sum(waits) + len(never) * to_the_end) / 1_000 if owners_known else 0.0
    caused = [
        each
        for each in history.later
        if each.prepared_at_ms >= event.at_ms and (each.client_reason or "").startswith(METADATA_CHANGED)
    ][:1]
    if not owners_known:
        outcome = "The source does not say when the new ones were first read."
    elif never:
        outcome = (
            f"{_the_new(len(never), now - before)} had no owner to the end of the journal, {span(to_the_end)} later: "
            "no leader "
            "has noticed them. A static leader that restarts takes the topics as it finds them for those that the "
            "assignment was made from (KIP-814); any other rebalance puts it right."
        )
    else:
        outcome = f"The new ones had an owner {spans(waits)} later."
    quick = owners_known and not never and max(waits, default=0) <= UNREAD_MS
    # What the new partitions would have kept busy, in consumers.
    cost = history.cost_s(caused) + (unread_s / now * _members(history, event.at_ms) if now else 0.0)
    return Finding(
        "topic-growth",
        f"{event.topic} grew from {before} to {now} partitions"
        + (
            "; the new ones were not read"
            if never and owners_known
            else f", read after {spans(waits)}"
            if waits
            else ""
        ),
        f"{event.topic} grew from {before} to {now} partitions {period(event.at_ms, event.at_ms)}. {outcome}"
        + (f" They were unread for {seconds(unread_s * 1_000)} partition-seconds." if unread_s else ""),
        cost,
        event.at_ms,
        event.at_ms + (to_the_end if never else max(waits, default=0)),
        setting="metadata.max.age.ms",
        advice=_AGE
        if not never
        else "Restart a member that is no leader, or let one leave, so that the group rebalances. " + _AGE,
        numbers={
            "partitions_before": before,
            "partitions_after": now,
            "never_owned": len(never) if owners_known else 0,
            "longest_unread_ms": max([*waits, *([to_the_end] if never and owners_known else [])], default=0),
            "partition_seconds_unread": unread_s,
        },
        rebalances=[each.rebalance_id for each in caused],
        evidence=[event.as_evidence()],
        exact=all_exact([event]),
        severity=HIGH if never and owners_known else LOW if quick else None,
    )


def _the_new(some: int, of: int) -> str:
    return "The new ones" if some == of else f"{some} of the {of} new ones"


def _members(history: GroupHistory, at_ms: int) -> int:
    there = [each.members or 0 for each in history.balances if each.at_ms <= at_ms]
    return there[-1] if there else 1


def coordinator_failover(history: GroupHistory) -> Iterator[Finding]:
    """Another broker took the group over. Consumers go on with what they have; commits wait. A group that was in the
    middle of a rebalance has to begin again, and the generation's number comes a second time."""
    moves = [event for event in history.events if event.event == "group_loaded"]
    if not moves:
        return
    aborted = [each for each in history.rebalances if each.outcome == "aborted"]
    after = [
        each
        for each in history.later
        if any(0 <= each.prepared_at_ms - move.at_ms <= AFTER_FAILOVER_MS for move in moves) and each not in aborted
    ]
    numbers = Counter(each.generation_to for each in history.rebalances if each.generation_to is not None)
    twice = sorted(generation for generation, times in numbers.items() if times > 1)
    caused = [*aborted, *after]
    cost = history.cost_s(caused)
    nodes = list(dict.fromkeys(move.node for move in moves if move.node))
    if aborted:
        outcome = (
            f"{count(len(aborted), 'rebalance')} {'was' if len(aborted) == 1 else 'were'} cut off in the middle and "
            "had to begin "
            "again: a coordinator keeps no unfinished rebalance."
        )
    elif after:
        outcome = (
            f"{count(len(after), 'rebalance')} began within {span(AFTER_FAILOVER_MS)} of it. A Stable group does not "
            "rebalance for "
            "a failover itself: a member did not find the new coordinator within its session, or wanted to join anyway."
        )
    else:
        outcome = "The group was Stable and stayed so: no rebalance, same generation; only commits had to wait."
    again = f" Generation {names(map(str, twice))} came twice." if twice else ""
    yield Finding(
        "coordinator-failover",
        f"The coordinator moved {times(len(moves))}"
        + (
            f" and cut off {count(len(aborted), 'rebalance')}"
            if aborted
            else ", without a rebalance"
            if not after
            else ""
        ),
        f"{times(len(moves)).capitalize()} the group was loaded from the offsets log "
        f"{period(moves[0].at_ms, moves[-1].at_ms)}{f' ({names(nodes)})' if nodes else ''}: its broker went, "
        "restarted or gave "
        f"the partition of __consumer_offsets up. {outcome}{again}{stood_still(history, cost)}",
        cost,
        moves[0].at_ms,
        max([moves[-1].at_ms, *(each.until_ms for each in caused)]),
        setting="session.timeout.ms" if after and not aborted else None,
        advice="Nothing to change in the consumers: session.timeout.ms only has to be longer than a failover takes. "
        "If it "
        "happens often, look at the brokers (restarts, controller, replication of __consumer_offsets).",
        numbers={
            "failovers": len(moves),
            "aborted": len(aborted),
            "rebalances_after": len(after),
            "generations_twice": len(twice),
            "consumer_seconds": cost,
        },
        rebalances=[each.rebalance_id for each in caused],
        evidence=[move.as_evidence() for move in moves],
        exact=all_exact(moves),
        severity=None if caused else LOW,
    )


def lost_records(history: GroupHistory) -> Iterator[Finding]:
    """Records were passed over by a commit and never processed."""
    if not history.losses:
        return
    records = sum(loss.records for loss in history.losses)
    places = [f"{loss.topic}-{loss.partition}" for loss in history.losses]
    yield Finding(
        "lost-records",
        f"{count(records, 'record')} lost: committed, but never processed",
        f"{count(records, 'record')} of {count(len(places), 'partition')} ({names(places)}) were passed over and "
        "never processed "
        f"{period(min(loss.first_ms for loss in history.losses), max(loss.last_ms for loss in history.losses))}: their "
        "offsets were committed before the work was done, and then the consumer stopped.",
        0.0,
        min(loss.first_ms for loss in history.losses),
        max(loss.last_ms for loss in history.losses),
        setting="enable.auto.commit",
        advice="Commit what is done, after it is done: with enable.auto.commit=true finish all records of a poll "
        "before the next "
        "one; with commits of your own, commit after processing, not before. Records may then be processed twice, so "
        "make "
        "that harmless.",
        numbers={"records": records, "partitions": len(places), "ranges": sum(loss.ranges for loss in history.losses)},
        severity=HIGH if records > 1 else MEDIUM,
    )
