"""Topics with their settings and partitions. The table changes only by records (``protocol.records.topics``).

A synthetic partition has no stored records: its end offset is a function of the time since the partition was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis, TopicsRecords
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.topics.brokers.dynamic_configs import DynamicConfigs
from rejoin.coordinator.core.topics.config_entries import GivenDefaults
from rejoin.coordinator.core.topics.configs import config_records, log_config
from rejoin.coordinator.core.topics.placement import Replicas
from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
from rejoin.coordinator.core.views import TopicView
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OFFSETS_TOPIC_ID
from rejoin.protocol.records.share_partitions import SHARE_GROUP_STATE_TOPIC
from rejoin.protocol.records.topics import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    ConfigData,
    ConfigRecord,
    PartitionData,
    PartitionRecord,
    ProducerIdsData,
    ProducerIdsRecord,
    TopicData,
    TopicRecord,
)
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC

INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC))


@dataclass(slots=True)
class Topic:
    """A topic. With ``records_per_second`` its logs are synthetic, and each grows so fast; without, they are real."""

    name: str
    topic_id: str
    records_per_second: float | None
    partitions: list[SyntheticLog] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    """The settings that it was given, as text."""
    replicas: list[Replicas] = field(default_factory=list)
    """Replicas of each partition, where a controller decides on them."""

    @property
    def is_real(self) -> bool:
        return self.records_per_second is None

    @property
    def rate(self) -> float:
        """How fast each synthetic log grows."""
        assert self.records_per_second is not None, "a real log grows by what is produced"
        return self.records_per_second

    def end_offset(self, partition: int, now: Millis) -> int:
        """The end of a synthetic log."""
        return self.partitions[partition].end_offset(now, self.rate)


class TopicTable:
    """All topics of the cluster, by name. Nothing changes here but by records."""

    def __init__(
        self, settings: Settings, new_id: Callable[[], str], emit: Callable[[Event], None], partitions: Partitions
    ) -> None:
        self._partitions = partitions
        self._settings = settings
        self._new_id = new_id
        self._emit = emit
        self.by_name: dict[str, Topic] = {}
        self._names_by_id: dict[str, str] = {}
        self._newest: Millis = 0
        self.broker_configs = DynamicConfigs(settings)
        partitions.default_config = log_config(self._default_values())
        self.lists_offsets_topic = False
        """Whether ``__consumer_offsets`` is among all topics: in Kafka the first use makes it."""
        self.next_producer_id = 0
        """The first producer id that no node has had."""
        self.version: Millis = 0
        """Grows with every change of topics, alike on all nodes that read the same topics log."""
        self.group_configs: dict[str, dict[str, str]] = {}
        """The settings that groups have of their own, by group id."""
        self.client_metrics_configs: dict[str, dict[str, str]] = {}
        """The settings of subscriptions to metrics of clients, by name."""
        self.client_metrics_version = 0
        """Grows with every change of them."""

    # --- time

    def saw(self, instant: Millis) -> None:
        """A log has something of this instant."""
        self._newest = max(self._newest, instant)

    def time(self, now: Millis) -> Millis:
        """The instant up to which logs have grown: now, or where a clock went back the newest that is on record.

        So after a restart no end is below an offset that was committed before.
        """
        return max(now, self._newest)

    def __contains__(self, name: str) -> bool:
        return name in self.by_name or name == OFFSETS_TOPIC

    def named(self, topic_id: str) -> str | None:
        """The name of the topic with this id."""
        return OFFSETS_TOPIC if topic_id == OFFSETS_TOPIC_ID else self._names_by_id.get(topic_id)

    def names(self) -> list[str]:
        """The names of all topics."""
        return [*self.by_name, OFFSETS_TOPIC]

    def listed(self) -> list[str]:
        """The names of the topics that a request for all of them is given, in their order."""
        return sorted(self.names() if self.lists_offsets_topic else self.by_name)

    def id_of(self, topic: str) -> str:
        """The id of a topic that exists."""
        return OFFSETS_TOPIC_ID if topic == OFFSETS_TOPIC else self.by_name[topic].topic_id

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is no such topic."""
        if topic == OFFSETS_TOPIC:
            return self._settings.offsets_topic_num_partitions
        found = self.by_name.get(topic)
        return 0 if found is None else len(found.partitions)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether there is such a partition, those of ``__consumer_offsets`` among them."""
        found = self.by_name.get(topic)
        return 0 <= partition < (self.partition_count(topic) if found is None else len(found.partitions))

    def end_offset(self, topic: str, partition: int, now: Millis) -> int | None:
        """The offset that the next record of a partition will get; none where only another node knows it."""
        found = self.by_name.get(topic)
        if found is None:
            return None
        if found.is_real:
            return self._partitions.end_offset(topic, partition)
        return found.end_offset(partition, self.time(now))

    # --- records that are replayed

    def add(self, data: TopicData) -> None:
        """A topic is there, still without partitions."""
        if data.topic_id == OFFSETS_TOPIC_ID:
            self.lists_offsets_topic = True
        elif data.topic_id not in self._names_by_id:
            self.by_name[data.name] = Topic(data.name, data.topic_id, data.records_per_second)
            self._names_by_id[data.topic_id] = data.name

    def set_partitions(self, data: PartitionData, *, emits: bool) -> None:
        """Partitions of a topic are there, or are as they were not before. Nothing where the topic is gone."""
        topic = self.by_name.get(self._names_by_id.get(data.topic_id, ""))
        if topic is None:
            return
        self.saw(data.started_at)
        partitions = topic.partitions
        before = len(partitions)
        self.version = max(self.version + 1, data.started_at)
        for index in range(data.partition_id, data.partition_id + data.partitions):
            partition = SyntheticLog(data.started_at, data.base_offset)
            if index < len(partitions):
                partitions[index] = partition
            else:
                partitions.append(partition)
        if data.replicas:
            topic.replicas[data.partition_id :] = data.replicas
        if before == len(partitions) or not emits:
            return
        if before:
            self._emit(TopicGrown(topic=topic.name, previous_partition_count=before, partition_count=len(partitions)))
        else:
            self._emit(
                TopicCreated(
                    topic=topic.name,
                    topic_id=topic.topic_id,
                    partition_count=len(partitions),
                    records_per_second=topic.records_per_second,
                )
            )

    @property
    def defaults(self) -> GivenDefaults:
        """The settings of topics whose default this node changes."""
        return self.broker_configs.defaults

    def _default_values(self) -> dict[str, str]:
        return {name: given[0].value for name, given in self.defaults}

    def defaults_changed(self) -> None:
        """Have all logs obey the defaults as they are now."""
        defaults = self._default_values()
        self._partitions.default_config = log_config(defaults)
        for topic in self.by_name.values():
            self._partitions.configure(topic.topic_id, log_config({**defaults, **topic.configs}))

    def set_config(self, data: ConfigData) -> None:
        """A setting of a topic is changed, or has its default again. Nothing where the topic is gone."""
        topic = self.by_name.get(data.resource_name)
        if topic is None:
            return
        topic.configs.pop(data.name, None)
        if data.value is not None:
            topic.configs[data.name] = data.value
        self._partitions.configure(topic.topic_id, log_config({**self._default_values(), **topic.configs}))

    def take_producer_ids(self, next_producer_id: int) -> None:
        """All producer ids below one are a node's."""
        self.next_producer_id = max(self.next_producer_id, next_producer_id)

    def delete(self, name: str, *, emits: bool) -> None:
        """Remove a topic that exists."""
        topic = self.by_name.pop(name)
        self.version += 1
        del self._names_by_id[topic.topic_id]
        if emits:
            self._emit(TopicDeleted(topic=name, topic_id=topic.topic_id, partition_count=len(topic.partitions)))

    # --- the table as it is

    def records(self) -> TopicsRecords:
        """Records that create all present topics."""
        found: list[TopicRecord | PartitionRecord | ConfigRecord | ProducerIdsRecord] = []
        if self.next_producer_id:
            taken = ProducerIdsData(broker_id=self._settings.broker_id, next_producer_id=self.next_producer_id)
            found.append(ProducerIdsRecord(data=taken))
        for group_id, configs in self.group_configs.items():
            found += config_records(group_id, configs, GROUP_RESOURCE)
        for broker, configs in self.broker_configs.by_broker.items():
            found += config_records(broker, configs, BROKER_RESOURCE)
        for name, configs in self.client_metrics_configs.items():
            found += config_records(name, configs, CLIENT_METRICS_RESOURCE)
        for topic in self.by_name.values():
            topic_id = topic.topic_id
            data = TopicData(name=topic.name, topic_id=topic_id, records_per_second=topic.records_per_second)
            found.append(TopicRecord(data=data))
            found += config_records(topic.name, topic.configs)
            for (started_at, base_offset), alike in groupby(
                enumerate(topic.partitions), lambda each: (each[1].started_at, each[1].base_offset)
            ):
                indexes = [index for index, _ in alike]
                partitions = PartitionData(
                    topic_id=topic_id,
                    partition_id=indexes[0],
                    partitions=len(indexes),
                    started_at=started_at,
                    base_offset=base_offset,
                    replicas=tuple(topic.replicas[indexes[0] : indexes[-1] + 1]),
                )
                found.append(PartitionRecord(data=partitions))
        return tuple(found)

    def describe(self, now: Millis) -> list[TopicView]:
        return [
            TopicView(
                topic=topic.name,
                topic_id=topic.topic_id,
                partitions=len(topic.partitions),
                records_per_second=topic.records_per_second,
                end_offsets=[self.end_offset(topic.name, index, now) for index in range(len(topic.partitions))],
            )
            for _, topic in sorted(self.by_name.items())
        ]
