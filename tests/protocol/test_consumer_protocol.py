"""The bytes of subscriptions and assignments; the hex is what Kafka's Java client writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.protocol.embedded.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_partitions,
    encode_subscription,
    subscription_topics,
)
from rejoin.protocol.types import TopicPartition

SUBSCRIPTION = Subscription(
    ("b", "a"), b"x", (TopicPartition("b", 1), TopicPartition("a", 3)), generation_id=5, rack_id="r"
)
V0 = "00000002000161000162" + "0000000178"
OWNED = "00000002" + "000161" + "0000000100000003" + "000162" + "0000000100000001"
BYTES = {
    0: "0000" + V0,
    1: "0001" + V0 + OWNED,
    2: "0002" + V0 + OWNED + "00000005",
    3: "0003" + V0 + OWNED + "00000005" + "000172",
}


@pytest.mark.parametrize("version", BYTES)
def test_bytes_of_a_subscription(version: int) -> None:
    assert encode_subscription(SUBSCRIPTION, version).hex() == BYTES[version]


@pytest.mark.parametrize("version", BYTES)
def test_reading_a_subscription(version: int) -> None:
    read = decode_subscription(bytes.fromhex(BYTES[version]))
    assert read == Subscription(
        ("a", "b"),
        b"x",
        (TopicPartition("a", 3), TopicPartition("b", 1)) if version >= 1 else (),
        5 if version >= 2 else -1,
        "r" if version >= 3 else None,
    )
    assert read.version == version


def test_nulls() -> None:
    data = encode_subscription(Subscription(()))
    assert data.hex() == "0003" + "00000000" + "ffffffff" + "00000000" + "ffffffff" + "ffff"
    assert decode_subscription(data) == Subscription(())


def test_an_empty_rack_is_no_rack() -> None:
    assert decode_subscription(encode_subscription(Subscription((), rack_id=""))).rack_id is None


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = bytes.fromhex("0063" + BYTES[3][4:] + "ab12")
    assert decode_subscription(newer) == decode_subscription(bytes.fromhex(BYTES[3]))
    assert encode_subscription(SUBSCRIPTION, 99) == encode_subscription(SUBSCRIPTION, 3)


def test_names_sort_by_utf16_unit() -> None:
    assert decode_subscription(encode_subscription(Subscription(("\ufffd", "😀")))).topics == ("😀", "\ufffd")


def test_an_assignment_is_by_topic_in_order_of_appearance() -> None:
    given = Assignment((TopicPartition("b", 1), TopicPartition("a", 3), TopicPartition("b", 0)))
    data = encode_assignment(given)
    assert data.hex() == "0003" + "00000002" + "000162" + "000000020000000100000000" + "000161" + (
        "0000000100000003" + "ffffffff"
    )
    assert decode_assignment(data).partitions == (("b", 1), ("b", 0), ("a", 3))
    assert encode_partitions([("b", 1), ("a", 3), ("b", 0)]) == data


def test_user_data_of_an_assignment() -> None:
    assert decode_assignment(encode_assignment(Assignment((), b"\x00\xff"), 0)) == Assignment((), b"\x00\xff")


@pytest.mark.parametrize("cut", range(len(bytes.fromhex(BYTES[3]))))
def test_a_subscription_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"subscription: .* needs|subscription: .* counts"):
        decode_subscription(bytes.fromhex(BYTES[3])[:cut])


@pytest.mark.parametrize("cut", [0, 1, 2, 5, 7, 9, 12])
def test_an_assignment_cut_short_is_refused(cut: int) -> None:
    data = encode_assignment(Assignment((TopicPartition("orders", 1),)))
    with pytest.raises(ValueError, match="assignment: "):
        decode_assignment(data[:cut])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("ffff" + V0, "unsupported subscription version: -1"),
        ("0000ffffffff", "topics has a negative count"),
        ("00007fffffff", "topics counts 2147483647, with 0 bytes left"),
        ("000000000001ffff", "topics holds a null"),
        ("00000000000100ff61", "topics needs 255 bytes, with 1 byte left"),
    ],
)
def test_nonsense_is_refused(data: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode_subscription(bytes.fromhex(data))


def test_negative_versions_are_not_written() -> None:
    with pytest.raises(ValueError, match="unsupported assignment version: -1"):
        encode_partitions([], version=-1)


def test_a_name_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="a name of 40000 bytes does not fit"):
        encode_subscription(Subscription(("x" * 40_000,)))


@pytest.mark.parametrize("version", [*BYTES, 77])
def test_the_coordinator_reads_topics_of_any_version(version: int) -> None:
    assert subscription_topics(encode_subscription(SUBSCRIPTION, version)) == ("a", "b")


def test_the_coordinator_does_not_look_at_the_version() -> None:
    assert subscription_topics(bytes.fromhex("ffff" + V0)) == ("a", "b")


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00", b"not a subscription", bytes.fromhex(BYTES[0])[:-1]])
def test_the_coordinator_shrugs_at_the_rest(data: bytes) -> None:
    assert subscription_topics(data) is None


names = st.text(st.characters(codec="utf-8"), max_size=8)
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), unique=True).map(tuple)


@given(
    st.builds(
        Subscription,
        st.lists(names, unique=True).map(tuple),
        st.none() | st.binary(max_size=20),
        partitions,
        st.integers(-1, 2**31 - 1),
        st.none() | st.text(min_size=1, max_size=5),
    )
)
def test_what_is_written_is_read(subscription: Subscription) -> None:
    read = decode_subscription(encode_subscription(subscription))
    assert set(read.topics) == set(subscription.topics)
    assert set(read.owned_partitions) == set(subscription.owned_partitions)
    assert (read.user_data, read.generation_id, read.rack_id) == (
        subscription.user_data,
        subscription.generation_id,
        subscription.rack_id,
    )
    # Equal subscriptions are equal bytes, in whatever order they were listed.
    assert encode_subscription(read) == encode_subscription(subscription)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (decode_subscription, decode_assignment):
        try:
            read(data)
        except ValueError as refused:
            assert str(refused)  # noqa: PT017
    subscription_topics(data)


def test_a_topic_partition_is_its_tuple() -> None:
    assert TopicPartition("t", 1) == ("t", 1)
    assert hash(TopicPartition("t", 1)) == hash(("t", 1))
