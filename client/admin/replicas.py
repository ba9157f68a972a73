"""Leaders and replicas from outside: elections, reassignments (KIP-455, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rejoin.client.admin.asking import AdminConnection, Outcomes
from rejoin.client.core.errors import CodedError
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.replication.elect_leaders import (
    ElectedTopicPartitions,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from rejoin.protocol.messages.replication.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from rejoin.protocol.types import TopicPartition


class PartitionReassignment(NamedTuple):
    """A reassignment that goes on: all replicas of the partition, and those of them that come or go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ReplicaCalls(AdminConnection):
    """The calls of an admin client about leaders and replicas of partitions."""

    async def elect_leaders(
        self, kind: ElectionType = ElectionType.PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> Outcomes[TopicPartition]:
        """Elect leaders; the outcome of each partition. Raises CodedError where no election was held at all.

        Without ``partitions`` all of the cluster are meant, and those that need no election are left out.
        """
        topics = None
        if partitions is not None:
            named = _by_topic(partitions).items()
            topics = tuple(ElectedTopicPartitions(topic=topic, partitions=indexes) for topic, indexes in named)
        request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=self._timeout_ms)
        response = await self.ask(request, ElectLeadersResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code)
        return Outcomes.of(
            {
                TopicPartition(topic.topic, each.partition_id): (each.error_code, each.error_message)
                for topic in response.replica_election_results
                for each in topic.partition_result
            }
        )

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> Outcomes[TopicPartition]:
        """Give partitions other replicas, the preferred leader first, or cancel (None); the outcome of each.

        A reassignment has begun when this returns, and ends when its new replicas have caught up. Raises CodedError
        where none could begin.
        """
        topics = tuple(
            ReassignableTopic(
                name=topic,
                partitions=tuple(
                    ReassignablePartition(partition_index=index, replicas=None if wanted is None else tuple(wanted))
                    for index in indexes
                    for wanted in [replicas[TopicPartition(topic, index)]]
                ),
            )
            for topic, indexes in _by_topic(replicas).items()
        )
        request = AlterPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=topics)
        response = await self.ask(request, AlterPartitionReassignmentsResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code, response.error_message or "")
        return Outcomes.of(
            {
                TopicPartition(topic.name, each.partition_index): (each.error_code, each.error_message)
                for topic in response.responses
                for each in topic.partitions
            }
        )

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Reassignments that go on, of all partitions unless some are named. Raises CodedError."""
        topics = None
        if partitions is not None:
            topics = tuple(
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in _by_topic(partitions).items()
            )
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=topics)
        response = await self.ask(request, ListPartitionReassignmentsResponse)
        if response.error_code is not ErrorCode.NONE:
            raise CodedError(response.error_code, response.error_message or "")
        return {
            TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                each.replicas, each.adding_replicas, each.removing_replicas
            )
            for topic in response.topics
            for each in topic.partitions
        }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(set(partitions)):
        topics.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in topics.items()}
