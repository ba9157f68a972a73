"""The comparison can fail: an emulator that answers one thing wrong is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.compare import EARLY_MS, LATE_MS
from coordinator.core.effects import Effect, Reply
from coordinator.core.inputs import Input
from coordinator.core.node import Node
from protocol.base import Response
from protocol.describe_groups import DescribeGroupsResponse
from protocol.errors import ErrorCode
from protocol.heartbeat import HeartbeatResponse
from protocol.join_group import JoinGroupResponse
from protocol.leave_group import LeaveGroupResponse
from protocol.offset_fetch import OffsetFetchResponse
from protocol.sync_group import SyncGroupResponse
from tests.conformance.golden import named, replayed, unexplained

Change = Callable[[Any], Response]

LIFE = "plain/joining/a-group-of-one-lives-and-ends"
TWO = "plain/joining/two-members-share-a-topic"
THIRD = "plain/joining/a-newcomer-makes-a-stable-group-rebalance"
WINDOW = "plain/initial-delay/the-first-rebalance-waits-for-others"


def breaking(of: type[Response], change: Change) -> Callable[..., Node]:
    """A node that changes each answer of one kind."""

    class Broken(Node):
        def step(self, what: Input, now: int) -> list[Effect]:
            return [
                Reply(effect.token, change(effect.response))
                if isinstance(effect, Reply) and isinstance(effect.response, of)
                else effect
                for effect in super().step(what, now)
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
        def step(self, what: Input, now: int) -> list[Effect]:
            effects = super().step(what, now)
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
