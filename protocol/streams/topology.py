"""The topology of an application as its members send it and its group stores it (KIP-1071)."""

from __future__ import annotations

from rejoin.protocol.message import Struct
from rejoin.protocol.types import Int16, Int32, TopicName, UInt16


class StreamsKeyValue(Struct):
    """A setting of a topic, or a tag of a client."""

    key: str
    value: str


class StreamsTopicInfo(Struct):
    """An internal topic. 0 partitions: as many as its sources have; replication factor 0: the broker's default."""

    name: TopicName
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[StreamsKeyValue, ...]


class CopartitionGroup(Struct):
    """Topics that need the same number of partitions, by their places in the lists of their subtopology."""

    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


class Subtopology(Struct):
    """A part of a topology that runs as one: each partition number of its sources is a task."""

    subtopology_id: str
    source_topics: tuple[TopicName, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[StreamsTopicInfo, ...]
    repartition_sink_topics: tuple[TopicName, ...]
    repartition_source_topics: tuple[StreamsTopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


class UserEndpoint(Struct):
    """The address at which an application answers queries of its state."""

    host: str
    port: UInt16
