"""Reasons why an application of Kafka Streams does not run, or its tasks lack their state: each with what ends it.

Everything is the coordinator's: what a thread does with its tasks is not in its journal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, span, times
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.streams_groups import refusals
from rejoin.pipeline.streams_groups.names import TABLES
from rejoin.pipeline.streams_groups.of_run import StreamsGroupOfRun, evidence_of, is_exact, task_of
from rejoin.pipeline.tables.groups.rows import date_of

Row = Mapping[str, Any]

SOURCE_MISSING: Final = "streams-source-topic-missing"
WRONG_PARTITIONS: Final = "streams-partitions-do-not-match"
NOT_CREATED: Final = "streams-internal-topics-not-created"
SHUTDOWN: Final = "streams-shutdown-requested"
CHANGING: Final = "streams-metadata-keeps-changing"
UNOWNED: Final = "streams-tasks-without-owner"
STANDBY: Final = "streams-standby-never-ready"
NAMES: Final = (SOURCE_MISSING, WRONG_PARTITIONS, NOT_CREATED, *refusals.NAMES, SHUTDOWN, CHANGING, UNOWNED, STANDBY)

UNOWNED_FROM_MS: Final = 15_000
"""A shorter gap is two heartbeats: one gives the task up, the other one takes it."""
CHANGES_FROM: Final = 4
CHANGES_WITHIN_MS: Final = 300_000
"""Changes that are farther apart have a reason each."""
REPORTS_FROM: Final = 3
BEHIND_FROM_MS: Final = 600_000
SESSION: Final = "group.streams.session.timeout.ms"


def is_suspicious(table: str, row: Row) -> bool:
    """True for rows of a table that rules look at."""
    match table:
        case "tasks":
            return (row["unowned_ms"] or 0) >= UNOWNED_FROM_MS
        case "task_moves":
            return False
        case "task_restores":
            return row["role"] != "active" and row["ready_at_ms"] is None and row["reports"] >= REPORTS_FROM
    return True


def streams_findings(tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """list[dict[str, Any]] of the table ``findings``, from the rows that rules look at."""
    by_group: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for name, rows in tables.items():
        for row in rows:
            if is_suspicious(name, row):
                of_group = by_group.setdefault((row["run_id"], row["group_id"]), {each: [] for each in TABLES})
                of_group[name].append(dict(row))
    found: list[dict[str, Any]] = []
    for (run_id, group_id), ours in sorted(by_group.items()):
        for of_table in ours.values():
            of_table.sort(key=_begin_of)
        found += findings_of(StreamsGroupOfRun(run_id, group_id, ours))
    return found


def _begin_of(row: Row) -> tuple[Any, ...]:
    at_ms = next(row[name] for name in ("at_ms", "from_ms", "begun_at_ms") if name in row)
    return at_ms, row["seq"] or 0, row.get("subtopology") or "", row.get("task") or 0


def findings_of(run: StreamsGroupOfRun) -> list[dict[str, Any]]:
    """Rows of the table ``findings`` about one streams group."""
    return [
        {
            "run_id": run.run_id,
            "day": None if each.from_ms is None else date_of(each.from_ms),
            "group_id": run.group_id,
            **each.row(),
            "groups": [run.group_id],
            "transactional_ids": None,
        }
        for rule in (*RULES, *refusals.RULES)
        for each in rule(run)
    ]


# --- topics


@dataclass(frozen=True, slots=True)
class _NotReady:
    """Words for one status."""

    name: str
    title: str
    what: str
    setting: str | None
    advice: str


_STATUSES: Final = {
    "MISSING_SOURCE_TOPICS": _NotReady(
        SOURCE_MISSING,
        "a source topic is missing",
        "No member has tasks meanwhile. A Java application waits for two heartbeat intervals, and then ends with "
        "MissingSourceTopicException.",
        "auto.create.topics.enable",
        "create the topic before the application starts (brokers do not create it for a streams group, whatever "
        "auto.create.topics.enable says); then start the application again.",
    ),
    "INCORRECTLY_PARTITIONED_TOPICS": _NotReady(
        WRONG_PARTITIONS,
        "topics do not have the numbers of partitions that the topology needs",
        "No member has tasks meanwhile. A Java application ends with TopologyException at once.",
        None,
        "give topics that are joined the same number of partitions: write the one with the wrong number anew, or let "
        "the application repartition it (KStream.repartition). An internal topic that no longer fits its source can be "
        "deleted while no member is in the group; a state whose changelog is gone is built anew.",
    ),
}


def _topics(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Statuses in which the group is NotReady for its topics."""
    for status, said in _STATUSES.items():
        rows = [row for row in run.changes if row["status"] == status]
        if not rows:
            continue
        first, last = rows[0], rows[-1]
        lasted_ms = sum(row["to_ms"] - row["at_ms"] for row in rows if row["to_ms"] is not None)
        goes_on = last["to_ms"] is None
        until = ", and still is when the records end" if goes_on else f", for {span(lasted_ms)}"
        yield Finding(
            said.name,
            f"{run.group_id} is not ready: {said.title}",
            f"{capital(period(first['at_ms'], last['to_ms'] or last['at_ms']))} the group was NotReady{until}: "
            f"{' '.join(sorted({str(row['reason']) for row in rows}))} {said.what}",
            lasted_ms / 1_000,
            first["at_ms"],
            last["to_ms"] or last["at_ms"],
            setting=None,
            advice=said.advice,
            numbers={"times": len(rows)},
            members=sorted({row["member_id"] for row in rows if row["member_id"]}),
            evidence=[evidence_of(row) for row in rows],
            exact=is_exact(rows),
            severity=HIGH if goes_on else MEDIUM,
        )


_TOPIC_ERRORS: Final = {
    "INVALID_REPLICATION_FACTOR": (
        "replication.factor",
        "set it in the application to the number of brokers at most, or to -1 for the brokers' own default.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": (
        None,
        "give the application's principal CREATE on its internal topics (their names begin with the application.id), "
        "or create them yourself, with the numbers of partitions and the settings that the application asks for.",
    ),
}


def _internal(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Repartition and changelog topics that could not be created."""
    rows = [row for row in run.changes if row["event"] == "streams_internal_topics_created" and row["error"]]
    if not rows:
        return
    first, last = rows[0], rows[-1]
    topics = sorted({each for row in rows for each in row["topics"] or ()})
    errors = sorted({row["error"] for row in rows})
    setting, advice = next((_TOPIC_ERRORS[each] for each in errors if each in _TOPIC_ERRORS), (None, ""))
    words = sorted({row["reason"] for row in rows if row["reason"]})
    yield Finding(
        NOT_CREATED,
        f"{count(len(topics), 'internal topic')} of {run.group_id} could not be created",
        f"{capital(period(first['at_ms'], last['at_ms']))} {names(topics)} could not be created: {names(errors)}"
        f"{f' ({words[0]})' if words else ''}. While one is missing, no member has tasks; the broker tries again "
        "with the heartbeats after two heartbeat intervals.",
        0.0,
        first["at_ms"],
        last["at_ms"],
        setting=setting,
        advice=advice or "see the error: the controller refuses the topic as the application asks for it.",
        numbers={"topics": len(topics), "times": len(rows)},
        evidence=[evidence_of(row) for row in rows],
        exact=is_exact(rows),
        severity=HIGH,
    )


# --- members


def _shutdown(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """A member asked all others to end."""
    rows = [row for row in run.changes if row["event"] == "streams_shutdown_requested"]
    if not rows:
        return
    first = rows[0]
    who = first["group_instance_id"] or first["member_id"]
    yield Finding(
        SHUTDOWN,
        f"{who} asked for the shutdown of all of {run.group_id}",
        f"{capital(period(first['at_ms'], rows[-1]['at_ms']))} {who} asked for the end of the application. Each member "
        "is asked to end with its next heartbeat, also those that join later, until the group is Empty.",
        0.0,
        first["at_ms"],
        rows[-1]["at_ms"],
        setting=None,
        advice="see in that member's own log which exception its handler answered with SHUTDOWN_APPLICATION "
        "(StreamsUncaughtExceptionHandler). REPLACE_THREAD or SHUTDOWN_CLIENT end less than all instances.",
        numbers={"times": len(rows)},
        members=[row["member_id"] for row in rows],
        evidence=[evidence_of(row) for row in rows],
        exact=is_exact(rows),
        severity=HIGH,
    )


def _changing(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Members whose descriptions change again and again: each change makes a new group epoch."""
    by_member: dict[str, list[Row]] = defaultdict(list)
    for row in run.changes:
        if row["event"] == "streams_member_described" and row["generation"] is not None:
            by_member[row["member_id"]].append(row)
    for member, rows in by_member.items():
        gaps = [after["at_ms"] - before["at_ms"] for before, after in pairwise(rows)]
        if len(rows) < CHANGES_FROM or sorted(gaps)[len(gaps) // 2] > CHANGES_WITHIN_MS:
            continue
        changed = sorted({name for row in rows for name in row["changed_fields"]})
        first, last = rows[0], rows[-1]
        yield Finding(
            CHANGING,
            f"{member} changes its {names(changed)} again and again: {count(len(rows), 'group epoch')}",
            f"{capital(period(first['at_ms'], last['at_ms']))} {member} described itself {times(len(rows))} in another "
            f"way ({names(changed)}). Each time the group got a new epoch and a new target ({first['generation']} to "
            f"{last['generation']}), and all members followed.",
            0.0,
            first["at_ms"],
            last["at_ms"],
            setting=None,
            advice="send the same description with each heartbeat. Java's client sends it only as it joins: so this is "
            "a client of another kind, or several under one member id. Of a static member only its process, its rack, "
            "its tags and its topology make a new epoch.",
            numbers={"changes": len(rows)},
            members=[member],
            evidence=[evidence_of(row) for row in rows],
            exact=is_exact(rows),
            severity=MEDIUM,
        )


# --- tasks

_GONE: Final = {
    "session-expiry": "the session of {0} ended",
    "rebalance-expiry": "{0} was removed, as it did not give up its tasks in time",
    "left": "{0} left",
    "static-left": "{0} left for a moment, and keeps its tasks until its session ends",
    "given-up": "{0} gave them up",
}


def _unowned(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Active tasks that no member had for a while, though the group had members and its topics."""
    rows = [row for row in run.tasks if not run.is_not_ready(row["to_ms"], row["to_ms"] + row["unowned_ms"])]
    by_end: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_end[row["end"]].append(row)
    for end, ours in by_end.items():
        longest = max(row["unowned_ms"] for row in ours)
        members = sorted({row["member_id"] for row in ours})
        first_ms, last_ms = ours[0]["to_ms"], max(row["to_ms"] + row["unowned_ms"] for row in ours)
        open_rows = [row for row in ours if not row["taken_over"]]
        still = f" {count(len(open_rows), 'task')} had none when the records ended." if open_rows else ""
        why = _GONE.get(end, "{0} was gone").format(names(members))
        is_static = end == "static-left"
        yield Finding(
            UNOWNED,
            f"{count(len({task_of(row) for row in ours}), 'task')} of {run.group_id} had no owner for up to "
            f"{span(longest)}",
            f"{capital(period(first_ms, last_ms))} {why}, and {names(sorted({task_of(row) for row in ours}))} had no "
            f"owner until the next heartbeats took them over.{still}"
            + (
                " Before a session ends, its member has its tasks on paper only: that time is not counted."
                if end == "session-expiry"
                else ""
            ),
            sum(row["unowned_ms"] for row in ours) / 1_000,
            first_ms,
            last_ms,
            setting=SESSION if is_static else None,
            advice="a static member has its tasks until its session ends: a shorter session, or a faster restart, "
            "ends this sooner."
            if is_static
            else "tasks are taken over with the heartbeats of those that get them: see whether these members send any "
            "(a thread that does not poll leaves the group), and whether others were still giving tasks up.",
            numbers={"tasks": len(ours), "longest_ms": longest},
            members=members,
            evidence=[evidence_of(row) for row in ours],
            exact=is_exact(ours),
            severity=HIGH if open_rows else LOW if is_static else MEDIUM,
        )


def _standbys(run: StreamsGroupOfRun) -> Iterator[Finding]:
    """Standbys that stay behind their changelogs."""
    rows = [
        row
        for row in run.restores
        if row["last_at_ms"] - row["begun_at_ms"] >= BEHIND_FROM_MS and row["last_lag"] >= 0.9 * row["first_lag"]
    ]
    if not rows:
        return
    worst = max(rows, key=lambda row: (row["last_lag"], task_of(row)))
    first_ms, last_ms = rows[0]["begun_at_ms"], max(row["last_at_ms"] for row in rows)
    yield Finding(
        STANDBY,
        f"{count(len(rows), 'standby')} of {run.group_id} never caught up: {task_of(worst)} lacks "
        f"{count(worst['last_lag'], 'record')}",
        f"{capital(period(first_ms, last_ms))} {names(sorted({row['member_id'] for row in rows}))} reported standbys "
        f"that lack as much of their changelogs as in the beginning ({worst['first_lag']:,} records of "
        f"{task_of(worst)} at the first report, {worst['last_lag']:,} at the last of {times(worst['reports'])}). Where "
        "such a standby takes its task over, the rest is restored first.",
        0.0,
        first_ms,
        last_ms,
        setting=None,
        advice="compare what the changelog gets in a second with what a standby restores: a faster disk, more threads "
        "(num.stream.threads) or larger fetches of the restore consumer (restore.consumer.fetch.max.bytes) help, or "
        "fewer tasks for each process.",
        numbers={"standbys": len(rows), "lag": worst["last_lag"]},
        members=sorted({row["member_id"] for row in rows}),
        evidence=[evidence_of(row) for row in rows],
        exact=is_exact(rows),
        severity=MEDIUM,
    )


RULES: Final[tuple[Callable[[StreamsGroupOfRun], Iterator[Finding]], ...]] = (
    *(_topics, _internal, _shutdown, _changing, _unowned, _standbys),
)
