"""The logs that a node can be asked to read: those of real topics, synthetic ones, and ``__consumer_offsets``."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from rejoin.coordinator.core.fetch.offsets_topic import OffsetsTopic
from rejoin.coordinator.core.fetch.replica_selector import NO_REPLICA, in_rack
from rejoin.coordinator.core.fetch.synthetic import BatchCache, SyntheticBatches
from rejoin.coordinator.core.inputs import Broker, Millis
from rejoin.coordinator.core.partitions.log import AbortedTxn
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.batch_run import BatchRun
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.types import ZERO_UUID, BatchBytes, LogPartition, TopicIdPartition

SYNTHETIC_LEADER_EPOCH = 0


class ReadableLog(Protocol):
    """A log as a Fetch reads it. Kafka: UnifiedLog."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def high_watermark(self) -> int:
        """The end for readers of all records."""

    @property
    def last_stable_offset(self) -> int:
        """The end for readers of committed records."""

    def aborted_between(self, offset: int, size: int) -> list[AbortedTxn]:
        """The aborted transactions of a reading from an offset on that gave so many bytes, or that follow closely."""

    def read(self, offset: int, max_bytes: int, limit: int, *, at_least_one: bool) -> BatchBytes | BatchRun:
        """The bytes from the batch of an offset on, up to a limit offset, cut anywhere after ``max_bytes``."""

    def bytes_between(self, offset: int, limit: int, at_most: int) -> int:
        """How many bytes a reader finds from an offset up to a limit offset, counted no further than a bound."""

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to one that is asked for, and where it ended."""


class ReadablePartition(NamedTuple):
    """A partition that can be read here, as it is now."""

    partition: LogPartition
    leader_epoch: int
    log: ReadableLog
    is_synthetic: bool = False


Found: TypeAlias = ReadablePartition | ErrorCode


class ReadableLogs:
    """Finds the log of a partition. Kafka: ReplicaManager.getPartitionOrException."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        partitions: Partitions,
        offsets_topic: OffsetsTopic,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._partitions = partitions
        self._offsets_topic = offsets_topic
        self._batches = BatchCache()
        self._has_selector = bool(ctx.settings.replica_selector_class)
        self.exists = topics.has_partition
        """Whether there is such a partition at any node."""

    def named(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""
        return self._topics.named(topic_id)

    def find(self, topic: str, partition: int, topic_id: str = ZERO_UUID, *, from_follower: bool = False) -> Found:
        """The partition, or why it cannot be read here. With a topic id, it must still be the topic's.

        ``from_follower``: this node's copy will do where another node leads (KIP-392).
        """
        found = self._topics.by_name.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            if topic == OFFSETS_TOPIC and self.exists(topic, partition):
                return self._find_offsets(partition)
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic_id not in (found.topic_id, ZERO_UUID):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        identity = TopicIdPartition(found.topic_id, partition, topic)
        if not found.is_real:
            epoch = self._synthetic_epoch(identity, from_follower=from_follower)
            if isinstance(epoch, ErrorCode):
                return epoch
            log = SyntheticBatches(found, partition, self._topics.time(self._ctx.now), self._batches)
            return ReadablePartition(identity, epoch, log, is_synthetic=True)
        led = self._partitions.get(identity)
        if led is not None:
            return ReadablePartition(identity, led.epoch, led.log)
        copied = self._partitions.copy_of(identity) if from_follower else None
        if copied is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        epoch, followed = copied
        return ReadablePartition(identity, epoch, followed.log)

    def to_follow(self, topic: str, partition: int) -> TopicIdPartition | None:
        """The partition, where another node leads it and this node's copy of it was not asked for yet."""
        identity = self._partitions.identify(topic, partition)
        if identity is None or not self._partitions.is_followed(identity) or self._partitions.copy_of(identity):
            return None
        return identity

    def follow(self, partition: TopicIdPartition) -> None:
        """Ask for this node's copy of a log that another leads."""
        self._partitions.follow(partition)

    def preferred_replica(self, found: ReadablePartition, rack: str, offset: int) -> int:
        """The follower that a consumer in a rack is sent to by this node, or -1."""
        partition, log = found.partition, found.log
        if not self._has_selector or not isinstance(partition, TopicIdPartition):
            return NO_REPLICA
        if not log.log_start_offset <= offset <= log.end_offset:
            return NO_REPLICA
        led = self._partitions.get(partition)
        registration = self._cluster.registration(partition)
        if registration is None or registration.leader != self._ctx.settings.broker_id:
            return NO_REPLICA
        if led is not None:
            followers = led.followers.readable_from(offset, self._ctx.now)
        else:
            # Of a synthetic log every replica has all.
            followers = [(each, 0, 0) for each in registration.isr if each != registration.leader]
        return in_rack(rack, registration.leader, followers, self._cluster.brokers)

    def _synthetic_epoch(self, partition: TopicIdPartition, *, from_follower: bool) -> int | ErrorCode:
        """The leader epoch of a synthetic log, which any node can read unless a controller decides on leaders."""
        registration = self._cluster.registration(partition)
        if registration is None:
            return SYNTHETIC_LEADER_EPOCH
        is_here = registration.leader == self._ctx.settings.broker_id
        is_here |= from_follower and self._partitions.is_followed(partition)
        return registration.leader_epoch if is_here else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _find_offsets(self, index: int) -> Found:
        log = self._offsets_topic.log(index)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if log is None else ReadablePartition(offsets_partition(index), *log)

    def leader_of(self, topic: str, partition: int) -> tuple[Broker | None, int]:
        """The node that leads a partition, or none, and its leader epoch, or -1 where only that node knows it."""
        if topic == OFFSETS_TOPIC:
            led = self._offsets_topic.log(partition)
            return self._cluster.leader_of(offsets_partition(partition)), -1 if led is None else led[0]
        found = self._topics.by_name.get(topic)
        if found is None or not self.exists(topic, partition):
            return None, -1
        identity = TopicIdPartition(found.topic_id, partition, topic)
        registration = self._cluster.registration(identity)
        if registration is not None:
            return self._cluster.broker(registration.leader), registration.leader_epoch
        return self._partitions.leader_of(identity) if found.is_real else (None, -1)

    def grows_at(self, topic: str, partition: int, records: int) -> Millis | None:
        """When a synthetic log has more than so many new records; none where it never will, and for other logs."""
        found = self._topics.by_name.get(topic)
        if found is None or found.is_real or not self.exists(topic, partition):
            return None
        offset = found.end_offset(partition, self._topics.time(self._ctx.now)) + records
        return found.partitions[partition].there_at(offset, found.rate)
