"""The data partitions that this node leads.

Where a controller decides on each partition, a data partition is elected by itself. Else it is led by the node that
leads one of the offsets partitions, and in that epoch: so leases, elections and fencing are those of the offsets
partitions. Requests take leader and epoch from here only.
"""

from __future__ import annotations

from functools import lru_cache

from rejoin.coordinator.core.effects import DeleteLog, FollowLog
from rejoin.coordinator.core.inputs import Broker, FollowersFetched, Millis, Replicated
from rejoin.coordinator.core.partitions.partition import Partition, PartitionObserver, PartitionTimer
from rejoin.coordinator.core.partitions.topic_config import DEFAULT, TopicConfig
from rejoin.coordinator.core.runtime.shards import ClusterMetadata
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.partitioner import partition_for
from rejoin.protocol.records.batches import DataEntry
from rejoin.protocol.records.consumer_offsets import offsets_partition
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC
from rejoin.protocol.types import TopicIdPartition, TopicPartition

UNKNOWN_LEADER_EPOCH = -1

_CLEANING = TimerKey(PartitionTimer.CLEANING, TopicPartition("", -1))
_PRODUCER_EXPIRY = TimerKey(PartitionTimer.PRODUCER_EXPIRY, TopicPartition("", -1))
_ISR_EXPIRY = TimerKey(PartitionTimer.ISR_EXPIRY, TopicPartition("", -1))
_COMPACTION = TimerKey(PartitionTimer.COMPACTION, TopicPartition("", -1))
_AT_ONCE = -1


class Partitions:
    """The partitions of all topics with real logs, and those of them that this node leads."""

    def __init__(self, ctx: StepContext, cluster: ClusterMetadata) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._epochs: dict[TopicPartition, int] = {}
        """The offsets partitions that this node leads."""
        self._by_lease: dict[TopicPartition, dict[TopicIdPartition, None]] = {}
        self._by_name: dict[str, list[TopicIdPartition]] = {}
        self._by_id: dict[str, list[TopicIdPartition]] = {}
        self._configs: dict[str, TopicConfig] = {}
        self.default_config = DEFAULT
        self._observers: list[PartitionObserver] = []
        self.led: dict[TopicIdPartition, Partition] = {}
        self._followed: dict[TopicIdPartition, Partition] = {}
        """Copies of logs that other nodes lead, as far as consumers have asked for them."""
        self._dirty: dict[TopicIdPartition, Millis] = {}
        """The logs of compacted topics that the next look may find something in, each from an instant on."""

    def observe(self, observer: PartitionObserver) -> None:
        """Have an observer called when a partition changes for its readers."""
        self._observers.append(observer)

    def on_progress(self, partition: TopicIdPartition) -> None:
        """Pass on what happened to one partition."""
        led = self.led.get(partition)
        if led is not None:
            self._watch(led)
            self._look_soon(led)
        for observer in self._observers:
            observer.on_progress(partition)

    # --- looking up

    def identify(self, topic: str, partition: int) -> TopicIdPartition | None:
        """A partition of the topic with this name, or none where it is unknown or its log is synthetic."""
        return _at(self._by_name.get(topic), partition)

    def get(self, partition: TopicIdPartition) -> Partition | None:
        """A partition that this node leads and has loaded."""
        found = self.led.get(partition)
        return None if found is None or found.is_loading else found

    def find(self, topic: str, partition: int, leader_epoch: int = UNKNOWN_LEADER_EPOCH) -> Partition | ErrorCode:
        """A partition with a real log that this node serves in this leader epoch, or why it does not."""
        identity = self.identify(topic, partition)
        if identity is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = self.get(identity)
        if found is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        error = leader_epoch_error(leader_epoch, found.epoch)
        return found if error is ErrorCode.NONE else error

    def copy_of(self, partition: TopicIdPartition) -> tuple[int, Partition] | None:
        """This node's copy of a log that another leads, with the leader epoch that is known here; none without one."""
        registration = self._cluster.registration(partition)
        followed = self._followed.get(partition)
        if registration is None or followed is None:
            return None
        return registration.leader_epoch, followed

    def is_followed(self, partition: TopicIdPartition) -> bool:
        """Whether this node has a copy of a log that another leads, be it read yet or not."""
        registration = self._cluster.registration(partition)
        here = self._ctx.settings.broker_id
        return registration is not None and registration.leader != here and here in registration.replicas

    def is_damaged(self, partition: TopicIdPartition) -> bool:
        """Whether this node leads a partition and cannot read its log."""
        led = self.led.get(partition)
        return led is not None and led.is_damaged

    def damaged(self) -> list[TopicPartition]:
        """The partitions of this node whose logs cannot be read, in order."""
        return sorted(TopicPartition(each.topic, each.partition) for each, led in self.led.items() if led.is_damaged)

    def end_offset(self, topic: str, partition: int) -> int | None:
        """The high watermark of a partition, or none where this node does not know it."""
        identity = self.identify(topic, partition)
        found = None if identity is None else self.get(identity)
        return None if found is None else found.log.high_watermark

    def written_at(self, topic: str, partition: int, offset: int) -> Millis | None:
        """The newest timestamp of the batch with an offset; none where this node does not have it."""
        identity = self.identify(topic, partition)
        found = None if identity is None else self.get(identity)
        batch = None if found is None else next(found.log.batches_from(offset), None)
        return None if batch is None or batch.max_timestamp < 0 else batch.max_timestamp

    def leader_of(self, partition: TopicIdPartition) -> tuple[Broker | None, int]:
        """The live node that leads a partition, or none, and its leader epoch, or -1 where only that node knows it."""
        registration = self._cluster.registration(partition)
        if registration is not None:
            return self._cluster.broker(registration.leader), registration.leader_epoch
        if self._cluster.registrations is not None:
            # The topic is new, and the controller's decision is not here yet.
            return None, UNKNOWN_LEADER_EPOCH
        leased_by = self.leased_by(partition)
        return self._cluster.leader_of(leased_by), self._epochs.get(leased_by, UNKNOWN_LEADER_EPOCH)

    def leased_by(self, partition: TopicIdPartition) -> TopicPartition:
        """The offsets partition whose leader leads a data partition."""
        return _leased_by(partition.topic_id, partition.partition, self._ctx.settings.offsets_topic_num_partitions)

    def compacted_topics(self) -> list[str]:
        """The names of the topics whose logs are compacted, sorted."""
        found = {name: known[0].topic_id for name, known in self._by_name.items() if known}
        return sorted(name for name, topic_id in found.items() if self.config_of(topic_id).is_compacted)

    @property
    def is_writing(self) -> bool:
        """Whether any append is in flight."""
        return any(partition.is_writing for partition in self.led.values())

    # --- topics

    def add(self, topic: str, topic_id: str, count: int) -> None:
        """A topic with a real log has so many partitions now."""
        known = self._by_id.setdefault(topic_id, [])
        self._by_name[topic] = known
        for index in range(len(known), count):
            partition = TopicIdPartition(topic_id, index, topic)
            known.append(partition)
            leased_by = self.leased_by(partition)
            self._by_lease.setdefault(leased_by, {})[partition] = None
            epoch = self._epochs.get(leased_by)
            if epoch is not None:
                self._lead(partition, leased_by, epoch)

    def configure(self, topic_id: str, config: TopicConfig) -> None:
        """A topic has these settings from now on; before it is added, or later."""
        self._configs[topic_id] = config
        for partition in self._by_id.get(topic_id, ()):
            led = self.led.get(partition)
            if led is not None:
                led.config = config
                self._watch(led)
                self._look_soon(led)

    def config_of(self, topic_id: str) -> TopicConfig:
        """The settings of a topic."""
        return self._configs.get(topic_id, self.default_config)

    def remove(self, topic: str, topic_id: str) -> None:
        """A topic is deleted, with its logs."""
        for partition in self._by_id.pop(topic_id, ()):
            leased_by = self.leased_by(partition)
            del self._by_lease[leased_by][partition]
            led = self.led.get(partition)
            epoch = self._epochs.get(leased_by) if led is None else led.epoch
            self._resign(partition)
            self._followed.pop(partition, None)
            if epoch is not None:
                self._ctx.effects.append(DeleteLog(partition, epoch, leased_by))
        self._by_name.pop(topic, None)
        self._configs.pop(topic_id, None)

    # --- leading and resigning

    def elect(self, partition: TopicIdPartition, epoch: int) -> None:
        """Lead one partition, on which a controller has decided."""
        led = self.led.get(partition)
        if partition in self._by_id.get(partition.topic_id, ()) and (led is None or led.epoch < epoch):
            self._resign(partition)
            self._lead(partition, self.leased_by(partition), epoch)

    def elect_by_lease(self, leased_by: TopicPartition, epoch: int) -> None:
        """Lead the data partitions of an offsets partition's leader; partitions of an older epoch resign first."""
        if self._cluster.registrations is not None or self._epochs.get(leased_by, -1) >= epoch:
            return
        self.resign_by_lease(leased_by)
        self._epochs[leased_by] = epoch
        for partition in self._by_lease.get(leased_by, ()):
            self._lead(partition, leased_by, epoch)

    def resign(self, partition: TopicIdPartition) -> None:
        """Lead one partition no longer."""
        self._resign(partition)

    def resign_by_lease(self, leased_by: TopicPartition) -> None:
        """Lead what belongs to an offsets partition no longer."""
        if self._epochs.pop(leased_by, None) is not None:
            for partition in self._by_lease.get(leased_by, ()):
                self._resign(partition)

    def _lead(self, partition: TopicIdPartition, leased_by: TopicPartition, epoch: int) -> None:
        self._followed.pop(partition, None)
        config = self.config_of(partition.topic_id)
        registration = self._cluster.registration(partition)
        led = self.led[partition] = Partition(self._ctx, partition, leased_by, epoch, self, config, registration)
        led.elected()

    def _resign(self, partition: TopicIdPartition) -> None:
        self._dirty.pop(partition, None)
        led = self.led.pop(partition, None)
        if led is not None:
            led.resigned()

    # --- inputs

    def registered(self) -> None:
        """The controller has decided anew on partitions."""
        for partition, led in self.led.items():
            registration = self._cluster.registration(partition)
            if registration is not None and registration.leader_epoch == led.epoch:
                led.alter(registration)
        if self._cluster.registrations is not None:
            self._watch_followers()
        for partition in list(self._followed):
            if not self.is_followed(partition):
                del self._followed[partition]
            # Who waits in another leader epoch is answered.
            self.on_progress(partition)

    def follow(self, partition: TopicIdPartition) -> None:
        """Ask for this node's copy of a log that another leads."""
        self._ctx.effects.append(FollowLog(partition))

    def replicated(self, what: Replicated) -> None:
        """The copy of a log has grown, or was replaced."""
        partition = what.partition
        if what.whole and self.is_followed(partition) and partition in self._by_id.get(partition.topic_id, ()):
            config, leased_by = self.config_of(partition.topic_id), self.leased_by(partition)
            self._followed[partition] = Partition(self._ctx, partition, leased_by, _AT_ONCE, self, config)
        followed = self._followed.get(partition)
        if followed is not None:
            followed.replicated(what.entries, what.high_watermark)
            self.on_progress(partition)

    def followers_fetched(self, what: FollowersFetched) -> None:
        """Followers of a data partition have got so far."""
        led = self.led.get(what.partition)
        if led is not None and led.epoch == what.epoch:
            led.followers_fetched(what.end_offsets, what.silent)
            if self._ctx.deadlines.at(_ISR_EXPIRY) is not None:
                self._watch_followers()

    def stored(self, partition: TopicIdPartition, epoch: int, append_id: int, error: ErrorCode) -> None:
        """An append to a data partition has ended."""
        led = self.led.get(partition)
        if led is not None and led.epoch == epoch:
            led.stored(append_id, error)
            if led.followers.are_any and led.followers.are_behind and self._ctx.deadlines.at(_ISR_EXPIRY) is None:
                self._watch_followers()

    def log_read(self, partition: TopicIdPartition, epoch: int, entries: tuple[DataEntry, ...], end: bool) -> None:
        """A piece of a data partition's log."""
        led = self.led.get(partition)
        if led is not None and led.epoch == epoch:
            # Kafka: a follower that takes over remembers what it replicated; a broker that restarts has its snapshots.
            led.log_read(entries, end, is_restart=self._cluster.is_one_broker)

    def log_damaged(self, partition: TopicIdPartition, epoch: int) -> None:
        """The log of a data partition cannot be read."""
        led = self.led.get(partition)
        if led is not None and led.epoch == epoch:
            led.log_damaged()

    def reload(self, partition: TopicIdPartition) -> None:
        """Drop a partition's memory, which cannot be trusted any more, and read its log again."""
        led = self.led.get(partition)
        if led is not None:
            led.reload()

    # --- timers

    def _watch(self, led: Partition) -> None:
        """See to it that old records are deleted, and producers are forgotten, while there are any."""
        ctx = self._ctx
        if led.log.batches and not led.config.is_compacted and ctx.deadlines.at(_CLEANING) is None:
            ctx.deadlines.set(_CLEANING, ctx.now + ctx.settings.log_retention_check_interval_ms)
        if led.producers.entries and ctx.deadlines.at(_PRODUCER_EXPIRY) is None:
            ctx.deadlines.set(_PRODUCER_EXPIRY, ctx.now + ctx.settings.producer_id_expiration_check_interval_ms)

    def _look_soon(self, led: Partition) -> None:
        """See to it that a log that has changed is looked at, if its topic is compacted."""
        if not led.config.is_compacted or not led.log.batches:
            return
        at = _AT_ONCE
        if led.partition.topic == TRANSACTION_STATE_TOPIC:
            # Kafka leaves the newest segment alone, 100 MB in this topic: a small log is never compacted.
            at = self._ctx.now + self._ctx.settings.log_retention_check_interval_ms
        at = self._dirty[led.partition] = min(at, self._dirty.get(led.partition, at))
        self._look_at(at)

    def _look_at(self, instant: Millis) -> None:
        """Look at dirty logs at an instant or earlier, but never twice within the backoff."""
        at = max(instant, self._ctx.now + self._ctx.settings.log_cleaner_backoff_ms)
        due = self._ctx.deadlines.at(_COMPACTION)
        if due is None or due > at:
            self._ctx.deadlines.set(_COMPACTION, at)

    def compact(self, topic: str | None) -> None:
        """Compact the logs of a topic, or of all, now. Those of topics that are not compacted stay as they are."""
        for partition, led in list(self.led.items()):
            if topic in (None, partition.topic):
                self._clean(led, always=True)
        self._look_later()

    def _clean(self, led: Partition, *, always: bool = False) -> None:
        if led.is_loading or not led.config.is_compacted:
            return
        again = led.clean(always=always)
        if again is None:
            self._dirty.pop(led.partition, None)
        else:
            self._dirty[led.partition] = again

    def _look(self) -> None:
        """Clean the logs of compacted topics that have changed since, or that have waited for this instant."""
        for partition in [each for each, at in self._dirty.items() if at <= self._ctx.now]:
            del self._dirty[partition]
            self._clean(self.led[partition])
        self._look_later()

    def _look_later(self) -> None:
        # Kafka's cleaner looks at every log each time. Here a log is left out until there may be something to find.
        if self._dirty:
            self._look_at(min(self._dirty.values()))
        else:
            self._ctx.deadlines.cancel(_COMPACTION)

    def _watch_followers(self) -> None:
        """Look at followers that are behind when the first of them has been so for too long."""
        lag_ms = self._ctx.settings.replica_lag_time_max_ms
        due = [at for led in self.led.values() if (at := led.followers.next_expiry(lag_ms)) is not None]
        if due:
            self._ctx.deadlines.set(_ISR_EXPIRY, min(due))
        else:
            self._ctx.deadlines.cancel(_ISR_EXPIRY)

    def fire(self, key: TimerKey) -> None:
        """A timer of the data partitions is due."""
        if key == _ISR_EXPIRY:
            for led in self.led.values():
                led.expire_followers(self._ctx.settings.replica_lag_time_max_ms)
            self._watch_followers()
            return
        if key == _COMPACTION:
            self._look()
            return
        loaded = [led for led in self.led.values() if not led.is_loading]
        for led in loaded:
            if key == _PRODUCER_EXPIRY:
                led.expire_producers()
            elif not led.config.is_compacted:
                led.delete_old()
        for led in loaded:
            self._watch(led)


@lru_cache(maxsize=16_384)
def _leased_by(topic_id: str, index: int, count: int) -> TopicPartition:
    return offsets_partition(partition_for(f"{topic_id}-{index}", count))


def leader_epoch_error(known: int, leader_epoch: int) -> ErrorCode:
    """The error of a client that knows another leader epoch than the leader; -1 is not checked."""
    # Kafka: Partition.checkCurrentLeaderEpoch.
    if known in (UNKNOWN_LEADER_EPOCH, leader_epoch):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if known < leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH


def _at(partitions: list[TopicIdPartition] | None, index: int) -> TopicIdPartition | None:
    return None if partitions is None or not 0 <= index < len(partitions) else partitions[index]
