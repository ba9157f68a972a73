"""OffsetForLeaderEpoch: where a leader epoch ended. Kafka: Partition.lastOffsetForLeaderEpoch."""

from __future__ import annotations

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.partitions.partitions import Partitions
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.authorizer import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.offset_for_leader_epoch import (
    LeaderEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC

SYNTHETIC_LEADER_EPOCH = 0


class LeaderEpochRequests:
    """Looks up the ends of leader epochs."""

    def __init__(self, ctx: StepContext, partitions: Partitions, topics: Topics, admission: Admission) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._topics = topics
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

    def _look_up(self, name: str, wanted: OffsetForLeaderPartition, context: Context) -> LeaderEpochEndOffset:
        index = wanted.partition
        if not self._admission.allows(OffsetForLeaderEpochRequest, context, Resource.TOPIC, name):
            return LeaderEpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=index)
        if name == OFFSETS_TOPIC or not self._topics.has_partition(name, index):
            return LeaderEpochEndOffset(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=index)
        if not self._topics.by_name[name].is_real:
            end = self._topics.end_offset(name, index, self._ctx.now) or 0
            epoch, end = (SYNTHETIC_LEADER_EPOCH, end) if wanted.leader_epoch == SYNTHETIC_LEADER_EPOCH else (-1, -1)
            return LeaderEpochEndOffset(partition=index, leader_epoch=epoch, end_offset=end)
        partition = self._partitions.find(name, index, wanted.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            return LeaderEpochEndOffset(error_code=partition, partition=index)
        epoch, end = partition.log.end_offset_for(wanted.leader_epoch)
        return LeaderEpochEndOffset(partition=index, leader_epoch=epoch, end_offset=end)
