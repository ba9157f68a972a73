"""What makes a consumer look at topics again, and what makes it join again because of them."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import IllegalStateError, InvalidTopicError, TopicAuthorizationError
from rejoin.client.core.inputs import Subscribed
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from tests.client.core.bench import Bench

CHANGED = "JoinGroup 'm' reason='cached metadata has changed'"


def leader(**settings: Any) -> Bench:
    """The stable leader of a group of one; its poll goes on and its heartbeats are answered."""
    settings.setdefault("topics", {"t": 2})
    bench = Bench(enable_auto_commit=False, metadata_max_age_ms=60_000, **settings)
    bench.auto |= {"Heartbeat"}
    bench.subscribe("t")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1, leader="m", members=(bench.member("m", "t"),))
    bench.synced("t-0", "t-1")
    bench.take()
    return bench


def test_the_leader_joins_again_when_a_topic_grows() -> None:
    bench = leader()
    bench.topics["t"] = 3
    bench.advance(59_000)
    assert CHANGED not in bench.take()
    bench.advance(1_000)
    assert CHANGED in bench.take()


def test_the_leader_does_not_care_about_other_topics() -> None:
    bench = leader()
    bench.topics["u"] = 3
    bench.advance(120_000)
    assert CHANGED not in bench.take()


def test_the_leader_joins_again_when_a_topic_vanishes() -> None:
    bench = leader()
    del bench.topics["t"]
    bench.advance(60_000)
    assert CHANGED in bench.take()


def test_a_follower_does_not_watch_topics() -> None:
    bench = Bench(enable_auto_commit=False, metadata_max_age_ms=60_000)
    bench.auto |= {"Heartbeat"}
    bench.stable("t-0")
    bench.topics["t"] = 3
    bench.advance(120_000)
    assert CHANGED not in bench.take()


def test_the_leader_watches_the_topics_of_the_others() -> None:
    bench = Bench(enable_auto_commit=False, metadata_max_age_ms=60_000, topics={"t": 2, "u": 1})
    bench.auto |= {"Heartbeat"}
    bench.subscribe("t")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1, leader="m", members=(bench.member("m", "t"), bench.member("n", "u")))
    bench.synced("t-0", "t-1")
    bench.take()
    bench.topics["u"] = 2
    bench.advance(60_000)
    assert CHANGED in bench.take()


@pytest.mark.parametrize(("rack", "rejoins"), [("r1", True), ("", False)])
def test_racks_count_only_for_a_leader_that_has_one(rack: str, rejoins: bool) -> None:
    bench = leader(client_rack=rack)
    bench.racks = {1: "r1"}
    bench.advance(60_000)
    assert (CHANGED in bench.take()) == rejoins


def test_a_topic_that_does_not_exist_is_asked_for_until_it_does() -> None:
    bench = Bench(topics={}, enable_auto_commit=False)
    bench.auto.discard("Metadata")
    bench.subscribe("t")
    bench.poll(60_000)
    waits = []
    for _ in range(5):
        bench.answer("Metadata")
        began = bench.now
        while not bench.is_open("Metadata"):
            bench.advance(10)
        waits.append(bench.now - began)
    assert waits == [100, 200, 400, 800, 1_000]


def test_a_request_for_metadata_that_fails_is_repeated() -> None:
    bench = Bench()
    bench.auto.discard("Metadata")
    bench.subscribe("t")
    bench.poll(60_000)
    bench.fail("Metadata")
    bench.advance(100)
    assert bench.is_open("Metadata")


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (E.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_a_forbidden_or_impossible_topic_raises_from_poll(error: E, raised: type[Exception]) -> None:
    bench = Bench()
    bench.auto.discard("Metadata")
    bench.subscribe("t")
    bench.poll(60_000)
    bench.answer("Metadata", response=MetadataResponse(topics=(MetadataResponseTopic(name="t", error_code=error),)))
    assert [type(each) for each in bench.raised] == [raised]


@pytest.mark.parametrize("allowed", [True, False])
def test_creating_topics_is_allowed_or_not(allowed: bool) -> None:
    bench = Bench(allow_auto_create_topics=allowed)
    bench.auto.discard("Metadata")
    bench.subscribe("t")
    request: Any = bench.find("Metadata").request
    assert request.allow_auto_topic_creation == allowed


# -- patterns


def test_a_pattern_is_matched_before_the_first_join() -> None:
    bench = Bench(topics={"orders": 1, "order": 1, "clicks": 1, "__orders": 1})
    bench.subscribe(pattern=".*orders")
    bench.poll()
    bench.find_coordinator()
    assert bench.core.subscribed_topics() == ("orders",), "whole names, and no internal topics"


def test_internal_topics_match_when_they_are_not_excluded() -> None:
    bench = Bench(topics={"orders": 1, "__orders": 1}, exclude_internal_topics=False)
    bench.subscribe(pattern=".*orders")
    bench.poll()
    bench.find_coordinator()
    assert bench.core.subscribed_topics() == ("__orders", "orders")


def test_a_new_topic_that_matches_makes_the_consumer_join_again() -> None:
    bench = Bench(topics={"o1": 1}, enable_auto_commit=False, metadata_max_age_ms=60_000)
    bench.auto |= {"Heartbeat"}
    bench.subscribe(pattern="o.*")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.synced("o1-0")
    bench.take()
    bench.topics["o2"] = 1
    bench.advance(60_000)
    assert "JoinGroup 'm' reason='subscription has changed'" in bench.take()
    assert bench.core.subscribed_topics() == ("o1", "o2")


def test_topics_that_only_the_leader_knows_yet_are_accepted_if_they_match() -> None:
    bench = Bench(topics={"o1": 1}, enable_auto_commit=False)
    bench.subscribe(pattern="o.*")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.topics["o2"] = 1
    bench.take()
    bench.synced("o1-0", "o2-0")
    assert bench.take() == ["on_partitions_assigned [o1-0 o2-0]"]
    assert bench.core.subscribed_topics() == ("o1", "o2")


def test_topics_that_do_not_match_are_refused() -> None:
    bench = Bench(topics={"o1": 1, "x": 1}, enable_auto_commit=False)
    bench.subscribe(pattern="o.*")
    bench.poll(10_000_000)
    bench.find_coordinator()
    bench.give_member_id()
    bench.joined(1)
    bench.synced("x-0")
    assert bench.take()[-1] == ("JoinGroup 'm' reason='received assignment does not match the current subscription'")


def test_a_pattern_that_is_none_is_refused() -> None:
    bench = Bench()
    bench.step(Subscribed(pattern="(", token="asked"))
    assert isinstance(bench.done_with("asked"), IllegalStateError)
