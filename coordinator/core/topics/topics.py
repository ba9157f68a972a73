"""Topics: names, partitions, and a synthetic log for each partition.

There are no records. A partition's end offset is a function of time: it grows from the instant the partition was made,
by so many records a second. That is enough for positions, lag, commits, duplicates and losses to be real.

Nothing changes here but by records (``protocol.records.topics``): requests are turned into records, which are replayed.

Kafka: ReplicationControlManager for the errors of creating, growing and deleting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis, RecordsWritten, TopicsRecords
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.topics.config_entries import creatable_configs
from rejoin.coordinator.core.topics.configs import RATE_CONFIG, ConfigError, check, config_records, log_config, rate_of
from rejoin.coordinator.core.topics.names import TopicError, check_collision, check_name
from rejoin.coordinator.core.topics.placement import Placement, Replicas
from rejoin.coordinator.core.topics.synthetic_log import SyntheticLog
from rejoin.coordinator.core.views import TopicView
from rejoin.coordinator.topic_defaults import changed_defaults
from rejoin.journal.events.base import Event
from rejoin.journal.events.coordinator import TopicCreated, TopicDeleted, TopicGrown
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicResult
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, OFFSETS_TOPIC_ID
from rejoin.protocol.records.topics import (
    GROUP_RESOURCE,
    ConfigData,
    ConfigRecord,
    PartitionData,
    PartitionRecord,
    ProducerIdsData,
    ProducerIdsRecord,
    RemoveTopicData,
    RemoveTopicRecord,
    TopicData,
    TopicRecord,
)
from rejoin.protocol.records.transaction_state import TRANSACTION_STATE_TOPIC

MAX_PARTITIONS: Final = 100_000
INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, "__share_group_state"))


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
    """Those of each partition, where a controller decides on them."""

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


class Topics:
    """All topics of the cluster, by name."""

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
        self.defaults = changed_defaults(settings)
        """The settings of topics whose default this node changes."""
        partitions.default_config = log_config(dict(self.defaults))
        self.lists_offsets_topic = False
        """Whether ``__consumer_offsets`` is among all topics: in Kafka the first use makes it."""
        self.next_producer_id = 0
        """The first producer id that no node has had."""
        self.version: Millis = 0
        """Grows with every change of topics, alike on all nodes that read the same topics log."""
        self.group_configs: dict[str, dict[str, str]] = {}
        """The settings that groups have of their own, by group id."""

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

    # --- what is so

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

    def set_config(self, data: ConfigData) -> None:
        """A setting of a topic is changed, or has its default again. Nothing where the topic is gone."""
        topic = self.by_name.get(data.resource_name)
        if topic is None:
            return
        topic.configs.pop(data.name, None)
        if data.value is not None:
            topic.configs[data.name] = data.value
        self._partitions.configure(topic.topic_id, log_config({**dict(self.defaults), **topic.configs}))

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

    # --- what would have to be so

    def create(
        self, wanted: CreatableTopic, placement: Placement, now: Millis
    ) -> tuple[CreatableTopicResult, TopicsRecords]:
        """A new topic, and the records that make it so; or in the result why not."""
        try:
            rate, configs = self._check_configs(wanted)
            count = self._check(wanted, placement)
        except TopicError as problem:
            refused = CreatableTopicResult(name=wanted.name, error_code=problem.error, error_message=problem.message)
            return refused, ()
        # Kafka: a topic that is only validated gets an id, too, which is thrown away.
        topic_id = random_uuid(self._new_id)
        assigned = _assigned(wanted)
        replicas = assigned or placement.replicas(0, count, wanted.replication_factor)
        result = CreatableTopicResult(
            name=wanted.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=count,
            replication_factor=len(replicas[0]) if replicas else max(1, wanted.replication_factor),
            configs=creatable_configs(configs, rate, self.defaults),
        )
        kept = replicas if placement.default_replication_factor is not None else ()
        return result, _new_topic(wanted.name, topic_id, rate, count, self.time(now), configs, kept)

    @staticmethod
    def check_automatic(name: str) -> ErrorCode:
        """Why a topic that metadata was asked for cannot be made, or ``NONE``."""
        try:
            check_name(name)
        except TopicError as problem:
            return problem.error
        return ErrorCode.NONE

    def automatic(self, name: str, placement: Placement, now: Millis) -> TopicsRecords:
        """The records of a topic that is made because metadata was asked for it."""
        settings = self._settings
        return _new_topic(
            name,
            random_uuid(self._new_id),
            settings.emulator_records_per_second,
            settings.num_partitions,
            self.time(now),
            {},
            placement.replicas(0, settings.num_partitions),
        )

    def internal(
        self,
        name: str,
        topic_id: str,
        partitions: int,
        configs: Mapping[str, str],
        placement: Placement,
        now: Millis,
    ) -> TopicsRecords:
        """The records of an internal topic with a real log."""
        replicas = placement.replicas(0, partitions)
        return _new_topic(name, topic_id, None, partitions, self.time(now), configs, replicas)

    def _check(self, wanted: CreatableTopic, placement: Placement) -> int:
        count, brokers = wanted.num_partitions, len(placement.brokers)
        if wanted.assignments:
            count = self._check_assignments(wanted)
            _check_replicas(_assigned(wanted), placement)
            return count
        # Kafka: ReplicationControlManager.createTopic, in this order.
        factor, most = wanted.replication_factor, max(brokers, 1)
        bad_factor = TopicError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {factor}: expected 1 to {most}, or -1"
        )
        if factor < -1 or factor == 0:
            raise bad_factor
        if count == -1:
            count = self._settings.num_partitions
        if not 1 <= count <= MAX_PARTITIONS:
            raise TopicError(
                ErrorCode.INVALID_PARTITIONS,
                f"{count} partitions: expected 1 to {MAX_PARTITIONS}, or -1",
            )
        if factor > most:
            raise bad_factor
        return count

    def _check_assignments(self, wanted: CreatableTopic) -> int:
        if wanted.num_partitions != -1 or wanted.replication_factor != -1:
            raise TopicError(
                ErrorCode.INVALID_REQUEST, "with assignments both numPartitions and replicationFactor must be -1"
            )
        indexes = sorted(assignment.partition_index for assignment in wanted.assignments)
        if indexes != list(range(len(indexes))) or not all(entry.broker_ids for entry in wanted.assignments):
            raise TopicError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"assignments for partitions {indexes}: expected each of 0 to {len(indexes) - 1} once, with its nodes",
            )
        return len(indexes)

    def _check_configs(self, wanted: CreatableTopic) -> tuple[float | None, dict[str, str]]:
        """How fast its synthetic logs grow, if it has such, and its other settings."""
        check_name(wanted.name)
        if wanted.name in self:
            raise TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {wanted.name!r} exists")
        check_collision(wanted.name, self.by_name)
        given = {config.name: config.value for config in wanted.configs}
        rate = self._settings.emulator_records_per_second
        try:
            if RATE_CONFIG in given:
                rate = rate_of(given.pop(RATE_CONFIG))
            configs = {name: value for name, value in given.items() if value is not None}
            if len(configs) < len(given):
                raise ConfigError("a setting of a new topic has no value")
            check(configs)
        except ConfigError as problem:
            raise TopicError(ErrorCode.INVALID_CONFIG, str(problem)) from None
        return rate, configs

    def grow(
        self, wanted: CreatePartitionsTopic, placement: Placement, now: Millis
    ) -> tuple[CreatePartitionsTopicResult, TopicsRecords]:
        """More partitions, as records, or in the result why not."""
        topic = self.by_name.get(wanted.name)
        try:
            if topic is None:
                raise TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name!r}")
            before = len(topic.partitions)
            if not before < wanted.count <= MAX_PARTITIONS:
                raise TopicError(
                    ErrorCode.INVALID_PARTITIONS,
                    f"topic {wanted.name!r} has {before} partitions: expected more than that, not {wanted.count}",
                )
            if wanted.assignments is not None and len(wanted.assignments) != wanted.count - before:
                raise TopicError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{len(wanted.assignments)} assignments for {wanted.count - before} new partitions",
                )
            assigned = tuple(each.broker_ids for each in wanted.assignments or ())
            _check_replicas(assigned, placement)
        except TopicError as problem:
            refused = CreatePartitionsTopicResult(
                name=wanted.name, error_code=problem.error, error_message=problem.message
            )
            return refused, ()
        new = PartitionData(
            topic_id=topic.topic_id,
            partition_id=before,
            partitions=wanted.count - before,
            started_at=self.time(now),
            replicas=_grown(topic, wanted.count - before, assigned, placement),
        )
        return CreatePartitionsTopicResult(name=wanted.name), (PartitionRecord(data=new),)

    @staticmethod
    def removal(topic: Topic) -> TopicsRecords:
        """What it takes for a topic to be gone."""
        return (RemoveTopicRecord(data=RemoveTopicData(topic_id=topic.topic_id)),)

    def writing(self, written: RecordsWritten) -> TopicsRecords:
        """The end of a synthetic log, so many records on; nothing where there is none."""
        topic = self.by_name.get(written.topic)
        if topic is None or topic.is_real or not self.has_partition(written.topic, written.partition):
            return ()
        partition = topic.partitions[written.partition]
        data = PartitionData(
            topic_id=topic.topic_id,
            partition_id=written.partition,
            started_at=partition.started_at,
            base_offset=partition.base_offset + written.records,
        )
        return (PartitionRecord(data=data),)

    def records(self) -> TopicsRecords:
        """What it takes for all topics to be as they are."""
        found: list[TopicRecord | PartitionRecord | ConfigRecord | ProducerIdsRecord] = []
        if self.next_producer_id:
            taken = ProducerIdsData(broker_id=self._settings.broker_id, next_producer_id=self.next_producer_id)
            found.append(ProducerIdsRecord(data=taken))
        for group_id, configs in self.group_configs.items():
            found += config_records(group_id, configs, GROUP_RESOURCE)
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


def _assigned(wanted: CreatableTopic) -> tuple[Replicas, ...]:
    """The replicas that a request asks for, by partition."""
    ordered = sorted(wanted.assignments, key=lambda assignment: assignment.partition_index)
    return tuple(assignment.broker_ids for assignment in ordered)


def _grown(topic: Topic, count: int, assigned: tuple[Replicas, ...], placement: Placement) -> tuple[Replicas, ...]:
    """The replicas of so many more partitions of a topic: as many of each as of those before."""
    if not topic.replicas:
        return ()
    return assigned or placement.replicas(len(topic.replicas), count, len(topic.replicas[0]))


def _check_replicas(assigned: tuple[Replicas, ...], placement: Placement) -> None:
    problem = placement.problem(assigned)
    if problem:
        raise TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _new_topic(
    name: str,
    topic_id: str,
    rate: float | None,
    partitions: int,
    now: Millis,
    configs: Mapping[str, str],
    replicas: tuple[Replicas, ...],
) -> TopicsRecords:
    """The records of a topic that starts now."""
    new = PartitionData(topic_id=topic_id, partition_id=0, partitions=partitions, started_at=now, replicas=replicas)
    return (
        TopicRecord(data=TopicData(name=name, topic_id=topic_id, records_per_second=rate)),
        *config_records(name, configs),
        PartitionRecord(data=new),
    )
