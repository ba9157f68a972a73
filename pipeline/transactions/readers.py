"""Deliveries to verifying readers of the records that went into transforms: at most, at least, or exactly once.

The laboratory alone can say it: it knows every record that went in. Other journals have no such event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rejoin.pipeline.findings.finding import HIGH, MEDIUM, Finding
from rejoin.pipeline.findings.formatting import count, names
from rejoin.pipeline.transactions.histories import day_of
from rejoin.pipeline.transactions.schemas import READERS

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]

EVENT: Final = "records_compared"
COUNTS: Final = tuple(name for name in READERS.names if name.startswith("records_"))
COLUMNS: Final = ("reader", "isolation_level", "topics", "transform_groups", "commit_modes", *COUNTS)
"""Columns of the event, beside its envelope."""

OUTPUT_LOST: Final = "output-lost"
OUTPUT_REPEATED: Final = "output-repeated"
ABORTED_READ: Final = "aborted-records-read"
NAMES: Final = (OUTPUT_LOST, OUTPUT_REPEATED, ABORTED_READ)

_IN_TRANSACTIONS: Final = (
    "send the offsets with the results in one transaction (send_offsets_to_transaction), and read with "
    "isolation.level=read_committed: then each record comes out once."
)
_ADVICE: Final = {
    "before": "set one, and " + _IN_TRANSACTIONS + " Committing after the work loses nothing, and repeats some.",
    "auto": "set one, and " + _IN_TRANSACTIONS + " Or set enable.auto.commit to false, and commit after the work.",
}
"""By how a group commits."""


def rows_of(events: Iterable[Row]) -> Rows:
    """Rows of the table ``readers``."""
    found = [{name: row.get(name) for name in READERS.names} | _computed(row) for row in events]
    return sorted(found, key=lambda row: (row["run_id"], row["reader"]))


def _computed(row: Row) -> dict[str, Any]:
    return {"day": day_of(row["at_ms"]), "delivery": _delivery(row)}


def _delivery(row: Row) -> str:
    if row["records_lost"]:
        return "neither" if row["records_twice"] else "at most once"
    return "at least once" if row["records_twice"] or row["records_aborted"] else "exactly once"


def reader_findings(rows: Iterable[Row]) -> Rows:
    """Rows of the table ``findings``: what readers lack, what they got twice, and what was aborted."""
    found = []
    for row in rows:
        groups = list(row["transform_groups"] or ())
        for each in _findings_of(row, groups):
            place = {"run_id": row["run_id"], "day": row["day"], "group_id": groups[0] if len(groups) == 1 else None}
            found.append({**place, **each.row(), "groups": groups, "transactional_ids": None})
    return found


def _findings_of(row: Row, groups: list[str]) -> Iterator[Finding]:
    modes = list(row["commit_modes"] or ())
    numbers = {name: row[name] for name in COUNTS}
    where = f"{row['reader']} ({row['isolation_level']})"
    by = names(groups) or "its transforms"
    common: dict[str, Any] = {
        "cost_s": 0.0,
        "from_ms": row["at_ms"],
        "to_ms": row["at_ms"],
        "numbers": numbers,
        "members": [row["reader"]],
    }
    went_in = f"{count(row['records_in'], 'record')} went in"
    if row["records_lost"]:
        yield Finding(
            finding=OUTPUT_LOST,
            title=f"{count(row['records_lost'], 'record')} of {by} never came out",
            text=f"{went_in}, and {row['records_lost']:,} of them are committed as processed, but {where} finds no "
            "result of theirs.",
            setting="transactional.id",
            advice=_ADVICE.get(next(iter(modes), ""), "set one, and " + _IN_TRANSACTIONS),
            severity=HIGH,
            **common,
        )
    if row["records_aborted"]:
        yield Finding(
            finding=ABORTED_READ,
            title=f"{row['reader']} read {count(row['records_aborted'], 'record')} of aborted transactions",
            text=f"{went_in}. {where} got {row['records_aborted']:,} results of transactions that were aborted; each "
            "comes again with the transaction that is committed.",
            setting="isolation.level",
            advice="set to read_committed.",
            severity=MEDIUM,
            **common,
        )
    elif row["records_twice"]:
        yield Finding(
            finding=OUTPUT_REPEATED,
            title=f"{count(row['records_twice'], 'record')} of {by} came out again",
            text=f"{went_in}. {where} got {row['records_twice']:,} results more than once: after a crash or a lost "
            "answer, records were processed again whose offsets were not committed yet.",
            setting="transactional.id",
            advice="set one, and " + _IN_TRANSACTIONS,
            severity=MEDIUM,
            **common,
        )
