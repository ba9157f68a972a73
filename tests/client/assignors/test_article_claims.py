"""Statements of articles about assignors that no worked example shows; docs/claims.md has the verdicts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given

from rejoin.client.assignors import (
    Assignments,
    ClusterView,
    MemberSubscription,
    RebalanceProtocol,
    assignor_named,
)
from rejoin.client.assignors.stickiness import base
from tests.client.assignors.groups import (
    NAMES,
    STICKY,
    all_partitions,
    claiming,
    equal_groups,
    member,
    owners,
)

Drawn = tuple[ClusterView, dict[str, MemberSubscription]]


def assign(name: str, counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
    return assignor_named(name).assign(ClusterView(counts), members)


def numbers(given: Assignments, topic: str) -> dict[str, list[int]]:
    """What each member has of a topic."""
    return {each: sorted(number for of, number in has if of == topic) for each, has in given.items()}


def kept(before: Assignments, after: Assignments) -> int:
    """How many partitions stay with their member."""
    owner = owners(before)
    return sum(owner.get(partition) == each for partition, each in owners(after).items())


def test_eager_and_cooperative_are_supported_by_these_assignors() -> None:
    both = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    supported = {name: tuple(assignor_named(name).protocols) for name in NAMES}
    assert supported.pop("cooperative-sticky") == both
    assert set(supported.values()) == {(RebalanceProtocol.EAGER,)}


@given(group=equal_groups())
def test_a_first_assignment_of_sticky_is_that_of_roundrobin(group: Drawn) -> None:
    cluster, drawn = group
    dynamic = {each: member(*has.subscription.topics) for each, has in drawn.items()}
    first = [owners(assignor_named(name).assign(cluster, dynamic)) for name in ("sticky", "roundrobin")]
    assert first[0] == first[1]


def test_roundrobin_sorts_static_members_first_and_sticky_does_not() -> None:
    members = {"a": member("t"), "b": member("t", instance="one")}
    assert numbers(assign("roundrobin", {"t": 2}, members), "t") == {"a": [1], "b": [0]}
    assert numbers(assign("sticky", {"t": 2}, members), "t") == {"a": [0], "b": [1]}


@pytest.mark.parametrize("name", STICKY)
def test_the_constrained_algorithm_is_for_equal_subscriptions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for algorithm in ("ConstrainedAssignment", "GeneralAssignment"):
        original = getattr(base, algorithm)

        def note(*given: object, algorithm: str = algorithm, original: type = original) -> object:
            used.append(algorithm)
            return original(*given)

        monkeypatch.setattr(base, algorithm, note)
    assign(name, {"t": 2, "u": 2}, {"a": member("t", "u"), "b": member("t", "u")})
    assign(name, {"t": 2, "u": 2}, {"a": member("t", "u"), "b": member("t")})
    assert used == ["ConstrainedAssignment", "GeneralAssignment"]


def test_the_constrained_algorithm_keeps_up_to_the_quota() -> None:
    """Seven partitions, of which two members owned 6 and 1, and a third member: 3, 2 and 2, without further moves."""
    everything = all_partitions({"t": 7})
    members = {
        "a": claiming("sticky", ["t"], everything[:6], 1),
        "b": claiming("sticky", ["t"], everything[6:], 1),
        "c": claiming("sticky", ["t"], [], 1),
    }
    after = assign("sticky", {"t": 7}, members)
    assert {each: len(has) for each, has in after.items()} == {"a": 3, "b": 2, "c": 2}
    assert set(after["a"]) < set(everything[:6])
    assert ("t", 6) in after["b"]


def test_range_sorts_members_by_id_behind_those_with_an_instance_id() -> None:
    dynamic = {each: member("t") for each in ("b", "a", "C")}
    assert numbers(assign("range", {"t": 3}, dynamic), "t") == {"C": [0], "a": [1], "b": [2]}
    static = {**dynamic, "z": member("t", instance="one")}
    assert numbers(assign("range", {"t": 4}, static), "t") == {"z": [0], "C": [1], "a": [2], "b": [3]}


def test_range_gives_each_member_a_contiguous_range() -> None:
    given = assign("range", {"t0": 4, "t1": 3}, {each: member("t0", "t1") for each in ("C0", "C1")})
    assert numbers(given, "t0") == {"C0": [0, 1], "C1": [2, 3]}
    assert numbers(given, "t1") == {"C0": [0, 1], "C1": [2]}
    for topic in ("t0", "t1"):
        for has in numbers(given, topic).values():
            assert all(after == before + 1 for before, after in pairwise(has))


def test_range_is_uneven_over_topics_with_an_odd_number_of_partitions() -> None:
    given = assign("range", {"t0": 7, "t1": 7}, {each: member("t0", "t1") for each in "abc"})
    assert [len(given[each]) for each in "abc"] == [6, 4, 4]


def test_after_a_departure_sticky_keeps_five_partitions_in_place_and_roundrobin_three() -> None:
    counts = {"t0": 1, "t1": 2, "t2": 3}
    topics = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    stays = {}
    for name in ("sticky", "roundrobin"):
        before = assign(name, counts, {each: member(*wanted) for each, wanted in topics.items()})
        left = {
            each: claiming(name, topics[each], before[each], 1) if name == "sticky" else member(*topics[each])
            for each in ("C1", "C2")
        }
        stays[name] = kept(before, assign(name, counts, left))
    assert stays == {"sticky": 5, "roundrobin": 3}


@pytest.mark.parametrize("name", STICKY)
def test_sticky_costs_more_than_range_and_hardly_noticeably(name: str) -> None:
    """Bounds of CPU that a loaded machine does not reach: 2,000 partitions of 40 members, of which one is new."""
    counts = {"t": 2_000}
    before = assign("roundrobin", counts, {f"m{number}": member("t") for number in range(39)})
    members = {each: claiming(name, ["t"], has, 1) for each, has in before.items()} | {"new": member("t")}
    began = time.process_time()
    assign(name, counts, members)
    assert time.process_time() - began < 2.0
