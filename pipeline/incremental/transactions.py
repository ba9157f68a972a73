"""Transactions and producers, step by step: of each producer the events since its oldest transaction that goes on.

A transaction that hangs for ever keeps all later events of its producer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.incremental.runs import SCHEMA, ObservedRuns
from rejoin.pipeline.transactions import readers
from rejoin.pipeline.transactions.audits import is_suspicious
from rejoin.pipeline.transactions.histories import COLUMNS, READ, ProducerHistory, day_of, in_order, sampled
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS

Row = dict[str, Any]
Key = tuple[str, int]
"""Run and producer id."""

_SUMS: Final = (
    *("initializations", "transactions", "committed", "aborted", "timed_out", "fenced_out", "open", "fenced_requests"),
)
_OVER: Final = ("committed", "aborted")


class Producers:
    """The producers of all runs."""

    def __init__(self, runs: ObservedRuns) -> None:
        self._runs = runs
        self.kept: pa.Table = SCHEMA.empty_table()
        self.compared: pa.Table = SCHEMA.empty_table()
        """Events of readers, from simulations."""
        self.so_far: dict[Key, tuple[Row, Counter[int]]] = {}
        """Rows of the producers without the events that are kept, and how long their transactions were open."""
        self.rows: dict[Key, Row] = {}
        self.open: dict[Key, list[Row]] = {}
        """Rows of transactions that are not settled."""
        self.suspicious: list[Row] = []
        """Settled rows of transactions that rules look at."""

    def add(self, events: pa.Table, *, everything: bool) -> dict[str, pa.Table]:
        """Take in the events of a step; returns settled rows by table."""
        ours = events.filter(pc.and_(pc.is_in(events["event"], pa.array(READ)), pc.is_valid(events["producer_id"])))
        self.kept = pa.concat_tables([self.kept, ours])
        compared = events.filter(pc.equal(events["event"], readers.EVENT))
        self.compared = pa.concat_tables([self.compared, compared])
        touched = set(_keys(self.kept if everything else ours))
        settled = self._settle(touched) if touched else []
        samples = sampled(ours.select(COLUMNS).to_pylist()) if ours.num_rows else []
        return {"transactions": _table("transactions", settled), "stable_offsets": _table("stable_offsets", samples)}

    def tables(self) -> dict[str, pa.Table]:
        """The rows that are open, of all tables."""
        compared = readers.rows_of(self.compared.to_pylist())
        return {
            "transactions": _table("transactions", [row for key in sorted(self.open) for row in self.open[key]]),
            "producers": _table("producers", [self.rows[key] for key in sorted(self.rows)]),
            "stable_offsets": _table("stable_offsets", []),
            "readers": _table("readers", compared),
        }

    def to_judge(self) -> list[Row]:
        """The transactions that rules look at."""
        return [*self.suspicious, *(row for rows in self.open.values() for row in rows if is_suspicious(row))]

    def _settle(self, touched: set[Key]) -> list[Row]:
        is_touched = pa.array([key in touched for key in _keys(self.kept)], pa.bool_())
        rows: dict[Key, list[Row]] = {}
        for row in in_order(self.kept.filter(is_touched).to_pylist()):
            rows.setdefault((row["run_id"], row["producer_id"]), []).append(dict(row))
        settled: list[Row] = []
        left: list[Row] = []
        for key, ours in rows.items():
            if ours[0]["event"] == "offsets_committed" and all(row["event"] == "offsets_committed" for row in ours):
                left += ours
                continue
            over, kept = self._of_producer(key, ours)
            settled += over
            left += kept
        self.kept = pa.concat_tables([self.kept.filter(pc.invert(is_touched)), pa.Table.from_pylist(left, SCHEMA)])
        self.suspicious += [row for row in settled if is_suspicious(row)]
        return settled

    def _of_producer(self, key: Key, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """Rows of one producer's transactions that are settled, and the events that are still needed."""
        run = self._runs.known[key[0]]
        history = _history(key, rows, run.end_ms)
        before_ms = self._runs.settled_before(key[0])
        numbers = {id(row): number for number, row in enumerate(rows)}
        begins = [
            numbers[id(each.first)]
            for each in history.transactions
            if not (each.is_over and each.completed is not None and each.completed["at_ms"] < before_ms)
        ]
        begins += [number for number, row in enumerate(rows) if row["at_ms"] >= before_ms][:1]
        cut = min(begins, default=len(rows))
        made = list(history.transaction_rows())
        is_early = [numbers[id(each.first)] < cut for each in history.transactions]
        over = [row for row, early in zip(made, is_early, strict=True) if early]
        self.open[key] = [row for row, early in zip(made, is_early, strict=True) if not early]
        self.rows[key] = _merged(self.so_far.get(key), history.producer_row(made), made)[0]
        if not any(row["event"] != "offsets_committed" for row in rows[:cut]):
            return [], list(rows)
        initialized = [row for row in rows[:cut] if row["event"] == "producer_id_initialized"][-1:]
        earlier = _history(key, rows[:cut], run.end_ms)
        rows_so_far = list(earlier.transaction_rows())
        row, lengths = _merged(self.so_far.get(key), earlier.producer_row(rows_so_far), rows_so_far)
        row["initializations"] -= len(initialized)
        self.so_far[key] = row, lengths
        return over, [*initialized, *rows[cut:]]

    # -- on disk

    def as_json(self) -> list[Any]:
        """State of the producers beside their events."""
        return [[*key, _json(row), sorted(lengths.items())] for key, (row, lengths) in self.so_far.items()]

    def as_tables(self) -> dict[str, pa.Table]:
        """Their events and rows, and the settled transactions that rules look at."""
        made = self.tables()
        return {
            "producers": made["producers"],
            "open": made["transactions"],
            "kept": self.kept,
            "compared": self.compared,
            "suspicious": _table("transactions", self.suspicious),
        }

    def restore(self, known: Iterable[Any], kept: Mapping[str, pa.Table]) -> None:
        """Restore the state from :meth:`as_json` and :meth:`as_tables`."""
        self.kept, self.compared = kept["kept"], kept["compared"]
        self.suspicious = kept["suspicious"].to_pylist()
        self.so_far = {(run, number): (row, Counter(dict(lengths))) for run, number, row, lengths in known}
        for row in kept["producers"].to_pylist():
            self.rows[row["run_id"], row["producer_id"]] = row
        for row in kept["open"].to_pylist():
            self.open.setdefault((row["run_id"], row["producer_id"]), []).append(row)


def _json(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "day"}


def _history(key: Key, rows: Iterable[Row], ends_at_ms: int) -> ProducerHistory:
    history = ProducerHistory(*key, ends_at_ms)
    for row in rows:
        if history.first or row["event"] != "offsets_committed":
            history.take(row)
    return history


def _merged(so_far: tuple[Row, Counter[int]] | None, row: Row, transactions: Iterable[Row]) -> tuple[Row, Counter[int]]:
    """A producer's row with what was known before, and the lengths of its transactions."""
    decided = (
        each["open_ms"] for each in transactions if each["coordinated"] is not False and each["outcome"] != "open"
    )
    lengths = Counter(length for length in decided if length is not None)
    if so_far is None:
        return row, lengths
    before, lengths = so_far[0], so_far[1] + lengths
    merged = row | {name: before[name] + row[name] for name in _SUMS}
    merged |= {name: before[name] for name in ("first_at_ms", "confidence")}
    merged |= {name: before[name] for name in ("transactional_id", "transaction_timeout_ms") if merged[name] is None}
    for name, choose in (
        *(("first_epoch", min), ("last_epoch", max), ("longest_ms", max), ("longest_markers_ms", max)),
        *(("last_at_ms", max), ("expired_at_ms", max)),
    ):
        merged[name] = choose((each[name] for each in (before, row) if each[name] is not None), default=None)
    merged["groups"] = list(dict.fromkeys((*before["groups"], *row["groups"])))
    merged["p50_ms"] = _median(lengths)
    merged["day"] = day_of(merged["first_at_ms"])
    return merged, lengths


def _median(lengths: Counter[int]) -> int | None:
    """The lower one of two."""
    rest = (lengths.total() - 1) // 2
    for length, times in sorted(lengths.items()):
        if rest < times:
            return length
        rest -= times
    return None


def _keys(events: pa.Table) -> Iterable[Key]:
    return zip(events["run_id"].to_pylist(), events["producer_id"].to_pylist(), strict=True)


def _table(name: str, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, OF_TRANSACTIONS[name])
