"""State batches: offsets of equal state and delivery count, as the share coordinator keeps them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from rejoin.protocol.records.share_group_state import ShareStateBatch

PersistedBatch: TypeAlias = ShareStateBatch
"""Offsets from first to last, inclusive, of one state: in memory as in a record. States are numbered as
:class:`RecordState` is."""


class PersistedState(NamedTuple):
    """The answer to a read. ``start_offset`` is -1 where the leader decides."""

    state_epoch: int
    start_offset: int
    batches: tuple[PersistedBatch, ...]
