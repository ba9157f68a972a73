"""A window from the state that the share coordinator keeps."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.share.window.batches import ARCHIVING, AVAILABLE, TERMINAL, Batch
from rejoin.coordinator.core.share.window.changes import BY_LIMIT, RecordChange
from rejoin.coordinator.core.share.window.values import RecordState
from rejoin.coordinator.core.share.window.window import Window
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch

_STATES: Final = frozenset(RecordState)


def load(window: Window, start: int, batches: tuple[PersistedBatch, ...], limit: int) -> list[RecordChange] | None:
    """Fill an empty window, and return records that wait for the dead-letter queue; none: the state is broken.

    Holes between the start and the last batch were acquired and never persisted: they are acquired as new.
    # Kafka: SharePartition.maybeInitialize.
    """
    window.start = window.end = start
    archiving, expected = [], start
    for first, last, state, count in batches:
        if first < expected or last < first or state not in _STATES:
            window.clear()
            return None
        if first > expected and window.gap is None:
            window.gap = expected
        expected = last + 1
        batch = Batch(first, last, state, count)
        window.add(batch)
        if state == AVAILABLE:
            window.made_available(first)
        if state in TERMINAL:
            window.complete += batch.size
        if state == ARCHIVING:
            code = ARCHIVING | BY_LIMIT if count >= limit else ARCHIVING
            archiving.append(RecordChange(batch, first, last, bytes((code,)), count))
    if batches:
        window.find_next = True
        window.end = window.gap_end = batches[-1].last_offset
        window.move_start()
    return archiving
