"""Requests about offsets as they come in at a node.

Topics that are unknown or not allowed are refused here, partition by partition; if nothing is left, the group is not
asked at all, so that neither an unknown member nor an old generation shows. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.commits import CommitRequest, PartitionErrors
from rejoin.coordinator.core.offsets.fetches import fetch_offsets, no_offset
from rejoin.coordinator.core.offsets.transactions import (
    MarkerCompletion,
    PendingMarkers,
    marker_partitions,
    marker_record,
)
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_read
from rejoin.coordinator.core.runtime.authorizer import CLUSTER_NAME, Authorizer, Operation, Resource
from rejoin.coordinator.core.runtime.routing import Shards
from rejoin.coordinator.core.runtime.shard import Shard
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from rejoin.protocol.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.types import TopicPartition

FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR = 2
FIRST_TXN_COMMIT_WITH_LOADING = 2


class OffsetRequests:
    """Routes requests about offsets to the shards of their groups."""

    def __init__(self, ctx: StepContext, shards: Shards, topics: Topics, authorizer: Authorizer) -> None:
        self._ctx = ctx
        self._shards = shards
        self._topics = topics
        self._authorizer = authorizer

    # --- commit

    def commit(self, token: Token, request: OffsetCommitRequest, context: Context) -> None:
        if not self._may(context, Operation.READ, Resource.GROUP, request.group_id):
            self._ctx.reply(token, request.response({}, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        else:
            self._commit(token, request, context)

    def txn_commit(self, token: Token, request: TxnOffsetCommitRequest, context: Context) -> None:
        if not self._may(context, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif not self._may(context, Operation.READ, Resource.GROUP, request.group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        else:
            self._commit(token, request, context)
            return
        self._ctx.reply(token, request.response({}, error))

    def _commit(self, token: Token, request: CommitRequest, context: Context) -> None:
        partitions = [
            TopicPartition(topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
        refused = self._refused(context, partitions)
        if len(refused) == len(set(partitions)):
            self._ctx.reply(token, request.response(refused, ErrorCode.NONE))
            return
        shard = self._shard_for(request, context)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, request.response(refused, shard))
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            error = self._unknown_group(request, context)
            if error is not ErrorCode.NONE:
                self._ctx.reply(token, request.response(refused, error))
                return
            group = shard.create_group(request.group_id, simple=True)
        shard.commits.commit(group, token, request, context.api_version, refused)

    def _shard_for(self, request: CommitRequest, context: Context) -> Shard | ErrorCode:
        """The shard to ask, or why none can be: only a transaction needs the group to have a name."""
        shard = self._shards.serving(request.group_id)
        if isinstance(request, OffsetCommitRequest) or shard is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return shard
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.api_version < FIRST_TXN_COMMIT_WITH_LOADING:
            # Kafka: KafkaApis.handleTxnOffsetCommitRequest. Producers of that time crash on the true error.
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return shard

    def _unknown_group(self, request: CommitRequest, context: Context) -> ErrorCode:
        """What a commit meets where there is no group: without a generation it makes a simple one."""
        if isinstance(request, TxnOffsetCommitRequest):
            return ErrorCode.NONE if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
        if request.generation_id_or_member_epoch < 0:
            return ErrorCode.NONE
        return ErrorCode.GROUP_ID_NOT_FOUND if context.api_version >= 9 else ErrorCode.ILLEGAL_GENERATION

    def _refused(self, context: Context, partitions: list[TopicPartition]) -> PartitionErrors:
        """Partitions that are not asked of the group: not allowed, or not there."""
        refused: PartitionErrors = {}
        for partition in partitions:
            if not self._may(context, Operation.READ, Resource.TOPIC, partition.topic):
                refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not self._topics.has_partition(*partition):
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    # --- fetch

    def fetch(self, token: Token, request: OffsetFetchRequest, context: Context) -> None:
        groups = request.groups if context.api_version >= FIRST_FETCH_VERSION_WITH_GROUPS else (only_group(request),)
        pending = PendingFetch(self._ctx, token, context.api_version, dict.fromkeys(range(len(groups))))
        for index, wanted in enumerate(groups):
            self._fetch_group(pending, index, wanted, context, request.require_stable)
        if not groups:
            self._ctx.reply(token, OffsetFetchResponse())

    def _fetch_group(
        self, pending: PendingFetch, index: int, wanted: OffsetFetchRequestGroup, context: Context, stable: bool
    ) -> None:
        shard = self._shards.serving(wanted.group_id)
        if not self._may(context, Operation.DESCRIBE, Resource.GROUP, wanted.group_id):
            pending.refuse(index, wanted, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        elif isinstance(shard, ErrorCode):
            pending.refuse(index, wanted, shard)
        elif stable and shard.in_flight:
            # Kafka: a stable fetch goes behind everything that is being written.
            shard.append((), StableFetchCompletion(self, pending, index, wanted, context, shard))
        else:
            self.read(pending, index, wanted, context, shard, stable)

    def read(
        self,
        pending: PendingFetch,
        index: int,
        wanted: OffsetFetchRequestGroup,
        context: Context,
        shard: Shard,
        stable: bool,
    ) -> None:
        """Read the offsets of one group of a request."""
        group = shard.groups.get(wanted.group_id)
        readable = group is not None and group.validate_offset_fetch() is ErrorCode.NONE
        offsets = shard.offsets.get(wanted.group_id) if readable else None
        if wanted.topics is None:
            names = dict.fromkeys(partition.topic for partition in (() if offsets is None else offsets.stored))
        else:
            names = dict.fromkeys(topic.name for topic in wanted.topics)
        hidden = {name for name in names if not self._may(context, Operation.DESCRIBE, Resource.TOPIC, name)}
        pending.done(index, fetch_offsets(offsets, wanted, stable=stable, hidden=hidden))

    # --- delete

    def delete(self, token: Token, request: OffsetDeleteRequest, context: Context) -> None:
        if not self._may(context, Operation.DELETE, Resource.GROUP, request.group_id):
            self._ctx.reply(token, OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return
        shard = self._shards.serving(request.group_id)
        error = ErrorCode.NONE
        if shard is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            error = shard
        elif not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif isinstance(shard, ErrorCode):
            error = shard
        group = shard.groups.get(request.group_id) if isinstance(shard, Shard) else None
        if error is ErrorCode.NONE and group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        if error is not ErrorCode.NONE or group is None or not isinstance(shard, Shard):
            self._ctx.reply(token, OffsetDeleteResponse(error_code=error))
            return
        partitions = [
            TopicPartition(topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
        shard.deletions.delete(group, token, request, self._refused(context, partitions))

    # --- the ends of transactions

    def write_markers(self, token: Token, request: WriteTxnMarkersRequest, context: Context) -> None:
        """End transactions. Only offsets partitions have anything pending; other topics just agree."""
        allowed = self._may(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        partitions = marker_partitions(request)
        pending = PendingMarkers(self._ctx, token, request, dict.fromkeys(partitions))
        for partition in partitions:
            shard = self._shards.by_partition.get(TopicPartition(partition.topic, partition.partition))
            if not allowed:
                pending.done(partition, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            elif shard is not None:
                record = marker_record(request.markers[partition.marker])
                shard.append((record,), MarkerCompletion(pending, partition, shard.end_transaction))
            elif partition.topic == OFFSETS_TOPIC:
                pending.done(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                known = self._topics.has_partition(partition.topic, partition.partition)
                pending.done(partition, ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not partitions:
            pending.answer()

    def _may(self, context: Context, operation: Operation, resource: Resource, name: str) -> bool:
        return self._authorizer.allows(context.principal, operation, resource, name)


def only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """A fetch of before v8 as the one group that it asks for."""
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def refuse_partitions(
    topics: tuple[OffsetFetchRequestTopics, ...], error: ErrorCode
) -> tuple[OffsetFetchResponseTopics, ...]:
    """The same error for every partition asked for."""
    return tuple(
        OffsetFetchResponseTopics(
            name=topic.name, partitions=tuple(no_offset(index, error) for index in topic.partition_indexes)
        )
        for topic in topics
    )


@dataclass(slots=True)
class PendingFetch:
    """An OffsetFetch request, until the last of its groups has been read."""

    ctx: StepContext
    token: Token
    version: int
    results: dict[int, OffsetFetchResponseGroup | None]
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.results)

    def refuse(self, index: int, wanted: OffsetFetchRequestGroup, error: ErrorCode) -> None:
        topics = wanted.topics or () if self.version < FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR else ()
        refused = OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error)
        if topics:
            # The oldest versions have no field for an error of the group, so each partition carries it.
            refused = OffsetFetchResponseGroup(group_id=wanted.group_id, topics=refuse_partitions(topics, error))
        self.done(index, refused)

    def done(self, index: int, group: OffsetFetchResponseGroup) -> None:
        self.results[index] = group
        self.left -= 1
        if self.left:
            return
        groups = tuple(group for group in self.results.values() if group is not None)
        if self.version >= FIRST_FETCH_VERSION_WITH_GROUPS:
            self.ctx.reply(self.token, OffsetFetchResponse(groups=groups))
            return
        topics = tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in groups[0].topics
        )
        has_error = self.version >= FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR
        error = groups[0].error_code if has_error else ErrorCode.NONE
        self.ctx.reply(self.token, OffsetFetchResponse(topics=topics, error_code=error))


@dataclass(slots=True)
class StableFetchCompletion(AppendCompletion):
    """A stable fetch that waits for the writes before it."""

    requests: OffsetRequests
    pending: PendingFetch
    index: int
    wanted: OffsetFetchRequestGroup
    context: Context
    shard: Shard

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.requests.read(self.pending, self.index, self.wanted, self.context, self.shard, True)
        else:
            self.pending.refuse(self.index, self.wanted, response_error_of_read(error))
