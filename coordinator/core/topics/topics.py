"""Requests that create, grow, delete or write topics: each is checked, and turned into records for the topics log.

Kafka: ReplicationControlManager for the errors of creating, growing and deleting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.core.inputs import Millis, RecordsWritten, TopicsRecords
from rejoin.coordinator.core.topics.config_entries import creatable_configs
from rejoin.coordinator.core.topics.configs import RATE_CONFIG, ConfigError, check, config_records, rate_of
from rejoin.coordinator.core.topics.names import TopicError, check_collision, check_name, is_legal_name
from rejoin.coordinator.core.topics.placement import Placement, Replicas
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS, Topic, TopicTable
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.messages.topics.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicResult
from rejoin.protocol.records.topics import (
    PartitionData,
    PartitionRecord,
    RemoveTopicData,
    RemoveTopicRecord,
    TopicData,
    TopicRecord,
)

MAX_PARTITIONS: Final = 100_000


class Topics(TopicTable):
    """All topics of the cluster; requests to change them are turned into records."""

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
        assigned = _assigned_replicas(wanted)
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
    def may_be_used(name: str) -> bool:
        """Whether an application may have a topic of this name."""
        return is_legal_name(name) and name not in INTERNAL_TOPICS

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
            _check_replicas(_assigned_replicas(wanted), placement)
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
            replicas=_grown_replicas(topic, wanted.count - before, assigned, placement),
        )
        return CreatePartitionsTopicResult(name=wanted.name), (PartitionRecord(data=new),)

    @staticmethod
    def removal(topic: Topic) -> TopicsRecords:
        """Records that remove a topic."""
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


def _assigned_replicas(wanted: CreatableTopic) -> tuple[Replicas, ...]:
    """The replicas that a request asks for, by partition."""
    ordered = sorted(wanted.assignments, key=lambda assignment: assignment.partition_index)
    return tuple(assignment.broker_ids for assignment in ordered)


def _grown_replicas(
    topic: Topic, count: int, assigned: tuple[Replicas, ...], placement: Placement
) -> tuple[Replicas, ...]:
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
