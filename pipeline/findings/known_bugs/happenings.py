"""Signs of known bugs that are no single line: what happened, one after the other, or to whole rebalances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.known_bugs.bug import Sighting
from rejoin.pipeline.findings.observed_rows import ObservedEvent, ObservedRebalance
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.vocabulary import BROKER_LOG, CLIENT_LOG

AT_ONCE_MS: Final = 50
"""Members learn of a rebalance by their next heartbeat, so they cannot all have joined within this."""
IN_A_ROW: Final = 3
NEAR_MS: Final = 5_000
"""Lines of a client that are about one thing are no further apart."""
LONG_MS: Final = 60_000
DEFAULT_TIMEOUT_MS: Final = 300_000
"""Kafka's default of max.poll.interval.ms, and how long a new member may take to join."""
GRACE_MS: Final = 10_000
ZOMBIE_MS: Final = 500
"""A client that notices at once that it is no member any more joins again within this."""
REPEATS: Final = 5


def lines(history: GroupHistory, name: str) -> list[ObservedEvent]:
    """The lines with a sign. Those of brokers that name no group are about groups that rebalanced around that time."""
    return [
        each
        for each in history.events
        if each.reason == name
        and (each.event == "bug_sign" or (each.event == "broker_bug_sign" and _is_near(history, each.at_ms)))
    ]


def _is_near(history: GroupHistory, at_ms: int) -> bool:
    return any(abs(each.prepared_at_ms - at_ms) <= LONG_MS for each in history.rebalances)


def of_lines(found: Sequence[ObservedEvent], each_time: int = 1) -> Sighting | None:
    """Where lines were seen, so many each time; none without any."""
    if not found:
        return None
    return Sighting(found[0].at_ms, found[-1].at_ms, max(1, len(found) // each_time), tuple(found))


def of_rebalances(found: Sequence[ObservedRebalance], until_ms: int) -> Sighting | None:
    """Where rebalances were seen; none without any."""
    if not found:
        return None
    ids = tuple(each.rebalance_id for each in found)
    return Sighting(found[0].prepared_at_ms, until_ms, len(found), rebalances=ids)


def _by_client(history: GroupHistory) -> Iterator[list[ObservedEvent]]:
    """The events of each consumer that has a log, by time."""

    def key(event: ObservedEvent) -> tuple[str, str]:
        return event.node or "", event.client_id or ""

    of_clients = sorted((each for each in history.events if each.source == CLIENT_LOG), key=key)
    for _, events in groupby(of_clients, key):
        yield sorted(events, key=lambda each: each.at_ms)


def _has(event: ObservedEvent, name: str) -> bool:
    return event.event == "bug_sign" and event.reason == name


# -- brokers


def throws_out_all(causes: Causes) -> Sighting | None:
    """Each new member ends the join phase at once, though others were members: these had no time to join."""
    found: list[ObservedRebalance] = []
    for joins, run in groupby(causes.history.rebalances, _is_over_at_once):
        rebalances = list(run)
        if joins and len(rebalances) >= IN_A_ROW:
            found += rebalances
    return of_rebalances(found, found[-1].until_ms) if found else None


def _is_over_at_once(rebalance: ObservedRebalance) -> bool:
    return (
        rebalance.source == BROKER_LOG
        and rebalance.initial is False
        and rebalance.cause == "join-new"
        and rebalance.outcome == "completed"
        and rebalance.join_ms is not None
        and rebalance.join_ms <= AT_ONCE_MS
    )


def waits_for_the_assignment(causes: Causes) -> Sighting | None:
    """All have joined, and the group has waited for its assignment for longer than any rebalance may take."""
    last = _open(causes.history)
    if last is None or last.joined_at_ms is None or last.assigned_at_ms is not None:
        return None
    if causes.history.end_ms - last.joined_at_ms < _longest_ms(causes.history) + GRACE_MS:
        return None
    return of_rebalances([last], causes.history.end_ms)


def waits_for_a_lost_member(causes: Causes) -> Sighting | None:
    """A member was removed while the group waited for joins, and the join phase went on beyond every timeout."""
    last = _open(causes.history)
    if last is None or last.joined_at_ms is not None or not last.evicted:
        return None
    if causes.history.end_ms - last.prepared_at_ms < _longest_ms(causes.history) + DEFAULT_TIMEOUT_MS + GRACE_MS:
        return None
    return of_rebalances([last], causes.history.end_ms)


def _open(history: GroupHistory) -> ObservedRebalance | None:
    """The last rebalance where it has not ended, and a broker reported it that did not stop after that."""
    last = history.rebalances[-1] if history.rebalances else None
    if last is None or last.source != BROKER_LOG or last.ended_at_ms is not None:
        return None
    stopped = any(each.event == "broker_stopped" and each.at_ms >= last.prepared_at_ms for each in history.events)
    return None if stopped else last


def _longest_ms(history: GroupHistory) -> int:
    known = [each.rebalance_timeout_ms for each in history.sessions if each.rebalance_timeout_ms is not None]
    return max(known, default=DEFAULT_TIMEOUT_MS)


@reads("static_member_replaced", "member_fenced", source=(BROKER_LOG,))
def fences_the_newer_member(causes: Causes) -> Sighting | None:
    """A static member came back with a new id, and later the coordinator knew only the old one."""
    events = causes.history.events
    came = {(each.other_member_id, each.member_id) for each in events if each.event == "static_member_replaced"}
    fenced = [
        each
        for each in events
        if each.event == "member_fenced" and each.member_id and (each.other_member_id, each.member_id) in came
    ]
    return of_lines(fenced)


# -- clients


@reads("coordinator_lost", "coordinator_found", "join_sent", source=(CLIENT_LOG,))
def _never_finds_the_coordinator(causes: Causes, *, is_member: bool) -> Sighting | None:
    found = []
    for events in _by_client(causes.history):
        if any(each.event == "join_sent" for each in events) != is_member:
            continue
        lost = next((each for each in reversed(events) if each.event == "coordinator_lost"), None)
        if lost is None or any(each.event == "coordinator_found" and each.at_ms >= lost.at_ms for each in events):
            continue
        late = [each for each in events if _has(each, "commit-timed-out") and each.at_ms - lost.at_ms >= LONG_MS]
        found += [lost, late[-1]] if late else []
    return of_lines(sorted(found, key=lambda each: each.at_ms), 2)


def member_never_finds_the_coordinator(causes: Causes) -> Sighting | None:
    """A member lost its coordinator and did not find it again, and its commits timed out."""
    return _never_finds_the_coordinator(causes, is_member=True)


def reader_never_finds_the_coordinator(causes: Causes) -> Sighting | None:
    """As above, of a consumer that assigns partitions to itself."""
    return _never_finds_the_coordinator(causes, is_member=False)


@reads("rejoin_requested", "join_sent", "generation_joined", "heartbeat_failed", source=(CLIENT_LOG,))
def polls_and_does_not_join(causes: Causes) -> Sighting | None:
    """A consumer of Java was asked to join, did not, and was thrown out though it polled."""
    found = []
    for events in _by_client(causes.history):
        asked: ObservedEvent | None = None
        for each in events:
            if each.event == "rejoin_requested" and "already rebalancing" in (each.reason or ""):
                asked = asked or each
            elif each.event == "membership_reset" and asked is not None:
                if "UNKNOWN_MEMBER_ID" in (each.reason or "") and each.at_ms - asked.at_ms >= LONG_MS:
                    found += [asked, each]
                asked = None
            elif each.event in ("join_sent", "generation_joined", "poll_timeout_exceeded"):
                asked = None
    return of_lines(found, 2)


def repeats_the_commit_before_it_joins(causes: Causes) -> Sighting | None:
    """Commits of a topic that is gone fail again and again, with no join between them."""
    found: list[ObservedEvent] = []
    for events in _by_client(causes.history):
        row: list[ObservedEvent] = []
        for each in events:
            if _has(each, "commit-of-unknown-topic"):
                row.append(each)
            elif each.event in ("join_sent", "generation_joined"):
                found += row if len(row) >= REPEATS else []
                row = []
        found += row if len(row) >= REPEATS else []
    return of_lines(found)


@reads("partitions_assigned", "partitions_revoked", columns=("software",), source=(CLIENT_LOG,))
def moved_within_a_generation(causes: Causes) -> Sighting | None:
    """One consumer of Java gave up a partition in the generation in which another one got it."""
    given_up: dict[tuple[int, str, int], ObservedEvent] = {}
    got: dict[tuple[int, str, int], ObservedEvent] = {}
    for each in causes.history.events:
        if each.source != CLIENT_LOG or each.generation is None or each.generation < 0 or (each.more or {})["software"]:
            continue
        if each.event in ("partitions_revoked", "partitions_assigned"):
            table = given_up if each.event == "partitions_revoked" else got
            for one in each.partitions or ():
                table.setdefault((each.generation, one["topic"], one["partition"]), each)
    found = [
        pair
        for at, after in got.items()
        if (before := given_up.get(at)) is not None
        and before.member_id != after.member_id
        and abs(before.at_ms - after.at_ms) <= LONG_MS
        for pair in (before, after)
    ]
    once = {id(each): each for each in found}
    return of_lines(sorted(once.values(), key=lambda each: each.at_ms), 2)


@reads("poll_timeout_exceeded", source=(CLIENT_LOG,))
def fatal_after_a_late_poll(causes: Causes) -> Sighting | None:
    """A member of the consumer protocol did not poll in time, and its next heartbeat was an invalid request."""
    found = []
    for events in _by_client(causes.history):
        late = [each.at_ms for each in events if each.event == "poll_timeout_exceeded"]
        signs = (each for each in events if _has(each, "heartbeat-invalid-request"))
        found += [each for each in signs if any(0 <= each.at_ms - at_ms <= LONG_MS for at_ms in late)]
    return of_lines(found)


def starving_heartbeats(causes: Causes) -> Sighting | None:
    """kafka-python's session expired, and the coordinator did not know the member any more."""
    found = []
    for events in _by_client(causes.history):
        expired = [each for each in events if _has(each, "python-session-expired")]
        for each in events:
            if _has(each, "python-not-recognized"):
                near = [one for one in expired if abs(one.at_ms - each.at_ms) <= NEAR_MS]
                found += [near[-1], each] if near else []
    return of_lines(found, 2)


@reads("join_sent", "heartbeat_failed", source=(CLIENT_LOG,))
def goes_on_after_a_refused_commit(causes: Causes) -> Sighting | None:
    """franz-go's commit was refused as of no member, and only a later heartbeat made the client join again."""
    found = []
    for events in _by_client(causes.history):
        refused: ObservedEvent | None = None
        told_at_ms = -NEAR_MS - 1
        for each in events:
            if _has(each, "franz-commit-of-no-member"):
                if refused is None and each.at_ms - told_at_ms > NEAR_MS:
                    refused = each
            elif each.event == "heartbeat_failed":
                if refused is not None and each.at_ms - refused.at_ms >= ZOMBIE_MS:
                    found += [refused, each]
                refused, told_at_ms = None, each.at_ms
            elif each.event == "join_sent":
                refused, told_at_ms = None, each.at_ms
    return of_lines(found, 2)
