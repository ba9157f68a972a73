"""Why records of share groups come late, again or never: each with the setting or the change that ends it.

Locks, verdicts and windows are the leader's. What a handler needs is not in its journal: it is concluded from when the
member came back for records that were free all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names, period, span, times
from rejoin.pipeline.findings.phrases import capital
from rejoin.pipeline.share_groups import delivery_findings
from rejoin.pipeline.share_groups.histories import begin_of
from rejoin.pipeline.share_groups.names import TABLES
from rejoin.pipeline.share_groups.of_run import ShareGroupOfRun, evidence_of, place_of
from rejoin.pipeline.tables.groups.rows import date_of
from rejoin.pipeline.vocabulary import EXACT

Row = Mapping[str, Any]

WINDOW_HELD: Final = "share-window-held"
NOT_MOVING: Final = "share-start-not-moving"
FULL: Final = "share-window-full"
NOT_INITIALIZED: Final = "share-partitions-not-initialized"
DEAD_LETTERS: Final = "dead-letters-refused"
SKIPPED: Final = "share-reset-skipped-records"
NOT_STORED: Final = "share-state-not-stored"
NAMES: Final = (
    *delivery_findings.NAMES,
    *(DEAD_LETTERS, NOT_INITIALIZED, NOT_STORED, SKIPPED, WINDOW_HELD, FULL, NOT_MOVING),
)

STOOD_FROM_MS: Final = 30_000
"""A start that stands for less is no finding: so long one lock may last by default."""
HELD_FROM_MS: Final = 10_000
LOCKS: Final = "share.partition.max.record.locks"
LOCK_DURATION: Final = "share.record.lock.duration.ms"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
RESET: Final = "share.auto.offset.reset"


def is_suspicious(table: str, row: Row) -> bool:
    """True for rows of a table that rules look at."""
    match table:
        case "share_deliveries":
            is_late = row["delivery_count"] > 1 or (row["held_ms"] or 0) >= HELD_FROM_MS
            return is_late or row["end"] not in ("accept", "gap", None)
        case "share_archived":
            return row["reason"] not in ("gap", "compacted", "aborted")
        case "share_windows":
            return row["event"] != "share_window_moved" or (row["stood_ms"] or 0) >= STOOD_FROM_MS
    return True


_ORDER: Final[dict[str, Callable[[Row], Any]]] = {
    "share_deliveries": begin_of,
    "share_archived": lambda row: (row["at_ms"], row["seq"]),
    "share_windows": lambda row: (row["at_ms"], row["seq"]),
    "share_partitions": lambda row: (row["topic"], row["partition"]),
}


def share_findings(tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """list[dict[str, Any]] of the table ``findings``, from the rows that rules look at."""
    by_group: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for name, rows in tables.items():
        for row in rows:
            if row["group_id"] is not None and is_suspicious(name, row):
                of_group = by_group.setdefault((row["run_id"], row["group_id"]), {each: [] for each in TABLES})
                of_group[name].append(dict(row))
    found: list[dict[str, Any]] = []
    for (run_id, group_id), ours in sorted(by_group.items()):
        for name, of_table in ours.items():
            of_table.sort(key=_ORDER[name])
        found += findings_of(ShareGroupOfRun(run_id, group_id, ours))
    return found


def findings_of(run: ShareGroupOfRun) -> list[dict[str, Any]]:
    """Rows of the table ``findings`` about one share group."""
    rules = (*delivery_findings.RULES, _dead_letters, _not_initialized, _not_stored, _skipped, _windows, _full)
    return [
        {
            "run_id": run.run_id,
            "day": None if each.from_ms is None else date_of(each.from_ms),
            "group_id": run.group_id,
            **each.row(),
            "groups": [run.group_id],
            "transactional_ids": None,
        }
        for rule in rules
        for each in rule(run)
    ]


# --- dead letters, initialisation, the share coordinator, resets

_LETTERS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "create the topic, with errors.deadletterqueue.group.enable=true, or let the brokers "
    "create it (errors.deadletterqueue.auto.create.topics.enable).",
    "POLICY_VIOLATION": "set errors.deadletterqueue.group.enable=true on the topic: without it no broker writes dead "
    "letters to it.",
}


def _dead_letters(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Dead letters that no topic took: their records are archived all the same, and so they are lost."""
    failed = [row for row in run.archived if row["event"] == "share_records_dead_lettered" and row["error"] is not None]
    if not failed:
        return
    first, last, lost = failed[0], failed[-1], sum(row["records"] for row in failed)
    topic, errors = first["dead_letter_topic"], sorted({row["error"] for row in failed})
    yield Finding(
        DEAD_LETTERS,
        f"{count(lost, 'dead letter')} of {run.group_id} could not be written to {topic or 'its topic'}",
        f"{capital(period(first['at_ms'], last['at_ms']))} {count(lost, 'record')} of {_places(failed)} got no "
        f"dead letter: {names(errors)}. The records are archived all the same, and no member gets them again; the "
        "topic that they come from still has them.",
        0.0,
        first["at_ms"],
        last["at_ms"],
        setting=DEAD_LETTER_TOPIC,
        advice=next(
            (_LETTERS[each] for each in errors if each in _LETTERS),
            f"look why {topic or 'the topic'} takes no records: it has to exist, with "
            "errors.deadletterqueue.group.enable=true, and the brokers have to be able to write to it.",
        ),
        numbers={"records": lost},
        evidence=[evidence_of(row) for row in failed],
        exact=_exact(failed),
        severity=HIGH,
    )


def _not_initialized(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Share-partitions whose state could not be initialised are assigned to no member."""
    failed = [row for row in run.windows if row["event"] == "share_partitions_initialized"]
    if not failed:
        return
    first, last = failed[0], failed[-1]
    errors = names(sorted({row["error"] for row in failed}))
    yield Finding(
        NOT_INITIALIZED,
        f"{count(len({place_of(row) for row in failed}), 'partition')} of {run.group_id} could not be initialised",
        f"The share coordinators answered {errors} {period(first['at_ms'], last['at_ms'])} when the group asked them "
        f"to keep the state of {_places(failed)}. While that fails, these partitions are assigned to no member.",
        0.0,
        first["at_ms"],
        last["at_ms"],
        setting="share.coordinator.state.topic.replication.factor",
        advice="see whether __share_group_state exists and has leaders: its replication factor (3 by default) must not "
        "be higher than the number of brokers.",
        numbers={"times": len({row["at_ms"] for row in failed})},
        evidence=[evidence_of(row) for row in failed],
        exact=_exact(failed),
        severity=HIGH,
    )


def _not_stored(run: ShareGroupOfRun) -> Iterator[Finding]:
    """The share coordinator did not read or store the state of share-partitions."""
    failed = [row for row in run.windows if row["event"] == "share_persister_failed"]
    if not failed:
        return
    first, last = failed[0], failed[-1]
    written = sum(row["operation"] == "write" for row in failed)
    parts = []
    if written:
        parts.append(f"{times(written)} it did not store what members acknowledged: that is rolled back")
    if len(failed) > written:
        parts.append(f"{times(len(failed) - written)} it did not read the state, without which no record is delivered")
    errors = names(sorted({row["error"] or "no answer" for row in failed}))
    yield Finding(
        NOT_STORED,
        f"The share coordinator of {run.group_id} failed {times(len(failed))}",
        f"{capital(period(first['at_ms'], last['at_ms']))} the share coordinator failed ({errors}): "
        f"{'; '.join(parts)}.",
        0.0,
        first["at_ms"],
        last["at_ms"],
        advice="look at the leader of the group's partition of __share_group_state at that time. Records whose "
        "acknowledgement is rolled back are delivered again when their locks run out.",
        numbers={"times": len(failed)},
        evidence=[evidence_of(row) for row in failed],
        exact=_exact(failed),
        severity=MEDIUM if len(failed) > 1 else LOW,
    )


def _skipped(run: ShareGroupOfRun) -> Iterator[Finding]:
    """A group that began reading behind records that were there."""
    resets = [row for row in run.windows if row["event"] == "share_partition_loaded" and row["skipped_records"]]
    if not resets:
        return
    skipped, first, last = sum(row["skipped_records"] for row in resets), resets[0], resets[-1]
    yield Finding(
        SKIPPED,
        f"{run.group_id} began behind {count(skipped, 'record')}: {RESET} is {first['reset']}",
        f"{run.group_id} had no offset in {_places(resets)} {period(first['at_ms'], last['at_ms'])}, and began by "
        f"{RESET}={first['reset']}. {count(skipped, 'record')} that the log had then will not be delivered to it.",
        0.0,
        first["at_ms"],
        last["at_ms"],
        setting=RESET,
        advice="if the group is to read what was there before it, set to earliest (kafka-configs.sh --group) before "
        "its first member fetches; later use kafka-share-groups.sh --reset-offsets while no member is in the group.",
        numbers={"skipped_records": skipped},
        evidence=[evidence_of(row) for row in resets],
        exact=_exact(resets),
        severity=MEDIUM,
    )


# --- windows


@dataclass(frozen=True, slots=True)
class _Stand:
    """A time in which the start of a window did not move."""

    of: Row
    offset: int
    from_ms: int
    to_ms: int
    grown: int
    is_open: bool

    @property
    def lasted_ms(self) -> int:
        return self.to_ms - self.from_ms


def _stands(run: ShareGroupOfRun) -> Iterator[_Stand]:
    for row in run.windows:
        if (row["stood_ms"] or 0) >= STOOD_FROM_MS:
            yield _Stand(row, row["stood_at"], row["at_ms"] - row["stood_ms"], row["at_ms"], row["grown"], False)
    for row in run.partitions:
        if (row["standing_ms"] or 0) >= STOOD_FROM_MS:
            since_ms = row["standing_since_ms"]
            yield _Stand(row, row["start_offset"], since_ms, since_ms + row["standing_ms"], row["grown"], True)


def _windows(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Starts that stood: for each holder the longest, and the longest that no single member held."""
    longest: dict[str | None, tuple[_Stand, list[Row]]] = {}
    for stand in _stands(run):
        holding = [
            row
            for row in run.covering(place_of(stand.of), stand.offset)
            if row["acquired_at_ms"] is not None
            and row["acquired_at_ms"] < stand.to_ms
            and (row["ended_at_ms"] is None or row["ended_at_ms"] >= stand.from_ms)
        ]
        members = {row["member_id"] for row in holding}
        holder = members.pop() if len(members) == 1 else None
        if holder not in longest or stand.lasted_ms > longest[holder][0].lasted_ms:
            longest[holder] = stand, holding
    for holder, (stand, holding) in longest.items():
        if _free_ms(stand, holding) > stand.lasted_ms / 2 or (holder is None and stand.grown):
            yield _not_moving(run, stand, holding)
        elif holder is not None and stand.grown:
            yield _held(holder, stand, holding)


def _free_ms(stand: _Stand, holding: Sequence[Row]) -> int:
    """For how long no member had the record at which a window stands, up to the end of the journal."""
    if not stand.is_open or any(row["ended_at_ms"] is None for row in holding):
        return 0
    return stand.to_ms - max((row["ended_at_ms"] for row in holding), default=stand.from_ms)


def _held(member: str, stand: _Stand, holding: Sequence[Row]) -> Finding:
    where, renewals = place_of(stand.of), sum(row["renewals"] for row in holding)
    often = "" if len(holding) == 1 else f" in {len(holding):,} deliveries"
    renewed = f", and renewed its lock {times(renewals)}" if renewals else ""
    now = f"The record was not done with when the journal ended {period(stand.to_ms, stand.to_ms)}. "
    return Finding(
        WINDOW_HELD,
        f"{member} holds the window of {where} at record {stand.offset:,} for {span(stand.lasted_ms)}",
        f"The start of {where} stood at {stand.offset:,} {period(stand.from_ms, stand.to_ms)}. {member} had that record"
        f"{often}{renewed}. Meanwhile {count(stand.grown, 'record')} behind it came into the window, and no other "
        f"member had this one. {now if stand.is_open else ''}The window keeps all that is behind its start, done with "
        f"or not, until {LOCKS} is reached.",
        0.0,
        stand.from_ms,
        stand.to_ms,
        setting=LOCK_DURATION,
        advice="let the handler release or reject a record that it does not finish, or end renewing; a shorter lock "
        "duration gives the record to another member sooner.",
        numbers={"stood_ms": stand.lasted_ms, "grown": stand.grown, "renewals": renewals},
        members=[member],
        evidence=[evidence_of(row) for row in holding],
        exact=_exact(holding),
        severity=MEDIUM,
    )


def _not_moving(run: ShareGroupOfRun, stand: _Stand, holding: Sequence[Row]) -> Finding:
    where = place_of(stand.of)
    free_ms = _free_ms(stand, holding)
    if holding and free_ms <= stand.lasted_ms / 2:
        who = names(sorted({row["member_id"] for row in holding}))
        why = f"That record was delivered {times(len(holding))}, to {who}, and was not done with"
        advice = "see what becomes of that record: release and locks that run out bring it back until the delivery "
        advice += "limit; a handler that cannot process it ends that by reject."
    else:
        last = holding[-1] if holding else None
        since = "" if last is None else f", since {last['member_id']} had it last ({last['end']})"
        why = f"No member has acquired that record for {span(free_ms or stand.lasted_ms)}{since}"
        advice = "see whether members of the group fetch from this partition: a record that is free waits for one."
    return Finding(
        NOT_MOVING,
        f"The start of {where} {'stands' if stand.is_open else 'stood'} at record {stand.offset:,} for "
        f"{span(stand.lasted_ms)}",
        f"The start of the window of {where} in {run.group_id} stood at {stand.offset:,} "
        f"{period(stand.from_ms, stand.to_ms)}{', when the journal ends' if stand.is_open else ''}. {why}."
        + (f" Meanwhile {count(stand.grown, 'record')} came into the window." if stand.grown else ""),
        0.0,
        stand.from_ms,
        stand.to_ms,
        advice=advice,
        numbers={"stood_ms": stand.lasted_ms, "grown": stand.grown},
        members=sorted({row["member_id"] for row in holding}),
        evidence=[evidence_of(row) for row in holding or (stand.of,)],
        exact=_exact(holding),
        severity=MEDIUM,
    )


def _full(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Windows that had as many records as they may have."""
    rows = [row for row in run.windows if row["event"] == "share_window_full"]
    if not rows:
        return
    first, last, limit = rows[0], rows[-1], rows[-1]["limit"]
    starts = [row["start_offset"] for row in rows if row["start_offset"] is not None]
    held = f" The window of {place_of(last)} then began at {starts[-1]:,}." if starts else ""
    yield Finding(
        FULL,
        f"The window of {_places(rows)} was full {times(len(rows))}: {limit:,} records in flight",
        f"{capital(period(first['at_ms'], last['at_ms']))} {run.group_id} had {limit:,} records in flight in a "
        f"partition, as many as {LOCKS} allows, {times(len(rows))}. From then until the start moves, members get only "
        f"what others release, however many they are.{held}",
        0.0,
        first["at_ms"],
        last["at_ms"],
        setting=LOCKS,
        advice="first look which record keeps the start (other findings name it); if the members need more records at "
        "a time, set a higher limit (at most group.share.max.partition.max.record.locks), or give the topic more "
        "partitions: each has a window of its own.",
        numbers={"times": len(rows), "limit": limit},
        evidence=[evidence_of(row) for row in rows],
        exact=_exact(rows),
        severity=MEDIUM,
    )


def _places(rows: Sequence[Row]) -> str:
    return names(sorted({place_of(row) for row in rows}))


def _exact(rows: Sequence[Row]) -> bool:
    return all(row["confidence"] == EXACT for row in rows)
