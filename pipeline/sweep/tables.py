"""The results of a run: one row, and the definition of each of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StringType, StructField, StructType

from rejoin.simulation.output.summary import GroupSummary

OK: Final = "ok"
FAILED: Final = "failed"


class Measure(NamedTuple):
    """A number of a group: its column, what it is, how groups' numbers come to a run's, and the number itself."""

    name: str
    words: str
    total: Callable[[Iterable[int]], int]
    of: Callable[[GroupSummary], int]


def _longest(values: Iterable[int]) -> int:
    return max(values, default=0)


MEASURES: Final = (
    Measure("rebalances", "Rebalances that began.", sum, lambda group: group.started),
    Measure("completed", "Rebalances that came to an end.", sum, lambda group: group.completed),
    Measure("longest_rebalance_ms", "The longest rebalance.", _longest, lambda group: group.longest_rebalance_ms),
    Measure("rebalancing_ms", "All rebalances together.", sum, lambda group: group.rebalancing_ms),
    Measure("moved", "Partitions that changed their owner.", sum, lambda group: group.moved),
    Measure("static_returns", "Static members that came back.", sum, lambda group: group.static_returns),
    Measure("fenced", "Requests of a member whose instance id another one has.", sum, lambda group: group.fenced),
    Measure("stopped_ms", "Consumers' ms without any partition, waiting.", sum, lambda group: group.stopped_ms),
    Measure("unowned_ms", "Partitions' ms without an owner.", sum, lambda group: group.unowned_ms),
    Measure("worst_unowned_ms", "The longest without an owner.", _longest, lambda group: group.worst_unowned_ms),
    Measure("first_owned_ms", "When partitions had an owner first; 0: never.", _longest, lambda g: g.first_owned_ms),
    Measure("processed", "Records processed, each counted once.", sum, lambda group: group.processed),
    Measure("late", "Records processed later than the scenario allows.", sum, lambda group: group.late),
    Measure("twice", "Records processed again.", sum, lambda group: group.twice),
    Measure("lost", "Records committed and never processed.", sum, lambda group: group.lost),
    Measure("out_twice", "Copies of transformed records that a reader got.", sum, lambda group: group.out_twice),
    Measure("out_lost", "Records that a transform never gave to its reader.", sum, lambda group: group.out_lost),
    Measure("behind", "Records still to be processed at the end.", sum, lambda group: group.behind),
)
"""Lengths are ms. All are counted from the grid's ``count_from`` on, but for ``first_owned_ms``."""

COUNTS: Final[tuple[tuple[str, str, Callable[[GroupSummary], dict[str, int]]], ...]] = (
    ("rebalances_by_cause", "How often a rebalance began, by cause.", lambda group: group.rebalances),
    ("removed_by_cause", "Members that were removed, by cause.", lambda group: group.removed),
)

HOW: Final = ("wall_ms", "executor", "pid")
"""Columns about how a run was played, not its results; no two sweeps agree on them."""

_MAP: Final = MapType(StringType(), LongType(), valueContainsNull=False)


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, True, {"comment": comment})


_NUMBERS: Final = [_column(each.name, LongType(), each.words) for each in MEASURES]
_COUNTS: Final = [_column(name, _MAP, words) for name, words, _ in COUNTS]

RUNS: Final = StructType(
    [
        _column("run_key", StringType(), "Of everything that the result depends on, but for the code."),
        _column("seed", LongType(), "The seed."),
        _column("status", StringType(), "ok | failed."),
        _column("error", StringType(), "What went wrong; null if nothing did."),
        _column("code_version", StringType(), "Of the code that played it."),
        _column("horizon_ms", LongType(), "Length of the run."),
        _column("steps", LongType(), "Things that happened in the laboratory."),
        *_NUMBERS,
        *_COUNTS,
        _column(
            "groups",
            ArrayType(StructType([_column("group_id", StringType(), "The group."), *_NUMBERS, *_COUNTS]), False),
            "The same numbers for each group.",
        ),
        _column("wall_ms", LongType(), "How long it took to play."),
        _column("executor", StringType(), "Who played it: an executor's id, or local."),
        _column("pid", LongType(), "The process that played it."),
    ]
)
"""One row a run."""

JOURNAL: Final = "journal"
PLAYED: Final = StructType(
    [*RUNS.fields, _column(JOURNAL, StringType(), "The run's journal, JSON lines; null unless asked for.")]
)
"""The output of a task: a row, and the run's journal."""


def arrow_schema(table: StructType) -> pa.Schema:
    """The table's columns for Arrow."""
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in table.fields])


def numbers(group: GroupSummary) -> dict[str, Any]:
    """A group's part of a row."""
    row: dict[str, Any] = {measure.name: measure.of(group) for measure in MEASURES}
    for name, _, counts in COUNTS:
        row[name] = sorted(counts(group).items())
    return row


def totals(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of all groups together."""
    row: dict[str, Any] = {each.name: each.total(group[each.name] for group in groups) for each in MEASURES}
    for name, _, _ in COUNTS:
        added: dict[str, int] = {}
        for group in groups:
            for cause, count in group[name]:
                added[cause] = added.get(cause, 0) + count
        row[name] = sorted(added.items())
    return row


def _arrow_type(kind: DataType) -> pa.DataType:
    match kind:
        case StringType():
            return pa.string()
        case LongType():
            return pa.int64()
        case MapType():
            return pa.map_(_arrow_type(kind.keyType), pa.field("value", _arrow_type(kind.valueType), nullable=False))
        case ArrayType():
            return pa.list_(pa.field("element", _arrow_type(kind.elementType), nullable=False))
        case StructType():
            return pa.struct([pa.field(field.name, _arrow_type(field.dataType)) for field in kind.fields])
        case _:
            raise AssertionError(f"no column has the type {kind}")
