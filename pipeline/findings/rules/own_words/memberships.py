"""Evidence of single members, from the logs of consumers without a known rebalance.

An engineer on call often has only part of one consumer's log. These rules speak only of that consumer, and only where
the rules about whole rebalances have no input.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from rejoin.pipeline.findings.causes import MISSED_SESSION, Causes
from rejoin.pipeline.findings.clients.advice import (
    heartbeats_stop,
    joins_with,
    raise_session,
    rebalance_timeout,
    session_timeout,
)
from rejoin.pipeline.findings.clients.table import LIBRDKAFKA
from rejoin.pipeline.findings.finding import LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import names, period, span, spans, times
from rejoin.pipeline.findings.history import OF_JOINS, GroupHistory
from rejoin.pipeline.findings.observed_rows import ObservedEvent, all_exact
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.findings.rules.own_words.events import (
    AGAIN,
    ONE_MS,
    consumers_of,
    distinct,
    finding_of,
    its_group,
    rhythm,
    said_by,
)
from rejoin.pipeline.findings.rules.own_words.refused import THROWN_OUT, join_refused, refusal_of
from rejoin.pipeline.vocabulary import CLIENT_LOG, SESSION_ENDED, is_untimed

NEAR_MS: Final = 5_000
"""A consumer has noticed within this that it is no member any more."""
OUTAGE_MS: Final = 60_000
"""Sessions that end so soon after the coordinator was away ended for it."""
SAME_SESSION_MS: Final = 10_000
"""Signs that are closer together, with no join between them, are of one session."""
HELD_UP_MS: Final = 6_000
"""Members learn of a rebalance with their next heartbeat, after 3 s by default: joins that take longer wait for one."""
_SAID: Final = ("problem", "software")

_LATE: Final = re.compile(r"max\.?[_ ]?poll|poll timeout|poll interval", re.IGNORECASE)
_OF_TROUBLE: Final = (
    *("heartbeat_failed", "coordinator_lost", "poll_timeout_exceeded", "commit_refused", "fenced"),
    *("topic_unavailable", "assigned_nothing"),
)
_CANCELED: Final = "context canceled"
"""Words of clients in Go for a call that they gave up themselves, as they close."""
_PLANNED: Final = {
    "probing rebalance": ", as Kafka Streams had planned: a next probing rebalance asks whether warm-up tasks have "
    "caught up, every 10 minutes by default, until they have.",
    "followup rebalance": ", as Kafka Streams had planned: tasks move in two steps, given up in the first rebalance "
    "and taken over in the followup rebalance.",
}
"""Reasons for rebalances that a group plans by itself."""
_USUAL: Final = ("group_left", "partitions_revoked")
"""Steps that say nothing of a consumer that has joined in this log."""
_STEPS: Final = {
    "subscribing": (
        "had not joined its group",
        "It subscribed, and no line shows that the group took it in: it looks for the coordinator, or waits for the "
        "answer to its first join, which comes when all other members have joined.",
    ),
    "join_sent": (
        "had asked to join its group",
        "The coordinator answers when all other members have joined, or when the rebalance timeout is over.",
    ),
    "group_left": ("left its group", "Why it left is not in this log."),
    "partitions_revoked": (
        "gave up partitions",
        "Whether a rebalance took them or its session ended is not in this log.",
    ),
    "partitions_assigned": (),
    "generation_joined": (),
    "group_synced": (),
}
"""Steps of a consumer into its group and out of it: what it had done where its log ends, and what that means; nothing
is to be said of a consumer that had joined."""


@reads(
    "heartbeat_failed",
    "coordinator_lost",
    "generation_joined",
    "join_sent",
    columns=_SAID,
    source=(CLIENT_LOG,),
)
def session_expired(causes: Causes) -> Iterator[Finding]:
    """A consumer's session ended while its process ran on: the coordinator does not know the member any more, or the
    consumer itself had no answer for a whole session."""
    history = causes.history
    if not history.is_from_consumers:
        return
    ended = [
        each
        for each in history.events
        if each.event in ("heartbeat_failed", "coordinator_lost") and _is_end(each) and not _is_explained(causes, each)
    ]
    if not ended:
        return
    once = _once_each(history, ended)
    who = consumers_of(history, once)
    without_answer = [each for each in once if (each.reason or "").startswith(SESSION_ENDED)]
    how = (
        "no heartbeat was answered for a whole session"
        if len(without_answer) == len(once)
        else "the coordinator did not know the member any more"
    )
    back = _came_back(history, once[-1])
    again = (
        "Records that it had stay locked for it until their locks run out."
        if history.is_share_group
        else "What had not been committed by then is processed a second time."
    )
    yield Finding(
        "session-expired",
        f"{names(who)} lost its session, {times(len(once))}" if len(who) == 1 else f"{names(who)} lost their sessions",
        f"{capital(times(len(once)))} the session of {names(who)} ended while the process ran on, "
        f"{period(once[0].at_ms, once[-1].at_ms)}{rhythm(once)}: {how}.{back} {again}",
        0.0,
        once[0].at_ms,
        once[-1].at_ms,
        setting=session_timeout(history),
        advice=f"{heartbeats_stop(history)} {raise_session(history)}",
        numbers={"times": len(once), "members": len(who)},
        members=who,
        rebalances=[each.rebalance_id for each in causes.begun_by(MISSED_SESSION, of=causes.thrown_out)],
        evidence=[each.as_evidence() for each in ended],
        exact=all_exact(once),
        severity=MEDIUM if len(once) >= AGAIN else LOW,
    )


def _once_each(history: GroupHistory, ended: Sequence[ObservedEvent]) -> list[ObservedEvent]:
    """The first sign of the end of each session: a client finds out by an answer that is missing, and by a refusal."""
    joined = [(each.node, each.client_id, each.at_ms) for each in history.events if each.event == "generation_joined"]
    last: dict[tuple[str | None, str | None], int] = {}
    found = []
    for event in ended:
        who = (event.node, event.client_id)
        before = last.get(who, event.at_ms - SAME_SESSION_MS - 1)
        is_new = any((node, client) == who and before < at_ms <= event.at_ms for node, client, at_ms in joined)
        if is_new or event.at_ms - before > SAME_SESSION_MS:
            found.append(event)
        last[who] = event.at_ms
    return found


def _is_explained(causes: Causes, event: ObservedEvent) -> bool:
    """Whether the end of a session belongs to what other rules speak of, in logs that show whole rebalances."""
    history = causes.history
    if history.has_only_own_words:
        return False
    others = (*causes.late_polls, *causes.killed, *causes.missed_sessions, *causes.restarted)
    of_member = (each for each in others if event.member_id in (each.before.member_id, each.after.member_id))
    if any(each.went_at_ms - NEAR_MS <= event.at_ms <= each.back_at_ms + NEAR_MS for each in of_member):
        return True
    if any(each.from_ms - NEAR_MS <= event.at_ms <= each.to_ms + OUTAGE_MS for each in history.outages):
        return True
    thrown_out = {each.before.member_id for each in causes.thrown_out}
    return not history.is_of_one_consumer and event.member_id not in thrown_out


@reads("coordinator_lost", "coordinator_found", columns=_SAID, source=(CLIENT_LOG,))
def coordinator_lost_again(causes: Causes) -> Iterator[Finding]:
    """A consumer finds its coordinator and loses it again."""
    history = causes.history
    if not history.has_only_own_words:
        return
    lost = distinct(
        [each for each in history.events if each.event == "coordinator_lost" and not _is_end(each)], within_ms=50
    )
    if not lost:
        return
    who = consumers_of(history, lost)
    found = [each for each in history.events if each.event == "coordinator_found"]
    at_once = sum(any(0 <= each.at_ms - one.at_ms <= ONE_MS for one in found) for each in lost)
    often = len(lost) >= AGAIN or at_once > 1
    yield finding_of(
        "coordinator-lost-again",
        f"{names(who)} lost the coordinator, {times(len(lost))}",
        f"{capital(times(len(lost)))} {names(who)} lost the coordinator of {its_group(history)}, "
        f"{period(lost[0].at_ms, lost[-1].at_ms)}{rhythm(lost)}."
        + (" A coordinator that is found and lost at once answers, and does not serve the group." if often else ""),
        who,
        lost,
        advice="Look at the broker that clients are sent to: its log of that time, whether it leads the partition of "
        "__consumer_offsets, whether enough replicas are in sync, and whether clients reach its advertised address."
        if often
        else "A coordinator that moves once is usual: brokers restart, and leaders move.",
        numbers={"times": len(lost), "members": len(who)},
        severity=MEDIUM if often else LOW,
    )


@reads("rejoin_requested", "heartbeat_failed", columns=_SAID, source=(CLIENT_LOG,))
@reads("generation_joined", columns=("waited_ms",), source=(CLIENT_LOG,))
@reads("subscribing", "join_sent", "group_synced", "group_left", source=(CLIENT_LOG,))
@reads("partitions_revoked", "partitions_assigned", source=(CLIENT_LOG,))
def rejoined_by_its_own_log(causes: Causes) -> Iterator[Finding]:
    """A consumer joined again: as others joined or left, or for a reason of its own, or since a join was refused."""
    history = causes.history
    asked = [each for each in history.events if each.event == "rejoin_requested" or _says_rebalancing(each)]
    refused = [(each, what) for each in asked if (what := refusal_of(each)) is not None]
    if not history.has_only_own_words:
        # Findings about rebalances cover members that were fenced or removed.
        refused = [(each, what) for each, what in refused if what not in ("fenced", "member", "moved")]
        asked = []
    if refused:
        yield join_refused(history, refused)
    long = list(_join_that_took_long(history)) if history.has_only_own_words else []
    yield from long
    others = distinct([each for each in asked if refusal_of(each) is None and not _has_own_cause(history, each)])
    if not others:
        if history.has_only_own_words and not refused and not long:
            yield from _where_the_log_ends(history)
        return
    if _is_stuck(history, others):
        yield _does_not_join(history, others)
        return
    who = consumers_of(history, others)
    reasons = list(dict.fromkeys(each.reason for each in others if each.reason))
    because = f" The reasons given: {names(reasons)}." if reasons else ""
    waits = _waits_for_assignment(history)
    known = (means for word, means in _PLANNED.items() if reasons and all(word in each for each in reasons))
    planned = next(known, "")
    why = planned or (
        ", since another member joined, left or fell silent, or since the subscription changed."
        f"{because} Which member began the rebalance is not in this log."
    )
    yield finding_of(
        "rejoined-by-its-own-log",
        f"The group rebalanced, and {names(who)} had to join again, {times(len(others))}"
        f"{', and waited for its assignment where the log ends' if waits else ''}",
        f"{capital(times(len(others)))} {names(who)} had to join {its_group(history)} again, "
        f"{period(others[0].at_ms, others[-1].at_ms)}{rhythm(others)}: the group rebalanced{why}{waits}",
        who,
        others,
        advice="Nothing is wrong: such rebalances end when all tasks are where they should be."
        if planned
        else "Give the logs of all members, or the server.log of the group's coordinator: they say who joined, left or "
        "fell silent.",
        numbers={"times": len(others), "members": len(who)},
        severity=LOW,
    )


def _says_rebalancing(event: ObservedEvent) -> bool:
    """Whether the answer to a heartbeat says that the group rebalances."""
    return event.event == "heartbeat_failed" and not _is_end(event) and event.error == "REBALANCE_IN_PROGRESS"


def _has_own_cause(history: GroupHistory, event: ObservedEvent) -> bool:
    """Whether a consumer joins again since its session ended or it had not polled in time: other rules speak of it."""
    reason = event.reason or ""
    return reason.startswith(SESSION_ENDED) or (
        _LATE.search(reason) is not None
        and any((late.node, late.client_id) == (event.node, event.client_id) for late in history.late_poll_events)
    )


def _where_the_log_ends(history: GroupHistory) -> Iterator[Finding]:
    """A consumer's last step into its group, or out of it, where a log says nothing else."""
    if any(each.event in _OF_TROUBLE and _CANCELED not in said_by(each) for each in history.events):
        return
    last: dict[tuple[str | None, str | None], ObservedEvent] = {}
    for event in history.events:
        if event.event in _STEPS and not (event.event == "partitions_revoked" and event.partitions == []):
            last[event.node, event.client_id] = event
    joined = any(each.event == "generation_joined" for each in history.events)
    found = [each for each in last.values() if _STEPS[each.event] and not (joined and each.event in _USUAL)]
    if not found:
        return
    event = found[-1]
    did, means = _STEPS[event.event]
    who = consumers_of(history, found)
    yield finding_of(
        "rejoined-by-its-own-log",
        f"{names(who)} {did}, and the log ends",
        f"The last line about {its_group(history)} is {period(event.at_ms, event.at_ms)}: {names(who)} {did}. {means}",
        who,
        found,
        advice="Give more of this log, the logs of the other members, or the server.log of the group's coordinator.",
        numbers={"times": len(found), "members": len(who)},
        severity=LOW,
    )


def _waits_for_assignment(history: GroupHistory) -> str:
    """A sentence about consumers whose log ends between the join and the assignment."""
    last: dict[tuple[str | None, str | None], ObservedEvent] = {}
    for event in history.events:
        if event.event in _STEPS and event.event != "partitions_revoked":
            last[event.node, event.client_id] = event
    waiting = [each for each in last.values() if each.event == "generation_joined" and _logs_assignments(each)]
    if not waiting:
        return ""
    return (
        f" Where the log ends, {names(consumers_of(history, waiting))} had joined and waited for its assignment, which "
        "the group's leader computes; if it waits for long, look at the log of the leader."
    )


def _logs_assignments(event: ObservedEvent) -> bool:
    """Whether a client that logs its joins in this way logs its assignments, too."""
    return (event.more or {}).get("software") == LIBRDKAFKA


def _is_stuck(history: GroupHistory, asked: Sequence[ObservedEvent]) -> bool:
    """Whether one consumer did not join, though heartbeat after heartbeat was answered that the group rebalances."""
    gaps = [after.at_ms - before.at_ms for before, after in itertools.pairwise(asked)]
    joins = [each.at_ms for each in history.events if each.event in OF_JOINS]
    return (
        len(asked) >= AGAIN
        and not is_untimed(asked[0].at_ms)
        and max(gaps) <= NEAR_MS
        and len({(each.node, each.client_id) for each in asked}) == 1
        and not any(asked[0].at_ms < at_ms <= asked[-1].at_ms for at_ms in joins)
    )


def _does_not_join(history: GroupHistory, asked: Sequence[ObservedEvent]) -> Finding:
    who, lasted = consumers_of(history, asked), span(asked[-1].at_ms - asked[0].at_ms)
    return finding_of(
        "rejoined-by-its-own-log",
        f"{names(who)} had to join again and did not for {lasted}",
        f"{capital(times(len(asked)))} {period(asked[0].at_ms, asked[-1].at_ms)} a heartbeat of {names(who)} was "
        f"answered that {its_group(history)} rebalances, and this log has no join after it. A consumer "
        "joins within poll(): it did not poll for so long, and all other members waited for it.",
        who,
        asked,
        setting=rebalance_timeout(history),
        advice="Look at what the application does between two polls: a handler that takes long, or a consumer that "
        f"subscribes and is never polled. {rebalance_timeout(history)} is how long the others wait for it.",
        numbers={"times": len(asked)},
        severity=MEDIUM,
    )


def _join_that_took_long(history: GroupHistory) -> Iterator[Finding]:
    """A consumer had asked to join, and waited for other members."""
    joined = [each for each in history.events if each.event == "generation_joined" and _waited_ms(each) >= HELD_UP_MS]
    if not joined:
        return
    waits = [_waited_ms(each) for each in joined]
    who = consumers_of(history, joined)
    yield finding_of(
        "rejoined-by-its-own-log",
        f"{names(who)} waited {spans(waits)} for other members to join",
        f"{capital(times(len(joined)))} {names(who)} had asked to join {its_group(history)} and waited for "
        f"{spans(waits)}, {period(joined[0].at_ms, joined[-1].at_ms)}: the coordinator answers when the "
        "last member has joined. Which member was late is not in this log.",
        who,
        joined,
        setting=rebalance_timeout(history),
        advice=f"{joins_with(history)}: look for the slow member in the "
        f"logs of the others, or in the server.log of the coordinator. {rebalance_timeout(history)} is the longest "
        "wait.",
        numbers={"times": len(joined), "longest_ms": max(waits)},
        severity=LOW,
    )


def _waited_ms(event: ObservedEvent) -> int:
    return 0 if is_untimed(event.at_ms) else int((event.more or {}).get("waited_ms") or 0)


def _is_end(event: ObservedEvent) -> bool:
    """Whether an event says that the session had ended."""
    return (event.reason or "").startswith(SESSION_ENDED) or event.error in THROWN_OUT


def _came_back(history: GroupHistory, event: ObservedEvent) -> str:
    """A sentence about the consumer's next join, where its log has one."""
    later = [
        each.at_ms
        for each in history.events
        if each.event == "generation_joined" and each.at_ms > event.at_ms and each.client_id == event.client_id
    ]
    if later:
        after = "" if is_untimed(event.at_ms) else f"{span(min(later) - event.at_ms)} "
        return f" It was a member again {after}after the last time."
    return ""
