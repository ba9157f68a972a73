"""Records that were processed once, again, or never, by the ranges that consumers processed.

A commit is a position, not what was processed, so duplicates and losses come from ``records_processed`` alone. Ranges
are half open. By their beginning: a range that begins before the furthest end of all earlier ones is a duplicate up to
that end; one that begins behind it leaves lost records in between. Committed past the last processed record is lost,
too. The log counts from the first position of any consumer of the group. Records that a
consumer has in hand at the end of a simulation are neither.

There are many ranges in a journal, so they are not followed one by one: those of some groups are columns at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.schemas import PROGRESS, RECORDS
from rejoin.pipeline.tables.common import PARTITION, by_partition, exploded, highest_before, ints
from rejoin.pipeline.tables.groups.rows import RowValues, date_of
from rejoin.pipeline.tables.runs import Runs, runs_of
from rejoin.pipeline.tables.whole_groups import (
    Rows,
    batch_of,
    events_of_groups,
    made_of_batches,
    made_of_groups,
    values_of,
)
from rejoin.pipeline.vocabulary import EXACT, INFERRED

_WHO: Final = ("at_ms", "member_id", "client_id", "generation")
_RANGES: Final = ("records_processed", "records_in_hand")
_POSITIONS: Final = ("positions_found", "commit_succeeded")
EVENTS_READ: Final = (*_RANGES, *_POSITIONS)
_READS: Final = (*_WHO, "seq", "event", "ranges", "offsets")

_RANGE: Final = pa.struct(
    [
        *(("kind", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("at_ms", pa.int64())),
        *(("member_id", pa.string()), ("client_id", pa.string()), ("generation", pa.int32())),
    ]
)
_SWEPT: Final = pa.schema(
    [
        *(("run_id", pa.string()), ("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
        *((name, pa.int64()) for name in ("first_offset", "reached", "done_to", "committed")),
        *((name, pa.int64()) for name in ("handled", "twice", "skipped", "first_at_ms")),
        *(("ranges", pa.list_(_RANGE)), ("is_complete", pa.bool_())),
    ]
)
"""Of :func:`ranges_by_partition`."""


def ranges_by_partition(events: Rows, runs: Runs | None = None) -> Rows:
    """One row for each partition that was read, from which both tables are made.

    Sums of its ranges; those processed again, passed over or in hand; its first position and furthest commit.
    """
    runs = runs_of(events) if runs is None else runs
    complete = {run_id for run_id, run in runs.items() if run.is_complete}
    rows = events_of_groups(events, EVENTS_READ, _READS)
    return made_of_groups(rows, partial(_of_some_groups, complete=complete), _SWEPT)


def records(ranges: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.RECORDS` from :func:`ranges_by_partition`."""
    return made_of_batches(ranges, _records, RECORDS)


def progress(ranges: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.PROGRESS` from :func:`ranges_by_partition`."""
    return made_of_batches(ranges, _progress, PROGRESS)


def _records(ranges: pa.RecordBatch) -> pa.RecordBatch:
    rows = []
    for run_id, *place, found in values_of(ranges.select([*PARTITION, "ranges"])):
        for each in found:
            kind, start, end, *who = each.values()
            confidence = INFERRED if kind == "in-hand" else EXACT
            rows.append((run_id, date_of(who[0]), *place, kind, start, end, end - start, *who, confidence))
    return batch_of(rows, RECORDS)


def _progress(ranges: pa.RecordBatch) -> pa.RecordBatch:
    return batch_of([_progress_of(row) for row in ranges.drop_columns(["ranges"]).to_pylist()], PROGRESS)


def _progress_of(row: dict[str, Any]) -> RowValues:
    reached, committed = row["reached"], row["committed"]
    past = max((reached if committed is None else committed) - reached, 0)
    lost, in_hand = (past, 0) if row["is_complete"] else (0, past)
    return (
        row["run_id"],
        date_of(row["first_at_ms"]),
        *(row[name] for name in ("group_id", "topic", "partition", "first_offset")),
        row["first_offset"] if row["done_to"] is None else row["done_to"],
        committed,
        row["handled"] - row["twice"],
        row["twice"],
        row["skipped"] + lost,
        in_hand,
        EXACT,
    )


def _of_some_groups(rows: pa.Table, complete: Collection[str]) -> Iterator[pa.RecordBatch]:
    """One row for each partition, from all that was read of some groups."""
    found = _positions(rows)
    for partition, ranges in _ranges(rows, found):
        found.setdefault(partition, {}).update(ranges)
    made = [_row(partition, known, is_complete=partition[0] in complete) for partition, known in found.items()]
    yield pa.RecordBatch.from_pylist(made, _SWEPT)


def _row(partition: RowValues, known: dict[str, Any], *, is_complete: bool) -> dict[str, Any]:
    """A partition's row, from what is known of its positions and of its ranges."""
    first, committed = known.get("first_offset"), known.get("committed")
    begins = [offset for offset in (known.get("log_begins"), first, 0) if offset is not None]
    reached = known.get("furthest", first or 0)
    instants = [known.get(name) for name in ("done_at_ms", "began_at_ms", "committed_at_ms")]
    ranges = list(known.get("ranges", ()))
    if committed is not None and committed > reached:
        ranges.append(_range("lost" if is_complete else "in-hand", reached, committed, known["committer"]))
    return {
        **dict(zip(PARTITION, partition, strict=True)),
        "first_offset": begins[0],
        "reached": reached,
        "done_to": known.get("done_to"),
        "committed": committed,
        **{name: known.get(name, 0) for name in ("handled", "twice", "skipped")},
        "first_at_ms": min(at_ms for at_ms in instants if at_ms is not None),
        "ranges": ranges,
        "is_complete": is_complete,
    }


def _range(kind: str, start: int, end: int, who: RowValues) -> dict[str, Any]:
    return {"kind": kind, "start": start, "end": end, **dict(zip(_WHO, who, strict=True))}


def _positions(rows: pa.Table) -> dict[RowValues, dict[str, Any]]:
    """By partition: the first position read, and the furthest commit."""
    each = exploded(rows.filter(pc.is_in(rows["event"], pa.array(_POSITIONS))).drop_columns(["ranges"]), "offsets")
    found: dict[RowValues, dict[str, Any]] = {}
    for event, which, name, at_name in (
        ("positions_found", "min", "first_offset", "began_at_ms"),
        ("commit_succeeded", "max", "committed", "committed_at_ms"),
    ):
        ours = each.filter(pc.equal(each["event"], event))
        sums = ours.group_by(list(PARTITION)).aggregate([("offset", which), ("at_ms", "min")])
        for *partition, offset, at_ms in values_of(sums.select([*PARTITION, f"offset_{which}", "at_ms_min"])):
            found.setdefault(tuple(partition), {}).update({name: offset, at_name: at_ms})
    commits, fresh = by_partition(each.filter(pc.equal(each["event"], "commit_succeeded")), ("offset", *_WHO))
    last = pa.array(np.append(fresh[1:], fresh[:1]))
    for run_id, group_id, topic, partition, *who in values_of(commits.filter(last).select([*PARTITION, *_WHO])):
        found[run_id, group_id, topic, partition]["committer"] = tuple(who)
    return found


def _ranges(rows: pa.Table, positions: dict[RowValues, dict[str, Any]]) -> Iterator[tuple[RowValues, dict[str, Any]]]:
    """By partition: sums of its ranges, those processed again, and those that were passed over."""
    each = exploded(rows.filter(pc.is_in(rows["event"], pa.array(_RANGES))).drop_columns(["offsets"]), "ranges")
    each, fresh = by_partition(each, ("start", "at_ms", "seq"))
    if not each.num_rows:
        return
    firsts = np.flatnonzero(fresh)
    number = np.cumsum(fresh) - 1
    partitions = list(values_of(each.take(firsts).select(list(PARTITION))))
    start, end, at_ms = (ints(each[name]) for name in ("start", "end", "at_ms"))
    done = ints(pc.equal(each["event"], "records_processed")) > 0
    # The furthest end before each range; of the equal ones, that of the later consumer.
    furthest = pc.sort_indices(each, [(name, "ascending", "at_start") for name in ("end", *_WHO)])
    by_rank = furthest.to_numpy().astype(np.int64)
    ranks = np.empty(len(by_rank), dtype=np.int64)
    ranks[by_rank] = np.arange(len(by_rank))
    of_any, of_done = (highest_before(each_rank, fresh) for each_rank in (ranks, np.where(done, ranks, -1)))
    found = [positions.get(partition, {}).get("first_offset") for partition in partitions]
    begins = np.array([begin if at is None else min(begin, at) for begin, at in zip(start[firsts], found, strict=True)])
    begin = begins[number]
    reached = np.where(of_any >= 0, np.maximum(end[by_rank[of_any]], begin), begin)
    again = np.where(of_done >= 0, end[by_rank[of_done]], start)
    twice = np.where(done, np.maximum(np.minimum(end, again) - start, 0), 0)
    skipped = np.maximum(start - reached, 0)

    def sums(values: Any) -> list[int]:
        return np.add.reduceat(values, firsts).tolist()  # type: ignore[no-any-return]

    processed_to = np.maximum.reduceat(np.where(done, end, np.iinfo(np.int64).min), firsts)
    any_done = np.maximum.reduceat(done, firsts)
    ranges = _found(each, number, done & (start < again), skipped > 0, by_rank[of_done], reached)
    columns = zip(
        *(sums(values) for values in (np.where(done, end - start, 0), twice, skipped)),
        np.maximum.reduceat(end, firsts).tolist(),
        begins.tolist(),
        np.minimum.reduceat(at_ms, firsts).tolist(),
        strict=True,
    )
    names = ("handled", "twice", "skipped", "furthest", "log_begins", "done_at_ms")
    for at, (partition, values) in enumerate(zip(partitions, columns, strict=True)):
        done_to = int(processed_to[at]) if any_done[at] else None
        known = dict(zip(names, values, strict=True)) | {"done_to": done_to, "ranges": ranges.get(at, [])}
        yield partition, known


def _found(each: pa.Table, number: Any, again: Any, missed: Any, before: Any, reached: Any) -> dict[int, list[Any]]:
    """By the number of a partition: ranges processed ``again`` after the one ``before``, and those that were missed."""
    found: dict[int, list[Any]] = {}
    rows = each.select([*("start", "end"), *_WHO])
    for is_duplicate, which in ((True, again), (False, missed)):
        at = np.flatnonzero(which)
        earlier = values_of(rows.take(before[at]))
        for row, (start, end, *who), (_, until, *other) in zip(at, values_of(rows.take(at)), earlier, strict=True):
            made = (
                # The later of the two processed it again.
                _range("duplicate", start, min(end, until), max(tuple(who), tuple(other), key=_nulls_first))
                if is_duplicate
                else _range("lost", int(reached[row]), start, tuple(who))
            )
            found.setdefault(int(number[row]), []).append(made)
    return found


def _nulls_first(who: RowValues) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in who)
