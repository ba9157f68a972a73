"""Merging state batches: at each offset the highest delivery count wins, then the highest state.

# Kafka: PersisterStateBatchCombiner.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from rejoin.coordinator.core.share_state.state_batch import PersistedBatch


def merge(kept: Sequence[PersistedBatch], written: Sequence[PersistedBatch], start_offset: int) -> list[PersistedBatch]:
    """Merge batches, which may overlap, into those that are kept, which are in order and do not.

    Offsets below the start are dropped; a start of -1 drops none. The cost follows the range that is written.
    """
    base = cut(kept, start_offset)
    news, overlap = _in_order(written, start_offset), False
    if news is None:
        # Differs: a range that ends before it begins is left out. Kafka keeps it; no leader can load the state then.
        news = cut(sorted([batch for batch in written if start_offset <= batch[1] >= batch[0]]), start_offset)
        overlap = any(one[1] >= other[0] for one, other in pairwise(news))
    if not news:
        return base
    if not base and not overlap:
        return _joined(news)
    first, last = news[0].first_offset, max([batch[1] for batch in news]) if overlap else news[-1].last_offset
    begin = bisect_left(base, first, key=_last_offset)
    end = bisect_left(base, last + 1, key=_first_offset)
    # A neighbour on either side may join.
    before, after = max(begin - 1, 0), min(end + 1, len(base))
    if overlap:
        base[before:after] = _overlaid([*base[before:after], *news])
    elif begin == end:
        base[before:after] = _joined([*base[before:begin], *news, *base[end:after]])
    else:
        base[before:after] = _joined(_laid_over(base[before:after], news))
    return base


_new_tuple: Final = tuple.__new__


def cut(batches: Sequence[PersistedBatch], start_offset: int) -> list[PersistedBatch]:
    """Batches in order, without offsets below the start."""
    left, at = list(batches[bisect_left(batches, start_offset, key=_last_offset) :]), 0
    while at < len(left) and left[at].first_offset < start_offset:
        left[at] = left[at]._replace(first_offset=start_offset)
        at += 1
    return left


def _in_order(written: Sequence[PersistedBatch], start_offset: int) -> list[PersistedBatch] | None:
    """The batches if they are in order, not below the start, without overlap, as most are; or none."""
    before = start_offset - 1
    for first, last, _, _ in written:
        if first <= before or last < first:
            return None
        before = last
    return list(written)


def _joined(batches: list[PersistedBatch]) -> list[PersistedBatch]:
    """Batches that do not overlap, in order; equal neighbours joined."""
    merged = [batches[0]]
    first, last, state, count = batches[0]
    for batch in batches[1:]:
        begin, end, next_state, next_count = batch
        if next_state == state and next_count == count and begin == last + 1:
            merged[-1] = _new_tuple(PersistedBatch, (first, end, state, count))
        else:
            merged.append(batch)
            first, state, count = begin, next_state, next_count
        last = end
    return merged


def _laid_over(kept: list[PersistedBatch], news: list[PersistedBatch]) -> list[PersistedBatch]:
    """Two lists of batches in one pass. In neither of them do batches overlap, and both are in order."""
    pieces: list[PersistedBatch] = []
    left = iter(kept)
    old = next(left, None)
    for at, new in enumerate(news):
        if old is None:
            pieces += news[at:]
            break
        first, last, state, count = new
        while old is not None and old.first_offset <= last:
            if old.last_offset < first:
                pieces.append(old)
                old = next(left, None)
                continue
            begin, end, old_state, old_count = old
            if begin == first == new[0] and end == last:
                pieces.append(new if (count, state) >= (old_count, old_state) else old)
                first = last + 1
                old = next(left, None)
                break
            if begin < first:
                pieces.append(PersistedBatch(begin, first - 1, old_state, old_count))
            elif first < begin:
                pieces.append(PersistedBatch(first, begin - 1, state, count))
            both_begin, both_end = first if begin < first else begin, end if end < last else last
            if (count, state) >= (old_count, old_state):
                pieces.append(PersistedBatch(both_begin, both_end, state, count))
            else:
                pieces.append(PersistedBatch(both_begin, both_end, old_state, old_count))
            first = both_end + 1
            old = PersistedBatch(first, end, old_state, old_count) if end > both_end else next(left, None)
        if first <= last:
            pieces.append(new if first == new.first_offset else PersistedBatch(first, last, state, count))
    if old is not None:
        pieces.append(old)
    pieces.extend(left)
    return pieces


def _overlaid(batches: list[PersistedBatch]) -> list[PersistedBatch]:
    """Batches that do not overlap, in order, from batches that may; equal neighbours joined."""
    batches.sort()
    edges = sorted({edge for first, last, _, _ in batches for edge in (first, last + 1)})
    active: list[tuple[int, int, int]] = []  # best first: count and state negative, then the last offset
    pieces: list[PersistedBatch] = []
    at = 0
    for begin, end in pairwise(edges):
        while at < len(batches) and batches[at].first_offset == begin:
            _, last, state, count = batches[at]
            heapq.heappush(active, (-count, -state, last))
            at += 1
        while active and active[0][2] < begin:
            heapq.heappop(active)
        if active:
            pieces.append(PersistedBatch(begin, end - 1, -active[0][1], -active[0][0]))
    return _joined(pieces)


def _first_offset(batch: PersistedBatch) -> int:
    return batch.first_offset


def _last_offset(batch: PersistedBatch) -> int:
    return batch.last_offset
