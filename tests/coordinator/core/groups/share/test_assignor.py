"""The assignor of share groups by itself: everyone has something, nothing moves without need."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from rejoin.coordinator.core.groups.modern.epochs import PartitionsByTopicId, SubscriptionKind
from rejoin.coordinator.core.groups.share.assignor import Sharer, assign

A: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
B: Final = "AAAAAAAAAAAAAAAAAAAAAg"
ALIKE, UNLIKE = SubscriptionKind.HOMOGENEOUS, SubscriptionKind.HETEROGENEOUS


def sizes(targets: dict[str, PartitionsByTopicId]) -> list[int]:
    return [sum(map(len, target.values())) for target in targets.values()]


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [(3, 1, [1, 1, 1]), (5, 2, [2, 1, 1, 1, 1]), (2, 5, [3, 2]), (4, 3, [2, 1, 2, 1]), (1, 0, [0])],
)
def test_members_get_as_many_as_it_takes_to_give_each_one(members: int, partitions: int, expected: list[int]) -> None:
    sharers = {f"m-{number}": Sharer((A,), {}) for number in range(members)}
    assert sizes(assign(sharers, {A: range(partitions)}, ALIKE)) == expected


def test_without_topics_targets_are_empty() -> None:
    sharers = {"m": Sharer((), {A: frozenset({0})})}
    for kind in (ALIKE, UNLIKE):
        assert assign(sharers, {}, kind) == {"m": {}}


def test_what_members_have_stays_where_it_is() -> None:
    first = assign({"a": Sharer((A,), {}), "b": Sharer((A,), {})}, {A: range(4)}, ALIKE)
    again = assign({name: Sharer((A,), target) for name, target in first.items()}, {A: range(4)}, ALIKE)
    assert again == first
    grown = assign({name: Sharer((A,), target) for name, target in first.items()}, {A: range(6)}, ALIKE)
    assert all(first[name][A] <= grown[name][A] for name in first)


def test_each_topic_is_shared_by_its_own_subscribers() -> None:
    sharers = {"a": Sharer((A,), {}), "b": Sharer((A, B), {}), "c": Sharer((B,), {A: frozenset({1})})}
    targets = assign(sharers, {A: range(2), B: range(2)}, UNLIKE)
    assert {name: {topic for topic, indexes in target.items() if indexes} for name, target in targets.items()} == {
        "a": {A},
        "b": {A, B},
        "c": {B},
    }


@pytest.mark.parametrize("seed", range(20))
def test_after_any_change_every_partition_is_shared_and_sizes_differ_by_one(seed: int) -> None:
    dice = Random(seed)
    targets: dict[str, PartitionsByTopicId] = {}
    counts = {A: 1, B: 1}
    for _ in range(30):
        members = [f"m-{number}" for number in range(dice.randint(1, 8))]
        counts[dice.choice((A, B))] += dice.randint(0, 1)
        sharers = {name: Sharer((A, B), targets.get(name, {})) for name in members}
        targets = assign(sharers, {topic: range(count) for topic, count in counts.items()}, ALIKE)
        shared = [
            sum(index in target.get(topic, ()) for target in targets.values())
            for topic, count in counts.items()
            for index in range(count)
        ]
        # Kafka: a member may be left with less than its part where it shares everything that is left already.
        most = -(-len(members) // sum(counts.values()))
        assert max(shared) <= most
        assert max(sizes(targets)) <= -(-most * sum(counts.values()) // len(members))


def test_partitions_that_cannot_be_assigned_any_more_stay_with_who_has_them() -> None:
    """Kafka: they count as any others, until their topic is dropped."""
    sharers = {"a": Sharer((A,), {A: frozenset({0, 1})}), "b": Sharer((A,), {A: frozenset({2, 3})})}
    assert sizes(assign(sharers, {A: range(1)}, ALIKE)) == [1, 1]
