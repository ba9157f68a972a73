"""Applications of Kafka Streams on Apache Kafka 4.4, recorded: their requests come at the same times to a node of ours.

``make client-streams-groups-on-kafka`` plays these lives; its option ``--record`` writes them down.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from rejoin.coordinator.core.effects import AppendTopics, Effect
from rejoin.coordinator.core.inputs import TopicsStored
from rejoin.coordinator.core.node import Node
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from tests import paths
from tests.coordinator.core.driver import Driver
from tests.coordinator.core.groups.streams.script_player import StreamsScriptPlayer, comparable

APPLICATIONS: Final = paths.GOLDEN / "streams-groups" / "applications.jsonl.gz"
OF_TOPICS: Final = ("CreateTopics", "DeleteTopics")
MISSING: Final = {StreamsStatus.MISSING_SOURCE_TOPICS, StreamsStatus.MISSING_INTERNAL_TOPICS}


class LateTopicsDriver(Driver):
    """Changes of topics wait until they are let through: a broker makes internal topics beside its heartbeats."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.waiting: list[AppendTopics] = []

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, AppendTopics):
            self.waiting.append(effect)
        else:
            super().carry_out(effect)

    def store_topics(self) -> None:
        while self.waiting:
            change = self.waiting.pop(0)
            self.step(TopicsStored(change.append_id, change.version + 1))


class ApplicationPlayer(StreamsScriptPlayer):
    """Topics are there from the first reply on that Kafka gave without a status that says that they are missing."""

    def new_driver(self) -> LateTopicsDriver:
        self.made_sources = False
        return LateTopicsDriver(Node(self.settings, self._new_id, topics_logged=True))

    def send(self, name: str, version: int, body: Any, client: str) -> None:
        super().send(name, version, body, client)
        if name in OF_TOPICS:
            self.made_sources = True
        elif name == "IncrementalAlterConfigs":
            self.store_topics()

    def store_topics(self) -> None:
        assert isinstance(self.driver, LateTopicsDriver)
        self.made_sources = False
        self.driver.store_topics()

    def play(self, step: Mapping[str, Any]) -> Any:
        if step["body"].get("memberEpoch", -1) >= 0:
            status = {each["statusCode"] for each in step["reply"]["status"]}
            if StreamsStatus.MISSING_SOURCE_TOPICS not in status and self.made_sources:
                self.store_topics()
            if not status & MISSING:
                self.store_topics()
        if step["api"] not in OF_TOPICS:
            return super().play(step)
        self.driver.elapse(step["after"])
        self.send(step["api"], step["version"], step["body"], step["client"])
        return None


def applications() -> list[dict[str, Any]]:
    with gzip.open(APPLICATIONS) as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("life", applications(), ids=lambda life: str(life["id"]))
def test_every_reply_is_that_of_kafka(life: dict[str, Any]) -> None:
    player = ApplicationPlayer(life)
    for number, step in enumerate(life["steps"]):
        reply = player.play(step)
        if reply is not None:
            assert comparable(step["api"], reply) == comparable(step["api"], step["reply"]), f"step {number}"
