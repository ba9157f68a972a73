"""The comparison can fail: an emulator that answers one thing wrong is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conformance.replay.known_differences import KNOWN_DIFFERENCES, known_difference
from conformance.replay.replay import Emulator, Recording
from rejoin.conform.comparison.compare import CLOSED, EARLY_MS, LATE_MS, Difference, RecordedAnswer
from rejoin.coordinator.core.effects import Effect, Reply
from rejoin.coordinator.core.inputs import Input
from rejoin.coordinator.core.node import Node
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.describe_groups import DescribeGroupsResponse
from rejoin.protocol.messages.groups.heartbeat import HeartbeatResponse
from rejoin.protocol.messages.groups.join_group import JoinGroupResponse
from rejoin.protocol.messages.groups.leave_group import LeaveGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchResponse
from tests.conformance.golden import differing, named, recordings, replayed, unexplained

Change = Callable[[Any], Response]

LIFE = "plain/joining/a-group-of-one-lives-and-ends"
TWO = "plain/joining/two-members-share-a-topic"
THIRD = "plain/joining/a-newcomer-makes-a-stable-group-rebalance"
BEATS = "plain/heartbeats/they-keep-a-member-alive"
UNWRITTEN = "three-in-sync/writing/nothing-can-be-written"
WINDOW = "plain/initial-delay/the-first-rebalance-waits-for-others"


def breaking(of: type[Response], change: Change) -> Callable[..., Node]:
    """A node that changes each answer of one kind."""

    class Broken(Node):
        def step(self, what: Input, now: int, **late: bool) -> list[Effect]:
            return [
                Reply(effect.token, change(effect.response))
                if isinstance(effect, Reply) and isinstance(effect.response, of)
                else effect
                for effect in super().step(what, now, **late)
            ]

    return Broken


def without_first_member(answer: JoinGroupResponse) -> Response:
    return answer.model_copy(update={"members": answer.members[1:]})


def with_metadata(answer: JoinGroupResponse) -> Response:
    changed = tuple(member.model_copy(update={"metadata": b"x"}) for member in answer.members)
    return answer.model_copy(update={"members": changed})


def with_other_offset(answer: OffsetFetchResponse) -> Response:
    (group,) = answer.groups
    (topic,) = group.topics
    partition = topic.partitions[0].model_copy(update={"committed_offset": 6})
    topic = topic.model_copy(update={"partitions": (partition,)})
    return OffsetFetchResponse(groups=(group.model_copy(update={"topics": (topic,)}),))


def with_state(answer: DescribeGroupsResponse) -> Response:
    (group,) = answer.groups
    return DescribeGroupsResponse(groups=(group.model_copy(update={"group_state": "Assigning"}),))


BREAKS: list[tuple[str, type[Response], Change]] = [
    (THIRD, HeartbeatResponse, lambda _: HeartbeatResponse()),
    (LIFE, HeartbeatResponse, lambda _: HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)),
    (LIFE, HeartbeatResponse, lambda _: HeartbeatResponse(throttle_time_ms=1)),
    (TWO, JoinGroupResponse, lambda answer: answer.model_copy(update={"generation_id": answer.generation_id + 1})),
    (TWO, JoinGroupResponse, lambda answer: answer.model_copy(update={"leader": "b-1"})),
    (TWO, JoinGroupResponse, lambda answer: answer.model_copy(update={"skip_assignment": True})),
    (TWO, JoinGroupResponse, without_first_member),
    (TWO, JoinGroupResponse, with_metadata),
    (TWO, SyncGroupResponse, lambda answer: answer.model_copy(update={"assignment": answer.assignment + b"\0"})),
    (TWO, SyncGroupResponse, lambda answer: answer.model_copy(update={"protocol_name": None})),
    (LIFE, LeaveGroupResponse, lambda answer: answer.model_copy(update={"members": ()})),
    (LIFE, OffsetFetchResponse, with_other_offset),
    (LIFE, DescribeGroupsResponse, with_state),
]


@pytest.mark.parametrize(("name", "of", "change"), BREAKS, ids=range(len(BREAKS)))
def test_a_wrong_answer_is_caught(name: str, of: type[Response], change: Change) -> None:
    assert unexplained(replayed(named(name))) == []
    found = unexplained(replayed(named(name), breaking(of, change)))
    assert found
    assert of.__name__.removesuffix("Response") in found[0]


def test_an_answer_that_never_comes_is_caught() -> None:
    class Silent(Node):
        def step(self, what: Input, now: int, **late: bool) -> list[Effect]:
            effects = super().step(what, now, **late)
            return [
                one for one in effects if not (isinstance(one, Reply) and isinstance(one.response, SyncGroupResponse))
            ]

    assert "no answer" in unexplained(replayed(named(LIFE), Silent))[0]


@pytest.mark.parametrize("millis", [-LATE_MS, 2 * EARLY_MS])
def test_an_answer_at_the_wrong_time_is_caught(millis: int) -> None:
    """The window in which a group waits for others is made longer or shorter."""

    class Hasty(Node):
        def __init__(self, settings: Any, new_id: Callable[[], str]) -> None:
            delay = settings.group_initial_rebalance_delay_ms + millis
            super().__init__(settings.model_copy(update={"group_initial_rebalance_delay_ms": max(delay, 0)}), new_id)

    found = unexplained(replayed(named(WINDOW), Hasty))
    assert any(" at: " in one for one in found)


def beating(played: Recording, millis: int) -> list[str]:
    """Differences when every Heartbeat is answered so much later, or earlier."""
    beats = {asked.number for asked in played.exchanges if asked.api == "Heartbeat"}
    answers = Emulator(played).play()
    moved = {
        number: RecordedAnswer(answer.at + millis, answer.body) if number in beats else answer
        for number, answer in answers.items()
    }
    return unexplained(differing(played, moved))


@pytest.mark.parametrize("millis", [-LATE_MS - EARLY_MS, 5_000])
def test_a_heartbeat_at_the_wrong_time_is_caught(millis: int) -> None:
    """That one script has a Heartbeat which Kafka answers late excuses no other."""
    found = beating(named(BEATS), millis)
    assert len(found) == sum(asked.api == "Heartbeat" for asked in named(BEATS).exchanges)
    assert all("Heartbeat" in one and " at: " in one for one in found)


def test_a_heartbeat_later_than_kafkas_is_caught_even_where_kafka_is_late() -> None:
    assert beating(named(UNWRITTEN), 0) == []
    assert any("Heartbeat" in one and " at: " in one for one in beating(named(UNWRITTEN), 10_000))


def test_an_answer_where_kafka_closes_the_connection_is_caught() -> None:
    given_up = named("plain/bad-requests/versions-that-were-given-up")
    closed = [one for one in replayed(given_up) if one.kafka == CLOSED]
    assert len(closed) == len(given_up.exchanges)
    assert all(known_difference(one) is not None for one in closed)
    assert [known_difference(replace(one, other={"topics": []})) for one in closed] == [None] * len(closed)


def of_some_scripts() -> list[Difference]:
    """Every difference that is explained in some scripts only."""
    return [
        one
        for played in recordings()
        for one in replayed(played)
        if (known := known_difference(one)) is not None and known.scripts
    ]


def test_what_is_explained_in_some_scripts_is_caught_in_any_other() -> None:
    found = of_some_scripts()
    assert {known.name for one in found if (known := known_difference(one))} == {
        known.name for known in KNOWN_DIFFERENCES if known.scripts
    }
    assert [str(one) for one in found if known_difference(replace(one, script=LIFE)) is not None] == []
