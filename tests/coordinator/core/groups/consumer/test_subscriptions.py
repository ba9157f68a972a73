"""In what order a member's topics come, as Kafka's sets have them."""

from __future__ import annotations

import pytest

from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata
from rejoin.coordinator.core.groups.consumer.model.subscriptions import ResolvedRegex, Subscriptions


@pytest.mark.parametrize(("names", "by_regex", "expected"), [
    ("a q b", "", "a q b"),  # the hash codes of a and q differ by 16: they share a bucket, and come as in the record
    ("q", "a b", "a b q"),
    ("q b", "a b", "a b q"),
    ("q b p", "a b", "p q b a"),
    ("b", "q p", "p q b"),
])  # fmt: skip
def test_the_larger_of_names_and_topics_of_the_expression_comes_first(names: str, by_regex: str, expected: str) -> None:
    subscriptions = Subscriptions()
    subscriptions.resolve("x", ResolvedRegex(frozenset(by_regex.split()), 1, 0))
    metadata = ConsumerMemberMetadata(topic_names=frozenset(names.split()), topic_regex="x")
    assert subscriptions.ordered_topics_of(metadata) == expected.split()
