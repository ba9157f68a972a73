"""Commits that were refused, commits from outside the group, and offsets that expired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rejoin.pipeline.findings.causes import Causes
from rejoin.pipeline.findings.clients.advice import late_setting
from rejoin.pipeline.findings.clients.settings import SMALLER_BATCHES
from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, times
from rejoin.pipeline.findings.history import GroupHistory
from rejoin.pipeline.findings.observed_rows import COMMIT_APIS, MINUTE_MS, ObservedEvent, all_exact
from rejoin.pipeline.findings.phrases import capital, probably
from rejoin.pipeline.findings.reads import AnyBut, reads
from rejoin.pipeline.vocabulary import CLIENT_LOG, REQUEST

REFUSED: Final = 3
"""A commit that a rebalance overtook is usual; from so many on it is a finding."""
OUTSIDE: Final = 2
"""Commits of a client that has no member id, while the group has members."""
BEFORE_MS: Final = 10 * 60_000
"""A refused commit has to do with the rebalance before it, if that began within this."""

OFTEN: Final = 300
"""Commits of each member within a minute: from five a second on it commits by record, or by tiny polls."""
STORM_MINUTES: Final = 2
"""A backlog that is worked off may make one busy minute."""
RECORD_BYTES: Final = 120
"""About what a committed offset takes in __consumer_offsets, beside the group id: batch, key, value and topic."""
MUCH_BYTES: Final = 1e9
"""Growth of the log within an hour."""

WHY: Final = {
    "UNKNOWN_MEMBER_ID": "the member had been removed before it committed",
    "ILLEGAL_GENERATION": "the group had rebalanced without it meanwhile",
    "REBALANCE_IN_PROGRESS": "it committed after it had joined a new rebalance",
    "FENCED_INSTANCE_ID": "another process had joined with its group.instance.id",
    "STALE_MEMBER_EPOCH": "its epoch was behind the coordinator's",
    "FENCED_MEMBER_EPOCH": "its epoch was not the coordinator's",
    "OFFSET_METADATA_TOO_LARGE": "its metadata is longer than offset.metadata.max.bytes of the broker",
    "INVALID_COMMIT_OFFSET_SIZE": "it is larger than a message of __consumer_offsets may be",
    "GROUP_AUTHORIZATION_FAILED": "it may not read the group",
    "TOPIC_AUTHORIZATION_FAILED": "it may not read the topic",
    "UNKNOWN_TOPIC_OR_PARTITION": "the topic or partition is not there",
    "INVALID_GROUP_ID": "the group id is empty",
}
"""Errors that the client has to do with; others are of a coordinator that moves, loads, or cannot write."""
LATE: Final = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH")
_SETTINGS: Final = {
    "OFFSET_METADATA_TOO_LARGE": "offset.metadata.max.bytes",
    "FENCED_INSTANCE_ID": "group.instance.id",
}


@reads("commit_refused")
@reads(REQUEST, api=COMMIT_APIS, error=AnyBut("NONE"))
def refused_commits(causes: Causes) -> Iterator[Finding]:
    """Commits came too late: what was processed since the last good one is processed again by the next owner."""
    history = causes.history
    refused = [each for each in _refusals(history) if not _is_from_outside(each)]
    if len(refused) < (1 if history.has_only_own_words else REFUSED):
        return
    errors = Counter(each.error or "" for each in refused)
    usual, _ = errors.most_common(1)[0]
    who = [name for name, _ in Counter(_who(history, each) for each in refused).most_common()]
    behind = _rebalances(history, refused)
    late = sum(errors[each] for each in LATE)
    reasons = "; ".join(f"{times(number)} {error} ({WHY[error]})" for error, number in errors.most_common())
    yield Finding(
        "refused-commits",
        f"{count(len(refused), 'commit')} of {names(who, 2)} refused: {usual}",
        f"{capital(period(refused[0].at_ms, refused[-1].at_ms))} the coordinator refused "
        f"{count(len(refused), 'commit')} of {names(who)}: {reasons}."
        + (f" Behind them are {count(len(behind), 'rebalance')}." if behind else "")
        + (" What they had processed since their last commit is processed a second time." if late else ""),
        0.0,
        refused[0].at_ms,
        refused[-1].at_ms,
        setting=_SETTINGS.get(usual, late_setting(history) if 2 * late > len(refused) else None),
        advice="Commit before a rebalance takes the partitions away: in onPartitionsRevoked, and more often ("
        f"{SMALLER_BATCHES}); find out why the member had been removed by then. Do not repeat such a commit."
        if 2 * late > len(refused)
        else "Look at the error: repeating the commit does not help.",
        numbers={"refused": len(refused), "late": late, "members": len(who), "rebalances": len(behind)},
        members=who,
        rebalances=behind,
        evidence=[each.as_evidence() for each in refused],
        exact=all_exact(refused),
        severity=MEDIUM if late else LOW,
    )


def commit_storm(causes: Causes) -> Iterator[Finding]:
    """Members commit after each record or each tiny poll: every commit is a request, and a record in the log for each
    partition."""
    history = causes.history
    busy = [each for each in history.commits if each.commits >= OFTEN * max(1, each.committers)]
    if len(busy) < STORM_MINUTES:
        return
    commits = sum(each.commits for each in busy)
    records = sum(each.commits if each.offsets is None else each.offsets for each in busy)
    peak = max(busy, key=lambda each: (each.commits, -each.minute))
    for_each = max(busy, key=lambda each: each.commits / max(1, each.committers))
    a_second = for_each.commits / max(1, for_each.committers) / 60
    size = RECORD_BYTES + len(history.group_id)
    grows = records * size / len(busy) * 60
    yield Finding(
        "commit-storm",
        f"{history.group_id} committed {peak.commits / 60:,.0f} times a second: up to {a_second:,.0f} by each member",
        f"In {count(len(busy), 'minute')} ({period(busy[0].minute * MINUTE_MS, (busy[-1].minute + 1) * MINUTE_MS)}) "
        f"members of {history.group_id} committed {OFTEN // 60} times a second or more, each: {commits:,} commits. "
        "Automatic commits every 5 s are 12 a minute. Every commit is a request that the coordinator writes "
        f"to __consumer_offsets: these made it grow by about {_bytes(grows)} an hour, which a coordinator that takes "
        "the group over reads again, unless it was compacted since.",
        0.0,
        busy[0].minute * MINUTE_MS,
        (busy[-1].minute + 1) * MINUTE_MS,
        setting="enable.auto.commit",
        advice="Commit once for each poll, or every few seconds (auto.commit.interval.ms), and not for each record; "
        "commit asynchronously in between, and synchronously when partitions are revoked and before closing. Commits "
        "do not prevent that records are processed twice, they only bound how many.",
        numbers={
            "commits": commits,
            "minutes": len(busy),
            "most_a_second": peak.commits / 60,
            "most_a_second_by_each": a_second,
            "log_bytes_an_hour": grows,
        },
        exact=all(each.offsets is not None for each in busy),
        severity=MEDIUM if grows >= MUCH_BYTES else LOW,
    )


def _bytes(number: float) -> str:
    """Bytes as a reader wants them."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number / 1e3:.3g} kB"


def assigned_and_subscribed(causes: Causes) -> Iterator[Finding]:
    """A consumer that assigns itself partitions commits under the id of a group that has members (KAFKA-15134)."""
    history = causes.history
    outside = [each for each in _refusals(history) if _is_from_outside(each)]
    if len(outside) < OUTSIDE:
        return
    clients = list(dict.fromkeys(each.client_id for each in outside if each.client_id))
    whose = f" of {names(clients)}" if clients else ""
    yield Finding(
        "assigned-and-subscribed",
        f"{count(len(outside), 'commit')}{whose} came from outside {history.group_id}: assign() and subscribe() mixed",
        f"{capital(period(outside[0].at_ms, outside[-1].at_ms))} {count(len(outside), 'commit')}{whose} had "
        f"neither member id nor generation, and were refused with UNKNOWN_MEMBER_ID as {history.group_id} has members: "
        "a process uses assign() with the group.id of consumers that use subscribe(). While the group is empty, such "
        "commits are taken, and overwrite those of its members.",
        0.0,
        outside[0].at_ms,
        outside[-1].at_ms,
        setting="group.id",
        advice="Give the process that uses assign() a group.id of its own, or let it subscribe (KAFKA-15134).",
        numbers={"refused": len(outside), "clients": len(clients)},
        members=clients,
        evidence=[each.as_evidence() for each in outside],
        exact=all_exact(outside),
        severity=MEDIUM,
    )


@reads("offsets_deleted", "group_deleted")
def expired_offsets(causes: Causes) -> Iterator[Finding]:
    """Committed offsets were forgotten: the next consumer begins where auto.offset.reset says."""
    history = causes.history
    # A group that is empty goes with its last offset; one that never committed goes as well, which is no loss.
    expired = [
        each
        for each in history.events
        if each.reason == "expired" and each.event in ("offsets_deleted", "group_deleted") and each.offset_count != 0
    ]
    came = [each for each in history.sessions if expired and (each.joined_at_ms or 0) >= expired[0].at_ms]
    known = any(each.event == "offsets_deleted" or each.offset_count for each in expired)
    if not expired or not (known or came):
        return
    after = f" {names(map(history.name_of, came))} came after that." if came else ""
    yield Finding(
        "expired-offsets",
        f"{probably(known)}offsets of {history.group_id} expired",
        f"The coordinator forgot offsets of {history.group_id} {times(len(expired))} "
        f"({period(expired[0].at_ms, expired[-1].at_ms)}), as they had not been committed for "
        f"offsets.retention.minutes.{after} Consumers without an offset begin where auto.offset.reset says: at the "
        "end, and records in between are never read, or at the beginning, and all are read again.",
        0.0,
        expired[0].at_ms,
        expired[-1].at_ms,
        setting="offsets.retention.minutes",
        advice="Raise offsets.retention.minutes (10080, seven days, by default) above the longest time for which the "
        "group may be empty, or a topic without its reader; set auto.offset.reset to what does less harm.",
        numbers={"times": len(expired), "members_after": len(came)},
        members=[history.name_of(each) for each in came],
        evidence=[each.as_evidence() for each in expired],
        exact=known and all_exact(expired),
        severity=HIGH if came else MEDIUM,
    )


def _refusals(history: GroupHistory) -> list[ObservedEvent]:
    """Refused commits that the clients have to do with, as a journal or a request log reports them."""
    return [
        each
        for each in history.events
        if each.error in WHY and (each.event == "commit_refused" or (each.event == REQUEST and each.api in COMMIT_APIS))
    ]


def _is_from_outside(commit: ObservedEvent) -> bool:
    """Whether a commit named no member. Clients' logs do not name the member in every line."""
    return (
        commit.source != CLIENT_LOG
        and commit.error == "UNKNOWN_MEMBER_ID"
        and not commit.member_id
        and (commit.generation or -1) < 0
    )


def _who(history: GroupHistory, commit: ObservedEvent) -> str:
    return history.who(commit.member_id) if commit.member_id else commit.client_id or "a client"


def _rebalances(history: GroupHistory, refused: list[ObservedEvent]) -> list[str]:
    """The rebalances that the refused commits came too late for."""
    found: dict[str, None] = {}
    for commit in refused:
        if commit.error not in LATE:
            continue
        before = [each for each in history.later if 0 <= commit.at_ms - each.prepared_at_ms <= BEFORE_MS]
        if before:
            found[before[-1].rebalance_id] = None
    return list(found)
