"""Java's hashes and map orders; the expected values are what a JVM says."""

from __future__ import annotations

import sys
import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.protocol.java import (
    computed_map_order,
    hash_map_order,
    int32,
    string_hash,
    table_capacity,
    topic_partition_hash,
    topic_partition_order,
    utf16_key,
    utf16_sorted,
)
from rejoin.protocol.java_queue import JavaPriorityQueue
from tests.benchmarks.calls import steps_of


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("console-consumer-1", 35782224),
        ("payments", 1382682413),
        ("héllo", 103094734),
        ("😀group", -1231696132),
        ("polygenelubricants", -2147483648),
    ],
)
def test_string_hash(text: str, code: int) -> None:
    assert string_hash(text) == code


@pytest.mark.parametrize("last", ["\x7f", "\xff", "\uffff", "\U0010ffff"])
@pytest.mark.parametrize("length", [64, 65, 67, 257, 4_096, 8_191, 8_192, 8_193, 20_000])
def test_the_hash_of_a_long_string(length: int, last: str) -> None:
    random = Random(length)
    for text in (last * length, "".join(chr(random.randint(0, ord(last))) for _ in range(length))):
        expected = 0
        for unit in memoryview(utf16(text)).cast("H"):
            expected = int32(31 * expected + unit)
        assert string_hash(text) == expected


def test_a_long_string_is_not_hashed_unit_by_unit() -> None:
    assert steps_of(lambda: string_hash("x" * 32_000)) < 32_000 / 3


def utf16(text: str) -> bytes:
    return text.encode(f"utf-16-{sys.byteorder[0]}e", "surrogatepass")


def test_a_lone_surrogate_is_one_unit() -> None:
    assert string_hash("\ud83d") == 0xD83D


@pytest.mark.parametrize(("number", "wrapped"), [(0, 0), (2**31, -(2**31)), (-(2**31) - 1, 2**31 - 1), (2**32 + 5, 5)])
def test_int32_wraps_around(number: int, wrapped: int) -> None:
    assert int32(number) == wrapped


def test_hash_of_a_topic_partition() -> None:
    assert topic_partition_hash("t", 3) == 31 * (31 + 3) + ord("t")


def test_map_order_is_by_bucket() -> None:
    assert hash_map_order([f"consumer{number}" for number in range(1, 5)]) == [
        "consumer4",
        "consumer3",
        "consumer2",
        "consumer1",
    ]


def test_map_order_within_a_bucket_is_by_insertion() -> None:
    # "Aa" and "BB" have the same hash.
    assert hash_map_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_compute_if_absent_puts_new_keys_first_in_their_bucket() -> None:
    assert computed_map_order(["Aa", "BB"]) == ["BB", "Aa"]


def test_compute_if_absent_grows_the_table_one_call_late() -> None:
    keys = [f"topic-{number * 7}" for number in range(13)]
    small = sorted(keys, key=lambda key: (_spread(key) & 15, -keys.index(key)))
    large = sorted(keys, key=lambda key: (_spread(key) & 31, -keys.index(key)))
    assert small != large
    assert computed_map_order(keys) == small
    assert computed_map_order([*keys, keys[0]]) == large


def _spread(key: str) -> int:
    code = string_hash(key) & 0xFFFF_FFFF
    return code ^ (code >> 16)


def test_an_overfull_bucket_doubles_a_small_table() -> None:
    # Nine keys of one hash do not fit a bucket of a table of 16; it grows to 32 and the others spread.
    alike = ["AaAaAa", "AaAaBB", "AaBBAa", "AaBBBB", "BBAaAa", "BBAaBB", "BBBBAa", "BBBBBB"]
    names = [f"x{number}" for number in range(99)]
    ninth = next(key for key in names if _bucket(key) == _bucket("AaAaAa") and _bucket(key, 32) == 16)
    between = next(key for key in names if 0 < _bucket(key) < 16 and _bucket(key) == _bucket(key, 32))
    assert hash_map_order([*alike[:7], ninth, between]) == [*alike[:7], ninth, between]
    assert hash_map_order([*alike, ninth, between]) == [*alike, between, ninth]


def _bucket(key: str, capacity: int = 16) -> int:
    return _spread(key) & (capacity - 1)


@pytest.mark.parametrize(("count", "capacity"), [(0, 16), (12, 16), (13, 32), (24, 32), (25, 64), (1000, 2048)])
def test_a_table_doubles_at_three_quarters(count: int, capacity: int) -> None:
    assert table_capacity(count) == capacity


def test_a_table_never_shrinks() -> None:
    assert table_capacity(1, 64) == 64
    assert hash_map_order(["consumer1", "consumer2"], 64) == ["consumer2", "consumer1"]


def test_order_of_topic_partitions() -> None:
    keys = [("t", number) for number in range(4)]
    assert topic_partition_order(keys) == sorted(keys, key=lambda key: _code_bucket(topic_partition_hash(*key)))


def _code_bucket(code: int) -> int:
    code &= 0xFFFF_FFFF
    return (code ^ (code >> 16)) & 15


def test_strings_compare_by_utf16_unit() -> None:
    # U+1F600 begins with the unit D83D, below U+FFFD: code points say the opposite.
    assert sorted(["\ufffd", "😀"]) == ["\ufffd", "😀"]
    assert utf16_sorted(["\ufffd", "😀"]) == ["😀", "\ufffd"]


@given(st.lists(st.text()))
def test_utf16_sorted_is_sorting_by_the_key(texts: list[str]) -> None:
    assert utf16_sorted(texts) == sorted(texts, key=utf16_key)


@given(st.lists(st.text(max_size=5), unique=True))
def test_an_order_loses_nothing(keys: list[str]) -> None:
    assert sorted(hash_map_order(keys)) == sorted(keys)
    assert sorted(computed_map_order(keys)) == sorted(keys)


def test_orders_of_long_keys_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(4):
            keys = [f"{number}{letter * 100_000}" for letter in "ab"]
            assert hash_map_order(keys) in (keys, keys[::-1])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 400_000


def test_a_queue_gives_the_smallest_key_first_and_equal_ones_as_java_s_heap_has_them() -> None:
    queue = JavaPriorityQueue([(1, "a"), (1, "b"), (0, "c"), (1, "d")])
    assert list(queue) == ["c", "b", "a", "d"]
    found = [queue.pop() for _ in range(len(queue))]
    assert found == ["c", "d", "a", "b"]
