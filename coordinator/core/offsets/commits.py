"""OffsetCommit and TxnOffsetCommit: checked by the group, written, and answered once they are durable.

Topics that are unknown or not allowed have been checked before, as they do not depend on the group; the results for
those partitions come along as ``refused`` and are merged into the response.

Kafka: OffsetMetadataManager.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from rejoin.coordinator.core.groups.group import Committer, Group, emit_fenced
from rejoin.coordinator.core.inputs import Token
from rejoin.coordinator.core.offsets.producers import OffsetProducers
from rejoin.coordinator.core.offsets.store import GroupOffsets, OffsetStore, committed_offset
from rejoin.coordinator.core.runtime.appends import AppendCompletion, ShardLog, response_error_of_write
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.coordinator import CommitRefused, OffsetsCommitted
from rejoin.journal.events.transactions import ProducerFenced
from rejoin.protocol.brokers.releases import has_reached
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.offsets.offset_commit import (
    OffsetCommitRequest,
)
from rejoin.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
)
from rejoin.protocol.records.consumer_offsets import OffsetCommitValue, offset_record
from rejoin.protocol.types import ZERO_UUID, TopicPartition
from rejoin.protocol.unvalidated import unvalidated

PartitionErrors: TypeAlias = dict[TopicPartition, ErrorCode]
"""Errors of single partitions."""

LATEST: Final = 2**63 - 1
"""The last instant that a record has room for."""

FIRST_RELEASE_WITH_TOPIC_IDS: Final = "4.1"
"""From this release of Kafka on, the id of the topic is stored with each offset (KAFKA-19141)."""

CommitRequest: TypeAlias = OffsetCommitRequest | TxnOffsetCommitRequest


def emit_fenced_producer(
    ctx: StepContext, request: TxnOffsetCommitRequest, error: ErrorCode, producers: OffsetProducers
) -> None:
    """A commit within a transaction is refused, as its epoch is below that of its producer."""
    ctx.emit(
        ProducerFenced(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            current_epoch=producers.epoch_of(request.producer_id),
            api="TxnOffsetCommit",
            error=error.name,
            topic=None,
            partition=None,
        )
    )


class Sessions(Protocol):
    """The sessions of a shard's members."""

    def restart_after_commit(self, group: Group, member_id: str) -> None:
        """An accepted commit counts as a heartbeat of its member."""


class TopicIds(Protocol):
    """The ids of the topics of the cluster."""

    def id_of(self, topic: str) -> str:
        """The id of a topic that exists."""

    def __contains__(self, topic: str) -> bool: ...


class OffsetCommits:
    """Handles commits for one shard's groups."""

    def __init__(
        self,
        ctx: StepContext,
        log: ShardLog,
        store: OffsetStore,
        producers: OffsetProducers,
        sessions: Sessions,
        topics: TopicIds,
    ) -> None:
        self._ctx = ctx
        self._log = log
        self._store = store
        self._producers = producers
        self._sessions = sessions
        self._topics = topics
        self._stores_topic_ids = has_reached(ctx.settings.emulator_as_kafka, FIRST_RELEASE_WITH_TOPIC_IDS)

    def commit(
        self, group: Group, token: Token, request: CommitRequest, version: int, refused: PartitionErrors
    ) -> None:
        """Check, write, and answer when it is written."""
        committer = committer_of(request)
        values, results = self._values(request, version, refused)
        error = group.validate_offset_commit(committer, version, values)
        if error is not ErrorCode.NONE:
            self._refuse(group, committer, token, request, error, values, refused)
            return
        if committer.keeps_session:
            self._sessions.restart_after_commit(group, committer.member_id)
        if not values:
            self._ctx.reply(token, request.response(results, ErrorCode.NONE))
            return
        if isinstance(request, TxnOffsetCommitRequest):
            error = self._producers.check(request.producer_id, request.producer_epoch)
            if error is not ErrorCode.NONE:
                emit_fenced_producer(self._ctx, request, error, self._producers)
                self._ctx.reply(token, request.response(results, error))
                return
            self._producers.commit(request.producer_id, request.producer_epoch)
        self._write(group, committer, token, request, values, results)

    def resume(self, group: Group, token: Token, request: CommitRequest, version: int) -> None:
        """Write a commit that was accepted at the instant of this step."""
        values, results = self._values(request, version, {})
        self._write(group, committer_of(request), token, request, values, results)

    def _write(
        self,
        group: Group,
        committer: Committer,
        token: Token,
        request: CommitRequest,
        values: dict[TopicPartition, OffsetCommitValue],
        results: PartitionErrors,
    ) -> None:
        offsets = self._store.of(group.group_id)
        offsets.begin_writes(values)
        records = tuple(
            offset_record(group.group_id, topic, partition, value, committer.producer_id)
            for (topic, partition), value in values.items()
        )
        self._log.append(
            records, CommitCompletion(self._ctx, group, offsets, committer, token, request, values, results)
        )

    def _refuse(
        self,
        group: Group,
        committer: Committer,
        token: Token,
        request: CommitRequest,
        error: ErrorCode,
        values: dict[TopicPartition, OffsetCommitValue],
        refused: PartitionErrors,
    ) -> None:
        api = "TxnOffsetCommit" if committer.is_transactional else "OffsetCommit"
        emit_fenced(self._ctx, group, error, committer.member_id, committer.group_instance_id, api)
        self._ctx.reply(token, request.response(refused, error))
        self._ctx.emit(
            CommitRefused(
                group_id=group.group_id,
                member_id=committer.member_id,
                generation=committer.generation,
                state=group.state,
                error=error.name,
                offsets=[committed_offset(partition, value) for partition, value in values.items()],
            )
        )

    def _values(
        self, request: CommitRequest, version: int, refused: PartitionErrors
    ) -> tuple[dict[TopicPartition, OffsetCommitValue], PartitionErrors]:
        """Offsets to store, and the results of the partitions that are refused."""
        now = self._ctx.now
        limit = self._ctx.settings.offset_metadata_max_bytes
        results = dict(refused)
        values: dict[TopicPartition, OffsetCommitValue] = {}
        expires_at = -1
        if isinstance(request, OffsetCommitRequest) and 2 <= version <= 4 and request.retention_time_ms != -1:
            # Differs: Kafka adds without a look at the end of the range; "for ever" then is in the past.
            expires_at = min(now + request.retention_time_ms, LATEST)
        for topic in request.topics:
            name = topic.name
            topic_id = self._topics.id_of(name) if self._stores_topic_ids and name in self._topics else ZERO_UUID
            for partition in topic.partitions:
                key = TopicPartition(name, partition.partition_index)
                if refused and key in refused:
                    continue
                metadata = partition.committed_metadata or ""
                # A character takes one or two of Java's.
                if metadata and 2 * len(metadata) > limit and len(metadata.encode("utf-16-le")) > 2 * limit:
                    results[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                # A model that lacks a field takes long to say so, and TxnOffsetCommit has none of these.
                committed_at = vars(partition).get("commit_timestamp", -1)
                values[key] = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now if committed_at == -1 else committed_at,
                    expire_timestamp=expires_at,
                    topic_id=topic_id,
                )
        return values, results


def committer_of(request: CommitRequest) -> Committer:
    """Who sends a commit."""
    if isinstance(request, OffsetCommitRequest):
        return Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
    return Committer(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        request.producer_id,
    )


@dataclass(slots=True)
class CommitCompletion(AppendCompletion):
    """A commit being written. Its offsets count once they are durable, whatever the group does meanwhile."""

    ctx: StepContext
    group: Group
    offsets: GroupOffsets
    committer: Committer
    token: Token
    request: CommitRequest
    values: dict[TopicPartition, OffsetCommitValue]
    results: PartitionErrors = field(default_factory=dict)

    def ended(self, error: ErrorCode) -> None:
        if error is not ErrorCode.REQUEST_TIMED_OUT:
            self.ended_late(error)
        self.ctx.reply(self.token, self.request.response(self.results, response_error_of_write(error)))

    def ended_late(self, error: ErrorCode) -> None:
        self.offsets.end_writes(self.values)
        if error is not ErrorCode.NONE:
            return
        group, committer, offsets = self.group, self.committer, self.offsets
        is_transactional = committer.is_transactional
        for partition, value in self.values.items():
            if is_transactional:
                offsets.hold(committer.producer_id, partition, value)
            else:
                offsets.store(partition, value)
        group.persisted = True
        self.ctx.emit(
            unvalidated(
                OffsetsCommitted,
                group_id=group.group_id,
                member_id=committer.member_id,
                group_instance_id=committer.group_instance_id,
                generation=committer.generation,
                state=str(group.state),
                offsets=[committed_offset(partition, value) for partition, value in self.values.items()],
                producer_id=committer.producer_id if is_transactional else None,
            )
        )
