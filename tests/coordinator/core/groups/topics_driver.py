"""A driver whose topics come and go as a recording says, with the ids that they had there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rejoin.coordinator.core.inputs import Millis, TopicsChanged
from rejoin.coordinator.core.node import Node
from rejoin.protocol.records.topics import (
    PartitionData,
    PartitionRecord,
    RemoveTopicData,
    RemoveTopicRecord,
    TopicData,
    TopicRecord,
)
from tests.coordinator.core.driver import Driver


class TopicsDriver(Driver):
    """Drives a node, and knows its topics by name and by id, also those that are gone."""

    def __init__(self, node: Node, now: Millis) -> None:
        super().__init__(node, now)
        self.topics: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        self.version = 0

    def change_topics(self, topics: Mapping[str, Mapping[str, Any] | None]) -> None:
        records: list[Any] = []
        for name, topic in topics.items():
            before = self.topics.get(name)
            if before is not None and (topic is None or topic["id"] != before["id"]):
                records.append(RemoveTopicRecord(data=RemoveTopicData(topic_id=before["id"])))
                del self.topics[name]
                before = None
            if topic is None:
                continue
            if before is None:
                data = TopicData(name=name, topic_id=topic["id"], records_per_second=1.0)
                records.append(TopicRecord(data=data))
            known = 0 if before is None else before["partitions"]
            self.topics[name] = dict(topic)
            self.names[topic["id"]] = name
            if topic["partitions"] > known:
                records.append(
                    PartitionRecord(
                        data=PartitionData(
                            topic_id=topic["id"],
                            partition_id=known,
                            partitions=topic["partitions"] - known,
                            started_at=self.now,
                        )
                    )
                )
        self.version += 1
        self.step(TopicsChanged(((self.version, tuple(records)),), self.version))
