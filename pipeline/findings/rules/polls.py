"""Members that are too slow: between two polls, in answering a rebalance, or with partitions they own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rejoin.pipeline.findings.causes import LATE_POLL, OUTAGE, Causes
from rejoin.pipeline.findings.clients.advice import (
    after_a_late_poll,
    can_be_static,
    has_poll_limit,
    joins_with,
    late_setting,
    late_value,
    limit_by_default,
    rebalance_timeout,
    session_timeout,
    shortest_already,
)
from rejoin.pipeline.findings.clients.settings import SMALLER_BATCHES
from rejoin.pipeline.findings.clients.table import POLL_INTERVAL
from rejoin.pipeline.findings.finding import HIGH, LONGER, LOW, MEDIUM, SHORTER, Finding, severity_of
from rejoin.pipeline.findings.formatting import at_least, count, names, period, span, spans, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import (
    MemberSession,
    ObservedEvent,
    ObservedRebalance,
    OwnedPartition,
    all_exact,
)
from rejoin.pipeline.findings.phrases import first, last, probably, share, stood_still, when
from rejoin.pipeline.findings.reads import reads
from rejoin.pipeline.tables.groups.client_metrics import is_measured_by
from rejoin.pipeline.vocabulary import CLIENT_LOG, is_untimed

HELD_UP_MS: Final = 6_000
"""A join phase of this length is long: members learn of it with their next heartbeat, after 3 s by default."""
ALONE: Final = 0.8
"""The slowest member came after this share of the join phase: it is the one that all others waited for."""
AGAIN: Final = 3
"""A poll that is missed so often is no accident."""
LOG_GOES_ON_MS: Final = 300_000
"""A log that ends sooner after a late poll does not show that the consumer stayed away: Java's limit by default."""
MARGIN: Final = 1.2


@reads("commit_refused")
@reads("client_metrics_reported", columns=("poll_interval_max_ms",), of_all_groups=True)
@reads("join_sent", "generation_joined", columns=("software",), source=(CLIENT_LOG,))
def max_poll_exceeded(causes: Causes) -> Iterator[Finding]:
    """A consumer did not poll within max.poll.interval.ms: its own heartbeat thread leaves the group. The coordinator
    knows that only from the client's reason (KIP-800) or from a process that left and went on, else the consumer's own
    journal has it."""
    history = causes.history
    ended = [session for session in history.sessions if history.left_late(session)]
    timed_out = history.late_poll_events
    if not ended and not timed_out:
        return
    said = {event.member_id for event in timed_out}
    ended = [session for session in ended if session.member_id not in said]
    late = _LatePolls(causes, ended, timed_out)
    caused, cost, limit = late.caused, history.cost_s(late.caused), late.limit
    moments = [event.at_ms for event in timed_out]
    moments += [session.ended_at_ms for session in ended if session.ended_at_ms is not None]
    number = len(ended) + len(timed_out)
    exact = all_exact(caused) and all_exact(ended) and all_exact(timed_out)
    setting = late_setting(history)
    bound = f"{setting} ({span(limit)})" if limit else f"{setting}{limit_by_default(history)}"
    above = late_value(history, at_least(late.longest * MARGIN)) if late.longest else ""
    raised = f", or raise {setting} above {above}" if above else ""
    polled = "poll" if has_poll_limit(history) else "join again"
    also = (
        " That is also the rebalance timeout: for so long the group waits for a consumer that is stuck."
        if setting == rebalance_timeout(history) == POLL_INTERVAL and not history.is_share_group
        else ""
    )
    began = f" {share(history, caused)} began through it." if caused else ""
    yield Finding(
        "max-poll-exceeded",
        f"{probably(all_exact(timed_out))}{names(late.clients)} did not {polled} in time, {times(number)}",
        f"{times(number).capitalize()} a consumer did not {polled} within {bound} and {_went(ended, timed_out)} "
        f"{period(min(moments), max(moments)) if moments else ''} ({names(late.clients)}).{late.came_back()}"
        f"{late.as_measured()} Its heartbeats went on, so the session timeout is not the problem.{began}"
        f"{late.refused_commits()}{stood_still(history, cost)}",
        cost,
        min(moments, default=first(caused)),
        max([*moments, *([last(caused) or 0] if caused else [])], default=None),
        setting=setting,
        advice=f"Make one poll's worth of work shorter: {SMALLER_BATCHES}, or a timeout for what the handler waits "
        f"for{raised}.{also}{after_a_late_poll(history)}",
        numbers={
            "times": number,
            "consumers": len(late.clients),
            "rebalances": len(caused),
            "rebalances_in_all": len(history.rebalances),
            "commits_refused": len(late.refused),
            "consumer_seconds": cost,
        }
        | late.lengths(),
        members=late.clients,
        rebalances=[each.rebalance_id for each in caused],
        evidence=[event.as_evidence() for event in [*timed_out, *late.refused, *late.measured]],
        exact=exact,
        # Again and again: the group makes no progress, whatever the other members do.
        severity=MEDIUM if severity_of(cost) == LOW and number >= AGAIN else None,
        changes={setting: LONGER} if raised else {},
    )


def _went(ended: Sequence[MemberSession], timed_out: Sequence[ObservedEvent]) -> str:
    removed = any(session.end == "did-not-rejoin" for session in ended)
    instances = [*(each.group_instance_id for each in ended), *(each.group_instance_id for each in timed_out)]
    if all(instances):
        # Kafka: KIP-345. A static member sends no LeaveGroup.
        is_only_removed = removed and not timed_out
        return "was removed" if is_only_removed else "stopped its heartbeats (a static member does not leave)"
    return "left or was removed from the group" if removed else "left the group"


class _LatePolls:
    """The consumers that polled too late, and what came of it."""

    def __init__(self, causes: Causes, ended: Sequence[MemberSession], timed_out: Sequence[ObservedEvent]) -> None:
        history = self.history = causes.history
        self.own_words = [event for event in timed_out if event.source == CLIENT_LOG]
        who = [history.says(event) for event in timed_out]
        self.clients = list(dict.fromkeys([*who, *(history.name_of(session) for session in ended)]))
        gone = {session.member_id for session in ended} | {event.member_id for event in timed_out}
        back = [each for each in causes.late_polls if each.exact or each.same_process is True]
        self.away = [each.away_ms for each in back if each.away_ms > 0 and not history.is_untimed]
        limits = [event.timeout_ms for event in timed_out if event.timeout_ms]
        limits += [session.rebalance_timeout_ms for session in ended if session.rebalance_timeout_ms]
        self.limit = max(limits, default=0)
        self.longest = self.limit + max(self.away) if self.limit and self.away else 0
        """The longest batch, where both are known."""
        self.caused = causes.begun_by(LATE_POLL)
        self.refused = [
            event for event in history.events if event.event == "commit_refused" and event.member_id in gone
        ]

        clients = {each.client_id for each in ended} | {each.client_id for each in timed_out}
        reports = [
            each
            for each in history.events
            if each.event == "client_metrics_reported" and is_measured_by(each, gone, clients)
        ]
        self.measured_ms = max((_measured_ms(each) for each in reports), default=0)
        """The longest time between two polls, as one of the consumers measured it; 0 where that is within the limit."""
        if self.measured_ms <= self.limit:
            self.measured_ms = 0
        self.measured = [each for each in reports if self.measured_ms and _measured_ms(each) == self.measured_ms][:1]
        """The report that has it."""

    def lengths(self) -> dict[str, int]:
        """The numbers that are known. How long the batch was follows from the first two."""
        found = {
            "max_poll_interval_ms": self.limit,
            "longest_batch_ms": self.longest,
            "measured_poll_ms": self.measured_ms,
        }
        return {name: value for name, value in found.items() if value}

    def as_measured(self) -> str:
        if not self.measured:
            return ""
        return f" Its longest poll took {span(self.measured_ms)}, as the client itself measured."

    def came_back(self) -> str:
        they = "It" if len(self.clients) == 1 else "They"
        if not self.away and self.own_words:
            return self._by_own_words(they)
        if not self.away and not self.history.all_joins_are_reported:
            return f" Whether {they.lower()} came back this source does not say."
        if not self.away:
            return f" {they} did not come back."
        batch = f", so one batch took up to {span(self.longest)}." if self.longest else "."
        return f" {they} polled again {spans(self.away)} after that{batch}"

    def _by_own_words(self, they: str) -> str:
        """As far as the consumers' own logs go on after the late poll."""
        last_one = self.own_words[-1]
        later = [
            each
            for each in self.history.events
            if each.event in ("join_sent", "generation_joined")
            and each.client_id == last_one.client_id
            and each.at_ms > last_one.at_ms
        ]
        untimed = is_untimed(last_one.at_ms)
        back_ms = later[0].at_ms - last_one.at_ms if later else 0
        after = "after that" if untimed else f"{span(back_ms)} after that"
        if any(each.event == "generation_joined" for each in later):
            batch = f", so one batch took up to {span(self.limit + back_ms)}" if self.limit and not untimed else ""
            return f" {they} joined again {after}{batch}."
        if later:
            return f" {they} asked to join again {after}, where the log ends."
        if not untimed and self.history.end_ms - last_one.at_ms <= max(self.limit, LOG_GOES_ON_MS):
            return " The log ends too soon to say whether it came back."
        # A log may be an excerpt: that a line is missing shows nothing.
        return f" The log does not show that {they.lower()} came back."

    def refused_commits(self) -> str:
        if not self.refused:
            return ""
        were = "was" if len(self.refused) == 1 else "were"
        return (
            f" {count(len(self.refused), 'commit')} of theirs {were} refused afterwards: those records are processed "
            "again."
        )


def _measured_ms(report: ObservedEvent) -> int:
    return (report.more or {}).get("poll_interval_max_ms") or 0


@dataclass(frozen=True, slots=True)
class _Wait:
    """A rebalance whose join phase waited for one member."""

    rebalance: ObservedRebalance
    who: str
    how: str
    """late | poll-timeout | expired | never."""
    ms: int


def join_held_up(causes: Causes) -> Iterator[Finding]:
    """The join phase ends when the last member has sent JoinGroup or has gone, or the rebalance timeout is over: one
    member that is busy, stuck or dead makes all others wait."""
    history = causes.history
    if history.is_of_one_consumer:
        # Which member the others waited for is not in the log of one of them.
        return
    # After an outage a group waits for ids whose clients have new ones.
    of_outages = {each.rebalance_id for each in causes.begun_by(OUTAGE)}
    later = [each for each in history.later if each.rebalance_id not in of_outages]
    waits = [wait for each in later if (wait := _wait(history, each)) is not None]
    if not waits:
        return
    rebalances = [each.rebalance for each in waits]
    hows = Counter(each.how for each in waits)
    clients = [who for who, _ in Counter(each.who for each in waits).most_common()]
    lengths = [each.ms for each in waits]
    waited = sum(each.members_waiting_ms or 0 for each in rebalances)
    exact, cost = all_exact(rebalances), history.cost_s(rebalances)
    ways = names(f"{times(number)} it {_HOW[how]}" for how, number in hows.most_common())
    dead = hows.most_common(1)[0][0] == "expired"
    setting = session_timeout(history) if dead else rebalance_timeout(history)
    shortest = _shortest(history, waits) if dead else ""
    yield Finding(
        "join-held-up",
        f"{probably(exact)}{count(len(waits), 'rebalance')} waited {spans(lengths)} for {names(clients, 2)}",
        f"In {share(history, rebalances)} {when(rebalances)} the join phase waited {spans(lengths)} for one member "
        f"({names(clients)}): {ways}."
        + (f" The others waited {span(waited)}, added up." if waited else "")
        + stood_still(history, cost),
        cost,
        first(rebalances),
        last(rebalances),
        setting=None if shortest else setting,
        advice=_dead(clients, history, shortest) if dead else _busy(history, setting) + _limit(history, waits),
        numbers={
            "held_up": len(waits),
            "rebalances_in_all": len(history.rebalances),
            "longest_ms": max(lengths),
            "members_waited_ms": waited,
            "consumer_seconds": cost,
        },
        members=clients,
        rebalances=[each.rebalance_id for each in rebalances],
        exact=exact,
        changes={} if shortest else {setting: SHORTER},
    )


def _shortest(history: GroupHistory, waits: Sequence[_Wait]) -> str:
    """A sentence where the sessions that the group waited for cannot be shorter."""
    gone = {member_id for each in waits for member_id in each.rebalance.evicted or ()}
    timeouts = (session.session_timeout_ms for id_ in sorted(gone) if (session := history.by_member.get(id_)))
    return shortest_already(history, (each for each in timeouts if each))


def _dead(clients: Sequence[str], history: GroupHistory, shortest: str) -> str:
    static = {session.group_instance_id for session in history.sessions if session.group_instance_id}
    keep = ", or set group.instance.id, so that a restarted one takes its old place" if can_be_static(history) else ""
    ways = f" Let consumers close, so that they leave{keep}"
    leave = "" if static.issuperset(clients) else ways
    waits = f"The coordinator waits for a member that is dead until its session ends.{leave}"
    if shortest:
        return f"{waits}{'.' if leave else ''} {shortest}"
    setting = session_timeout(history)
    return (
        f"{waits}{' A' if not leave else '; a'} shorter {setting} shortens the wait, at the price of more members "
        "that are removed for a pause."
    )


def _busy(history: GroupHistory, setting: str) -> str:
    return (
        f"{joins_with(history)}: make the work shorter ({SMALLER_BATCHES}), or lower {setting}, which is how long the "
        "coordinator waits at the most."
    )


def _limit(history: GroupHistory, waits: Sequence[_Wait]) -> str:
    timeouts = [
        session.rebalance_timeout_ms
        for each in waits
        if (session := history.by_member.get(each.rebalance.slowest_member_id or "")) and session.rebalance_timeout_ms
    ]
    return f" It is {span(max(timeouts))} now." if timeouts else ""


_HOW: Final = {
    "late": "came late",
    "poll-timeout": f"left at last, as it had not polled for {POLL_INTERVAL}",
    "expired": "was dead, until its session ended",
    "never": "never came, until the rebalance timeout",
}


def _wait(history: GroupHistory, rebalance: ObservedRebalance) -> _Wait | None:
    join_ms = rebalance.join_ms
    if join_ms is None and rebalance.joined_at_ms is not None:
        join_ms = rebalance.joined_at_ms - rebalance.prepared_at_ms
    if join_ms is None or join_ms < HELD_UP_MS:
        return None
    ended = rebalance.prepared_at_ms + join_ms
    went = [
        session
        for member_id in [*(rebalance.evicted or ()), *(rebalance.left or ())]
        if (session := history.by_member.get(member_id)) is not None
        and session.ended_at_ms is not None
        and session.ended_at_ms > rebalance.prepared_at_ms
        and abs(session.ended_at_ms - ended) <= (1 - ALONE) * join_ms
    ]
    if went:
        last_one = max(went, key=lambda session: (session.ended_at_ms or 0, session.member_id))
        if last_one.left_by_poll_timeout:
            how = "poll-timeout"
        elif last_one.end == "session-expiry":
            how = "expired"
        elif last_one.end == "did-not-rejoin":
            how = "never"
        else:
            return None
        return _Wait(rebalance, history.name_of(last_one), how, (last_one.ended_at_ms or 0) - rebalance.prepared_at_ms)
    if rebalance.slowest_member_id and (rebalance.slowest_ms or 0) >= max(HELD_UP_MS, ALONE * join_ms):
        return _Wait(rebalance, history.who(rebalance.slowest_member_id), "late", rebalance.slowest_ms or 0)
    return None


# -- owned, and not read

STANDS_MS: Final = 60_000
"""A committed offset that stands for less is nothing to speak of: consumers commit every few seconds."""
_SNAPSHOTS: Final = 3
_LONGER_THAN_USUAL: Final = 3


def owned_not_moving(causes: Causes) -> Iterator[Finding]:
    """A member owns partitions with records to read, and their committed offsets do not move."""
    history = causes.history
    stuck: dict[str, list[OwnedPartition]] = defaultdict(list)
    moving: dict[str, int] = defaultdict(int)
    for each in history.progress:
        if _stands(each, _usual_ms(history.progress)):
            stuck[each.member_id].append(each)
        elif each.moves:
            moving[each.member_id] += 1
    for member_id, rows in stuck.items():
        yield _not_moving(history, rows, moving[member_id])


def _usual_ms(rows: Sequence[OwnedPartition]) -> int:
    """The longest time between two commits anywhere in the group, while it went on."""
    return max((each.longest_move_ms for each in rows), default=0)


def _stands(each: OwnedPartition, usual_ms: int) -> bool:
    if each.committed is None or not each.lag or each.lag_then == 0 or each.snapshots < _SNAPSHOTS:
        return False
    # One record behind may be the marker of a transaction, which no consumer reads.
    to_read = bool(each.written) or each.lag > 1
    return to_read and each.at_ms - each.since_ms >= max(STANDS_MS, _LONGER_THAN_USUAL * usual_ms)


def _not_moving(history: GroupHistory, rows: Sequence[OwnedPartition], moving: int) -> Finding:
    first, last = min(each.since_ms for each in rows), max(each.at_ms for each in rows)
    setting = late_setting(history)
    owner, lag = rows[0].owner, sum(each.lag or 0 for each in rows)
    partitions = names(f"{each.topic}-{each.partition}" for each in rows)
    written = sum(each.written or 0 for each in rows)
    if moving:
        why = (
            f"Its other partitions move ({moving}), so the consumer is alive: a record that its handler cannot "
            "process, a partition that the application has paused, or a transaction that is open, "
            "if it reads committed records only (isolation.level)."
        )
        advice = (
            f"Look at the record at offset {rows[0].committed} of {rows[0].topic}-{rows[0].partition}, and at what "
            f"{owner} logs about it."
        )
    else:
        why = (
            "None of its partitions moves, and its heartbeats go on: a handler that hangs, or a consumer that does not "
            "commit."
        )
        advice = (
            f"Take a thread dump of {owner} and look at what its handler waits for. {setting} is how long the group "
            "waits before it takes the partitions away."
        )
    return Finding(
        "owned-not-moving",
        f"{owner} owns {count(len(rows), 'partition')} and reads none of "
        f"{'it' if len(rows) == 1 else 'them'}: lag {lag:,}",
        f"{owner} of {history.group_id} is assigned {partitions}, and committed nothing there for {span(last - first)} "
        f"({period(first, last)}), with {count(lag, 'record')} to read, {written:,} of them written meanwhile. {why}",
        (last - first) / 1_000,
        first,
        last,
        setting=None if moving else setting,
        advice=advice,
        numbers={"partitions": len(rows), "lag": lag, "written": written, "stands_ms": last - first},
        members=[rows[0].member_id],
        exact=False,
        severity=MEDIUM if moving else HIGH,
    )
