"""A large range answer is kept as runs, and looks like the list it stands for."""

from __future__ import annotations

from rejoin.client.assignors import ClusterView, MemberSubscription, assignor_named
from rejoin.client.assignors.runs import Runs
from rejoin.protocol.embedded.consumer_protocol import Subscription, encode_partitions


def test_runs_look_like_the_list_they_stand_for() -> None:
    runs = Runs()
    runs.add("t", range(2, 5))
    runs.add("u", range(0))
    runs.add("u", range(1))
    listed = [("t", 2), ("t", 3), ("t", 4), ("u", 0)]
    assert runs == listed
    assert list(runs) == listed
    assert len(runs) == 4
    assert (runs[0], runs[-1], runs[1:3]) == (listed[0], listed[-1], listed[1:3])
    assert runs != listed[:-1]
    assert runs != [*listed[:-1], ("u", 1)]
    assert repr(runs) == repr(listed)
    assert encode_partitions(runs) == encode_partitions(listed)


def test_a_large_topic_is_cut_as_a_small_one_is() -> None:
    members = {name: MemberSubscription(Subscription(topics=("t",))) for name in ("a", "b", "c")}
    large = assignor_named("range").assign(ClusterView({"t": 4_000}), members)
    assert isinstance(large["a"], Runs)
    assert {name: (share[0], share[-1], len(share)) for name, share in large.items()} == {
        "a": (("t", 0), ("t", 1_333), 1_334),
        "b": (("t", 1_334), ("t", 2_666), 1_333),
        "c": (("t", 2_667), ("t", 3_999), 1_333),
    }
