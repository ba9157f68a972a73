"""Findings about deliveries that did not end well: locks that ran out, and records that fail each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, LOW, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import at_least, count, names, period, span, spans, times
from rejoin.pipeline.findings.phrases import capital, probably, value
from rejoin.pipeline.share_groups.of_run import ShareGroupOfRun, evidence_of, place_of
from rejoin.pipeline.vocabulary import EXACT

Row = Mapping[str, Any]
Record = tuple[str, int]
"""Share-partition and offset."""

EXPIRED: Final = "record-locks-expired"
NOT_ACKNOWLEDGED: Final = "records-not-acknowledged"
HOLDER_GONE: Final = "record-holder-gone"
POISON: Final = "poison-record"
NAMES: Final = (POISON, EXPIRED, NOT_ACKNOWLEDGED, HOLDER_GONE)

LOCK_DURATION: Final = "share.record.lock.duration.ms"
LONGEST_LOCK_MS: Final = 60_000
"""Kafka: group.share.max.record.lock.duration.ms, by default."""
AFTER_LOCK_MS: Final = 1_000
"""A member that comes back so soon after its lock ran out was waiting for records, and got them when they were free."""
AFTER_FAILURE_MS: Final = 60_000
"""A write to the share coordinator is given up so long after the acknowledgement, at the most."""
MOST_RECORDS: Final = 100
"""A longer run that fails as a whole says nothing about one of its records."""


# --- locks that ran out


def _expired(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Locks that ran out: by what the member did meanwhile."""
    expired = [row for row in run.deliveries if row["end"] == "lock-expired" and not _could_not_be_stored(run, row)]
    # A member's last delivery is one as those before it.
    usual = {row["member_id"]: _kind(row) for row in expired if _kind(row) != HOLDER_GONE}
    by_kind: dict[str, list[Row]] = defaultdict(list)
    for row in expired:
        by_kind[usual.get(row["member_id"], HOLDER_GONE) if _kind(row) == HOLDER_GONE else _kind(row)].append(row)
    for kind, rows in by_kind.items():
        yield _locks_expired(run, kind, rows)


def _could_not_be_stored(run: ShareGroupOfRun, row: Row) -> bool:
    """True if the share coordinator failed to store something while a member had these records: the member may have
    acknowledged them."""
    since_ms, until_ms = row["acquired_at_ms"] or row["ended_at_ms"], row["ended_at_ms"]
    return any(
        each["event"] == "share_persister_failed"
        and each["operation"] == "write"
        and place_of(each) == place_of(row)
        and since_ms <= each["at_ms"] <= until_ms + AFTER_FAILURE_MS
        for each in run.windows
    )


def _kind(row: Row) -> str:
    back_ms, held_ms = row["next_fetch_ms"], row["held_ms"] or 0
    if back_ms is None:
        return HOLDER_GONE
    return EXPIRED if back_ms > held_ms + AFTER_LOCK_MS else NOT_ACKNOWLEDGED


def _locks_expired(run: ShareGroupOfRun, kind: str, rows: Sequence[Row]) -> Finding:
    worst = max(rows, key=lambda row: (row["delivery_count"], -row["first_offset"]))
    place, offset = place_of(worst), worst["first_offset"]
    ours = [row for row in rows if place_of(row) == place and row["first_offset"] <= offset <= row["last_offset"]]
    deliveries = worst["delivery_count"]
    lock_ms = worst["lock_ms"] or worst["held_ms"] or 0
    members = sorted({row["member_id"] for row in rows})
    needs_ms = max((row["next_fetch_ms"] or 0 for row in rows), default=0)
    exact = all(row["confidence"] == EXACT for row in rows) and (kind != EXPIRED or _took_it_again(run, rows))
    if deliveries == 1:
        title = f"Record {offset:,} of {place}: its lock ran out after {span(lock_ms)}"
    elif len(ours) >= deliveries:
        title = f"Record {offset:,} of {place} was delivered {times(deliveries)}, and each time its lock ran out"
        title += f" after {span(lock_ms)}"
    else:
        title = f"Record {offset:,} of {place} was delivered {times(deliveries)}; its lock ran out {times(len(ours))}"
    what, setting, advice = _what_to_do(kind, rows, needs_ms, lock_ms)
    if kind == EXPIRED:
        title += f" while the handler needs {span(needs_ms)}"
    all_of_them = count(sum(row["records"] for row in rows), "lock")
    first_ms, last_ms = (row["acquired_at_ms"] or row["ended_at_ms"] for row in (rows[0], rows[-1]))
    # One member holds all runs of a fetch at the same time.
    lost_ms = sum({(row["member_id"], row["acquired_at_ms"]): row["held_ms"] or 0 for row in rows}.values())
    is_given_up = bool(run.fate(place, offset))
    return Finding(
        kind,
        title,
        f"{capital(period(first_ms, last_ms))} {all_of_them} of {run.group_id} ran out after "
        f"{spans([row['held_ms'] or lock_ms for row in rows])}, before {names(members)} acknowledged the records. "
        f"{probably(exact)}{what}{run.fate(place, offset)}",
        lost_ms / 1_000,
        first_ms,
        rows[-1]["ended_at_ms"] or last_ms,
        setting=setting,
        advice=advice,
        numbers={"locks": sum(row["records"] for row in rows), "lock_ms": lock_ms, "deliveries": deliveries}
        | ({"needs_ms": needs_ms} if kind == EXPIRED else {}),
        members=members,
        evidence=[evidence_of(row) for row in [*ours, *(row for row in rows if row not in ours)]],
        exact=exact,
        severity=HIGH if is_given_up else MEDIUM,
    )


def _took_it_again(run: ShareGroupOfRun, rows: Sequence[Row]) -> bool:
    """True if a member came back late for a record that was free all the time: so it was not waiting for records."""
    for row in rows:
        back_at_ms = (row["acquired_at_ms"] or 0) + (row["next_fetch_ms"] or 0)
        again = run.covering(place_of(row), row["first_offset"])
        if any(row["member_id"] == each["member_id"] and each["acquired_at_ms"] == back_at_ms for each in again):
            return True
    return False


def _what_to_do(kind: str, rows: Sequence[Row], needs_ms: int, lock_ms: int) -> tuple[str, str | None, str]:
    """The member's doings meanwhile, the setting, and the advice."""
    if kind == HOLDER_GONE:
        return (
            "The member acquired nothing after that: it is stuck, or dead, or there was nothing more to get.",
            None,
            "see in the member's own log whether its handler came to an end. A member that dies gives its records back "
            "only when their locks run out; one that closes its consumer gives them back at once.",
        )
    if kind == NOT_ACKNOWLEDGED:
        return (
            "The member went on to get records, and had not acknowledged these.",
            None,
            "acknowledge each record: with share.acknowledgement.mode=implicit the next poll does it; with explicit "
            "acknowledge() has to be called for each record before the next poll, and a poll, commitSync or "
            "commitAsync sends it.",
        )
    wanted_ms = at_least(1.2 * needs_ms)
    most = max(row["records"] for row in rows)
    smaller = f" Or poll fewer records at a time than {most:,} (max.poll.records)." if most > 1 else ""
    beyond = (
        f" More than {span(LONGEST_LOCK_MS)} needs a higher group.share.max.record.lock.duration.ms on the brokers."
        if wanted_ms > LONGEST_LOCK_MS
        else ""
    )
    return (
        f"The member came back for more records {span(needs_ms)} after it had acquired these: so long its handler "
        f"needs, and the lock is for {span(lock_ms)}.",
        LOCK_DURATION,
        f"set to {value(wanted_ms)} for the group.{beyond} Or let the handler renew the lock before it runs out: "
        f"acknowledge with RENEW (share.renew.acknowledge.enable).{smaller}",
    )


# --- records that fail each time


def _poison(run: ShareGroupOfRun) -> Iterator[Finding]:
    """Records that members released or rejected on each delivery, while others were accepted."""
    failures: dict[Record, list[Row]] = defaultdict(list)
    others: set[Record] = set()
    for row in run.deliveries:
        if row["records"] > MOST_RECORDS:
            continue
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            if row["end"] in ("release", "reject"):
                failures[place_of(row), offset].append(row)
            else:
                others.add((place_of(row), offset))
    accepted = {place_of(row): row["accepted"] for row in run.partitions}
    poison = {
        record: rows
        for record, rows in failures.items()
        if record not in others and (len(rows) > 1 or rows[-1]["end"] == "reject") and accepted.get(record[0])
    }
    failing = {place: sum(record[0] == place for record in poison) for place in {record[0] for record in poison}}
    poison = {record: rows for record, rows in poison.items() if failing[record[0]] <= accepted[record[0]]}
    if poison:
        yield _of_poison(run, poison, sum(accepted[place] for place in {record[0] for record in poison}))


def _of_poison(run: ShareGroupOfRun, poison: Mapping[Record, Sequence[Row]], accepted: int) -> Finding:
    (place, offset), worst = max(poison.items(), key=lambda each: (len(each[1]), each[0][0], -each[0][1]))
    rows = [row for found in poison.values() for row in found]
    deliveries, seen = worst[-1]["delivery_count"], len(worst)
    ends = {row["end"] for row in worst}
    verdict = "rejected" if ends == {"reject"} else "released" if ends == {"release"} else "released or rejected"
    members = sorted({row["member_id"] for row in worst})
    each_time = "on each delivery" if seen >= deliveries else f"on each of {seen:,} deliveries that are known"
    more = f" {len(poison) - 1:,} more did so." if len(poison) > 1 else ""
    first_ms, last_ms = (row["acquired_at_ms"] or row["ended_at_ms"] for row in (worst[0], worst[-1]))
    has_letter = "has its dead letter" in run.fate(place, offset)
    title = (
        f"Record {offset:,} of {place} was rejected"
        if deliveries == 1
        else f"Record {offset:,} of {place} was delivered {times(deliveries)} and failed each time"
        if seen >= deliveries
        else f"Record {offset:,} of {place} fails: delivered {times(deliveries)}"
    )
    return Finding(
        POISON,
        f"{title}, while others were accepted",
        f"{capital(period(first_ms, last_ms))} {names(members)} {verdict} record {offset:,} of {place} {each_time}. "
        f"{count(accepted, 'record')} of the partition {'was' if accepted == 1 else 'were'} accepted, which suggests "
        f"that the cause is in the record, and not in the handler as a whole.{run.fate(place, offset)}{more}",
        0.0,
        first_ms,
        max(row["ended_at_ms"] or last_ms for row in rows),
        setting=None if has_letter else "errors.deadletterqueue.topic.name",
        advice=f"look at the record (kafka-console-consumer.sh --topic {worst[0]['topic']} --partition "
        f"{worst[0]['partition']} --offset {offset} --max-messages 1). "
        "Let the handler reject what it can never process, so that it is not delivered again"
        + ("." if has_letter else ", and name a topic for dead letters to keep it."),
        numbers={"records": len(poison), "deliveries": deliveries},
        members=members,
        evidence=[evidence_of(row) for row in worst],
        exact=all(row["confidence"] == EXACT for row in worst),
        severity=LOW if verdict == "rejected" and has_letter else MEDIUM,
    )


RULES: Final[tuple[Callable[[ShareGroupOfRun], Iterator[Finding]], ...]] = (_poison, _expired)
