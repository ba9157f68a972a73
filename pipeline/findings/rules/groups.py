"""Rules about the group as a whole: topics that grew, members that came or went for good, lost records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.causes import CHANGED, SUBSCRIBED, Causes
from rejoin.pipeline.findings.clients.advice import metadata_age
from rejoin.pipeline.findings.clients.share_groups import GROWTH
from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, seconds, span, spans, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import METADATA_CHANGED, ObservedEvent, ObservedRebalance, all_exact
from rejoin.pipeline.findings.phrases import first, last, share, stood_still, when
from rejoin.pipeline.findings.reads import reads

METADATA_AGE_MS: Final = 5 * 60_000
"""Kafka's default of metadata.max.age.ms: consumers have looked at the metadata again by then."""
UNREAD_MS: Final = 5_000
"""New partitions that have an owner within this were noticed at once."""
WORTH_IT_S: Final = 1.0
"""Consumer-seconds below which members that were added are no finding."""
BACK_AND_FORTH: Final = 3
"""Members that were added and taken away again, from so many on."""
LOOP: Final = 5
"""A member that makes so many rebalances begin, one soon after the other, rejoins in a loop."""
LEAST_SEEN: Final = 3
MOST_LEFT_OUT: Final = 4
"""An excerpt that leaves out more than this of each rebalance that it has is no evidence."""
LOOP_GAP_MS: Final = 2 * 60_000
NOTICED_MS: Final = 6 * 60_000
"""Leaders notice a topic's growth within metadata.max.age.ms, five minutes by default."""


@reads("topic_created", "topic_grown", "topic_written", "topic_deleted")
def topic_growth(causes: Causes) -> Iterator[Finding]:
    """A topic got more partitions. They have no reader before the leader refreshes its metadata, up to
    metadata.max.age.ms later."""
    history = causes.history
    growths = _noticed_growths(causes)
    for growth in growths:
        yield _grown(growth, sure=_topics_known(history))
    noticed = {each.rebalance_id for growth in growths for each in growth.caused}
    looped = {each.rebalance_id for run in rejoin_loops(causes) for each in run}
    looped |= {each.rebalance_id for _, pair in rack_changes(causes) for each in pair}
    others = [each for each in metadata_changes(causes) if each.rebalance_id not in noticed | looped]
    if others and not noticed:
        yield _changed(history, others)


def rejoin_loops(causes: Causes) -> list[list[ObservedRebalance]]:
    """Runs of rebalances that the same member began, by joining again, and that nothing else explains."""
    history = causes.history
    noticed = {each.rebalance_id for growth in _noticed_growths(causes) for each in growth.caused}
    runs: list[list[ObservedRebalance]] = []
    for each in history.later:
        if each.cause not in ("rejoin-leader", "rejoin-metadata") or each.cause_member_id is None:
            continue
        if each.rebalance_id in noticed | causes.of_rebalances.keys() or history.is_second_half(each):
            continue
        before = runs[-1][-1] if runs else None
        goes_on = before is not None and before.cause_member_id == each.cause_member_id
        if before is not None and goes_on and each.prepared_at_ms - before.until_ms <= LOOP_GAP_MS:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [run for run in runs if len(run) >= LOOP or (len(run) >= LEAST_SEEN and run_length(run) >= LOOP)]


def run_length(run: Sequence[ObservedRebalance]) -> int:
    """How many rebalances there were in a run: of an excerpt that leaves lines out the generations show it."""
    generations = [each.generation_to for each in run if each.generation_to is not None]
    spanned = generations[-1] - generations[0] + 1 if generations else 0
    at_least = spanned + sum(each.generation_to is None for each in run)
    # Generations also rise through rebalances that other members began; those have lines of their own.
    return max(len(run), at_least) if at_least <= MOST_LEFT_OUT * len(run) else len(run)


def rack_changes(causes: Causes) -> list[tuple[ObservedEvent, list[ObservedRebalance]]]:
    """Brokers that stopped, each with two rebalances that the leader's metadata began: after the stop, and after the
    start that followed."""
    changed = [each for each in metadata_changes(causes) if not causes.history.is_second_half(each)]
    found: list[tuple[ObservedEvent, list[ObservedRebalance]]] = []
    for stop, start in _broker_restarts(causes.history.events):
        after_stop = [each for each in changed if stop.at_ms <= each.prepared_at_ms < start.at_ms]
        after_start = [each for each in changed if 0 <= each.prepared_at_ms - start.at_ms <= NOTICED_MS]
        if after_stop and after_start:
            found.append((stop, [after_stop[-1], after_start[0]]))
    return found


def _broker_restarts(events: Sequence[ObservedEvent]) -> list[tuple[ObservedEvent, ObservedEvent]]:
    """The stops of brokers, each with the start that followed."""
    stopped: dict[str | None, ObservedEvent] = {}
    found = []
    for event in events:
        if event.event == "broker_stopped":
            stopped[event.node] = event
        elif event.event == "broker_started" and event.node in stopped:
            found.append((stopped.pop(event.node), event))
    return found


def _topics_known(history: GroupHistory) -> bool:
    return any(session.topics is not None for session in history.sessions)


def _noticed_growths(causes: Causes) -> list[_Growth]:
    """Growth of the group's topics; where these are not known, what the group noticed is the growth nearest before."""
    known = _topics_known(causes.history)
    noticed: set[str] = set()
    found = []
    for event, before in reversed(_growths(causes.history.events)):
        growth = _Growth(causes, event, before, set() if known else noticed)
        if known or growth.caused:
            noticed |= {each.rebalance_id for each in growth.caused}
            found.append(growth)
    return found


def subscription_changed(causes: Causes) -> Iterator[Finding]:
    """Members subscribed to other topics: each change makes the whole group rebalance. Java clients say so (KIP-800);
    of others a broker reports only that a member came with changed metadata."""
    history = causes.history
    noticed = {each.rebalance_id for growth in _noticed_growths(causes) for each in growth.caused}
    sure = causes.begun_by(SUBSCRIBED)
    caused = sure or [each for each in history.later if _may_be_subscribed(causes, each, noticed)]
    if not caused:
        return
    who = list(dict.fromkeys(history.who(each.cause_member_id) for each in caused))
    cost = history.cost_s(caused)
    exact = bool(sure) and all_exact(caused)
    changes = [each for each in caused if not history.is_second_half(each)]
    yield Finding(
        "subscription-changed",
        f"{'' if exact else 'Probably: '}{names(who)} subscribed to other topics",
        f"{share(history, caused)} {when(caused)} came from members that changed their subscription "
        f"{times(len(changes))}: {names(who)}.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        advice="Nothing to change, if this was meant: subscribe to all topics at once, and in all members at one time. "
        "Members of one group that read different topics rebalance each other without need: give them groups of their "
        "own.",
        numbers={
            "changes": len(changes),
            "members": len(who),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=who,
        rebalances=[each.rebalance_id for each in caused],
        exact=exact,
        severity=LOW,
    )


def _may_be_subscribed(causes: Causes, rebalance: ObservedRebalance, noticed: set[str]) -> bool:
    """Whether a member gave no reason, and came with changed metadata at a time when nothing else explains it."""
    begins = causes.history.begins(rebalance)
    return (
        begins.cause == "rejoin-metadata"
        and not begins.client_reason
        and not begins.initial
        # Members of sticky put what they own into their metadata.
        and begins.protocol != "sticky"
        and not {begins.rebalance_id, rebalance.rebalance_id} & (noticed | set(causes.of_rebalances))
    )


def metadata_changes(causes: Causes) -> list[ObservedRebalance]:
    """Rebalances that a leader began since its topics were not as before; not those of a group that only begins, or
    whose broker was away: then the leader has just read its metadata."""
    return [
        each
        for each in causes.history.later
        if (each.client_reason or "").startswith(METADATA_CHANGED)
        and each.rebalance_id not in causes.of_rebalances
        and not _just_began(causes.history, each)
    ]


def _just_began(history: GroupHistory, rebalance: ObservedRebalance) -> bool:
    initial = [each for each in history.rebalances if each.initial and each.prepared_at_ms < rebalance.prepared_at_ms]
    return bool(initial) and rebalance.prepared_at_ms - initial[-1].until_ms <= UNREAD_MS


def _changed(history: GroupHistory, caused: Sequence[ObservedRebalance]) -> Finding:
    cost = history.cost_s(caused)
    deleted = dict.fromkeys(
        event.topic
        for event in history.events
        if event.event == "topic_deleted"
        and any(0 <= each.prepared_at_ms - event.at_ms <= NOTICED_MS for each in caused)
    )
    named = f" Shortly before, {', '.join(map(str, deleted))} had been deleted." if deleted else ""
    return Finding(
        "topic-growth",
        f"Probably: topics of the group changed {times(len(caused))}",
        f"In {share(history, caused)} {when(caused)} the leader joined again since its topics were not as before: "
        f"a topic got more partitions, was created or was deleted.{named}{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        setting="metadata.max.age.ms",
        advice=metadata_age(history),
        numbers={"rebalances": len(caused), "consumer_seconds": cost},
        rebalances=[each.rebalance_id for each in caused],
        exact=False,
    )


def _growths(events: Sequence[ObservedEvent]) -> list[tuple[ObservedEvent, int]]:
    """Events that report more partitions than any before, each with the number before."""
    by_topic: dict[str, list[ObservedEvent]] = defaultdict(list)
    for event in events:
        if event.topic and event.partition_count and event.event != "topic_deleted":
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


class _Growth:
    """A topic that grew, and when its new partitions were read."""

    def __init__(self, causes: Causes, event: ObservedEvent, before: int, noticed: set[str]) -> None:
        history = causes.history
        self.history, self.event, self.before, self.now = history, event, before, event.partition_count or 0
        owned = {row.partition: row.first_ms for row in history.owned if row.topic == event.topic}
        if history.is_of_one_consumer or (history.is_from_consumers and not owned.keys() >= set(range(before))):
            # Members whose log is not there may have had the others.
            owned = {}
        new = range(before, self.now)
        self.waits = [max(0, owned[number] - event.at_ms) for number in new if number in owned]
        self.never = len([number for number in new if number not in owned]) if owned else 0
        self.owners_known = bool(owned)
        self.to_the_end = max(0, history.end_ms - event.at_ms)
        later = [each for each in history.later if each.rebalance_id not in noticed]
        mine = [each for each in later if self._is_noticed_by(causes, each)]
        # Older brokers log a leader that joins again as any other member.
        self.caused = ([each for each in mine if each.cause != "rejoin-metadata"] or mine)[:1]

    def _is_noticed_by(self, causes: Causes, rebalance: ObservedRebalance) -> bool:
        """Whether this rebalance began as the leader, or the coordinator, saw the new partitions."""
        later = rebalance.prepared_at_ms - self.event.at_ms
        if not 0 <= later <= NOTICED_MS or rebalance.rebalance_id in causes.of_rebalances:
            return False
        if self.history.is_second_half(rebalance):
            return False
        if (rebalance.client_reason or "").startswith(METADATA_CHANGED):
            return True
        unnamed = ("unknown",) if self.history.uses_consumer_protocol else ("rejoin-leader", "rejoin-metadata")
        return rebalance.client_reason is None and rebalance.cause in unnamed

    @property
    def unread_s(self) -> float:
        """Seconds for which new partitions had no owner, added up."""
        return (sum(self.waits) + self.never * self.to_the_end) / 1_000 if self.owners_known else 0.0

    @property
    def cost_s(self) -> float:
        """Of the rebalance that it made. No consumer stops for partitions that it does not know of yet."""
        return self.history.cost_s(self.caused)

    @property
    def is_overdue(self) -> bool:
        """Whether consumers should have noticed it."""
        return self.never > 0 and self.to_the_end > METADATA_AGE_MS

    def outcome(self) -> str:
        had, no = ("a member", "no member") if self.history.is_share_group else ("an owner", "no owner")
        if not self.owners_known:
            if self.caused:
                later = self.caused[0].prepared_at_ms - self.event.at_ms
                return f"The group rebalanced for it {span(later)} later."
            return "The source does not say when the new ones were first read."
        if self.never and not self.is_overdue:
            return (
                f"{_the_new(self.never, self.now - self.before)} had {no} yet where the journal ends, "
                f"{span(self.to_the_end)} later."
            )
        if self.never and self.history.is_share_group:
            return (
                f"{_the_new(self.never, self.now - self.before)} had no member to the end of the journal, "
                f"{span(self.to_the_end)} later: their state is not initialised, or no member was there."
            )
        if self.never:
            return (
                f"{_the_new(self.never, self.now - self.before)} had no owner to the end of the journal, "
                f"{span(self.to_the_end)} later: no leader has noticed them. A static leader that restarts takes the "
                "topics as it finds them for those that the assignment was made from (KIP-814); any other rebalance "
                "puts it right."
            )
        return f"The new ones had {had} {spans(self.waits)} later."


def _grown(growth: _Growth, *, sure: bool) -> Finding:
    event, history, waits, never = growth.event, growth.history, growth.waits, growth.never
    grew = f"{event.topic} grew from {growth.before} to {growth.now} partitions"
    read = "; the new ones were not read" if never else f", read after {spans(waits)}" if waits else ""
    quick = growth.owners_known and not never and max(waits, default=0) <= UNREAD_MS
    unread = f" They were unread for {seconds(growth.unread_s * 1_000)} partition-seconds." if growth.unread_s else ""
    exact = all_exact([event]) and sure
    return Finding(
        "topic-growth",
        f"{'' if sure else 'Probably: '}{grew}{read}",
        f"{grew} {period(event.at_ms, event.at_ms)}. {growth.outcome()}{unread}{stood_still(history, growth.cost_s)}",
        growth.cost_s,
        event.at_ms,
        event.at_ms + (growth.to_the_end if never else max(waits, default=0)),
        setting=None if history.uses_consumer_protocol else "metadata.max.age.ms",
        advice=GROWTH
        if history.is_share_group
        else "Restart a member that is no leader, or let one leave, so that the group rebalances. "
        + metadata_age(history)
        if growth.is_overdue
        else "The broker notices growth itself, and members of the consumer protocol get the new partitions with a "
        "heartbeat; grow topics when a change of owners does no harm."
        if history.uses_consumer_protocol
        else metadata_age(history),
        numbers={
            "partitions_before": growth.before,
            "partitions_after": growth.now,
            "never_owned": never,
            "longest_unread_ms": max([*waits, *([growth.to_the_end] if never else [])], default=0),
            "partition_seconds_unread": growth.unread_s,
        },
        rebalances=[each.rebalance_id for each in growth.caused],
        evidence=[event.as_evidence()],
        exact=exact,
        # That they were not read matters, though no consumer stood still for it.
        severity=HIGH if growth.is_overdue else LOW if quick else MEDIUM if unread else None,
    )


def _the_new(some: int, of: int) -> str:
    return "The new ones" if some == of else f"{some} of the {of} new ones"


def membership_changed(causes: Causes) -> Iterator[Finding]:
    """Members were added to the group or taken out of it for good: each costs a rebalance, as it should."""
    history = causes.history
    caused = causes.begun_by(CHANGED)
    if not caused:
        return
    renamed = {id(session) for pair in history.renamed for session in pair}
    added = [history.name_of(session) for session in causes.added if id(session) not in renamed]
    gone = [history.name_of(session) for session in causes.taken_away]
    cost = history.cost_s(caused)
    few = cost < WORTH_IT_S and not (added and gone and len(added) + len(gone) >= BACK_AND_FORTH)
    if few or not (added or gone):
        return
    parts = [f"{len(who)} {what}" for who, what in ((added, "added"), (gone, "taken away")) if who]
    which = [f"{names(who)} {what}" for who, what in ((added, "joined"), (gone, "left for good")) if who]
    yield Finding(
        "membership-changed",
        f"Members of {history.group_id} were changed: {' and '.join(parts)}",
        f"{share(history, caused)} {when(caused)} came from members that were added or taken away: "
        f"{'; '.join(which)}.{stood_still(history, cost)}",
        cost,
        first(caused),
        last(caused),
        advice="Nothing to change, if this was meant: change several members at a time, and the group rebalances once."
        " If it was an autoscaler, make it slower than a rebalance (a stabilisation window).",
        numbers={
            "added": len(added),
            "taken_away": len(gone),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "consumer_seconds": cost,
        },
        members=list(dict.fromkeys([*added, *gone])),
        rebalances=[each.rebalance_id for each in caused],
        exact=all_exact(caused),
        severity=LOW,
    )


def lost_records(causes: Causes) -> Iterator[Finding]:
    """Records were passed over by a commit and never processed."""
    history = causes.history
    if not history.losses:
        return
    records = sum(loss.records for loss in history.losses)
    lost = [f"{loss.topic}-{loss.partition}" for loss in history.losses]
    yield Finding(
        "lost-records",
        f"{count(records, 'record')} lost: committed, but never processed",
        f"{count(records, 'record')} of {count(len(lost), 'partition')} ({names(lost)}) were passed over and "
        "never processed "
        f"{period(min(loss.first_ms for loss in history.losses), max(loss.last_ms for loss in history.losses))}: their "
        "offsets were committed before the work was done, and then the consumer stopped.",
        0.0,
        min(loss.first_ms for loss in history.losses),
        max(loss.last_ms for loss in history.losses),
        setting="enable.auto.commit",
        advice="Commit what is done, after it is done: with automatic commits (enable.auto.commit) finish all "
        "records of a poll before the next one; with commits of your own, commit after processing, not before. Records "
        "may then be processed twice, so make that harmless.",
        numbers={"records": records, "partitions": len(lost), "ranges": sum(loss.ranges for loss in history.losses)},
        severity=HIGH if records > 1 else MEDIUM,
    )
