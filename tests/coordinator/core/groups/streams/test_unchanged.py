"""A heartbeat that changes nothing is answered at once; what changes for its member is in the next answer."""

from __future__ import annotations

import json
from typing import Any

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from rejoin.protocol.messages.topics.delete_topics import DeleteTopicsRequest
from rejoin.protocol.registry import BY_NAME
from tests.coordinator.core.groups.streams.test_internal_topics import StreamsNode
from tests.coordinator.core.groups.streams.word_count import COUNTS, LINES, info


class QuietNode(StreamsNode):
    """A node with one member that has all tasks, and whose heartbeats change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.join(info(COUNTS))
        self.again()
        self.again()

    @property
    def is_quiet(self) -> bool:
        """Whether the next heartbeat is answered as the last one was, with the object that is kept for it."""
        return self.again() is self.again()


def statuses(response: Any) -> list[int]:
    return [each.status_code for each in response.status]


def test_heartbeats_that_say_nothing_new_have_one_answer_and_keep_the_session() -> None:
    node = QuietNode()
    for _ in range(3):
        node.elapse(40_000)
        assert node.is_quiet
    assert len(node.shard().groups["app"].members) == 1  # type: ignore[attr-defined]


def test_settings_of_the_group_are_in_the_next_answer() -> None:
    node = QuietNode()
    config = {"name": "streams.heartbeat.interval.ms", "configOperation": 0, "value": "6000"}
    body = {"resources": [{"resourceType": 32, "resourceName": "app", "configs": [config]}], "validateOnly": False}
    node.ask(BY_NAME["IncrementalAlterConfigs"].request.from_json(json.dumps(body)), 1)
    assert node.again().heartbeat_interval_ms == 6_000
    assert node.is_quiet


def test_a_source_topic_that_is_gone_is_in_every_answer_from_then_on() -> None:
    node = QuietNode()
    node.ask(DeleteTopicsRequest(topic_names=(LINES,), timeout_ms=1_000), 5)
    assert statuses(node.again()) == statuses(node.again()) == [StreamsStatus.MISSING_SOURCE_TOPICS]


def test_the_end_of_the_application_is_in_every_answer_from_then_on() -> None:
    node = QuietNode()
    node.heartbeat(node.epoch, shutdown_application=True)
    assert statuses(node.again()) == statuses(node.again()) == [StreamsStatus.SHUTDOWN_APPLICATION]


def test_tasks_that_another_member_shall_have_are_in_the_next_answer() -> None:
    node = QuietNode()
    before = node.epoch
    node.join(info(COUNTS), "other")
    node.epoch = before
    assert node.again().active_tasks, "what it may keep"
    assert not node.is_quiet, "until it has revoked the rest, each heartbeat is looked at"
