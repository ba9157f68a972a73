"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, for the groups of one shard.

What does not depend on the group (topics that are unknown or not allowed) has been sorted out before; the results for
those partitions come along as ``refused`` and are merged into the answer.

Kafka: OffsetMetadataManager, ClassicGroup.validateOffsetCommit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rejoin.coordinator.core.groups.classic.group import ClassicGroup, is_active
from rejoin.coordinator.core.groups.classic.rebalance import Rebalancer
from rejoin.coordinator.core.groups.classic.state import (
    DEAD,
    EMPTY,
    ON_COMMIT,
    PREPARING_REBALANCE,
    STABLE,
    answer_to_write_error,
)
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.offsets.store import Place, shown
from rejoin.coordinator.core.runtime.appends import Appender, Waiter
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import CommitRefused, OffsetsCommitted, OffsetsDeleted
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from rejoin.protocol.messages.offsets.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from rejoin.protocol.messages.offsets.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue, offset_record

Refused: TypeAlias = dict[Place, ErrorCode]
"""Partitions that were refused before the group was asked."""

CommitRequest: TypeAlias = OffsetCommitRequest | TxnOffsetCommitRequest
CommitResponse: TypeAlias = OffsetCommitResponse | TxnOffsetCommitResponse

NO_OFFSET = -1


def delete_answer(request: OffsetDeleteRequest, results: Refused) -> OffsetDeleteResponse:
    """The answer to OffsetDelete: no error where ``results`` has none."""
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=results.get((topic.name, partition.partition_index), ErrorCode.NONE),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


@dataclass(slots=True, frozen=True)
class Committer:
    """Who commits, as far as the group cares."""

    member_id: str
    group_instance_id: str | None
    generation: int
    producer_id: int = -1

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != -1

    @property
    def keeps_session(self) -> bool:
        """Whether an accepted commit counts as a heartbeat."""
        return not self.is_transactional and self.generation >= 0

    @classmethod
    def of(cls, request: CommitRequest) -> Committer:
        if isinstance(request, TxnOffsetCommitRequest):
            return cls(request.member_id, request.group_instance_id, request.generation_id, request.producer_id)
        return cls(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)


class Committing:
    """Handles the offsets of one shard's groups."""

    def __init__(self, ctx: StepContext, log: Appender, rebalancer: Rebalancer) -> None:
        self._ctx = ctx
        self._log = log
        self._rebalancer = rebalancer

    # --- commit

    def commit(self, group: ClassicGroup, token: Token, request: CommitRequest, version: int, refused: Refused) -> None:
        """Check, write, and answer when it is written."""
        committer = Committer.of(request)
        error = self._check(group, committer)
        values, results = self._values(request, version, refused)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, request.response(refused, error))
            self._ctx.emit(
                CommitRefused(
                    group_id=group.group_id,
                    member_id=committer.member_id,
                    generation=committer.generation,
                    state=group.state,
                    error=error.name,
                    offsets=[shown(place, value) for place, value in values.items()],
                )
            )
            return
        if committer.keeps_session and group.state in (STABLE, PREPARING_REBALANCE):
            self._rebalancer.restart_session(group.members[committer.member_id])
        if not values:
            self._ctx.reply(token, request.response(results, ErrorCode.NONE))
            return
        group.offsets.depart(list(values))
        records = tuple(
            offset_record(group.group_id, topic, partition, value, committer.producer_id)
            for (topic, partition), value in values.items()
        )
        self._log.append(records, StoringCommit(self._ctx, group, committer, token, request, values, results))

    def _check(self, group: ClassicGroup, committer: Committer) -> ErrorCode:
        """Whether the group takes this commit. Kafka: ClassicGroup.validateOffsetCommit."""
        if group.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if committer.generation < 0 and group.state is EMPTY:
            return ErrorCode.NONE
        if committer.generation >= 0 or committer.member_id or committer.group_instance_id is not None:
            api = "TxnOffsetCommit" if committer.is_transactional else "OffsetCommit"
            error = self._rebalancer.check_member(group, committer.member_id, committer.group_instance_id, api)
            if error is not ErrorCode.NONE:
                return error
            if committer.generation != group.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not committer.is_transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if committer.is_transactional else ON_COMMIT.get(group.state, ErrorCode.NONE)

    def _values(
        self, request: CommitRequest, version: int, refused: Refused
    ) -> tuple[dict[Place, OffsetCommitValue], Refused]:
        """What shall be stored, and the results of the partitions that shall not."""
        now = self._ctx.now
        limit = self._ctx.settings.offset_metadata_max_bytes
        results = dict(refused)
        values: dict[Place, OffsetCommitValue] = {}
        expires_at = -1
        if isinstance(request, OffsetCommitRequest) and 2 <= version <= 4 and request.retention_time_ms != -1:
            expires_at = now + request.retention_time_ms
        for topic in request.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if place in refused:
                    continue
                metadata = partition.committed_metadata or ""
                if len(metadata.encode("utf-16-le")) > 2 * limit:
                    results[place] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                committed_at = getattr(partition, "commit_timestamp", -1)
                values[place] = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now if committed_at == -1 else committed_at,
                    expire_timestamp=expires_at,
                )
        return values, results

    # --- fetch

    def fetch(
        self, group: ClassicGroup | None, request: OffsetFetchRequestGroup, stable: bool, hidden: Refused
    ) -> OffsetFetchResponseGroup:
        """Read offsets. What is unknown is -1 without an error, be it the group, the topic or the offset."""
        offsets = None if group is None or group.state is DEAD else group.offsets
        wanted: dict[str, list[int]] = {}
        if request.topics is not None:
            for topic in request.topics:
                wanted.setdefault(topic.name, []).extend(topic.partition_indexes)
        elif offsets is not None:
            for topic_name, partition in sorted(offsets.stored):
                if (topic_name, partition) not in hidden:
                    wanted.setdefault(topic_name, []).append(partition)
        topics = []
        for topic_name, partitions in wanted.items():
            found = []
            for partition in partitions:
                place = (topic_name, partition)
                value = offsets.stored.get(place) if offsets is not None else None
                if place in hidden:
                    found.append(no_offset(partition, hidden[place]))
                elif stable and offsets is not None and offsets.is_pending(place):
                    found.append(no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                elif value is None:
                    found.append(no_offset(partition, ErrorCode.NONE))
                else:
                    found.append(
                        OffsetFetchResponsePartitions(
                            partition_index=partition,
                            committed_offset=value.offset,
                            committed_leader_epoch=value.leader_epoch,
                            metadata=value.metadata,
                        )
                    )
            topics.append(OffsetFetchResponseTopics(name=topic_name, partitions=tuple(found)))
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=tuple(topics))

    # --- delete

    def delete(self, group: ClassicGroup, token: Token, request: OffsetDeleteRequest, refused: Refused) -> None:
        """Forget offsets of topics that nobody in the group reads."""
        if group.state is DEAD:
            self._ctx.reply(token, OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
            return
        if is_active(group) and not group.uses_consumer_protocol:
            self._ctx.reply(token, OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
            return
        results = dict(refused)
        doomed: list[Place] = []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if place in refused:
                    continue
                if subscribed:
                    results[place] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif group.offsets.knows(place):
                    doomed.append(place)
        answer = delete_answer(request, results)
        if not doomed:
            self._ctx.reply(token, answer)
            return
        records = tuple(offset_record(group.group_id, topic, partition, None) for topic, partition in doomed)
        self._log.append(records, DeletingOffsets(self._ctx, group, doomed, "requested", token, answer))


def no_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    """A partition without an offset to show."""
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=-1,
        metadata="",
        error_code=error,
    )


@dataclass(slots=True)
class StoringCommit(Waiter):
    """A commit on its way into the log. Offsets count once they are durable, whatever the group does meanwhile."""

    ctx: StepContext
    group: ClassicGroup
    committer: Committer
    token: Token
    request: CommitRequest
    values: dict[Place, OffsetCommitValue]
    results: Refused = field(default_factory=dict)

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self.late(error)
        self.ctx.reply(self.token, self.request.response(self.results, answer_to_write_error(error)))

    def late(self, error: ErrorCode) -> None:
        offsets = self.group.offsets
        offsets.arrive(list(self.values))
        if error is not ErrorCode.NONE:
            return
        if self.committer.is_transactional:
            for place, value in self.values.items():
                offsets.hold(self.committer.producer_id, place, value)
        else:
            for place, value in self.values.items():
                offsets.store(place, value)
        self.group.persisted = True
        self.ctx.emit(
            OffsetsCommitted(
                group_id=self.group.group_id,
                member_id=self.committer.member_id,
                group_instance_id=self.committer.group_instance_id,
                generation=self.committer.generation,
                state=self.group.state,
                offsets=[shown(place, value) for place, value in self.values.items()],
                producer_id=self.committer.producer_id if self.committer.is_transactional else None,
            )
        )


@dataclass(slots=True)
class DeletingOffsets(Waiter):
    """Tombstones of offsets on their way into the log; with a token, somebody asked for them."""

    ctx: StepContext
    group: ClassicGroup
    places: list[Place]
    why: Literal["requested", "expired", "topic-deleted"]
    token: Token | None = None
    answer: OffsetDeleteResponse | None = None

    def ended(self, error: ErrorCode) -> None:
        self.late(error)
        if self.answer is not None:
            failed = OffsetDeleteResponse(error_code=answer_to_write_error(error))
            self.ctx.reply(self.token, self.answer if error is ErrorCode.NONE else failed)

    def late(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            return
        gone = [(place, self.group.offsets.forget(place)) for place in self.places]
        self.ctx.emit(
            OffsetsDeleted(
                group_id=self.group.group_id,
                why=self.why,
                offsets=[shown(place, value) for place, value in gone if value is not None],
            )
        )
