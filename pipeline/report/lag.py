"""How far groups were behind the ends of their logs, over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoin.pipeline.report.data import GroupReport
from rejoin.pipeline.report.shown import Key, ShownGroups, StoredTables
from rejoin.pipeline.tables.common import GROUP
from rejoin.pipeline.tables.whole_groups import values_of

LAG_POINTS: Final = 400


def fill_lag(made: dict[Key, GroupReport], shown: ShownGroups, tables: StoredTables) -> None:
    """The lag of each group at some instants."""
    stored = (pc.field("outcome") == "stored") & pc.field("lag").is_valid()
    by_group = defaultdict(list)
    for run_id, group_id, *lag in _newest_of_bins(shown, shown.batches(tables, "commits", _OF_COMMITS, stored)):
        by_group[run_id, group_id].append(lag)
    for key, found in by_group.items():
        made[key].lag = _lag(found, *shown.spans[key])


_OF_COMMITS: Final = (*GROUP, "topic", "partition", "at_ms", "seq", "lag")


def _newest_of_bins(shown: ShownGroups, batches: Iterable[pa.RecordBatch]) -> Iterable[tuple[Any, ...]]:
    """Of commits, the newest of each partition in each piece of its group's time."""
    newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for batch in batches:
        for row in values_of(batch):
            run_id, group_id, topic, partition, at_ms, seq, _ = row
            if span := shown.spans.get((run_id, group_id)):
                place = run_id, group_id, topic, partition, _bin(at_ms, span)
                if place not in newest or newest[place][4:6] <= (at_ms, seq):
                    newest[place] = row
    return newest.values()


def _bin(at_ms: int, span: tuple[int, int]) -> int:
    from_ms, to_ms = span
    return (at_ms - from_ms) // max(1, (to_ms - from_ms) // LAG_POINTS)


def _lag(commits: Iterable[list[Any]], from_ms: int, to_ms: int) -> list[tuple[int, int]]:
    """The sum over all partitions, each as of its last commit, from the first commit on."""
    rows = [(topic, partition, _bin(at_ms, (from_ms, to_ms)), lag) for topic, partition, at_ms, _, lag in commits]
    bins = max(number for *_, number, _ in rows) + 1
    partitions = {at: row for row, at in enumerate(sorted({(topic, partition) for topic, partition, *_ in rows}))}
    lags = np.full((len(partitions), bins), -1, dtype=np.int64)
    for topic, partition, number, lag in rows:
        lags[partitions[topic, partition], max(0, number)] = lag
    newest = np.maximum.accumulate(np.where(lags >= 0, np.arange(bins), -1), axis=1)
    filled = np.where(newest >= 0, np.take_along_axis(lags, np.maximum(newest, 0), axis=1), 0)
    sums = filled.sum(axis=0)
    first = min(max(0, number) for *_, number, _ in rows)
    width = max(1, (to_ms - from_ms) // LAG_POINTS)
    return [(from_ms + int(number) * width, int(sums[number])) for number in range(first, bins)]
