"""New topics as records, and the errors of requests that cannot be met. Kafka: ReplicationControlManager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.core.inputs import Millis, TopicsRecords
from rejoin.coordinator.core.topics.configs import config_records
from rejoin.coordinator.core.topics.names import TopicError
from rejoin.coordinator.core.topics.placement import Placement, Replicas
from rejoin.coordinator.core.topics.table import Topic
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.topics.create_topics import CreatableTopic
from rejoin.protocol.records.topics import (
    PartitionData,
    PartitionRecord,
    TopicData,
    TopicRecord,
)

MAX_PARTITIONS: Final = 100_000


def assigned_replicas(wanted: CreatableTopic) -> tuple[Replicas, ...]:
    """The replicas that a request asks for, by partition."""
    ordered = sorted(wanted.assignments, key=lambda assignment: assignment.partition_index)
    return tuple(assignment.broker_ids for assignment in ordered)


def grown_replicas(
    topic: Topic, count: int, assigned: tuple[Replicas, ...], placement: Placement
) -> tuple[Replicas, ...]:
    """The replicas of so many more partitions of a topic: as many of each as of those before."""
    if not topic.replicas:
        return ()
    return assigned or placement.replicas(len(topic.replicas), count, len(topic.replicas[0]))


def check_replicas(assigned: tuple[Replicas, ...], placement: Placement) -> None:
    problem = placement.problem(assigned)
    if problem:
        raise TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def new_topic(
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
