"""Audits of transactions: rows of :data:`rejoin.pipeline.schemas.VIOLATIONS`, from those of the table.

Kafka aborts a transaction within ``transaction.timeout.ms`` and one more interval of its look at them, so a log holds
readers of committed records no longer than that. What hangs is ended by no coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rejoin.pipeline.transactions.histories import day_of

Row = Mapping[str, Any]

CLEANUP_MS: Final = 10_000
"""Kafka: transaction.abort.timed.out.transaction.cleanup.interval.ms."""
MAX_TIMEOUT_MS: Final = 900_000
"""Kafka: transaction.max.timeout.ms, where the producer's own timeout is not known."""
TOLERANCE_MS: Final = 30_000
"""A coordinator may be away for so long."""

HANGING: Final = "hanging-transaction"
HELD: Final = "stable-offset-held"
LATE: Final = "timeout-not-kept"
ZOMBIE: Final = "fenced-producer-wrote"


def allowed_ms(row: Row) -> int:
    """How long a transaction may be open."""
    return int(row["transaction_timeout_ms"] or MAX_TIMEOUT_MS) + CLEANUP_MS


JUDGED_BY: Final = ("coordinated", "outcome", "ended_by", "open_ms", "held_ms")
"""Columns that :func:`is_suspicious` reads."""


def is_suspicious(row: Row) -> bool:
    """Whether a transaction may be one of a violation, or of a finding."""
    return (
        row["coordinated"] is False
        or row["outcome"] in ("open", "preparing")
        or row["ended_by"] in ("timeout", "fencing")
        or max(row["open_ms"] or 0, row["held_ms"] or 0) > CLEANUP_MS
    )


def violations_of(transactions: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """All audits of these transactions."""
    for row in transactions:
        if row["coordinated"] is False:
            yield from _uncoordinated(row)
        else:
            yield from _held(row)
            yield from _late(row)


def _uncoordinated(row: Row) -> Iterator[dict[str, Any]]:
    """Open in a log while the coordinator has no such transaction. ``found``: for how many ms; ``expected``: 0."""
    for log in row["logs"]:
        writer = "a fenced epoch of producer" if row["fenced"] else "producer"
        yield _violation(
            row,
            ZOMBIE if row["fenced"] else HANGING,
            log,
            0,
            row["held_ms"],
            f"{writer} {row['producer_id']} (epoch {row['producer_epoch']}) began a transaction on "
            f"{log['topic']}-{log['partition']} at {log['first_offset']} that its coordinator does not know of"
            + (f"; it was open for {row['held_ms']} ms" if row["ended_at_ms"] else "; no marker ends it"),
        )


def _held(row: Row) -> Iterator[dict[str, Any]]:
    """Open in a log for longer than the timeout explains. ``expected``: ms that it explains; ``found``: ms."""
    until = (row["started_at_ms"] or 0) + (row["open_ms"] or 0) + (row["markers_ms"] or 0)
    for log in row["logs"]:
        if log["opened_at_ms"] is None:
            continue
        held = (log["marker_at_ms"] or until) - log["opened_at_ms"]
        if held > allowed_ms(row) + TOLERANCE_MS:
            where = f"{log['topic']}-{log['partition']}"
            yield _violation(
                row,
                HELD,
                log,
                allowed_ms(row),
                held,
                f"the last stable offset of {where} stood at {log['first_offset']} for {held} ms, behind "
                f"{row['transactional_id'] or 'producer ' + str(row['producer_id'])}",
            )


def _late(row: Row) -> Iterator[dict[str, Any]]:
    """Not decided though its timeout was over. ``expected``: ms it may take; ``found``: ms it took."""
    if row["open_ms"] is not None and row["open_ms"] > allowed_ms(row) + TOLERANCE_MS:
        yield _violation(
            row,
            LATE,
            {"topic": None, "partition": None, "opened_at_ms": row["started_at_ms"], "marker_at_ms": None},
            allowed_ms(row),
            row["open_ms"],
            f"the transaction of {row['transactional_id']} was open for {row['open_ms']} ms; its timeout is "
            f"{row['transaction_timeout_ms']} ms",
        )


def _violation(row: Row, kind: str, log: Row, expected: int, found: int, text: str) -> dict[str, Any]:
    at_ms = log["opened_at_ms"] or row["started_at_ms"]
    return {
        "run_id": row["run_id"],
        "day": day_of(at_ms),
        "group_id": None,
        "kind": kind,
        "topic": log["topic"],
        "partition": log["partition"],
        "at_ms": at_ms,
        "to_ms": log["marker_at_ms"],
        "generation": None,
        "members": [row["transactional_id"]] if row["transactional_id"] else [],
        "expected": expected,
        "found": found,
        "text": text,
        "evidence": [evidence_of(row)],
        "confidence": row["confidence"],
    }


def evidence_of(row: Row) -> dict[str, Any]:
    """The row that a transaction began with."""
    event = "transaction_started" if row["coordinated"] else "transaction_opened"
    place = {name: row[name] for name in ("source", "node", "seq", "file", "line")}
    if row["started_at_ms"] is None:
        return {**place, "at_ms": row["ended_at_ms"], "event": "transaction_completed"}
    return {**place, "at_ms": row["started_at_ms"], "event": event}
