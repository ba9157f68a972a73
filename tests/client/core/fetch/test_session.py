"""Fetch sessions: what is sent after what was answered."""

from __future__ import annotations

import pytest

from rejoin.client.core.fetch.session import FetchContents, FetchSessionHandler, PartitionRequest
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import ZERO_UUID, TopicPartition

ORDERS, CLICKS = "o" * 22, "c" * 22
A, B, C = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("clicks", 0)


def at(offset: int, topic_id: str = ORDERS) -> PartitionRequest:
    return PartitionRequest(topic_id, offset, 0, 1_000)


def opened(session_id: int = 9) -> FetchSessionHandler:
    """A session in which A and B were fetched from their beginning."""
    session = FetchSessionHandler()
    session.build({A: at(0), B: at(0)})
    assert session.answered(ErrorCode.NONE, session_id, [A, B])
    return session


def test_the_first_fetch_names_all_and_the_next_only_what_has_changed() -> None:
    session = opened()
    assert session.build({A: at(5), B: at(0)}) == FetchContents(9, 1, {A: at(5)}, [], uses_topic_ids=True)
    assert session.answered(ErrorCode.NONE, 9, [A])
    contents = session.build({A: at(5), C: at(2, CLICKS)})
    assert contents == FetchContents(9, 2, {C: at(2, CLICKS)}, [(B, ORDERS)], uses_topic_ids=True)


def test_a_topic_that_was_made_again_is_forgotten_under_its_old_id() -> None:
    contents = opened().build({A: at(0, CLICKS), B: at(0)})
    assert contents.wanted == {A: at(0, CLICKS)}
    assert contents.forgotten == [(A, ORDERS)]


def test_without_the_id_of_a_topic_names_are_used() -> None:
    assert not FetchSessionHandler().build({A: at(0, ZERO_UUID)}).uses_topic_ids


def test_a_broker_without_sessions_is_always_asked_for_all() -> None:
    session = opened(session_id=0)
    assert session.build({A: at(5), B: at(0)}) == FetchContents(0, 0, {A: at(5), B: at(0)}, [], uses_topic_ids=True)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 9)],
)
def test_after_an_error_a_new_session_begins_which_closes_one_that_may_be_there(
    error: ErrorCode, session_id: int
) -> None:
    session = opened()
    session.build({A: at(0), B: at(0)})
    assert not session.answered(error, 0, [])
    assert session.build({A: at(0), B: at(0)})[:3] == (session_id, 0, {A: at(0), B: at(0)})


def test_an_answer_with_other_partitions_is_not_looked_at() -> None:
    session = opened()
    session.build({A: at(1), B: at(0)})
    assert not session.answered(ErrorCode.NONE, 9, [C])
    assert session.build({A: at(1), B: at(0)}).epoch == 0
