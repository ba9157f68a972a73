"""The topology of a group as the topics of the cluster allow it. Never changed. Kafka: ConfiguredTopology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsStatus
from rejoin.protocol.streams.topology import StreamsTopicInfo


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """A repartition or changelog topic that is to be created."""

    partitions: int
    info: StreamsTopicInfo


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with its numbers of tasks, or what prevents it from running."""

    topology_epoch: int
    status: StreamsStatus | None = None
    """None where the topology is ready."""
    detail: str = ""
    """The status in words."""
    tasks: Mapping[str, int] | None = None
    """By subtopology; none where that is not known."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Of each internal topic, by name."""
    to_create: Mapping[str, MissingTopic] = field(default_factory=dict)
    """Internal topics that do not exist yet, by name."""

    @property
    def is_ready(self) -> bool:
        return self.status is None
