"""Requests of members of streams groups as they come in at a node: who may ask, whether this is the node, the group.

The checks before the group's own are in Kafka's order. Kafka: KafkaApis.handleStreamsGroupHeartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.streams.internal_topics import InternalTopics
from rejoin.coordinator.core.groups.streams.model.state import STREAMS
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.runtime.admission import BEFORE_TOPICS, Admission
from rejoin.coordinator.core.runtime.shard import ShardState
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.streams_groups import StreamsHeartbeatRefused
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsTopology,
    refused,
)
from rejoin.protocol.messages.streams.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


class StreamsGroupRequests:
    """Routes requests about streams groups to the shards of the groups."""

    def __init__(
        self,
        ctx: StepContext,
        shards: GroupShards,
        admission: Admission,
        may_be_used: Callable[[str], bool],
        internal_topics: InternalTopics,
    ) -> None:
        """``may_be_used``: whether an application may have a topic of this name."""
        self._ctx = ctx
        self._shards = shards
        self._admission = admission
        self._may_be_used = may_be_used
        self._internal_topics = internal_topics
        self._is_served = STREAMS in ctx.settings.group_coordinator_rebalance_protocols

    def heartbeat(self, token: Token, request: StreamsGroupHeartbeatRequest, context: Context) -> None:
        if self._admission.allows_everything and self._ctx.features.streams_version and self._is_served:
            led = self._shards.shard_of(request.group_id)
            is_active = led is not None and led.state is ShardState.ACTIVE
            if led is not None and is_active and led.machine.kinds.streams.answer_unchanged(token, request, context):
                return
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if request.topology is not None and shard not in BEFORE_TOPICS:
            error = self._check_topics(request, request.topology, context)
            if error is not ErrorCode.NONE:
                shard = error
        if isinstance(shard, ErrorCode):
            if shard is ErrorCode.UNSUPPORTED_VERSION:
                self._emit_turned_off(request, context)
            self._ctx.reply(token, refused(shard))
        else:
            shard.kinds.streams.streams_heartbeat(token, request, context, self._internal_topics)

    def _emit_turned_off(self, request: StreamsGroupHeartbeatRequest, context: Context) -> None:
        self._ctx.emit(
            StreamsHeartbeatRefused(
                group_id=request.group_id,
                member_id=request.member_id,
                group_instance_id=request.instance_id,
                client_id=context.client_id,
                client_host=context.client_host,
                error=ErrorCode.UNSUPPORTED_VERSION.name,
                reason="turned-off",
            )
        )

    def update_description(
        self, token: Token, request: StreamsGroupTopologyDescriptionUpdateRequest, context: Context
    ) -> None:
        """Refuse the description of a topology, as Kafka does without a plugin for it (KIP-1331)."""
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        error = shard if shard in BEFORE_TOPICS and isinstance(shard, ErrorCode) else ErrorCode.UNSUPPORTED_VERSION
        self._ctx.reply(token, StreamsGroupTopologyDescriptionUpdateResponse(error_code=error))

    def _check_topics(
        self, request: StreamsGroupHeartbeatRequest, topology: StreamsTopology, context: Context
    ) -> ErrorCode:
        """Whether a topology can have these topics, and its member may see them."""
        names = list(dict.fromkeys(_topics_in(topology)))
        if not all(map(self._may_be_used, names)):
            return ErrorCode.STREAMS_INVALID_TOPOLOGY
        return self._admission.authorize_topics(request, context, names)


def _topics_in(topology: StreamsTopology) -> Iterator[str]:
    for each in topology.subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for info in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield info.name
