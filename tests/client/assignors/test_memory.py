"""What sticky assignors remember, and how it reaches the next leader."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.client.assignors import ClusterView, assignor_named
from rejoin.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from rejoin.client.assignors.stickiness.index import PartitionNumbering
from rejoin.client.assignors.stickiness.user_data import (
    StickyClaimReader,
    decode_sticky_user_data,
    encode_sticky_user_data,
)
from rejoin.protocol.embedded.consumer_protocol import Assignment, Subscription
from rejoin.protocol.types import TopicPartition
from tests.client.assignors.groups import member

HELD = (TopicPartition("t1", 3), TopicPartition("t0", 0), TopicPartition("t1", 1))


def test_sticky_says_nothing_before_its_first_assignment() -> None:
    assert assignor_named("sticky").subscription_user_data(["t0"]) is None


def test_sticky_sends_its_last_assignment_and_generation() -> None:
    sticky = assignor_named("sticky")
    sticky.on_assignment(Assignment(HELD), 7)
    data = sticky.subscription_user_data(["t0", "t1"])
    assert data is not None
    assert data.hex() == (
        "00000002" + "00027430" + "00000001" + "00000000" + "00027431" + "00000002" + "0000000300000001" + "00000007"
    )
    assert decode_sticky_user_data(data) == ([("t0", (0,)), ("t1", (3, 1))], 7)


def test_sticky_writes_topics_in_the_order_of_a_map_filled_by_compute_if_absent() -> None:
    data = encode_sticky_user_data([("Aa", 0), ("BB", 0)], 1)
    assert [topic for topic, _ in decode_sticky_user_data(data)[0]] == ["BB", "Aa"]


def test_version_0_has_no_generation() -> None:
    assert decode_sticky_user_data(encode_sticky_user_data(HELD, 7)[:-4]) == ([("t0", (0,)), ("t1", (3, 1))], -1)


@pytest.mark.parametrize(
    "data", [None, b"", b"\x00", b"\xff\xff\xff\xff", struct.pack(">ih", 1, -1), b"\x00\x00\x00\x05abc"]
)
def test_what_cannot_be_read_claims_nothing(data: bytes | None) -> None:
    assert decode_sticky_user_data(data) == ([], -1)


def test_cooperative_sticky_sends_its_generation() -> None:
    cooperative = assignor_named("cooperative-sticky")
    assert cooperative.subscription_user_data([]) == b"\xff\xff\xff\xff"
    cooperative.on_assignment(Assignment(HELD), 258)
    assert cooperative.subscription_user_data([]) == b"\x00\x00\x01\x02"


def test_range_and_roundrobin_send_no_user_data() -> None:
    for name in ("range", "roundrobin"):
        simple = assignor_named(name)
        simple.on_assignment(Assignment(HELD), 3)
        assert simple.subscription_user_data(["t0"]) is None


def test_an_old_subscription_claims_with_the_generation_of_its_user_data() -> None:
    # Two claim t-0; the one with the newer generation in its user data keeps it.
    cluster = ClusterView({"t": 2})
    old = member("t", owned=[("t", 0)], user_data=(4).to_bytes(4, "big"))
    new = member("t", owned=[("t", 0)], generation=5)
    assert assignor_named("cooperative-sticky").assign(cluster, {"a": old, "b": new}) == {
        "a": [("t", 1)],
        "b": [("t", 0)],
    }


def test_the_newest_generation_is_remembered_between_calls() -> None:
    # With generation 9 seen before, a claim of generation 3 is that of a previous owner only.
    cluster = ClusterView({"t": 2, "u": 1})
    sticky = assignor_named("cooperative-sticky")
    sticky.assign(cluster, {"x": member("t", generation=9)})
    stale = {"a": member("t", owned=[("t", 0)], generation=3), "b": member("t", "u")}
    assert sticky.assign(cluster, stale) == assignor_named("cooperative-sticky").assign(cluster, stale)
    assert isinstance(sticky, CooperativeStickyAssignor)
    assert sticky._newest_generation == 9


@given(
    layouts=st.lists(
        st.lists(st.tuples(st.sampled_from(["alpha", "beta", "gone", "naïve"]), st.integers(0, 9)), max_size=40),
        min_size=1,
        max_size=4,
    ),
    repeats=st.integers(1, 3),
    shift=st.integers(0, 3),
    as_listed=st.booleans(),
)
def test_reading_by_shape_is_reading(
    layouts: list[list[tuple[str, int]]], repeats: int, shift: int, as_listed: bool
) -> None:
    index = PartitionNumbering({"alpha": 10, "beta": 5, "naïve": 3})
    reader = StickyClaimReader(index, as_listed)
    for generation in range(repeats):
        for layout in layouts:
            held = [(topic, number + generation * shift) for topic, number in layout]
            data = encode_sticky_user_data(held, generation)
            claim = reader.read(Subscription((), data))
            fresh = StickyClaimReader(index, as_listed).read(Subscription((), data))
            assert (claim.keys, claim.generation) == (fresh.keys, generation)
            assert sorted(claim.keys) == sorted(index.keys([partition for partition in held if partition[0] != "gone"]))
            if claim.partitions is not None:
                assert index.keys(claim.partitions) == claim.keys
