"""The transactions of one producer id, from its events at the coordinator and in the logs of partitions.

Both write of the same transaction, and perhaps on two nodes: it is one where epoch and partition fit. What is open in a
log while the coordinator has no such transaction hangs (``coordinated`` is false).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

from rejoin.pipeline.transactions.schemas import STABLE_OFFSETS

Row = Mapping[str, Any]
TopicPartition = tuple[str, int]

AT_COORDINATOR: Final = (
    "producer_id_initialized",
    "transaction_started",
    "partitions_added_to_txn",
    "transaction_prepared",
    "transaction_completed",
    "transactional_id_expired",
    "producer_fenced",
)
IN_LOGS: Final = ("transaction_opened", "transaction_marker_written", "last_stable_offset_held")
OF_OFFSETS: Final = ("offsets_committed",)
READ: Final = (*AT_COORDINATOR, *IN_LOGS, *OF_OFFSETS)
"""The events that tables of transactions are made from."""

COLUMNS: Final = (
    *("run_id", "source", "node", "seq", "at_ms", "event", "file", "line", "confidence", "group_id", "offsets"),
    *("transactional_id", "producer_id", "producer_epoch", "current_epoch", "transaction_timeout_ms"),
    *("transaction_version", "committed", "ended_by", "partition_count", "open_ms", "markers_ms", "partitions"),
    *("topic", "partition", "first_offset", "last_stable_offset", "high_watermark", "end_offset", "held_ms"),
    "previous_producer_id",
)
"""Columns of these events that are read."""

CLOCKS_MS: Final = 1_000
"""A leader's clock may be behind its coordinator's by so much."""


@dataclass(slots=True)
class ObservedLog:
    """A partition of a transaction."""

    first_offset: int | None = None
    opened_at_ms: int | None = None
    marker_at_ms: int | None = None


@dataclass(slots=True)
class ObservedTransaction:
    """One transaction, as far as it was seen."""

    first: Row
    producer_epoch: int
    coordinated: bool | None = True
    fenced: bool = False
    started_at_ms: int | None = None
    prepared: Row | None = None
    completed: Row | None = None
    logs: dict[TopicPartition, ObservedLog] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    offsets: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""
        if self.coordinated:
            return self.completed is not None
        return all(log.marker_at_ms is not None for log in self.logs.values())


class ProducerHistory:
    """Takes in the events of one producer id in one run, in order."""

    def __init__(self, run_id: str, producer_id: int, ends_at_ms: int) -> None:
        self.run_id = run_id
        self.producer_id = producer_id
        self.ends_at_ms = ends_at_ms
        self.transactions: list[ObservedTransaction] = []
        self.names: dict[str, None] = {}
        self.epochs: list[int] = []
        self.timeout_ms: int | None = None
        self.initializations = 0
        self.fenced_requests = 0
        self.expired_at_ms: int | None = None
        self.first: Row = {}
        self.last_at_ms = 0
        self._current: ObservedTransaction | None = None
        self._knows_coordinator = False
        self._lowest: list[tuple[int, int]] = []
        """Since when which epoch is the lowest that may write."""
        self._unmarked: dict[TopicPartition, list[ObservedTransaction]] = defaultdict(list)
        """The transactions that have no marker in a partition."""

    # --- taking in events

    def take(self, row: Row) -> None:
        """The next event."""
        self.first = self.first or row
        self.last_at_ms = row["at_ms"]
        if row["transactional_id"]:
            self.names.setdefault(row["transactional_id"])
        match row["event"]:
            case "producer_id_initialized":
                self._initialized(row)
            case "transaction_started" | "partitions_added_to_txn":
                self._added(row)
            case "transaction_prepared":
                self._prepared(row)
            case "transaction_completed":
                self._completed(row)
            case "transactional_id_expired":
                self.expired_at_ms = row["at_ms"]
            case "producer_fenced":
                self.fenced_requests += 1
            case "transaction_opened":
                self._opened(row)
            case "transaction_marker_written":
                self._marker_written(row)
            case "offsets_committed":
                self._offsets(row)

    def _epoch(self, epoch: int | None) -> None:
        if epoch is not None:
            self.epochs.append(epoch)

    def _initialized(self, row: Row) -> None:
        self.initializations += 1
        self.timeout_ms = row["transaction_timeout_ms"] or self.timeout_ms
        self._epoch(row["producer_epoch"])
        self._knows_coordinator = row["transactional_id"] is not None
        self._lowest.append((row["at_ms"], row["producer_epoch"] or 0))

    def _added(self, row: Row) -> None:
        self._knows_coordinator = True
        self.timeout_ms = row["transaction_timeout_ms"] or self.timeout_ms
        self._epoch(row["producer_epoch"])
        current = self._current
        if row["event"] == "transaction_started" or current is None:
            current = self._begin(row, row["producer_epoch"])
            if row["event"] == "transaction_started":
                current.started_at_ms = row["at_ms"]
        for each in row["partitions"] or ():
            partition = (each["topic"], each["partition"])
            if partition not in current.logs:
                current.logs[partition] = self._claimed(current, partition, row["at_ms"])
                self._unmarked[partition].append(current)

    def _begin(self, row: Row, epoch: int) -> ObservedTransaction:
        self._current = ObservedTransaction(row, epoch)
        self.transactions.append(self._current)
        return self._current

    def _claimed(self, current: ObservedTransaction, partition: TopicPartition, at_ms: int) -> ObservedLog:
        """A partition of a transaction; its log may have reported it a moment before the coordinator did."""
        for other in self._unmarked[partition]:
            log = other.logs[partition]
            is_same = not other.coordinated and other.producer_epoch == current.producer_epoch
            if is_same and at_ms - (log.opened_at_ms or 0) <= CLOCKS_MS:
                self.transactions.remove(other)
                self._unmarked[partition].remove(other)
                return log
        return ObservedLog()

    def _prepared(self, row: Row) -> None:
        self._knows_coordinator = True
        self._epoch(row["producer_epoch"])
        if self._current is None:
            if row["partition_count"] == 0:
                # Kafka: with version 2 a client may abort what it has not begun.
                return
            self._begin(row, row["producer_epoch"])
        assert self._current is not None
        self._current.prepared = row
        if self._current.started_at_ms is None and row["open_ms"] is not None:
            self._current.started_at_ms = row["at_ms"] - row["open_ms"]
        if row["ended_by"] in ("timeout", "fencing"):
            self._lowest.append((row["at_ms"], row["producer_epoch"] or 0))

    def _completed(self, row: Row) -> None:
        self._knows_coordinator = True
        current = self._current
        if current is None:
            if row["open_ms"] == 0:
                return
            current = self._begin(row, row["producer_epoch"])
        current.completed = row
        if current.started_at_ms is None and row["open_ms"] is not None:
            current.started_at_ms = row["at_ms"] - row["open_ms"] - (row["markers_ms"] or 0)
        self._current = None

    def _opened(self, row: Row) -> None:
        self._epoch(row["producer_epoch"])
        partition = (row["topic"], row["partition"])
        log = ObservedLog(row["first_offset"], row["at_ms"])
        current = self._current
        if current is not None and partition in current.logs and current.producer_epoch == row["producer_epoch"]:
            if current.logs[partition].opened_at_ms is None:
                current.logs[partition] = log
            return
        lowest = max((epoch for at, epoch in self._lowest if at <= row["at_ms"] - CLOCKS_MS), default=0)
        found = ObservedTransaction(
            row,
            row["producer_epoch"],
            coordinated=False if self._knows_coordinator else None,
            fenced=row["producer_epoch"] < lowest,
            started_at_ms=row["at_ms"],
        )
        found.logs[partition] = log
        self.transactions.append(found)
        self._unmarked[partition].append(found)

    def _marker_written(self, row: Row) -> None:
        self._epoch(row["producer_epoch"])
        partition = (row["topic"], row["partition"])
        for transaction in list(self._unmarked[partition]):
            log = transaction.logs[partition]
            is_open = transaction.coordinated and transaction.prepared is None
            if is_open and (row["first_offset"] is None or log.first_offset != row["first_offset"]):
                # Its own marker comes later; with that first offset it is an administrator's, who ends it in the log.
                continue
            log.marker_at_ms = row["at_ms"]
            self._unmarked[partition].remove(transaction)
            if not transaction.coordinated:
                transaction.completed = row

    def _offsets(self, row: Row) -> None:
        current = self._current
        if current is not None and row["group_id"] is not None:
            current.groups.setdefault(row["group_id"])
            current.offsets += len(row["offsets"] or ())

    # --- rows of the tables

    @property
    def transactional_id(self) -> str | None:
        return next(iter(self.names), None)

    def transaction_rows(self) -> Iterator[dict[str, Any]]:
        for transaction in self.transactions:
            yield self._row(transaction)

    def _row(self, transaction: ObservedTransaction) -> dict[str, Any]:
        first, prepared, completed = transaction.first, transaction.prepared, transaction.completed
        decided = prepared or completed
        begin = transaction.started_at_ms
        decided_at = None if prepared is None else prepared["at_ms"]
        ended_at = None if completed is None else completed["at_ms"]
        missing = [log for log in transaction.logs.values() if log.marker_at_ms is None]
        until = decided_at or ended_at or self.ends_at_ms
        return {
            "run_id": self.run_id,
            "day": day_of(first["at_ms"] if begin is None else begin),
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "node": first["node"],
            "started_at_ms": begin,
            "prepared_at_ms": decided_at,
            "ended_at_ms": ended_at,
            "outcome": _outcome(decided, completed),
            "ended_by": None if decided is None else decided["ended_by"],
            "coordinated": transaction.coordinated,
            "fenced": transaction.fenced,
            "transaction_version": None if prepared is None else prepared["transaction_version"],
            "transaction_timeout_ms": self.timeout_ms,
            "open_ms": None if begin is None else until - begin,
            "markers_ms": None if decided_at is None else (ended_at or self.ends_at_ms) - decided_at,
            "held_ms": max((self._held_ms(log) for log in transaction.logs.values()), default=None),
            "partition_count": len(transaction.logs) or (None if decided is None else decided["partition_count"]),
            "missing_markers": 0 if decided is None or completed is not None else len(missing),
            "logs": [
                {
                    "topic": topic,
                    "partition": partition,
                    "first_offset": log.first_offset,
                    "opened_at_ms": log.opened_at_ms,
                    "marker_at_ms": log.marker_at_ms,
                }
                for (topic, partition), log in sorted(transaction.logs.items())
            ],
            "groups": list(transaction.groups),
            "offset_count": transaction.offsets,
            "confidence": first["confidence"],
            **{name: first[name] for name in ("source", "seq", "file", "line")},
        }

    def _held_ms(self, log: ObservedLog) -> int:
        if log.opened_at_ms is None:
            return 0
        return max(0, (log.marker_at_ms or self.ends_at_ms) - log.opened_at_ms)

    def producer_row(self, transactions: list[dict[str, Any]]) -> dict[str, Any]:
        """The producer with its transactions summed up."""
        known = [row for row in transactions if row["coordinated"] is not False]
        decided = sorted(row["open_ms"] for row in known if row["outcome"] != "open" and row["open_ms"] is not None)
        markers = [row["markers_ms"] for row in known if row["markers_ms"] is not None]
        ended = [row["ended_by"] for row in known if row["outcome"] == "aborted"]
        return {
            "run_id": self.run_id,
            "day": day_of(self.first["at_ms"]),
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "first_epoch": min(self.epochs, default=None),
            "last_epoch": max(self.epochs, default=None),
            "transaction_timeout_ms": self.timeout_ms,
            "first_at_ms": self.first["at_ms"],
            "last_at_ms": self.last_at_ms,
            "initializations": self.initializations,
            "transactions": len(known),
            "committed": sum(row["outcome"] == "committed" for row in known),
            "aborted": sum(each not in ("timeout", "fencing") for each in ended),
            "timed_out": ended.count("timeout"),
            "fenced_out": ended.count("fencing"),
            "open": sum(row["outcome"] in ("open", "preparing") for row in known),
            "fenced_requests": self.fenced_requests,
            "p50_ms": decided[(len(decided) - 1) // 2] if decided else None,
            "longest_ms": decided[-1] if decided else None,
            "longest_markers_ms": max(markers, default=None),
            "groups": list(dict.fromkeys(group for row in known for group in row["groups"])),
            "expired_at_ms": self.expired_at_ms,
            "confidence": self.first["confidence"],
        }


def _outcome(decided: Row | None, completed: Row | None) -> str:
    if completed is not None:
        return "committed" if completed["committed"] else "aborted"
    return "open" if decided is None else "preparing"


def histories(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> list[ProducerHistory]:
    """Every producer of the rows, by run and producer id."""
    found: dict[tuple[str, int], ProducerHistory] = {}
    for row in in_order(rows):
        producer_id = row["producer_id"]
        if producer_id is None:
            continue
        key = (row["run_id"], producer_id)
        if key not in found:
            if row["event"] == "offsets_committed":
                # A commit within a transaction that no event of a producer is about.
                continue
            found[key] = ProducerHistory(*key, ends_at_ms.get(row["run_id"], row["at_ms"]))
        found[key].take(row)
    return [found[key] for key in sorted(found)]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Events in the order in which a producer's history takes them in."""
    return sorted(rows, key=lambda row: (row["at_ms"], row["source"], row["node"] or "", row["seq"]))


def tables_of(rows: Iterable[Row], ends_at_ms: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """All tables of transactions, as rows."""
    rows = list(rows)
    transactions: list[dict[str, Any]] = []
    producers: list[dict[str, Any]] = []
    for history in histories(rows, ends_at_ms):
        ours = list(history.transaction_rows())
        transactions += ours
        producers.append(history.producer_row(ours))
    return {"transactions": transactions, "producers": producers, "stable_offsets": sampled(rows)}


def sampled(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of ``stable_offsets``: each event of a log that says where its last stable offset is."""
    return [
        {name: row.get(name) for name in STABLE_OFFSETS.names} | {"day": day_of(row["at_ms"])}
        for row in rows
        if row["event"] in IN_LOGS and row["last_stable_offset"] is not None
    ]


def day_of(at_ms: int) -> date:
    """The day of an instant, in UTC."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).date()
