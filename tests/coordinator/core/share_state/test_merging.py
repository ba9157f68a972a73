"""State batches are merged as at each offset alone: the highest delivery count wins, then the highest state."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rejoin.coordinator.core.share_state.merging import cut, merge
from rejoin.coordinator.core.share_state.state_batch import PersistedBatch

STATES = st.sampled_from((0, 2, 3, 4))
WRITTEN = st.lists(
    st.builds(
        lambda first, size, state, count: PersistedBatch(first, first + size, state, count),
        *(st.integers(0, 40), st.integers(0, 9), STATES, st.integers(1, 3)),
    ),
    max_size=6,
)


def by_offset(batches: list[PersistedBatch], start: int) -> dict[int, tuple[int, int]]:
    """Count and state of each offset, by the rule for one offset."""
    found: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start), last + 1):
            found[offset] = max(found.get(offset, (0, 0)), (count, state))
    return found


@given(st.lists(WRITTEN, max_size=5), st.integers(-1, 30))
def test_batches_are_merged_offset_by_offset(writes: list[list[PersistedBatch]], start: int) -> None:
    kept: list[PersistedBatch] = []
    for write in writes:
        kept = merge(kept, write, start)
        assert all(
            one.last_offset < other.first_offset and (one.last_offset + 1, *one[2:]) != (other.first_offset, *other[2:])
            for one, other in pairwise(kept)
        ), "in order, apart, and equal neighbours are one"
    assert by_offset(kept, -1) == by_offset([batch for write in writes for batch in write], start)


def test_a_batch_across_the_start_is_cut() -> None:
    assert cut([PersistedBatch(0, 9, 2, 1), PersistedBatch(10, 19, 2, 1)], 5)[0] == PersistedBatch(5, 9, 2, 1)
    assert cut([PersistedBatch(0, 9, 2, 1), PersistedBatch(10, 19, 2, 1)], 15) == [PersistedBatch(15, 19, 2, 1)]
    assert cut([PersistedBatch(0, 9, 2, 1)], -1) == [PersistedBatch(0, 9, 2, 1)]


def test_a_stale_write_with_a_lower_count_loses() -> None:
    kept = merge([], [PersistedBatch(0, 9, 0, 2)], 0)
    assert merge(kept, [PersistedBatch(3, 4, 2, 1)], 0) == kept
    assert merge(kept, [PersistedBatch(3, 4, 2, 2)], 0) == [
        PersistedBatch(0, 2, 0, 2),
        PersistedBatch(3, 4, 2, 2),
        PersistedBatch(5, 9, 0, 2),
    ]


ABSURD = st.builds(
    PersistedBatch, *[st.sampled_from((-(2**63), -1, 0, 5, 9, 2**31, 2**63 - 1))] * 2, *[st.integers(-1, 9)] * 2
)


@given(st.lists(st.lists(ABSURD, max_size=4), max_size=4), st.sampled_from((-1, 0, 7, 2**63 - 1)))
def test_batches_that_no_leader_writes_are_no_reason_to_fail(writes: list[list[PersistedBatch]], start: int) -> None:
    kept: list[PersistedBatch] = []
    for write in writes:
        kept = merge(kept, write, start)
    assert len(kept) <= 2 * sum(len(write) for write in writes)
