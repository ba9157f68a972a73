"""An internal topic that keeps the state of a coordinator: who leads a key, and the shards that are led here.

The topic is made by its first use. Its partitions are data partitions, and are led as these are.

Kafka: TransactionStateManager, ShareCoordinatorService, AutoTopicCreationManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from rejoin.coordinator.core.inputs import Broker, TopicsRecords
from rejoin.coordinator.core.partitions.partition import Partition
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.coordinator.core.topics.placement import Placement
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.types import LogPartition, TopicIdPartition


class StateShard(Protocol):
    """The state in one partition of the topic, in one leader epoch."""

    coordinator_epoch: int

    def load(self) -> None:
        """Read the log, and begin to serve."""

    def resigned(self) -> None:
        """The partition is led elsewhere, or will be read again."""


S = TypeVar("S", bound=StateShard)

Retry: TypeAlias = Callable[[], None]
"""Handles a request again."""


class InternalTopic(NamedTuple):
    """An internal topic as it is made."""

    name: str
    topic_id: str
    partitions: int
    configs: Mapping[str, str]


class StateTopic(Generic[S]):
    """The partitions of one such topic. ``make`` makes the shard of a partition that is led here."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        changes: TopicChanges,
        partitions: Partitions,
        placement: Callable[[], Placement],
        topic: InternalTopic,
        make: Callable[[Partition], S],
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._changes = changes
        self._partitions = partitions
        self._placement = placement
        self._topic = topic
        self._make = make
        self._waiting: list[tuple[str, Retry]] = []
        """Requests that came before there was a topic, each with its key."""
        self._has_failed = False
        self.shards: dict[TopicIdPartition, S] = {}

    # --- looking up

    def _partition_of(self, key: str) -> TopicIdPartition | None:
        count = self._topics.partition_count(self._topic.name)
        if not count:
            return None
        return self._partitions.identify(self._topic.name, partition_for(key, count))

    def leader_of(self, key: str) -> Broker | None:
        """The node that coordinates a key, or none."""
        partition = self._partition_of(key)
        return None if partition is None else self._partitions.leader_of(partition)[0]

    def find(self, key: str) -> S | ErrorCode:
        """The shard of a key, or why this node cannot answer for it."""
        if not self._cluster.is_known:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self._partition_of(key)
        if partition is None or partition not in self._partitions.led:
            return ErrorCode.NOT_COORDINATOR
        return self.shards.get(partition, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    @property
    def is_loading(self) -> bool:
        """Whether a partition of the topic is still being read."""
        count = self._topics.partition_count(self._topic.name)
        partitions = (self._partitions.identify(self._topic.name, index) for index in range(count))
        return any(each in self._partitions.led and each not in self.shards for each in partitions)

    # --- the topic itself

    def when_ready(self, key: str, retry: Retry) -> bool:
        """Whether the topic is there. If not it is made, and the request is handled again when it is read."""
        # Differs: Kafka's clients look for a coordinator first, get COORDINATOR_NOT_AVAILABLE, and ask again.
        is_there = self._topic.name in self._topics.by_name
        if is_there or self._has_failed or not self._cluster.is_known:
            return True
        self._waiting.append((key, retry))
        if len(self._waiting) == 1:
            self._changes.make(_Creation(self.created, self._topics, self._ctx, self._placement, self._topic))
        return False

    def created(self, error: ErrorCode) -> None:
        """The topic exists, and the partitions led here are being read; or it could not be created."""
        self._has_failed = error is not ErrorCode.NONE
        self._go_on()
        self._has_failed = False

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, []
        for key, retry in waiting:
            if self.find(key) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._waiting.append((key, retry))
            else:
                retry()

    def on_progress(self, partition: LogPartition) -> None:
        """A data partition has changed: one of the topic may have been read, or is not led here any more."""
        if not isinstance(partition, TopicIdPartition) or partition.topic_id != self._topic.topic_id:
            return
        led = self._partitions.get(partition)
        shard = self.shards.get(partition)
        if shard is not None and (led is None or shard.coordinator_epoch != led.epoch):
            del self.shards[partition]
            shard.resigned()
            shard = None
        if led is not None and shard is None:
            shard = self.shards[partition] = self._make(led)
            shard.load()
        if self._waiting:
            self._go_on()


class _Creation(TopicChange):
    """The topic is made by its first use."""

    def __init__(
        self,
        on_end: Callable[[ErrorCode], None],
        topics: Topics,
        ctx: StepContext,
        placement: Callable[[], Placement],
        topic: InternalTopic,
    ) -> None:
        self._on_end = on_end
        self._topics = topics
        self._ctx = ctx
        self._placement = placement
        self._topic = topic

    def decide(self) -> TopicsRecords:
        name, topic_id, partitions, configs = self._topic
        if name in self._topics.by_name:
            return ()
        return self._topics.internal(name, topic_id, partitions, configs, self._placement(), self._ctx.now)

    def ended(self, error: ErrorCode) -> None:
        self._on_end(error)
