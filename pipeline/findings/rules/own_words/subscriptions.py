"""Subscriptions in consumers' own logs: topics that they are refused, and assignments without partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.advice import metadata_age
from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import names, period, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedEvent
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.findings.rules.own_words.events import ONE_MS, consumers_of, finding_of, its_group
from rejoin.pipeline.vocabulary import ASSIGNED_NOTHING, CLIENT_LOG, TOPIC_UNAVAILABLE

AGAIN: Final = 3
"""A topic that is new is not known to every broker at once."""


class _Refusal(NamedTuple):
    """Meaning of a topic's error, and what to do."""

    title: str
    text: str
    advice: str


_THERE: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_REFUSALS: Final = {
    _THERE: _Refusal(
        "does not exist",
        "the cluster has no such topic, or does not show it to this client",
        "Check the name, letter by letter with its prefix for the environment, and whether the bootstrap servers are "
        "those of the right cluster; then create the topic. A client without the right to describe a topic gets the "
        "same answer.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": _Refusal(
        "may not be read",
        "the client's principal is not allowed to read it",
        "Allow it: kafka-acls.sh --add --allow-principal User:NAME --operation Read --topic TOPIC. The group needs "
        "the same right.",
    ),
    "INVALID_TOPIC_EXCEPTION": _Refusal(
        "is no valid name",
        "brokers take letters, digits, '.', '_' and '-', up to 249 of them",
        "Correct the name in the subscription; lists of topics are split by the application, and not by Kafka.",
    ),
    "LEADER_NOT_AVAILABLE": _Refusal(
        "has no leader",
        "none of its partitions can be read until a broker leads it",
        "Look at the brokers: kafka-topics.sh --describe --topic TOPIC shows leaders and replicas in sync. Right after "
        "a topic was created this is usual, for a moment.",
    ),
}


@reads(TOPIC_UNAVAILABLE, columns=("problem",), source=(CLIENT_LOG,))
def topic_unavailable(causes: Causes) -> Iterator[Finding]:
    """The cluster refuses a client a topic that its consumers subscribe to."""
    history = causes.history
    by_problem: dict[str, list[ObservedEvent]] = defaultdict(list)
    for event in history.events:
        if event.event == TOPIC_UNAVAILABLE and not _is_read_later(history, event):
            by_problem[str((event.more or {}).get("problem"))].append(event)
    for problem, events in by_problem.items():
        asked = _moments(events)
        if problem == "LEADER_NOT_AVAILABLE" and asked < AGAIN:
            continue
        refusal = _REFUSALS[problem]
        topics = list(dict.fromkeys(each.topic for each in events if each.topic))
        which = names(topics) if topics else f"a topic of {its_group(history)}"
        who = consumers_of(history, events, otherwise="a client")
        waits = f" {metadata_age(history)}" if problem == _THERE else ""
        yield finding_of(
            "topic-unavailable",
            f"{which} {refusal.title}, as {names(who, 2)} found",
            f"{capital(times(asked))} {names(who)} asked for {which} and got {problem}, "
            f"{period(events[0].at_ms, events[-1].at_ms)}: {refusal.text}. Without partitions of a topic, a member of "
            "the group has nothing to read of it.",
            who,
            events,
            advice=f"{refusal.advice}{waits}",
            numbers={"times": asked, "topics": len(topics)},
            severity=MEDIUM if asked >= AGAIN or problem != _THERE else LOW,
        )


def _is_read_later(history: GroupHistory, event: ObservedEvent) -> bool:
    """Whether a member was assigned partitions of the topic after that."""
    return any(event.topic in (None, each.topic) and each.first_ms >= event.at_ms for each in history.owned)


def _moments(events: Sequence[ObservedEvent]) -> int:
    """How often it happened: a client has several lines about one answer."""
    found, last = 0, -ONE_MS - 1
    for event in events:
        found += event.at_ms - last > ONE_MS
        last = event.at_ms
    return found


_OF_OWNERS: Final = (
    "A partition has one owner: where a group has more members than its topics have partitions, the rest idle and "
    "still take part in every rebalance.",
    "Compare members and partitions: kafka-consumer-groups.sh --describe --group GROUP --members, and "
    "kafka-topics.sh --describe. Run fewer consumers, or give the topic more partitions. If there are enough, the "
    "subscription matches no topic (the name, or the pattern), or a cooperative assignor moves them in a second "
    "rebalance just after.",
)
_OF_SHARE_GROUPS: Final = (
    "Members of a share group share partitions, so each has some as soon as the group has any.",
    "Check that the topics exist, and that the brokers have created __share_group_state: without it no partition of a "
    "share group is initialised. Fewer than three brokers need a lower "
    "share.coordinator.state.topic.replication.factor; their log says INVALID_REPLICATION_FACTOR.",
)
"""Meaning of an assignment without partitions, and what to do."""


@reads(ASSIGNED_NOTHING, source=(CLIENT_LOG,))
def assigned_nothing(causes: Causes) -> Iterator[Finding]:
    """A consumer is a member of its group, and its last assignment has no partition."""
    history = causes.history
    if not (history.has_only_own_words or history.is_of_one_consumer):
        return
    events = [each for each in history.events if each.event == ASSIGNED_NOTHING]
    refused = {(each.node, each.client_id) for each in history.events if each.event == TOPIC_UNAVAILABLE}
    events = [each for each in events if (each.node, each.client_id) not in refused]
    if not events:
        return
    who = consumers_of(history, events)
    is_one = len(who) == 1
    why, advice = _OF_SHARE_GROUPS if history.is_share_group else _OF_OWNERS
    yield finding_of(
        "assigned-nothing",
        f"{names(who)} {'was' if is_one else 'were'} assigned nothing",
        f"{capital(period(events[0].at_ms, events[-1].at_ms))} {names(who)} joined {its_group(history)} and got no "
        f"partition; up to the end of the log {'it has' if is_one else 'they have'} none. {why}",
        who,
        events,
        advice=advice,
        numbers={"members": len(who)},
        severity=LOW,
    )
