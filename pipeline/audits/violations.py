"""The table ``violations`` by all audits, with Spark or in this process.

Both drivers bring the rows of each group to :func:`violations_of`. A journal has very many commits and intervals of
ownership, and nearly all are in order: those of partitions in which nothing can be wrong are left out first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.audits.commits import COMMIT, GROUP_DELETED, POSITION, SLACK_MS, commits_not_seen
from rejoin.pipeline.audits.commits import EVENTS_READ as OF_OFFSETS
from rejoin.pipeline.audits.gaps import TOLERANCE_MS, unexplained_gaps
from rejoin.pipeline.audits.generations import EVENTS_READ as OF_GENERATIONS
from rejoin.pipeline.audits.generations import generations_that_went_back
from rejoin.pipeline.audits.owners import POLL_TIMEOUT, two_owners
from rejoin.pipeline.audits.rows import EVIDENCE, AuditedGroup
from rejoin.pipeline.audits.static_members import static_members_that_rebalanced
from rejoin.pipeline.schemas import VIOLATIONS
from rejoin.pipeline.tables.common import (
    GROUP,
    PARTITION,
    by_partition,
    exploded,
    highest_before,
    ints,
)
from rejoin.pipeline.tables.groups.rows import Row
from rejoin.pipeline.tables.whole_groups import Rows, batch_of, events_of_groups

AUDITS: Final[tuple[Callable[[AuditedGroup], Iterable[Row]], ...]] = (
    two_owners,
    unexplained_gaps,
    generations_that_went_back,
    commits_not_seen,
    static_members_that_rebalanced,
)
_EVENTS: Final = (*OF_GENERATIONS, GROUP_DELETED, POLL_TIMEOUT)
_OF_EVENT: Final = (*EVIDENCE, "generation", "member_id", "confidence")
_OF_OFFSETS: Final = ("topic", "partition", "offset", "origin")
_PARTS: Final = {
    "events": (*_OF_EVENT, "member_epoch"),
    "offsets": (*_OF_EVENT, *_OF_OFFSETS),
    "rebalances": (
        *(
            "rebalance_id",
            "source",
            "node",
            "file",
            "line",
            "prepared_at_ms",
            "ended_at_ms",
            "generation_from",
            "cause",
        ),
        *("cause_member_id", "cause_group_instance_id", "client_reason", "previous_state", "confidence"),
    ),
    "sessions": (
        *("member_id", "group_instance_id", "session_timeout_ms", "ended_at_ms", "end", "leave_reason"),
        *("previous_end", "away_ms"),
    ),
    "intervals": (
        *("topic", "partition", "kind", "from_ms", "to_ms", "length_ms", "end", "owner", "overlaps_owner"),
        *("overlap_ms", "member_id", "generation", "confidence", "from_source", "from_seq", "node", "file", "line"),
    ),
}
"""Rows of :class:`AuditedGroup` with their columns."""


def violations_of(group: AuditedGroup) -> Iterator[Row]:
    """Rows of the table about one group."""
    return chain.from_iterable(audit(group) for audit in AUDITS)


def violations(events: Rows, rebalances: Rows, ownership: Rows, member_sessions: Rows) -> Rows:
    """:data:`rejoin.pipeline.schemas.VIOLATIONS` from the events and tables made of them."""
    parts = {
        "events": events_of_groups(events, _EVENTS, _PARTS["events"]),
        "offsets": _offsets(events),
        "rebalances": rebalances,
        "sessions": member_sessions,
        "intervals": _of_doubtful_partitions(ownership),
    }
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.audits import on_spark  # noqa: PLC0415 (only where rows are Spark's)

        return on_spark.audited(parts, _PARTS, _audited)
    tables = {name: table.select([*GROUP, *_PARTS[name]]) for name, table in parts.items()}
    return pa.Table.from_batches([_audited(tables)])


def _audited(parts: Mapping[str, pa.Table]) -> pa.RecordBatch:
    groups: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name, table in parts.items():
        for row in table.to_pylist():
            groups[row["run_id"], row["group_id"] or ""][name].append(row)
    found = (
        violations_of(AuditedGroup(run_id, group_id, **groups[run_id, group_id])) for run_id, group_id in sorted(groups)
    )
    return batch_of(list(chain.from_iterable(found)), VIOLATIONS)


# -- rows in which something may be wrong


def _of_doubtful_partitions(ownership: Rows) -> Rows:
    """Intervals of the partitions that have any overlap or any long time between two owners."""
    if not isinstance(ownership, pa.Table):
        from rejoin.pipeline.audits import on_spark  # noqa: PLC0415

        return on_spark.of_doubtful_partitions(ownership)
    gap = pc.and_(pc.equal(ownership["kind"], "gap"), pc.equal(ownership["end"], "between"))
    gap = pc.and_(gap, pc.greater(ownership["length_ms"], TOLERANCE_MS))
    return _of_partitions(ownership, pc.or_kleene(gap, pc.greater(ownership["overlap_ms"], 0)))


def _of_partitions(rows: pa.Table, doubtful: pa.Array | pa.ChunkedArray) -> pa.Table:
    """All rows of the partitions that have any such row."""
    few = rows.filter(doubtful)
    if not few.num_rows:
        return few
    known = set(zip(*(few[name].to_pylist() for name in PARTITION), strict=True))
    keys = zip(*(rows[name].to_pylist() for name in PARTITION), strict=True)
    return rows.filter(pa.array([key in known for key in keys]))


def _offsets(events: Rows) -> Rows:
    """Offsets of the partitions of which any position is behind any commit of long before: of most runs none."""
    # Within a transaction they count from its end, which is another event.
    if not isinstance(events, pa.Table):
        from rejoin.pipeline.audits import on_spark  # noqa: PLC0415

        return on_spark.offsets(events, _OF_EVENT)
    outside = events.filter(pc.is_in(events["event"], pa.array(OF_OFFSETS)))
    outside = outside.filter(pc.is_null(outside["producer_id"])).select([*GROUP, *_OF_EVENT, "origin", "offsets"])
    each = exploded(outside, "offsets")
    is_position = pc.equal(each["event"], POSITION)
    # A commit counts for a position that is found so long after it.
    counts_at = pc.add(each["at_ms"], pc.if_else(is_position, 0, SLACK_MS))
    rows = each.append_column("counts_at", counts_at).append_column("is_position", is_position)
    each, fresh = by_partition(rows, ("counts_at", "is_position"))
    offsets, positions = ints(each["offset"]), ints(each["is_position"]) > 0
    committed = np.where(ints(pc.equal(each["event"], COMMIT)) > 0, offsets, -1)
    shown = np.where(ints(pc.fill_null(pc.equal(each["origin"], "committed"), False)) > 0, offsets, -1)
    return _of_partitions(each, pa.array(positions & (highest_before(committed, fresh) > shown)))
