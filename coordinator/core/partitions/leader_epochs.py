"""OffsetForLeaderEpoch: where a leader epoch ended. Kafka: Partition.lastOffsetForLeaderEpoch."""

from __future__ import annotations

from rejoin.coordinator.core.fetch.logs import ReadableLogs
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import leader_epoch_error
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    LeaderEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


class LeaderEpochRequests:
    """Looks up the ends of leader epochs."""

    def __init__(self, ctx: StepContext, logs: ReadableLogs, admission: Admission) -> None:
        self._ctx = ctx
        self._logs = logs
        self._admission = admission

    def offset_for_leader_epoch(self, token: Token, request: OffsetForLeaderEpochRequest, context: Context) -> None:
        topics = tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(self._look_up(topic.topic, wanted, context) for wanted in topic.partitions),
            )
            for topic in request.topics
        )
        self._ctx.reply(token, OffsetForLeaderEpochResponse(topics=topics))

    def _may_ask(self, name: str, context: Context) -> bool:
        """Whether a client may ask about a topic. Kafka: brokers ask, too, by their right on the cluster."""
        allows = self._admission.allows
        if allows(OffsetForLeaderEpochRequest, context, Resource.TOPIC, name):
            return True
        return self._admission.has_acls and allows(OffsetForLeaderEpochRequest, context, Resource.CLUSTER)

    def _look_up(self, name: str, wanted: OffsetForLeaderPartition, context: Context) -> LeaderEpochEndOffset:
        index = wanted.partition
        if not self._may_ask(name, context):
            return LeaderEpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=index)
        partition = self._logs.find(name, index)
        if isinstance(partition, ErrorCode):
            return LeaderEpochEndOffset(error_code=partition, partition=index)
        error = leader_epoch_error(wanted.current_leader_epoch, partition.leader_epoch)
        if error is not ErrorCode.NONE:
            return LeaderEpochEndOffset(error_code=error, partition=index)
        epoch, end = partition.log.end_offset_for(wanted.leader_epoch)
        return LeaderEpochEndOffset(partition=index, leader_epoch=epoch, end_offset=end)
