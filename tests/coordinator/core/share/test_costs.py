"""Windows are small, and work on them grows with the records at most; whole batches cost the same at any size."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.benchmarks.calls import steps_of
from tests.coordinator.core.share.one_partition import LOCK_MS, OnePartition

MOST_BYTES_PER_RECORD = 50
MOST_BYTES_PER_RECORD_WITH_A_LOCK = 100
RECORDS = 10_000
ACCEPT, RENEW = 1, 4


def large_window(records: int = RECORDS) -> OnePartition:
    one = OnePartition()
    one.settings.max_record_locks = records
    for base in range(0, records, 500):
        one.fetch(f"member-{base}", (base, base + 499))
    return one


@pytest.mark.parametrize("each", ["by a split", "by a renewal"])
def test_a_record_that_is_tracked_by_itself_costs_few_bytes(each: str) -> None:
    large_window()  # what is made once is made by now
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        one = large_window()
        for base in range(0, RECORDS, 500):
            offsets = range(base, base + 500) if each == "by a renewal" else (base + 250,)
            one.acknowledge(f"member-{base}", *((offset, offset, (RENEW,)) for offset in offsets))
        one.partition.take_reports()
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert all(batch.by_record for batch in one.partition.view(0).batches)
    assert used / RECORDS < MOST_BYTES_PER_RECORD


def test_a_lock_of_its_own_for_each_record_is_at_most_a_hundred_bytes() -> None:
    large_window()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        one = large_window()
        used = []
        for _ in range(3):
            for offset in range(RECORDS):
                one.now += 1
                one.acknowledge(f"member-{offset - offset % 500}", (offset, offset, (RENEW,)))
            one.errors.clear()
            used.append((tracemalloc.get_traced_memory()[0] - before) / RECORDS)
    finally:
        tracemalloc.stop()
    assert max(used) < MOST_BYTES_PER_RECORD_WITH_A_LOCK
    # Each lock is its own: the last round's run out one by one.
    assert one.partition.next_deadline() == 2 * RECORDS + 1 + LOCK_MS
    one.now = 2 * RECORDS + LOCK_MS
    assert one.wait(3) == [(0, 0), (1, 1), (2, 2)]


def test_a_lock_that_is_set_later_may_run_out_earlier() -> None:
    one = OnePartition()
    for member, lock_ms in (("A", 30_000), ("B", 10_000), ("C", 20_000), ("D", 10_000)):
        one.settings.lock_duration_ms = lock_ms
        first = "ABCD".index(member) * 2
        one.fetch(member, (first, first + 1))
    one.acknowledge("C", (4, 4, (ACCEPT,)))
    assert one.wait(10_000) == [(2, 3), (6, 7)]
    one.partition.postpone_locks(5_000)
    assert one.wait(14_999) == []
    assert one.wait(1) == [(5, 5)]
    assert one.wait(10_000) == [(0, 1)]
    assert one.partition.next_deadline() is None


def test_locks_that_were_given_up_are_forgotten() -> None:
    one = OnePartition()
    tracemalloc.start()
    try:
        sizes = []
        for base in range(0, 40_000, 10):
            one.fetch("A", (base, base + 9))
            one.acknowledge("A", (base, base + 9, (ACCEPT,)))
            one.writes.clear()
            one.errors.clear()
            if base % 10_000 == 0:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # A lock that is kept takes 100 bytes; 3,000 of them would be far above.
    assert sizes[-1] - sizes[1] < 150_000
    assert one.partition.next_deadline() is None


def round_of(records: int, types: tuple[int, ...]) -> int:
    """The steps of a fetch and an acknowledgement of so many records, in batches of the log of 50."""
    one = OnePartition()
    read = [(base, base + 49) for base in range(0, records, 50)]
    return steps_of(lambda: (one.fetch("A", *read), one.acknowledge("A", (0, records - 1, types))))


def test_a_whole_batch_costs_the_same_at_any_size() -> None:
    assert round_of(2_000, (ACCEPT,)) <= 1.5 * round_of(500, (ACCEPT,)) < 1_000


@pytest.mark.parametrize("pattern", [(1,), (1, 3), (1, 1, 3)])
def test_an_acknowledgement_with_a_type_for_each_record_is_linear(pattern: tuple[int, ...]) -> None:
    few, many = (round_of(records, (pattern * records)[:records]) for records in (500, 2_000))
    assert many < 4.5 * few
    assert few < 500 * 20


def step_of_one_of(members: int) -> int:
    """The steps of an acknowledgement, where so many members have 20 records each in flight."""
    one = OnePartition()
    for member in range(members):
        one.fetch(f"m{member}", (member * 20, member * 20 + 19))
    last = (members - 1) * 20
    return steps_of(lambda: one.acknowledge(f"m{members - 1}", (last, last + 19, (ACCEPT,))))


def test_one_of_many_members_costs_as_much_as_one_of_few() -> None:
    assert step_of_one_of(100) <= 1.1 * step_of_one_of(10)


def steps_of_all(members: int, types: tuple[int, ...]) -> int:
    """The steps of all fetches and then all acknowledgements of so many members with 20 records each."""
    one = OnePartition()

    def share() -> None:
        for member in range(members):
            one.fetch(f"m{member}", (member * 20, member * 20 + 19))
        for member in reversed(range(members)):
            one.acknowledge(f"m{member}", (member * 20, member * 20 + 19, types))

    return steps_of(share)


@pytest.mark.parametrize("types", [(ACCEPT,), (ACCEPT, 3) * 10])
def test_a_hundred_members_with_two_thousand_records_in_flight_are_linear(types: tuple[int, ...]) -> None:
    assert steps_of_all(100, types) < 4.3 * steps_of_all(25, types)
