"""Which topics DeleteTopics refuses. Each row was compared with Apache Kafka 4.4.0."""

from __future__ import annotations

import pytest

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from rejoin.protocol.types import ZERO_UUID
from tests.coordinator.core.driver import DrivenNode, topic
from tests.coordinator.core.topics.test_topics import create, delete, metadata, named

NOWHERE = "B" * 22
REFUSED, NONE = ErrorCode.INVALID_REQUEST, ErrorCode.NONE
UNKNOWN_NAME, UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Topics:
    """A node with the topics ``a`` and ``b``, which rows call so, also where an id is meant."""

    def __init__(self, *denials: str) -> None:
        self.driven = DrivenNode(emulator_deny=denials)
        made = create(self.driven, topic("a", 1), topic("b", 1))
        self.ids = {result.name: result.topic_id for result in made} | {None: ZERO_UUID}

    def delete(self, *wanted: tuple[str | None, str | None]) -> list[tuple[str | None, str | None, ErrorCode]]:
        """Delete what rows name by (name, id)."""
        results = delete(
            self.driven,
            *(DeleteTopicState(name=name, topic_id=self.ids.get(of, of or ZERO_UUID)) for name, of in wanted),
        )
        names = {topic_id: name for name, topic_id in self.ids.items()}
        assert all((each.error_message is None) == (each.error_code is NONE) for each in results)
        return [(each.name, names.get(each.topic_id, each.topic_id), each.error_code) for each in results]

    @property
    def left(self) -> list[str]:
        names = [found.name or "" for found in metadata(self.driven).topics]
        return [name for name in names if name in self.ids]


@pytest.mark.parametrize(
    ("wanted", "results"),
    [
        ([("a", "a")], [("a", "a", REFUSED)]),
        ([("a", "b")], [("a", "b", REFUSED)]),
        ([("", "a")], [("", "a", REFUSED)]),
        ([("nowhere", NOWHERE)], [("nowhere", NOWHERE, REFUSED)]),
        ([(None, None)], [(None, None, REFUSED)]),
        ([(None, None), (None, None)], [(None, None, REFUSED)] * 2),
        ([("", None)], [("", None, UNKNOWN_NAME)]),
        ([("nowhere", None)], [("nowhere", None, UNKNOWN_NAME)]),
        ([(None, NOWHERE)], [(None, NOWHERE, UNKNOWN_ID)]),
        ([("nowhere", None)] * 2, [("nowhere", None, REFUSED)]),
        ([(None, NOWHERE)] * 2, [(None, NOWHERE, REFUSED)]),
        ([("a", None)] * 3, [("a", None, REFUSED)]),
        ([(None, "a")] * 3, [(None, "a", REFUSED)]),
        ([("a", None), (None, "a")], [("a", "a", REFUSED)]),
        ([(None, "a"), ("a", None)], [("a", "a", REFUSED)]),
        ([(None, "a"), (None, "a"), ("a", None)], [(None, "a", REFUSED), ("a", "a", REFUSED)]),
    ],
)
def test_a_topic_must_be_named_once_and_in_one_way(
    wanted: list[tuple[str | None, str | None]], results: list[tuple[str | None, str | None, ErrorCode]]
) -> None:
    topics = Topics()
    assert topics.delete(*wanted) == results
    assert topics.left == ["a", "b"]


@pytest.mark.parametrize(
    ("wanted", "results"),
    [
        ([("a", None), ("a", "a")], [("a", "a", NONE), ("a", "a", REFUSED)]),
        ([(None, "a"), ("a", "a")], [("a", "a", NONE), ("a", "a", REFUSED)]),
        ([("a", None), ("a", None), (None, "a")], [("a", None, REFUSED), ("a", "a", NONE)]),
        ([("a", None), (None, None), ("b", "b")], [("a", "a", NONE), (None, None, REFUSED), ("b", "b", REFUSED)]),
    ],
)
def test_an_entry_that_is_refused_does_not_keep_a_topic(
    wanted: list[tuple[str | None, str | None]], results: list[tuple[str | None, str | None, ErrorCode]]
) -> None:
    topics = Topics()
    assert topics.delete(*wanted) == results
    assert topics.left == ["b"]


def test_an_id_that_is_denied_is_answered_with_a_name_only_where_that_may_be_seen() -> None:
    topics = Topics("User:ANONYMOUS:DELETE:topic=*", "User:ANONYMOUS:DESCRIBE:topic=b")
    assert topics.delete((None, "a"), (None, "b")) == [("a", "a", DENIED), (None, "b", DENIED)]
    assert topics.delete(("a", None), (None, "a")) == [("a", None, DENIED), ("a", "a", DENIED)]


def test_who_may_not_see_a_topic_does_not_learn_whether_there_is_one() -> None:
    topics = Topics("User:ANONYMOUS:DELETE:topic=seen", "User:ANONYMOUS:DESCRIBE:topic=unseen")
    assert topics.delete(("seen", None), ("unseen", None)) == [("seen", None, UNKNOWN_NAME), ("unseen", None, DENIED)]


def test_from_version_5_on_errors_have_a_text() -> None:
    driven = DrivenNode()
    results: list[DeletableTopicResult] = []
    for names in (("nowhere",), ("t", "t"), ("t",)):
        results += driven.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=1_000), 5).responses
    assert [(each.error_code, each.error_message) for each in results] == [
        (UNKNOWN_NAME, "there is no topic 'nowhere' that can be deleted"),
        (REFUSED, "it stands in the request more than once"),
        (NONE, None),
    ]


def test_internal_topics_are_refused_by_name() -> None:
    (result,) = delete(DrivenNode(), named("__consumer_offsets"))
    assert result.error_code is UNKNOWN_NAME
