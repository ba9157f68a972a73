"""What makes a consumer look at topics again, and what makes it join again because of them."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import IllegalStateError, InvalidTopicError, TopicAuthorizationError
from rejoin.client.core.inputs import Subscribed
from rejoin.protocol.errors import ErrorCode as E
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from tests.client.core.lab import Lab

CHANGED = "JoinGroup 'm' reason='cached metadata has changed'"


def leader(**settings: Any) -> Lab:
    """The stable leader of a group of one; its poll goes on and its heartbeats are answered."""
    settings.setdefault("topics", {"t": 2})
    lab = Lab(enable_auto_commit=False, metadata_max_age_ms=60_000, **settings)
    lab.auto |= {"Heartbeat"}
    lab.subscribe("t")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1, leader="m", members=(lab.member("m", "t"),))
    lab.synced("t-0", "t-1")
    lab.take()
    return lab


def test_the_leader_joins_again_when_a_topic_grows() -> None:
    lab = leader()
    lab.topics["t"] = 3
    lab.advance(59_000)
    assert CHANGED not in lab.take()
    lab.advance(1_000)
    assert CHANGED in lab.take()


def test_the_leader_does_not_care_about_other_topics() -> None:
    lab = leader()
    lab.topics["u"] = 3
    lab.advance(120_000)
    assert CHANGED not in lab.take()


def test_the_leader_joins_again_when_a_topic_vanishes() -> None:
    lab = leader()
    del lab.topics["t"]
    lab.advance(60_000)
    assert CHANGED in lab.take()


def test_a_follower_does_not_watch_topics() -> None:
    lab = Lab(enable_auto_commit=False, metadata_max_age_ms=60_000)
    lab.auto |= {"Heartbeat"}
    lab.stable("t-0")
    lab.topics["t"] = 3
    lab.advance(120_000)
    assert CHANGED not in lab.take()


def test_the_leader_watches_the_topics_of_the_others() -> None:
    lab = Lab(enable_auto_commit=False, metadata_max_age_ms=60_000, topics={"t": 2, "u": 1})
    lab.auto |= {"Heartbeat"}
    lab.subscribe("t")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1, leader="m", members=(lab.member("m", "t"), lab.member("n", "u")))
    lab.synced("t-0", "t-1")
    lab.take()
    lab.topics["u"] = 2
    lab.advance(60_000)
    assert CHANGED in lab.take()


@pytest.mark.parametrize(("rack", "rejoins"), [("r1", True), ("", False)])
def test_racks_count_only_for_a_leader_that_has_one(rack: str, rejoins: bool) -> None:
    lab = leader(client_rack=rack)
    lab.racks = {1: "r1"}
    lab.advance(60_000)
    assert (CHANGED in lab.take()) == rejoins


def test_a_topic_that_does_not_exist_is_asked_for_until_it_does() -> None:
    lab = Lab(topics={}, enable_auto_commit=False)
    lab.auto.discard("Metadata")
    lab.subscribe("t")
    lab.poll(60_000)
    waits = []
    for _ in range(5):
        lab.answer("Metadata")
        began = lab.now
        while not lab.is_open("Metadata"):
            lab.advance(10)
        waits.append(lab.now - began)
    assert waits == [100, 200, 400, 800, 1_000]


def test_a_request_for_metadata_that_fails_is_repeated() -> None:
    lab = Lab()
    lab.auto.discard("Metadata")
    lab.subscribe("t")
    lab.poll(60_000)
    lab.fail("Metadata")
    lab.advance(100)
    assert lab.is_open("Metadata")


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (E.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (E.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
    ],
    ids=lambda value: value.name if isinstance(value, E) else "",
)
def test_a_forbidden_or_impossible_topic_raises_from_poll(error: E, raised: type[Exception]) -> None:
    lab = Lab()
    lab.auto.discard("Metadata")
    lab.subscribe("t")
    lab.poll(60_000)
    lab.answer("Metadata", response=MetadataResponse(topics=(MetadataResponseTopic(name="t", error_code=error),)))
    assert [type(each) for each in lab.raised] == [raised]


@pytest.mark.parametrize("allowed", [True, False])
def test_creating_topics_is_allowed_or_not(allowed: bool) -> None:
    lab = Lab(allow_auto_create_topics=allowed)
    lab.auto.discard("Metadata")
    lab.subscribe("t")
    request: Any = lab.find("Metadata").request
    assert request.allow_auto_topic_creation == allowed


# -- patterns


def test_a_pattern_is_matched_before_the_first_join() -> None:
    lab = Lab(topics={"orders": 1, "order": 1, "clicks": 1, "__orders": 1})
    lab.subscribe(pattern=".*orders")
    lab.poll()
    lab.find_coordinator()
    assert lab.core.subscribed_topics() == ("orders",), "whole names, and no internal topics"


def test_internal_topics_match_when_they_are_not_excluded() -> None:
    lab = Lab(topics={"orders": 1, "__orders": 1}, exclude_internal_topics=False)
    lab.subscribe(pattern=".*orders")
    lab.poll()
    lab.find_coordinator()
    assert lab.core.subscribed_topics() == ("__orders", "orders")


def test_a_new_topic_that_matches_makes_the_consumer_join_again() -> None:
    lab = Lab(topics={"o1": 1}, enable_auto_commit=False, metadata_max_age_ms=60_000)
    lab.auto |= {"Heartbeat"}
    lab.subscribe(pattern="o.*")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.synced("o1-0")
    lab.take()
    lab.topics["o2"] = 1
    lab.advance(60_000)
    assert "JoinGroup 'm' reason='subscription has changed'" in lab.take()
    assert lab.core.subscribed_topics() == ("o1", "o2")


def test_topics_that_only_the_leader_knows_yet_are_accepted_if_they_match() -> None:
    lab = Lab(topics={"o1": 1}, enable_auto_commit=False)
    lab.subscribe(pattern="o.*")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.topics["o2"] = 1
    lab.take()
    lab.synced("o1-0", "o2-0")
    assert lab.take() == ["on_partitions_assigned [o1-0 o2-0]"]
    assert lab.core.subscribed_topics() == ("o1", "o2")


def test_topics_that_do_not_match_are_refused() -> None:
    lab = Lab(topics={"o1": 1, "x": 1}, enable_auto_commit=False)
    lab.subscribe(pattern="o.*")
    lab.poll(10_000_000)
    lab.find_coordinator()
    lab.give_member_id()
    lab.joined(1)
    lab.synced("x-0")
    assert lab.take()[-1] == ("JoinGroup 'm' reason='received assignment does not match the current subscription'")


def test_a_pattern_that_is_none_is_refused() -> None:
    lab = Lab()
    lab.step(Subscribed(pattern="(", token="asked"))
    assert isinstance(lab.done_with("asked"), IllegalStateError)
