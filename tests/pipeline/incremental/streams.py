"""Journals of played scenarios as events, cut into steps, and the tables that they make as a whole."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rejoin.pipeline.findings.table import findings
from rejoin.pipeline.incremental.groups import READ
from rejoin.pipeline.incremental.runs import Waits
from rejoin.pipeline.incremental.tables import IncrementalTables
from rejoin.pipeline.reading.journals import events_of_lines
from rejoin.pipeline.schemas import LINES, TABLES
from rejoin.pipeline.share_groups.tables import SHARE_GROUPS
from rejoin.pipeline.streams_groups.tables import STREAMS_GROUPS
from rejoin.pipeline.tables.group_tables import balance, member_sessions, ownership, pauses, rebalances
from rejoin.pipeline.tables.records import ranges_by_partition, records
from rejoin.pipeline.transactions.audits import is_suspicious
from rejoin.pipeline.transactions.schemas import OF_TRANSACTIONS
from rejoin.pipeline.transactions.tables import findings_about, groups_by_topic, transaction_tables
from rejoin.simulation.run import play
from rejoin.simulation.scenario.reading import scenario_from

Row = dict[str, Any]
WAITS = Waits(inactive_ms=61_000, margin_ms=20_000, stale_ms=30_000)
"""Longer than any session of the scenarios, and short enough that rows are settled again and again."""


@cache
def events_of(text: str, seed: int = 1, run_id: str = "run-1") -> pa.Table:
    """The events of a scenario, in the order in which they happened; each scenario is played once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        play(scenario_from(text), seed, journal=path, run_id=run_id)
        return read(path.read_text(encoding="utf-8").splitlines())


def read(lines: Sequence[str]) -> pa.Table:
    """Rows of a journal as events."""
    numbers = range(1, len(lines) + 1)
    rows = [["run.jsonl"] * len(lines), list(numbers), list(lines), [None] * len(lines)]
    events, others = events_of_lines(
        pa.Table.from_arrays([pa.array(each) for each in rows[:3]] + [pa.array(rows[3], pa.string())], LINES.names)
    )
    assert others.num_rows == 0
    order = [(name, "ascending") for name in ("at_ms", "source", "node", "seq")]
    return events.take(pc.sort_indices(events, order)).combine_chunks()


def of_coordinators(events: pa.Table) -> pa.Table:
    """What a watch of running services sees."""
    return events.filter(pc.starts_with(events["node"], "node"))


def cut(events: pa.Table, steps: int, seed: int = 1) -> list[pa.Table]:
    """The events in so many steps, of any lengths."""
    places = random.Random(seed)
    ends = sorted({events.num_rows, *(places.randrange(1, events.num_rows) for _ in range(steps - 1))})
    return [events.slice(begin, end - begin) for begin, end in zip([0, *ends], ends, strict=False)]


def taken_in(
    folder: Path, steps: Sequence[pa.Table], *, restart_every: int = 0, waits: Waits = WAITS
) -> IncrementalTables:
    """The tables after these steps; after every so many the program ends and is started again.

    Each rebalance ends in one step.
    """
    tables = IncrementalTables(folder, waits)
    ended = tables.ended()["rebalance_id"].to_pylist()
    for number, events in enumerate(steps):
        done = tables.take(events, number, everything=number == len(steps) - 1)
        ended += done["rebalance_id"].to_pylist()
        if restart_every and number % restart_every == restart_every - 1:
            tables.save(now=True)
            tables = IncrementalTables(folder, waits)
    assert sorted(ended) == sorted(tables.ended()["rebalance_id"].to_pylist())
    return tables


def written(folder: Path) -> dict[str, list[Row]]:
    """The rows of all tables, as a reader finds them."""
    names = (*READ, *OF_TRANSACTIONS, *SHARE_GROUPS.schemas, *STREAMS_GROUPS.schemas, "findings")
    return {name: pq.read_table(folder / "tables" / name).to_pylist() for name in names}


def whole(events: pa.Table) -> dict[str, list[Row]]:
    """The rows of all tables, made of all events at one time as a report does."""
    made: dict[str, Any] = {"rebalances": rebalances(events)}
    made["member_sessions"] = member_sessions(events, made["rebalances"])
    made["pauses"] = pauses(events, made["rebalances"])
    made["balance"] = balance(events)
    made["ownership"] = ownership(events)
    made["records"] = records(ranges_by_partition(events))
    made |= transaction_tables(events) | SHARE_GROUPS.tables(events) | STREAMS_GROUPS.tables(events)
    found = {name: table.to_pylist() for name, table in made.items()}
    groups = findings(made.__getitem__, events)
    about = findings_about(
        [row for row in found["transactions"] if is_suspicious(row)],
        found["producers"],
        found["readers"],
        lambda: groups_by_topic(found["member_sessions"]),
        lambda names: [row for row in found["rebalances"] if row["group_id"] in names],
    )
    for kind in (SHARE_GROUPS, STREAMS_GROUPS):
        about += kind.judge({name: found[name] for name in kind.schemas})
    more = pa.Table.from_pylist(about, TABLES["findings"])
    return found | {"findings": pa.concat_tables([groups, more]).to_pylist()}


def differing(one: dict[str, list[Row]], other: dict[str, list[Row]]) -> dict[str, tuple[list[str], list[str]]]:
    """Tables that differ, with the rows that only one of them has."""
    found = {}
    for name, rows in one.items():
        left, right = (Counter(map(repr, _comparable(name, each))) for each in (rows, other[name]))
        if left != right:
            found[name] = (list((left - right).elements()), list((right - left).elements()))
    return found


def _comparable(name: str, rows: list[Row]) -> list[Any]:
    if name != "records":
        return rows
    # What was processed twice is cut into other pieces if the ranges that it was compared with had become one.
    sums: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        at_ms = None if row["kind"] == "duplicate" else row["at_ms"]
        place = (row["run_id"], row["group_id"], row["topic"], row["partition"])
        sums[row["kind"], *place, row["member_id"], row["generation"], at_ms] += row["records"]
    return list(sums.items())
