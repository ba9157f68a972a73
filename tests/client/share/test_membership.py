"""A share consumer as a member of its group: heartbeats, fencing, errors."""

from __future__ import annotations

import pytest

from rejoin.client.core.errors import CodedError, GroupAuthorizationError, TopicAuthorizationError
from rejoin.client.core.inputs import Subscribed, Unsubscribed
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition
from tests.client.share.bench import ShareBench


def joined() -> ShareBench:
    """A consumer whose first fetch waits."""
    bench = ShareBench()
    bench.join()
    assert bench.sent() == ["ShareFetch 0 t-0 t-1"]
    return bench


def test_it_joins_with_its_topics_and_then_names_them_no_more() -> None:
    bench = ShareBench()
    bench.subscribe()
    assert bench.sent() == [], "joining begins with the first poll"
    bench.poll()
    assert bench.sent() == ["ShareGroupHeartbeat 0 ['t']"]
    bench.beat(2, [0])
    assert bench.core.assignment() == [TopicPartition("t", 0)]
    assert bench.sent() == ["ShareGroupHeartbeat 2", "ShareFetch 0 t-0"]


def test_an_empty_assignment_is_noted_after_a_pause() -> None:
    bench = ShareBench()
    bench.subscribe()
    bench.poll()
    bench.beat(2, [])
    assert bench.sent() == []
    bench.advance(399)
    assert bench.sent() == []
    bench.advance(1)
    assert bench.sent() == ["ShareGroupHeartbeat 2"]


def test_it_beats_at_the_interval_of_the_coordinator() -> None:
    bench = joined()
    bench.waiting.clear()
    bench.advance(4_999)
    assert bench.sent() == []
    bench.advance(1)
    assert bench.sent() == ["ShareGroupHeartbeat 2"]


def test_a_new_subscription_is_in_the_next_heartbeat() -> None:
    bench = joined()
    bench.waiting.clear()
    bench.step(Subscribed(("t", "u")))
    bench.advance(5_000)
    assert bench.sent() == ["ShareGroupHeartbeat 2 ['t', 'u']"]


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_joins_again_with_the_same_id(error: ErrorCode) -> None:
    bench = joined()
    bench.waiting.clear()
    bench.advance(5_000)
    bench.beat(error=error)
    assert bench.sent() == ["ShareGroupHeartbeat 0 ['t']"]
    assert bench.core.assignment() == []


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_it_looks_for_a_coordinator_that_moved(error: ErrorCode) -> None:
    bench = joined()
    bench.waiting.clear()
    bench.advance(5_000)
    bench.beat(error=error)
    assert bench.sent() == ["ShareGroupHeartbeat 2 ['t']"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (ErrorCode.GROUP_ID_NOT_FOUND, CodedError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, CodedError),
        (ErrorCode.UNSUPPORTED_VERSION, CodedError),
        (ErrorCode.INVALID_REQUEST, CodedError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
    ],
)
def test_a_poll_raises_what_the_coordinator_refuses(error: ErrorCode, raised: type[Exception]) -> None:
    bench = ShareBench()
    bench.subscribe()
    bench.poll()
    bench.beat(error=error)
    assert isinstance(bench.polls.pop(), raised)


def test_unsubscribing_leaves_and_keeps_the_session() -> None:
    bench = joined()
    bench.waiting.clear()
    bench.step(Unsubscribed("unsubscribe"))
    assert bench.sent() == ["ShareGroupHeartbeat -1 []"]
    assert bench.core.assignment() == []


def test_without_polls_it_leaves() -> None:
    bench = ShareBench(max_poll_interval_ms=3_000)
    bench.join()
    bench.waiting.clear()
    bench.advance(4_000)
    assert bench.sent() == ["ShareGroupHeartbeat -1 []"]
