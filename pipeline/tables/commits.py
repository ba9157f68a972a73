"""Every committed partition: how far behind its log it was, how far it went, and whether it went back.

What the coordinator stored or refused counts. Where no coordinator of a group wrote a journal, the consumers' own
events count (``inferred``: the instant is that of the answer). The end of a log is known of synthetic
topics, which grow as a function of time, and where a request log has Fetch or ListOffsets: then it is that of the last
answer before the commit.

There are many commits in a journal, so they are not followed one by one: all of some groups are columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.event_fields import MS_A_DAY
from rejoin.pipeline.schemas import COMMITS
from rejoin.pipeline.tables.common import GROUP, Bools, Ints, by_partition, exploded, highest_before, ints
from rejoin.pipeline.tables.groups.rows import trusted
from rejoin.pipeline.tables.runs import Runs, runs_of
from rejoin.pipeline.tables.whole_groups import Rows, events_of_groups, made_of_groups, values_of
from rejoin.pipeline.vocabulary import INFERRED, LOG_END_SEEN

_BY_COORDINATOR: Final = ("offsets_committed", "commit_refused")
_BY_CONSUMERS: Final = ("commit_succeeded", "commit_failed")
_STORED: Final = ("offsets_committed", "commit_succeeded")
_WHO: Final = (
    *("at_ms", "source", "node", "seq", "member_id", "group_instance_id", "generation"),
    "confidence",
)
_AS_IS: Final = (*GROUP, *_WHO)
_READS: Final = (*_WHO, "event", "error", "problem", "offsets", "producer_id")
_ROWS_AT_ONCE: Final = 100_000

Logs = dict[tuple[str, str, int], tuple[int, float]]
"""By run, topic and partition: since when the log of a synthetic topic grows, and how many records it gets a second."""

SeenEnds = dict[tuple[str, str, int], tuple[Ints, Ints]]
"""By run, topic and partition: instants in order, and the end that was seen at each."""


class LogsOfRuns(NamedTuple):
    """Ends of logs, by how they are known."""

    rates: Logs
    seen: SeenEnds


def commits(events: Rows, runs: Runs | None = None) -> Rows:
    """:data:`rejoin.pipeline.schemas.COMMITS` from the events."""
    logs = LogsOfRuns(_rates(runs_of(events) if runs is None else runs), _seen_ends(events))
    rows = events_of_groups(events, (*_BY_COORDINATOR, *_BY_CONSUMERS), _READS)
    return made_of_groups(rows, partial(_commits_of, logs=logs), COMMITS)


def _commits_of(rows: pa.Table, logs: LogsOfRuns) -> Iterator[pa.RecordBatch]:
    """Rows of the table from all commits of some groups."""
    rows = _reported_best(rows.filter(pc.not_equal(rows["group_id"], "")))
    each, fresh = by_partition(exploded(rows, "offsets"), ("at_ms", "source", "node", "seq"))
    stored = ints(pc.is_in(each["event"], pa.array(_STORED))) > 0
    before = highest_before(np.where(stored, np.arange(len(stored)), -1), fresh)
    known, at_ms, offset = before >= 0, ints(each["at_ms"]), ints(each["offset"])
    previous, previous_ms = offset[before], at_ms[before]
    is_known, end = _end_offsets(each, fresh, at_ms, logs.rates)
    if logs.seen:
        _add_seen(each, at_ms, logs.seen, is_known, end)
    consumers = pc.is_in(each["event"], pa.array(_BY_CONSUMERS))
    made = {name: each[name] for name in (*_AS_IS, "topic", "partition", "offset")} | {
        "day": pa.array((at_ms // MS_A_DAY).astype(np.int32)).cast(pa.date32()),
        "outcome": pc.if_else(pa.array(stored), "stored", "refused"),
        "error": pc.if_else(consumers, each["problem"], each["error"]),
        "previous_offset": pa.array(previous, mask=~known),
        "advanced": pa.array(offset - previous, mask=~known),
        "since_ms": pa.array(at_ms - previous_ms, mask=~known),
        "end_offset": pa.array(end, mask=~is_known),
        "lag": pa.array(np.maximum(end - offset, 0), mask=~is_known),
        "transactional": pc.is_valid(each["producer_id"]),
        "confidence": pc.if_else(consumers, INFERRED, each["confidence"]),
    }
    table = pa.Table.from_arrays([made[name] for name in COMMITS.names], COMMITS.names).cast(COMMITS)
    yield from table.to_batches(max_chunksize=_ROWS_AT_ONCE)


def _seen_ends(events: Rows) -> SeenEnds:
    """Ends in answers of request logs: of high watermarks, or of last stable offsets where those alone are known."""
    columns = ("topic", "partition", "at_ms", "high_watermark", "last_stable_offset")
    rows = events_of_groups(events, (LOG_END_SEEN,), columns)
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    if not table.num_rows:
        return {}
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for run_id, topic, partition, at_ms, end, stable in values_of(table.select(["run_id", *columns])):
        found.setdefault((run_id, topic, partition), []).append((at_ms, stable if end is None else end))
    return {
        key: tuple(np.array(column, dtype=np.int64) for column in zip(*sorted(ends), strict=True))  # type: ignore[misc]
        for key, ends in found.items()
    }


def _add_seen(each: pa.Table, at_ms: Ints, seen: SeenEnds, is_known: Bools, end: Ints) -> None:
    """Fill in the last end that was seen before each commit, where there is one."""
    keys = zip(*(each[name].to_pylist() for name in ("run_id", "topic", "partition")), strict=True)
    for row, key in enumerate(keys):
        ends = seen.get(key)
        if ends is not None and not is_known[row]:
            at = int(np.searchsorted(ends[0], at_ms[row], side="right")) - 1
            if at >= 0:
                is_known[row], end[row] = True, ends[1][at]


def _reported_best(rows: pa.Table) -> pa.Table:
    """Commits as the coordinator saw them; those of consumers where no coordinator of the group wrote a journal."""
    keys = pc.binary_join_element_wise(rows["run_id"], rows["group_id"], "\0")
    by_coordinator = pc.is_in(rows["event"], pa.array(_BY_COORDINATOR))
    known = pc.is_in(keys, value_set=keys.filter(by_coordinator).unique())
    return rows.filter(pc.or_(by_coordinator, pc.invert(known)))


def _rates(runs: Runs) -> Logs:
    """Since when the partitions of synthetic topics exist, and how many records they get a second.

    Such a partition grows from its creation; nodes report it again after a restart.
    """
    found: Logs = {}
    for run_id, run in runs.items():
        for topic, partition_count, _, since_ms, rate in trusted(run.reports):
            for partition in range(partition_count):
                key = run_id, topic, partition
                at_ms, known_rate = found.get(key, (since_ms, 0.0))
                found[key] = min(at_ms, since_ms), max(known_rate, rate or 0.0)
    return {key: value for key, value in found.items() if value[1] > 0}


def _end_offsets(each: pa.Table, fresh: Bools, at_ms: Ints, logs: Logs) -> tuple[Bools, Ints]:
    """Whether the log of each row is synthetic, and where it ends then.

    As ``coordinator.core.topics.topics.SyntheticLog`` counts it.
    """
    firsts = each.select(["run_id", "topic", "partition"]).filter(pa.array(fresh))
    keys = zip(*(column.to_pylist() for column in firsts.columns), strict=True)
    found = np.array([logs.get(key, (0, 0.0)) for key in keys], dtype=np.float64).reshape(-1, 2)
    of_partition = found[np.cumsum(fresh) - 1] if len(found) else found
    since_ms, rate = of_partition[:, 0].astype(np.int64), of_partition[:, 1]
    grown = np.floor((at_ms - since_ms).astype(np.float64) * rate / 1000.0).astype(np.int64)
    return rate > 0, np.maximum(grown, 0)
