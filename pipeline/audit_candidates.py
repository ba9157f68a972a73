"""Which audits can find anything in little data: the plan of each costs Spark about a second, and most find nothing.

What is asked here is coarser than the audits themselves: where one of them would find something, it is always named.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.audits import (
    COMMITS_NOT_SEEN,
    GENERATIONS_BACK,
    MEMBER_EPOCHS,
    SLACK_MS,
    STATIC_MEMBERS,
    TOLERANCE_MS,
    UNEXPLAINED_GAPS,
)
from rejoin.pipeline.audits_of_owners import TWO_OWNERS

_GENERATIONS: Final = ("rebalance_completed", "join_phase_ended", "group_epoch_bumped")
_COMMIT: Final = "offsets_committed"
_POSITIONS: Final = "positions_found"

Key = tuple[Any, ...]


def audits_to_run(events: pa.Table, rebalances: pa.Table, ownership: pa.Table) -> set[str]:
    """The kinds of violations that there may be, from rows of this process."""
    statics = pc.and_(
        pc.is_valid(rebalances["cause_group_instance_id"]), pc.equal(rebalances["previous_state"], "Stable")
    )
    there_may_be = {
        TWO_OWNERS: _any(pc.greater(ownership["overlap_ms"], 0)),
        UNEXPLAINED_GAPS: any(_gaps_beyond_rebalances(ownership, rebalances)),
        GENERATIONS_BACK: any(_generations_that_fell(events)),
        COMMITS_NOT_SEEN: any(_positions_behind_a_commit(events)),
        STATIC_MEMBERS: _any(statics),
    }
    return {kind for kind, found in there_may_be.items() if found}


def _any(condition: pa.ChunkedArray) -> bool:
    return bool(pc.any(condition).as_py())


def _gaps_beyond_rebalances(ownership: pa.Table, rebalances: pa.Table) -> Iterator[bool]:
    """For each long time without an owner, whether it is longer than the rebalances in it."""
    between = pc.and_(pc.equal(ownership["kind"], "gap"), pc.equal(ownership["end"], "between"))
    gaps = ownership.filter(pc.and_(between, pc.greater(ownership["length_ms"], TOLERANCE_MS)))
    names = ("run_id", "group_id", "prepared_at_ms", "ended_at_ms")
    spans = list(zip(*(rebalances[name].to_pylist() for name in names), strict=True)) if gaps.num_rows else []
    for *group, from_ms, to_ms in zip(
        *(gaps[name].to_pylist() for name in (*names[:2], "from_ms", "to_ms")), strict=True
    ):
        covered = [
            min(ended_ms, to_ms) - max(began_ms, from_ms)
            for run_id, group_id, began_ms, ended_ms in spans
            if [run_id, group_id] == group and ended_ms is not None and began_ms < to_ms and ended_ms > from_ms
        ]
        yield to_ms - from_ms > sum(covered) + TOLERANCE_MS


def _generations_that_fell(events: pa.Table) -> Iterator[bool]:
    """For each generation, whether it is not above the one before, across all incarnations of a group."""
    wanted = events.filter(pc.is_in(events["event"], pa.array([*_GENERATIONS, *MEMBER_EPOCHS])))
    columns = (
        "run_id",
        "group_id",
        "event",
        "at_ms",
        "source",
        "node",
        "seq",
        "generation",
        "member_id",
        "member_epoch",
    )
    rows = zip(*(wanted[name].to_pylist() for name in columns), strict=True)
    highest: dict[Key, int] = {}
    for run, group, event, _, source, node, _, generation, member, epoch in sorted(rows, key=_in_time):
        key: Key = (run, group, event)
        if event == "join_phase_ended":
            key = (run, group, event, source, node)
        number, may_stay = generation, 0
        if event in MEMBER_EPOCHS:
            key, may_stay = (run, group, member), 1
            number = generation if epoch is None else epoch
        if number is None:
            continue
        yield number < highest.get(key, number - 1) + 1 - may_stay
        highest[key] = max(number, highest.get(key, number))


def _in_time(row: Key) -> Key:
    """By the instant; what is compared within one coordinator, by its numbers."""
    run, group, event, at_ms, source, node, seq, *_ = row
    return run, group or "", 0 if event == "join_phase_ended" else at_ms, source, node, seq


def _positions_behind_a_commit(events: pa.Table) -> Iterator[bool]:
    """For each position that a consumer found, whether a commit of long before was further."""
    by_event = {name: events.filter(pc.equal(events["event"], name)) for name in (_COMMIT, _POSITIONS)}
    stored: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    for key, at_ms, seq, offset, _ in _offsets(by_event[_COMMIT]):
        stored[key].append((at_ms, seq, offset))
    for commits in stored.values():
        commits.sort()
    for key, at_ms, _, offset, origin in _offsets(by_event[_POSITIONS]):
        commits = stored.get(key, [])
        before = bisect_right(commits, at_ms - SLACK_MS, key=lambda commit: commit[0])
        yield before > 0 and (offset if origin == "committed" else -1) < commits[before - 1][2]


def _offsets(rows: pa.Table) -> Iterator[tuple[Key, int, int, int, str | None]]:
    """Partition, instant, number, offset and origin of all offsets outside of transactions."""
    rows = rows.filter(pc.and_(pc.is_null(rows["producer_id"]), pc.is_valid(rows["offsets"])))
    if not rows.num_rows:
        return
    offsets = rows["offsets"].combine_chunks()
    rows = rows.select(["run_id", "group_id", "at_ms", "seq", "origin"]).take(pc.list_parent_indices(offsets))
    at = pc.list_flatten(offsets)
    parts = (pc.struct_field(at, name).to_pylist() for name in ("topic", "partition", "offset"))
    for run, group, at_ms, seq, origin, topic, partition, offset in zip(
        *(column.to_pylist() for column in rows.columns), *parts, strict=True
    ):
        yield (run, group, topic, partition), at_ms, seq, offset, origin
