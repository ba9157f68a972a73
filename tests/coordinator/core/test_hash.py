"""From a group id to its offsets partition: the absolute value of Java's hash, not its lower 31 bits."""

from __future__ import annotations

import pytest

from rejoin.protocol.java import string_hash
from rejoin.protocol.partitioner import partition_for

TABLE = [
    # group id, Java's hashCode, partition of 50, what a mask would give
    ("", 0, 0, 0),
    ("a", 97, 47, 47),
    ("my-group", -1906497762, 12, 36),
    ("test-group", 627841412, 12, 12),
    ("group-1", 293427299, 49, 49),
    ("console-consumer-1", 35782224, 24, 24),
    ("orders", -1008770331, 31, 17),
    ("payments", 1382682413, 13, 13),
    ("héllo", 103094734, 34, 34),
    ("😀group", -1231696132, 32, 16),
    ("polygenelubricants", -(2**31), 0, 0),
]


@pytest.mark.parametrize(("group_id", "code", "partition", "masked"), TABLE)
def test_a_group_has_its_partition(group_id: str, code: int, partition: int, masked: int) -> None:
    assert string_hash(group_id) == code
    assert partition_for(group_id, 50) == partition
    assert (code & 0x7FFF_FFFF) % 50 == masked, "the column of the common error"


def test_negative_hashes_distinguish_the_two() -> None:
    """For about half of all ids a mask gives another partition, so that the wrong node would be asked."""
    apart = [group_id for group_id, code, _, _ in TABLE if -(2**31) < code < 0]
    assert apart == ["my-group", "orders", "😀group"]
    for group_id in apart:
        assert partition_for(group_id, 50) != (string_hash(group_id) & 0x7FFF_FFFF) % 50


def test_the_smallest_integer_has_no_absolute_value() -> None:
    """Java's ``Math.abs`` would leave it negative; Kafka takes 0, whatever the number of partitions."""
    assert [partition_for("polygenelubricants", count) for count in (1, 7, 50, 51)] == [0, 0, 0, 0]


@pytest.mark.parametrize("count", [1, 2, 50, 10_000])
def test_a_partition_exists(count: int) -> None:
    assert all(0 <= partition_for(f"group-{number}", count) < count for number in range(200))
