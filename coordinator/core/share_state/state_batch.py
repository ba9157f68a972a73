"""State batches: offsets of equal state and delivery count, as the share coordinator keeps them."""

from __future__ import annotations

from typing import NamedTuple


class PersistedBatch(NamedTuple):
    """Offsets from first to last, inclusive, of one state. The number of a state is :class:`RecordState`'s."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class PersistedState(NamedTuple):
    """The answer to a read. ``start_offset`` is -1 where the leader decides."""

    state_epoch: int
    start_offset: int
    batches: tuple[PersistedBatch, ...]
