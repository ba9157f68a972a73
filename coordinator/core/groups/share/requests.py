"""Requests about share groups as they come in at a node: who may ask, whether this is the node, then the group.

The checks before the group's own are in Kafka's order. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.modern.metadata import TopicsMetadata
from rejoin.coordinator.core.groups.share.admission import is_member_id
from rejoin.coordinator.core.groups.share.offsets import AlterResults
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import BEFORE_TOPICS, Admission
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    refused,
)
from rejoin.protocol.messages.share.share_group_offsets import (
    AlteredOffsetsPartition,
    AlteredOffsetsTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeletedOffsetsTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from rejoin.protocol.types import ZERO_UUID


class ShareGroupRequests:
    """Routes requests about share groups to the shards of the groups."""

    def __init__(self, ctx: StepContext, shards: GroupShards, topics: TopicsMetadata, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._topics = topics
        self._admission = admission

    def heartbeat(self, token: Token, request: ShareGroupHeartbeatRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if shard not in BEFORE_TOPICS:
            if not is_member_id(request.member_id):
                self._ctx.reply(token, ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST))
                return
            error = self._admission.authorize_topics(request, context, request.subscribed_topic_names or ())
            if error is not ErrorCode.NONE:
                shard = error
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, refused(shard))
        else:
            shard.kinds.share.share_heartbeat(token, request, context)

    # --- offsets

    def alter_offsets(self, token: Token, request: AlterShareGroupOffsetsRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, AlterShareGroupOffsetsResponse(error_code=shard))
            return
        refused_topics: AlterResults = {}
        offsets: dict[str, dict[int, int]] = {}
        for topic in request.topics:
            name, starts = topic.topic_name, {each.partition_index: each.start_offset for each in topic.partitions}
            error = self._admission.authorize(request, context, Resource.TOPIC, name)
            if error is ErrorCode.NONE:
                offsets.setdefault(name, {}).update(starts)
            else:
                refused_topics[name] = dict.fromkeys(starts, error)
        shard.kinds.share.offsets.alter(request.group_id, offsets, partial(self._altered, token, refused_topics))

    def _altered(self, token: Token, refused_topics: AlterResults, results: AlterResults | ErrorCode) -> None:
        if isinstance(results, ErrorCode):
            self._ctx.reply(token, AlterShareGroupOffsetsResponse(error_code=results))
            return
        topics = tuple(
            AlteredOffsetsTopic(
                topic_name=name,
                topic_id=self._id_of(name),
                partitions=tuple(
                    AlteredOffsetsPartition(partition_index=index, error_code=error)
                    for index, error in partitions.items()
                ),
            )
            for name, partitions in {**refused_topics, **results}.items()
        )
        self._ctx.reply(token, AlterShareGroupOffsetsResponse(responses=topics))

    def delete_offsets(self, token: Token, request: DeleteShareGroupOffsetsRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, DeleteShareGroupOffsetsResponse(error_code=shard))
            return
        refused_topics: dict[str, ErrorCode] = {}
        names: list[str] = []
        for name in dict.fromkeys(topic.topic_name for topic in request.topics):
            error = self._admission.authorize(request, context, Resource.TOPIC, name)
            if error is ErrorCode.NONE:
                names.append(name)
            else:
                refused_topics[name] = error
        shard.kinds.share.offsets.delete(request.group_id, names, partial(self._deleted, token, refused_topics))

    def _deleted(
        self, token: Token, refused_topics: Mapping[str, ErrorCode], results: Mapping[str, ErrorCode] | ErrorCode
    ) -> None:
        if isinstance(results, ErrorCode):
            self._ctx.reply(token, DeleteShareGroupOffsetsResponse(error_code=results))
            return
        topics = tuple(
            DeletedOffsetsTopic(
                topic_name=name,
                topic_id=self._id_of(name) if error is ErrorCode.NONE else ZERO_UUID,
                error_code=error,
            )
            for name, error in {**refused_topics, **results}.items()
        )
        self._ctx.reply(token, DeleteShareGroupOffsetsResponse(responses=topics))

    def _id_of(self, name: str) -> str:
        return self._topics.id_of(name) if name in self._topics else ZERO_UUID
