"""Requests about offsets as they come in at a node.

Topics that are unknown or not allowed are refused here, partition by partition; if nothing is left, the group is not
asked at all, so that neither an unknown member nor an old generation shows. Kafka: KafkaApis, GroupCoordinatorService.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.groups.group_shards import GroupShards
from rejoin.coordinator.core.groups.shard import GroupsShard
from rejoin.coordinator.core.inputs import Context, Token
from rejoin.coordinator.core.offsets.commits import CommitRequest, PartitionErrors
from rejoin.coordinator.core.offsets.fetches import fetch_offsets, no_offset
from rejoin.coordinator.core.offsets.topic_ids import is_unknown_id, with_ids, with_names
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.runtime.appends import AppendCompletion, response_error_of_read
from rejoin.coordinator.core.security.resources import Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.topics import Topics
from rejoin.protocol.brokers.releases import has_former_coordinator
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitRequest
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
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
from rejoin.protocol.types import TopicPartition

FIRST_COMMIT_WITH_NOT_FOUND = 9
FIRST_TXN_COMMIT_WITH_NOT_FOUND = 6
FIRST_VERSION_BY_ID = 10
FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FETCH_VERSION_WITH_TOP_LEVEL_ERROR = 2


class OffsetRequests:
    """Routes requests about offsets to the shards of their groups."""

    def __init__(self, ctx: StepContext, shards: GroupShards, topics: Topics, admission: Admission) -> None:
        self._ctx = ctx
        self._shards = shards
        self._topics = topics
        self._admission = admission

    # --- commit

    def commit(self, token: Token, request: OffsetCommitRequest, context: Context) -> None:
        error = self._admission.authorize(request, context, Resource.GROUP, request.group_id)
        if error is ErrorCode.NONE:
            if context.api_version >= FIRST_VERSION_BY_ID:
                request = request.model_copy(update={"topics": with_names(request.topics, self._topics)})
            refused, is_any_left = self.refused(request, context)
            if is_any_left:
                self.commit_to_group(token, request, context, refused)
            else:
                self._ctx.reply(token, request.response(refused, ErrorCode.NONE))
        else:
            self._ctx.reply(token, request.response({}, error))

    def commit_to_group(self, token: Token, request: CommitRequest, context: Context, refused: PartitionErrors) -> None:
        """Hand a commit to its group, but for the partitions that are refused; a simple group may come to be."""
        shard = self._admission.route(self._shards, request, context, request.group_id)
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

    def _unknown_group(self, request: CommitRequest, context: Context) -> ErrorCode:
        """The error of a commit to a group that does not exist; without a generation it creates a simple group."""
        if request.generation_id_or_member_epoch < 0:
            return ErrorCode.NONE
        is_txn = isinstance(request, TxnOffsetCommitRequest)
        first = FIRST_TXN_COMMIT_WITH_NOT_FOUND if is_txn else FIRST_COMMIT_WITH_NOT_FOUND
        is_named = context.api_version >= first and not has_former_coordinator(self._ctx.settings.emulator_as_kafka)
        return ErrorCode.GROUP_ID_NOT_FOUND if is_named else ErrorCode.ILLEGAL_GENERATION

    def refused(self, request: CommitRequest | OffsetDeleteRequest, context: Context) -> tuple[PartitionErrors, bool]:
        """Partitions that are not asked of the group: not allowed, or not there; and whether any other is left."""
        refused: PartitionErrors = {}
        is_any_left = False
        for topic in request.topics:
            name = topic.name
            error = self._admission.authorize(request, context, Resource.TOPIC, name)
            count = self._topics.partition_count(name) if error is ErrorCode.NONE else 0
            if not count and not isinstance(topic, OffsetDeleteRequestTopic) and is_unknown_id(topic):
                error = ErrorCode.UNKNOWN_TOPIC_ID
            for partition in topic.partitions:
                if 0 <= partition.partition_index < count:
                    is_any_left = True
                else:
                    refused[TopicPartition(name, partition.partition_index)] = (
                        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is ErrorCode.NONE else error
                    )
        return refused, is_any_left

    # --- fetch

    def fetch(self, token: Token, request: OffsetFetchRequest, context: Context) -> None:
        if context.api_version >= FIRST_VERSION_BY_ID:
            request = self._fetch_with_names(request)
        groups = request.groups if context.api_version >= FIRST_FETCH_VERSION_WITH_GROUPS else (only_group(request),)
        pending = PendingFetch(self._ctx, token, context.api_version, dict.fromkeys(range(len(groups))))
        for index, wanted in enumerate(groups):
            self._fetch_group(pending, index, wanted, request, context)
        if not groups:
            self._ctx.reply(token, OffsetFetchResponse())

    def _fetch_with_names(self, request: OffsetFetchRequest) -> OffsetFetchRequest:
        groups = tuple(
            group
            if group.topics is None
            else group.model_copy(update={"topics": with_names(group.topics, self._topics)})
            for group in request.groups
        )
        return request.model_copy(update={"groups": groups})

    def _fetch_group(
        self,
        pending: PendingFetch,
        index: int,
        wanted: OffsetFetchRequestGroup,
        request: OffsetFetchRequest,
        context: Context,
    ) -> None:
        shard = self._admission.admit(self._shards, request, context, wanted.group_id)
        stable = request.require_stable
        if isinstance(shard, ErrorCode):
            pending.refuse(index, wanted, shard)
        elif stable and shard.log.is_writing:
            # Kafka: a stable fetch goes behind everything that is being written.
            shard.log.append((), StableFetchCompletion(self, pending, index, wanted, context, shard))
        else:
            self.read(pending, index, wanted, context, shard, stable)

    def read(
        self,
        pending: PendingFetch,
        index: int,
        wanted: OffsetFetchRequestGroup,
        context: Context,
        shard: GroupsShard,
        stable: bool,
    ) -> None:
        """Read the offsets of one group of a request."""
        group = shard.groups.get(wanted.group_id)
        error = ErrorCode.NONE
        if group is not None:
            error = group.validate_offset_fetch(wanted.member_id, wanted.member_epoch)
        # Kafka: a group that is Dead has no offsets, which is no error.
        if error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            pending.refuse(index, wanted, error)
            return
        if wanted.topics is not None:
            pending.done(index, self._found(group, error, wanted, context, shard, stable))
            return
        found = pending.whole_groups.get(wanted.group_id)
        if found is None:
            found = self._found(group, error, wanted, context, shard, stable)
            pending.whole_groups[wanted.group_id] = found
        pending.done(index, found)

    def _found(
        self,
        group: Group | None,
        error: ErrorCode,
        wanted: OffsetFetchRequestGroup,
        context: Context,
        shard: GroupsShard,
        stable: bool,
    ) -> OffsetFetchResponseGroup:
        """The offsets of a group, which are none with an ``error``."""
        readable = group is not None and error is ErrorCode.NONE
        offsets = shard.offsets.get(wanted.group_id) if readable else None
        if wanted.topics is None:
            names = dict.fromkeys(partition.topic for partition in (() if offsets is None else offsets.stored))
        else:
            names = dict.fromkeys(topic.name for topic in wanted.topics)
        allows = self._admission.allows
        refused = {
            name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
            for name in names
            if not allows(OffsetFetchRequest, context, Resource.TOPIC, name)
        }
        if context.api_version < FIRST_VERSION_BY_ID:
            return fetch_offsets(offsets, wanted, stable=stable, refused=refused)
        unknown = {topic.name for topic in wanted.topics or () if is_unknown_id(topic)}
        refused |= dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_ID)
        found = fetch_offsets(offsets, wanted, stable=stable, refused=refused)
        return found.model_copy(update={"topics": with_ids(found.topics, self._topics, unknown)})

    # --- delete

    def delete(self, token: Token, request: OffsetDeleteRequest, context: Context) -> None:
        shard = self._admission.admit(self._shards, request, context, request.group_id)
        if isinstance(shard, ErrorCode):
            self._ctx.reply(token, OffsetDeleteResponse(error_code=shard))
            return
        group = shard.groups.get(request.group_id)
        if group is None:
            self._ctx.reply(token, OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
            return
        refused, _ = self.refused(request, context)
        shard.deletions.delete(group, token, request, refused)


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
    """One error for every requested partition."""
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
    whole_groups: dict[str, OffsetFetchResponseGroup] = field(default_factory=dict)
    """All offsets of the groups of which all were asked for, by group id: a request may repeat one."""
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
    shard: GroupsShard

    def ended(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.requests.read(self.pending, self.index, self.wanted, self.context, self.shard, True)
        else:
            self.pending.refuse(self.index, self.wanted, response_error_of_read(error))
