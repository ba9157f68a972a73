"""Files whose newest line is the first are read from their end."""

from __future__ import annotations

import io

import pytest

from rejoin.pipeline.reading.peeling.order import LineOrder, OldestFirst, look_at_order

RISING = [b"2025-03-09 07:05:0%d,000 INFO line %d\n" % (second, second) for second in range(5)]


def test_a_file_with_falling_times_is_turned_round_and_keeps_the_numbers_of_its_lines() -> None:
    file = io.BytesIO(b"".join(reversed(RISING)))
    assert look_at_order(file) is LineOrder.NEWEST_FIRST
    assert list(OldestFirst(file).numbered()) == [(5 - nth, line) for nth, line in enumerate(RISING)]


@pytest.mark.parametrize(
    "lines",
    [
        RISING,
        RISING[:1],
        [],
        # Threads within a second.
        [b"2025-03-09 07:05:00,900 INFO a\n", b"2025-03-09 07:05:00,100 INFO b\n"],
        # Two pods, one behind the other.
        [b"a-1  | " + each for each in RISING] + [b"b-1  | " + each for each in RISING],
        # A clock that was set back once.
        [*RISING, b"2025-03-09 06:00:00,000 INFO a\n", b"2025-03-09 06:00:01,000 INFO a\n"],
    ],
)
def test_other_files_are_read_as_they_are(lines: list[bytes]) -> None:
    file = io.BytesIO(b"".join(lines))
    assert look_at_order(file) is not LineOrder.NEWEST_FIRST
    assert file.tell() == 0


def test_a_stack_trace_stays_behind_its_line() -> None:
    lines = [b"2025-03-09 07:05:03 INFO late\n", b"2025-03-09 07:05:01 INFO early\n", b"\tat a\n", b"\tat b\n"]
    turned = OldestFirst(io.BytesIO(b"".join(lines)))
    assert [number for number, _ in turned.numbered()] == [2, 3, 4, 1]
