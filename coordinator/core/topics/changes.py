"""Changes of topics: decided on the present topics, stored if there is a log for them, and applied only then.

Kafka: ReplicationControlManager answers with records, which are replayed once the quorum has them. Here the log belongs
to all nodes and takes a change only from a node that knows all changes before it; others decide again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping

from rejoin.coordinator.core.effects import AppendTopics
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.inputs import TopicsChanged, TopicsRecords, TopicsStored
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.config_entries import GivenDefaults
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OFFSETS_TOPIC_ID
from rejoin.protocol.records.topics import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    ConfigData,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicData,
    TopicRecord,
)
from rejoin.protocol.types import TopicPartition


class TopicChange(ABC):
    """One change of the topics."""

    @abstractmethod
    def decide(self) -> TopicsRecords:
        """The records that it takes with the topics as they are now; asked again when others were faster."""

    def ended(self, error: ErrorCode) -> None:  # noqa: B027 - a request need not be waiting
        """The records of the last decision are stored and true, or could not be stored."""


class _OffsetsTopicUse(TopicChange):
    """Creates ``__consumer_offsets`` on its first use; the record carries that to other nodes and to later starts."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.is_waiting = False

    def decide(self) -> TopicsRecords:
        if self._topics.lists_offsets_topic:
            return ()
        return (TopicRecord(data=TopicData(name=OFFSETS_TOPIC, topic_id=OFFSETS_TOPIC_ID, records_per_second=None)),)

    def ended(self, error: ErrorCode) -> None:
        self.is_waiting = False  # where it could not be stored, the next use asks again


class TopicChanges:
    """Changes of the topics, one after the other.

    Without a log of their own a change is true as soon as it is decided.
    """

    def __init__(
        self, ctx: StepContext, topics: Topics, shards: GroupShards, partitions: Partitions, *, logged: bool
    ) -> None:
        self._ctx = ctx
        self._topics = topics
        self._shards = shards
        self._partitions = partitions
        self._logged = logged
        self.on_applied: Callable[[], None] | None = None
        """Called when topics or their partitions have changed."""
        self.version = 0
        self._waiting: deque[TopicChange] = deque()
        self._in_flight: TopicsRecords = ()
        self._last_id = 0
        self._offsets_topic_use = _OffsetsTopicUse(topics)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be stored."""
        return not self._waiting

    @property
    def features_epoch(self) -> int:
        """Grows with every change of the cluster's features."""
        return max(self.version, self._ctx.features.changes)

    def make(self, change: TopicChange) -> None:
        """Decide on a change, and see it through."""
        if not self._logged:
            self._apply(change.decide())
            change.ended(ErrorCode.NONE)
            return
        self._waiting.append(change)
        if len(self._waiting) == 1:
            self._go_on()

    def use_offsets_topic(self) -> None:
        """List ``__consumer_offsets`` among all topics from now on: in Kafka its first use makes it."""
        if not self._topics.lists_offsets_topic and not self._offsets_topic_use.is_waiting:
            self._offsets_topic_use.is_waiting = True
            self.make(self._offsets_topic_use)

    def _go_on(self) -> None:
        while self._waiting:
            records = self._waiting[0].decide()
            if records:
                self._in_flight = records
                self._last_id += 1
                self._ctx.effects.append(AppendTopics(self._last_id, self.version, records))
                return
            self._waiting.popleft().ended(ErrorCode.NONE)

    def stored(self, what: TopicsStored) -> None:
        """The change in flight is stored, or is not."""
        if what.append_id != self._last_id or not self._in_flight:
            return
        records, self._in_flight = self._in_flight, ()
        if not what.overtaken:
            change = self._waiting.popleft()
            # One that was read from the log before this input is true already.
            if what.error is ErrorCode.NONE and what.version > self.version:
                self._apply(records)
                self.version = what.version
            change.ended(what.error)
        self._go_on()

    def changed(self, what: TopicsChanged) -> None:
        """Take in the changes of all nodes from the log."""
        known, emits = self.version, not what.shares_events
        if what.whole:
            known = 0
            there = {
                record.data.topic_id
                for _, records in what.changes
                for record in records
                if isinstance(record, TopicRecord)
            }
            self._ctx.features.forget_changes()
            self._ctx.security.clear()
            defaults = self._topics.defaults
            self._topics.broker_configs.clear()
            self._brokers_configured(defaults)
            self._topics.lists_offsets_topic = False
            self._topics.client_metrics_configs.clear()
            self._topics.client_metrics_version += 1
            for group_id in list(self._topics.group_configs):
                del self._topics.group_configs[group_id]
                self._shards.group_configured(group_id)
            gone = {
                topic.topic_id: topic.name for topic in self._topics.by_name.values() if topic.topic_id not in there
            }
            for name in gone.values():
                self._remove(name, emits=emits)
            self._follow(dict.fromkeys(gone.values(), False), gone)
        for version, records in what.changes:
            if version > known:
                self._apply(records, emits=emits)
        self.version = max(self.version, what.version)

    def _set_group_config(self, data: ConfigData) -> None:
        """A setting of a group is changed, or has its default again. There need not be such a group."""
        _set_config(self._topics.group_configs, data)
        self._shards.group_configured(data.resource_name)

    def _set_broker_config(self, data: ConfigData) -> None:
        """A setting of one broker, or of all of them, is changed."""
        before = self._topics.defaults
        self._topics.broker_configs.set(data)
        self._brokers_configured(before)

    def _brokers_configured(self, before: GivenDefaults) -> None:
        self._ctx.settings = self._topics.broker_configs.effective
        if self._topics.defaults != before:
            self._topics.defaults_changed()

    def _set_client_metrics_config(self, data: ConfigData) -> None:
        """A setting of a subscription to metrics is changed; one without any is gone."""
        _set_config(self._topics.client_metrics_configs, data)
        self._topics.client_metrics_version += 1

    def _apply(self, records: TopicsRecords, *, emits: bool = True) -> None:
        changed: dict[str, bool] = {}
        removed: dict[str, str] = {}
        for record in records:
            match record:
                case TopicRecord():
                    self._topics.add(record.data)
                case PartitionRecord():
                    self._topics.set_partitions(record.data, emits=emits)
                    self._grow(record.data.topic_id)
                    name = self._topics.named(record.data.topic_id)
                    if name is not None:
                        changed[name] = changed.get(name, False) or record.data.partition_id == 0
                case ConfigRecord() if record.data.resource_type == GROUP_RESOURCE:
                    self._set_group_config(record.data)
                case ConfigRecord() if record.data.resource_type == BROKER_RESOURCE:
                    self._set_broker_config(record.data)
                case ConfigRecord() if record.data.resource_type == CLIENT_METRICS_RESOURCE:
                    self._set_client_metrics_config(record.data)
                case ConfigRecord():
                    self._topics.set_config(record.data)
                case ProducerIdsRecord():
                    self._topics.take_producer_ids(record.data.next_producer_id)
                case FeatureLevelRecord():
                    self._ctx.features.set_level(record.data)
                case RemoveTopicRecord():
                    name = self._topics.named(record.data.topic_id)
                    if name is not None:
                        self._remove(name, emits=emits)
                        changed[name] = False
                        removed[record.data.topic_id] = name
                case _:
                    self._ctx.security.replay(record)
        self._follow(changed, removed)
        if records and self.on_applied is not None:
            self.on_applied()

    def _grow(self, topic_id: str) -> None:
        topic = self._topics.by_name.get(self._topics.named(topic_id) or "")
        if topic is not None and topic.is_real:
            self._partitions.add(topic.name, topic_id, len(topic.partitions))

    def _remove(self, name: str, *, emits: bool) -> None:
        topic = self._topics.by_name[name]
        self._topics.delete(name, emits=emits)
        self._partitions.remove(name, topic.topic_id)

    def _follow(self, changed: Mapping[str, bool], removed: Mapping[str, str]) -> None:
        """Pass all changed and removed topics to the groups in one call, so that each group is looked at once.

        ``removed`` has names by ids.
        """
        if changed:
            self._shards.topics_changed(changed.keys(), has_new=any(changed.values()))
        if removed:
            for shard in self._shards.active():
                shard.topics_deleted(removed)

    def delete_orphaned_offsets(self, partition: TopicPartition) -> None:
        """Drop offsets of topics that were deleted while no node led this offsets partition.

        Differs: Kafka leaves them until they expire. Only with a topics log is it known that a topic is not just new.
        """
        shard = self._shards.by_partition.get(partition)
        if not self._logged or shard is None or shard.state is ShardState.LOADING:
            return
        partitions = (partition for offsets in shard.machine.offsets.values() for partition in offsets.partitions())
        topics = {partition.topic for partition in partitions}
        shard.machine.deletions.delete_topics({name for name in topics if name not in self._topics})


def _set_config(resources: dict[str, dict[str, str]], data: ConfigData) -> None:
    """Change a setting of one of the resources, which is left out when it has no more."""
    configs = resources.pop(data.resource_name, {})
    configs.pop(data.name, None)
    if data.value is not None:
        configs[data.name] = data.value
    if configs:
        resources[data.resource_name] = configs
