"""Other requests of admin clients: DescribeCluster, DescribeTopicPartitions, DescribeLogDirs.

Kafka: KafkaApis.handleDescribeCluster, DescribeTopicPartitionsRequestHandler, ReplicaManager.describeLogDirs.
"""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.cluster.leaders import NO_NODE, Leaders
from rejoin.coordinator.core.cluster.metadata import NOT_ASKED
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.shards import CLUSTER_ID, ClusterMetadata
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import DiskSpace, StepContext
from rejoin.coordinator.core.topics.names import TopicError, check_name
from rejoin.coordinator.core.topics.node_configs import LOG_DIR, MOST_DESCRIBED_PARTITIONS
from rejoin.coordinator.core.topics.table import INTERNAL_TOPICS
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from rejoin.protocol.messages.cluster.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from rejoin.protocol.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

ENDPOINT_BROKERS: Final = 1
ENDPOINT_CONTROLLERS: Final = 2


class DescriptionRequests:
    """Describes the cluster, topics page by page, and the sizes of logs."""

    def __init__(
        self,
        ctx: StepContext,
        cluster: ClusterMetadata,
        topics: Topics,
        partitions: Partitions,
        leaders: Leaders,
        admission: Admission,
    ) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._topics = topics
        self._partitions = partitions
        self._leaders = leaders
        self._admission = admission

    # --- the cluster

    def describe_cluster(self, token: Token, request: DescribeClusterRequest, context: Context) -> None:
        if request.endpoint_type != ENDPOINT_BROKERS:
            error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            if request.endpoint_type == ENDPOINT_CONTROLLERS:
                error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            self._ctx.reply(token, request.error_response(context.api_version, error))
            return
        operations = NOT_ASKED
        if request.include_cluster_authorized_operations:
            operations = self._admission.cluster_operations(context)
        brokers = []
        for broker in self._cluster.brokers:
            _, host, port = broker.endpoint(context)
            brokers.append(DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port, rack=broker.rack))
        response = DescribeClusterResponse(
            cluster_id=CLUSTER_ID,
            controller_id=min((broker.broker_id for broker in brokers), default=NO_NODE),
            brokers=tuple(brokers),
            cluster_authorized_operations=operations,
        )
        self._ctx.reply(token, response)

    # --- topics

    def describe_topic_partitions(
        self, token: Token, request: DescribeTopicPartitionsRequest, context: Context
    ) -> None:
        cursor = request.cursor
        names = sorted({topic.name for topic in request.topics})
        if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
            self._ctx.reply(token, request.error_response(context.api_version, ErrorCode.INVALID_REQUEST))
            return
        everything = not names
        found = [
            name
            for name in (self._topics.listed() if everything else names)
            if cursor is None or name >= cursor.topic_name
        ]
        allowed = {
            name
            for name in found
            if self._admission.allows(DescribeTopicPartitionsRequest, context, Resource.TOPIC, name)
        }
        page = _Page(request.response_partition_limit, cursor)
        for name in found:
            if name in allowed:
                self._show(name, context, page)
        if not everything:
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            page.topics += [
                DescribeTopicPartitionsResponseTopic(name=name, error_code=denied)
                for name in found
                if name not in allowed
            ]
        response = DescribeTopicPartitionsResponse(topics=tuple(page.topics), next_cursor=page.next_cursor)
        self._ctx.reply(token, response)

    def _show(self, name: str, context: Context, page: _Page) -> None:
        """Put a topic on the page, as far as there is room."""
        if page.room <= 0:
            page.end_at(name, 0)
            return
        operations = self._admission.authorized_operations(context, Resource.TOPIC, name)
        if name not in self._topics:
            page.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    name=name, error_code=_why_missing(name), topic_authorized_operations=operations
                )
            )
            return
        leaders = self._leaders.of(name)
        first = page.first_of(name)
        end = min(len(leaders), first + page.room)
        page.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=self._topics.id_of(name),
                is_internal=name in INTERNAL_TOPICS,
                partitions=tuple(
                    DescribeTopicPartitionsResponsePartition(
                        error_code=leaders[index].error,
                        partition_index=index,
                        leader_id=leaders[index].node_id,
                        leader_epoch=leaders[index].leader_epoch,
                        replica_nodes=leaders[index].replicas,
                        isr_nodes=leaders[index].isr,
                        offline_replicas=leaders[index].offline_replicas,
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                    )
                    for index in range(first, end)
                ),
                topic_authorized_operations=operations,
            )
        )
        page.room -= max(0, end - first)
        if end < len(leaders):
            page.end_at(name, end)

    # --- logs

    def describe_log_dirs(self, token: Token, request: DescribeLogDirsRequest, context: Context) -> None:
        if not self._admission.allows(DescribeLogDirsRequest, context, Resource.CLUSTER):
            denied = request.error_response(context.api_version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            self._ctx.reply(token, denied)
            return
        wanted = None
        if request.topics is not None:
            wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
        sizes: dict[str, list[DescribeLogDirsPartition]] = {}
        for partition, led in sorted(self._partitions.led.items(), key=lambda each: (each[0].topic, each[0].partition)):
            if wanted is None or (partition.topic, partition.partition) in wanted:
                found = DescribeLogDirsPartition(partition_index=partition.partition, partition_size=led.log.size)
                sizes.setdefault(partition.topic, []).append(found)
        topics = (DescribeLogDirsTopic(name=name, partitions=tuple(partitions)) for name, partitions in sizes.items())
        # Kafka: -1 stands for a size that is not known.
        measured = self._ctx.disk_space
        space = DiskSpace(-1, -1) if measured is None else measured()
        result = DescribeLogDirsResult(
            log_dir=LOG_DIR, topics=tuple(topics), total_bytes=space.total, usable_bytes=space.usable
        )
        self._ctx.reply(token, DescribeLogDirsResponse(results=(result,)))


class _Page:
    """The topics that fit into a response, and where the next page begins."""

    def __init__(self, limit: int, cursor: Cursor | None) -> None:
        self.topics: list[DescribeTopicPartitionsResponseTopic] = []
        self.room = max(1, min(limit, MOST_DESCRIBED_PARTITIONS))
        self.next_cursor: Cursor | None = None
        self._cursor = cursor

    def first_of(self, topic: str) -> int:
        """The partition of a topic that this page begins with."""
        return self._cursor.partition_index if self._cursor is not None and self._cursor.topic_name == topic else 0

    def end_at(self, topic: str, partition: int) -> None:
        if self.next_cursor is None:
            self.next_cursor = Cursor(topic_name=topic, partition_index=partition)


def _why_missing(name: str) -> ErrorCode:
    try:
        check_name(name)
    except TopicError as problem:
        return problem.error
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
