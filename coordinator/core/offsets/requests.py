"""Requests about offsets as they come in at a node.

Topics that are unknown or not allowed are sorted out here, partition by partition; if nothing is left, the group is not
asked at all, so that neither an unknown member nor an old generation shows. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from rejoin.coordinator.core.groups.classic.state import answer_to_read_error, answer_to_write_error
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.commits import CommitRequest, Refused, no_offset
from rejoin.coordinator.core.offsets.store import Place
from rejoin.coordinator.core.runtime.appends import Waiter
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
from rejoin.protocol.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, TransactionMarker
from rejoin.protocol.types import TopicPartition

FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR = 2
FIRST_TXN_COMMIT_WITH_LOADING = 2

MarkerPlace: TypeAlias = tuple[int, str, int]
"""Index of the marker in its request, topic and partition."""


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
        places = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
        refused = self._refused(context, places)
        if len(refused) == len(set(places)):
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
        shard.committing.commit(group, token, request, context.api_version, refused)

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

    def _refused(self, context: Context, places: list[Place]) -> Refused:
        """Partitions that are not asked of the group: not allowed, or not there."""
        refused: Refused = {}
        for place in places:
            if not self._may(context, Operation.READ, Resource.TOPIC, place[0]):
                refused[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not self._topics.has_partition(*place):
                refused[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    # --- fetch

    def fetch(self, token: Token, request: OffsetFetchRequest, context: Context) -> None:
        groups = request.groups if context.api_version >= FIRST_FETCH_VERSION_WITH_GROUPS else (only_group(request),)
        fetching = Fetching(self._ctx, token, context.api_version, dict.fromkeys(range(len(groups))))
        for index, wanted in enumerate(groups):
            self._fetch_group(fetching, index, wanted, context, request.require_stable)
        if not groups:
            self._ctx.reply(token, OffsetFetchResponse())

    def _fetch_group(
        self, fetching: Fetching, index: int, wanted: OffsetFetchRequestGroup, context: Context, stable: bool
    ) -> None:
        shard = self._shards.serving(wanted.group_id)
        if not self._may(context, Operation.DESCRIBE, Resource.GROUP, wanted.group_id):
            fetching.refuse(index, wanted, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        elif isinstance(shard, ErrorCode):
            fetching.refuse(index, wanted, shard)
        elif stable and shard.in_flight:
            # Kafka: a stable fetch goes behind everything that is being written.
            shard.append((), StableFetch(self, fetching, index, wanted, context, shard))
        else:
            self.read(fetching, index, wanted, context, shard, stable)

    def read(
        self,
        fetching: Fetching,
        index: int,
        wanted: OffsetFetchRequestGroup,
        context: Context,
        shard: Shard,
        stable: bool,
    ) -> None:
        """Read the offsets of one group of a request."""
        group = shard.groups.get(wanted.group_id)
        hidden: Refused = {}
        places = (
            [(topic.name, partition) for topic in wanted.topics for partition in topic.partition_indexes]
            if wanted.topics is not None
            else list(group.offsets.stored if group is not None else ())
        )
        for place in places:
            if not self._may(context, Operation.DESCRIBE, Resource.TOPIC, place[0]):
                hidden[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        fetching.found(index, shard.committing.fetch(group, wanted, stable, hidden))

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
        places = [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
        shard.committing.delete(group, token, request, self._refused(context, places))

    # --- the ends of transactions

    def write_markers(self, token: Token, request: WriteTxnMarkersRequest, context: Context) -> None:
        """End transactions. Only offsets partitions have anything that could be held back; other topics just agree."""
        allowed = self._may(context, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        places: dict[MarkerPlace, ErrorCode | None] = {
            (number, topic.name, partition): None
            for number, marker in enumerate(request.markers)
            for topic in marker.topics
            for partition in topic.partition_indexes
        }
        marking = Marking(self._ctx, token, request, places)
        for place in list(places):
            number, topic_name, partition = place
            shard = self._shards.by_partition.get(TopicPartition(topic_name, partition))
            if not allowed:
                marking.done(place, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            elif shard is not None:
                shard.append((marker_record(request.markers[number]),), WritingMarker(marking, place, shard))
            elif topic_name == OFFSETS_TOPIC:
                marking.done(place, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                known = self._topics.has_partition(topic_name, partition)
                marking.done(place, ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not places:
            marking.answer()

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


def marker_record(marker: WritableTxnMarker) -> TransactionMarker:
    """The marker as the log keeps it."""
    return TransactionMarker(
        producer_id=marker.producer_id, producer_epoch=marker.producer_epoch, committed=marker.transaction_result
    )


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
class Fetching:
    """An OffsetFetch, until the last of its groups has been read."""

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
            # The oldest versions have no place for an error of the group, so it stands on every partition.
            refused = OffsetFetchResponseGroup(group_id=wanted.group_id, topics=refuse_partitions(topics, error))
        self.found(index, refused)

    def found(self, index: int, group: OffsetFetchResponseGroup) -> None:
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
class StableFetch(Waiter):
    """A fetch that waits for the writes before it."""

    requests: OffsetRequests
    fetching: Fetching
    index: int
    wanted: OffsetFetchRequestGroup
    context: Context
    shard: Shard

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.requests.read(self.fetching, self.index, self.wanted, self.context, self.shard, True)
        else:
            self.fetching.refuse(self.index, self.wanted, answer_to_read_error(error))


@dataclass(slots=True)
class Marking:
    """A WriteTxnMarkers, until the last marker is written."""

    ctx: StepContext
    token: Token
    request: WriteTxnMarkersRequest
    results: dict[MarkerPlace, ErrorCode | None]

    def done(self, place: MarkerPlace, error: ErrorCode) -> None:
        self.results[place] = error
        if None not in self.results.values():
            self.answer()

    def answer(self) -> None:
        self.ctx.reply(
            self.token,
            WriteTxnMarkersResponse(
                markers=tuple(
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=tuple(
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=tuple(
                                    WritableTxnMarkerPartitionResult(
                                        partition_index=index,
                                        error_code=self.results[number, topic.name, index] or ErrorCode.NONE,
                                    )
                                    for index in topic.partition_indexes
                                ),
                            )
                            for topic in marker.topics
                        ),
                    )
                    for number, marker in enumerate(self.request.markers)
                )
            ),
        )


@dataclass(slots=True)
class WritingMarker(Waiter):
    """One marker on its way into one offsets partition."""

    marking: Marking
    place: MarkerPlace
    shard: Shard

    def ended(self, error: ErrorCode) -> None:
        self.late(error)
        self.marking.done(self.place, answer_to_write_error(error))

    def late(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.shard.end_transaction(marker_record(self.marking.request.markers[self.place[0]]))
